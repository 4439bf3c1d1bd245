/* SPDX-License-Identifier: GPL-2.0-or-later */
/* context.c -- see context.h. */
#include "command/context.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "security/security.h"

enum osd_status osd_command_fail(struct osd_request *request, enum osd_status status,
				 uint16_t field_pointer)
{
	request->fault.has_field = true;
	request->fault.field_pointer = field_pointer;
	return status;
}

enum osd_status osd_command_fail_attribute(struct osd_request *request, enum osd_status status,
					   uint32_t page, uint32_t number)
{
	struct osd_fault *fault = &request->fault;

	for (unsigned i = 0; i < fault->attribute_count; i++)
		if (fault->attributes[i].page == page && fault->attributes[i].number == number)
			return status;
	if (fault->attribute_count < OSD_SENSE_ATTRIBUTES)
		fault->attributes[fault->attribute_count++] =
			(struct osd_sense_attribute){page, number};
	return status;
}

void osd_command_principal(const struct osd_request *request, struct osd_principal *ret_principal)
{
	const struct osd_nexus *nexus = &request->nexus;

	osd_principal_derive(&request->security.proof.grant, nexus->chap_name,
			     nexus->initiator_name, nexus->address, ret_principal);
}

bool osd_command_aborted(const struct osd_request *request)
{
	return __atomic_load_n(&request->aborted, __ATOMIC_ACQUIRE);
}

/* The one who removes the file of a step does that step. */
static bool step_granted(const char *hold)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s.step", hold);
	return unlink(path) == 0;
}

void osd_command_hold(const struct osd_command_context *ctx)
{
	struct timespec pause = {.tv_nsec = 1000000};

	while (ctx->hold && !osd_command_aborted(ctx->request) && access(ctx->hold, F_OK) == 0 &&
	       !step_granted(ctx->hold))
		nanosleep(&pause, NULL);
}

bool osd_command_stops(void *context)
{
	const struct osd_command_context *ctx = context;

	osd_command_hold(ctx);
	return osd_command_aborted(ctx->request);
}

struct osd_request **osd_requests_take_aborted(struct osd_request **waiting,
					       struct osd_request **aborted)
{
	while (*waiting) {
		struct osd_request *request = *waiting;

		if (!osd_command_aborted(request)) {
			waiting = &request->next;
			continue;
		}
		*waiting = request->next;
		request->next = *aborted;
		*aborted = request;
	}
	return waiting;
}

void osd_command_data_in(struct osd_request *request, const void *bytes, size_t length)
{
	uint64_t at = request->command_data_in;

	if (at < request->data_in_capacity && length)
		memcpy(request->data_in + at, bytes,
		       OSD_MIN(length, request->data_in_capacity - (size_t)at));
	request->command_data_in += length;
}
