/* SPDX-License-Identifier: GPL-2.0-or-later */
/* calls.c -- what the target remembers of the calls of an active function (function.h).  It is in memory alone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "function/impl.h"

#define HIDDEN "The report is for the user whose data it may show.\n"

/* The end of a report says the most: there the traceback names the error. */
static uint8_t *copy_report(const struct osd_function_call *call, size_t *ret_length)
{
	size_t length = OSD_MIN(call->report_length, (size_t)OSD_FUNCTION_REPORT_MAX);
	uint8_t *copy = length ? malloc(length) : NULL;

	if (copy)
		memcpy(copy, call->report + call->report_length - length, length);
	*ret_length = copy ? length : 0;
	return copy;
}

static void count(struct calls *calls, const struct osd_function_call *call)
{
	if (call->recorded)
		calls->recorded++;
	else
		calls->plain++;
	calls->last_msec = call->ended_msec;
}

void osd_function_calls_release(struct calls *calls)
{
	free(calls->report);
	free(calls->audience);
}

/* Exchanges what the entry keeps of a failure for what is given. */
static void count_failure(struct calls *calls, const struct osd_function_call *call,
			  struct calls *kept)
{
	struct calls before = *calls;

	calls->failed++;
	calls->failed_msec = call->ended_msec;
	calls->reason = call->reason;
	snprintf(calls->method, sizeof(calls->method), "%s", call->method);
	calls->report = kept->report;
	calls->report_length = kept->report_length;
	calls->audience = kept->audience;
	*kept = before;
}

/* A report that cannot be kept for its audience alone is not kept. */
static struct calls copy_failure(const struct osd_function_call *call)
{
	struct calls copy = {.audience = call->audience ? strdup(call->audience) : NULL};

	if (call->reason && (copy.audience || !call->audience))
		copy.report = copy_report(call, &copy.report_length);
	return copy;
}

static void count_signer(struct osd_functions *functions, const struct osd_function_call *call)
{
	const char *signer = call->signer;
	struct osd_signer_calls *row = functions->signer_calls;
	const struct osd_signer_calls *last = row + OSD_FUNCTION_SIGNERS - 1, *end;

	osd_assert_held(&functions->lock);
	for (end = row + functions->signer_count; row < end && strcmp(row->signer, signer) != 0;)
		row++;
	if (row == end && row == last)
		signer = OSD_FUNCTION_OTHERS;
	if (row == end && functions->signer_count < OSD_FUNCTION_SIGNERS) {
		snprintf(row->signer, sizeof(row->signer), "%s", signer);
		functions->signer_count++;
	} else if (row == end) {
		row--;
	}
	if (call->reason)
		row->failed++;
	else
		row->completed++;
}

size_t osd_functions_signer_calls(struct osd_functions *functions,
				  struct osd_signer_calls rows[OSD_FUNCTION_SIGNERS])
{
	size_t count;

	osd_lock(&functions->lock);
	count = functions->signer_count;
	memcpy(rows, functions->signer_calls, count * sizeof(rows[0]));
	osd_unlock(&functions->lock);
	return count;
}

void osd_function_called(struct osd_functions *functions, const struct osd_function_call *call)
{
	struct calls kept = copy_failure(call);
	struct entry *entry;

	osd_lock(&functions->lock);
	count_signer(functions, call);
	entry = find_entry(functions, call->id, call->sha256, false);
	if (entry)
		count(&entry->calls, call);
	if (entry && call->reason)
		count_failure(&entry->calls, call, &kept);
	osd_unlock(&functions->lock);
	osd_function_calls_release(&kept);
}

/* The data of a user may be in the report of a function that they have passed through. */
static size_t put_report(const struct calls *calls, const char *reader, char *to)
{
	bool shown = !calls->audience || (reader && strcmp(reader, calls->audience) == 0);

	if (!calls->report_length)
		return 0;
	if (!shown) {
		memcpy(to, HIDDEN, strlen(HIDDEN));
		return strlen(HIDDEN);
	}
	memcpy(to, calls->report, calls->report_length);
	return calls->report_length;
}

void osd_function_get_calls(struct osd_functions *functions, struct osd_object_id id,
			    const char *reader, uint8_t *buffer, size_t capacity,
			    size_t *ret_length)
{
	char line[OSD_FUNCTION_CALLS_MAX];
	const struct entry *entry;
	size_t used = 0;

	osd_lock(&functions->lock);
	entry = find_entry(functions, id, NULL, false);
	if (entry) {
		const struct calls *calls = &entry->calls;

		used = (size_t)snprintf(line, sizeof(line),
					"plain=%" PRIu64 " recorded=%" PRIu64 " failed=%" PRIu64
					" last=%" PRIu64 " failure=%" PRIu64 " reason=%u method=%s\n",
					calls->plain, calls->recorded, calls->failed,
					calls->last_msec, calls->failed_msec, calls->reason,
					calls->method);
		used += put_report(calls, reader, line + used);
	}
	osd_unlock(&functions->lock);
	memcpy(buffer, line, OSD_MIN(used, capacity));
	*ret_length = used;
}
