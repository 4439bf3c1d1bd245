/* SPDX-License-Identifier: GPL-2.0-or-later */
/* complete.c -- see complete.h (osd2-wire 2.12, 7). */
#include "command/complete.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"
#include "command/context.h"
#include "command/integrity.h"
#include "command/sense_table.h"
#include "wire/sense.h"

#define LINES_PER_SECOND 20
#define SECOND_USEC	 1000000

bool osd_status_keeps_data(enum osd_status status)
{
	return status == OSD_E_SHORT_READ || status == OSD_E_DAMAGED ||
	       osd_status_is_of_job(status);
}

/* ---- log ------------------------------------------------------------------------------------- */

/* A request for something absent is often expected: listing jobs asks each partition for a
 * collection that its first job creates. */
static enum osd_log_level level_of(enum osd_status status)
{
	if (osd_status_info(status)->sense_key == OSD_SK_HARDWARE_ERROR)
		return OSD_LOG_ERROR;
	return osd_status_is_gone(status) ? OSD_LOG_DEBUG : OSD_LOG_INFO;
}

/* An initiator that fails all the time must not fill the disk with log lines.  Its own mistakes do not suppress the
 * line of a failure of the target. */
static bool may_log(enum osd_log_level level, unsigned *ret_suppressed)
{
	static struct osd_ration failures = OSD_RATION(LINES_PER_SECOND, SECOND_USEC);
	static struct osd_ration refusals = OSD_RATION(LINES_PER_SECOND, SECOND_USEC);

	return osd_ration_take(level == OSD_LOG_ERROR ? &failures : &refusals, osd_monotonic_usec(),
			       ret_suppressed);
}

static void log_failure(const struct osd_request *request, enum osd_status status)
{
	const char *name = osd_service_action_name(request->decoded.service_action);
	char initiator[128], field[32] = "", attribute[48] = "";
	unsigned suppressed;

	if (!osd_log_wants(level_of(status)) || !may_log(level_of(status), &suppressed))
		return;
	if (suppressed)
		osd_warning("%u failed commands were not logged", suppressed);
	if (request->fault.has_field)
		snprintf(field, sizeof(field), " field %u", request->fault.field_pointer);
	if (request->fault.attribute_count)
		snprintf(attribute, sizeof(attribute), " attribute %08" PRIX32 "h #%" PRIX32 "h",
			 request->fault.attributes[0].page, request->fault.attributes[0].number);
	osd_log_quote(initiator, sizeof(initiator), request->nexus.initiator_name,
		      strlen(request->nexus.initiator_name));
	osd_log(level_of(status),
		"lun %u nexus %" PRIu64 " '%s' tag %" PRIx64 " %s (0x%" PRIx64 "/0x%" PRIx64
		"): %s%s%s",
		request->lun, request->nexus.id, initiator, request->task_tag, name ? name : "?",
		request->object.partition_id, request->object.object_id,
		osd_status_info(status)->meaning, field, attribute);
}

/* ---- sense data ------------------------------------------------------------------------------ */

/* The default field pointer of the sense data, if the failing function named none. */
static void default_field(struct osd_request *request, enum osd_status status)
{
	const struct osd_sense_row *row = osd_sense_row(status, request->object_type);

	if (!request->fault.has_field && row && row->field >= 0)
		osd_command_fail(request, status, (uint16_t)row->field);
}

/* Failures of the lookup count as found before the command began: real initiators expect this for a
 * missing object. */
static bool is_validation(const struct osd_request *request, enum osd_status status)
{
	return osd_status_is_gone(status) || status == OSD_E_EXISTS ||
	       (status == OSD_E_CDB_FIELD && !(request->completed & OSD_FN_COMMAND) &&
		!(request->initiated & (OSD_FN_SET_ATTR | OSD_FN_GET_ATTR)) &&
		request->completed & OSD_FN_CAPABILITY);
}

static void build_sense(struct osd_request *request, enum osd_status status, bool proved)
{
	const struct osd_status_info *info = osd_status_info(status);
	const struct osd_fault *fault = &request->fault;
	bool nothing = is_validation(request, status);
	struct osd_sense sense = {
		.sense_key = (uint8_t)info->sense_key,
		.asc_ascq = info->asc_ascq,
		.has_object = osd_sense_names_object(status) && !fault->embedded,
		.partition_id = request->object.partition_id,
		.object_id = request->object.object_id,
		.not_initiated = nothing ? OSD_FN_ALL : OSD_FN_ALL & ~request->initiated,
		.completed = nothing ? 0 : request->completed,
		.has_field = fault->has_field,
		.field_in_data_out = fault->field_in_data_out,
		.field_pointer = fault->field_pointer,
		.has_command_information = fault->has_command_information,
		.command_information = fault->command_information,
		.has_information = fault->has_information,
		.has_response_icv = proved,
		.information = fault->information,
		.attribute_count = fault->attribute_count,
		.text = fault->text,
		.text_length = fault->text ? strlen(fault->text) : 0,
	};

	memcpy(sense.attributes, fault->attributes, sizeof(sense.attributes));
	request->sense_length = osd_sense_encode(&sense, request->sense);
}

void osd_complete_status(struct osd_request *request, enum osd_status status, bool proved)
{
	bool tells = proved;

	request->fault.status = status;
	if (status == OSD_OK) {
		request->sam_status = OSD_SAM_GOOD;
		return;
	}
	if (status == OSD_E_TASK_ABORTED) {
		request->sam_status = OSD_SAM_TASK_ABORTED;
	} else if (status == OSD_E_BUSY || status == OSD_E_QUEUE_FULL) {
		request->sam_status = OSD_SAM_BUSY;
		tells |= request->fault.has_information || request->fault.has_command_information;
	} else {
		request->sam_status = OSD_SAM_CHECK_CONDITION;
		default_field(request, status);
		tells = true;
	}
	if (tells)
		build_sense(request, status, proved);
}

/* ---- lengths --------------------------------------------------------------------------------- */

/* Data-In is command data, a gap, retrieved attributes; the gap is uninitialised memory until
 * now. */
static void set_data_in(struct osd_request *request)
{
	size_t command =
		(size_t)OSD_MIN(request->command_data_in, (uint64_t)request->data_in_capacity);
	uint64_t at = request->decoded.attributes.retrieved_offset;
	size_t end;

	request->data_in_length = command;
	request->data_in_needed = request->command_data_in;
	if (!request->retrieved_needed)
		return;
	request->data_in_needed = at + request->retrieved_needed;
	if (at >= request->data_in_capacity)
		at = request->data_in_capacity;
	if (at > command)
		memset(request->data_in + command, 0, (size_t)at - command);
	request->data_in_length = (size_t)at + request->retrieved_length;
	/* A truncated list ends before the first entry that does not fit; still send the announced
	 * length. */
	end = (size_t)OSD_MIN(request->data_in_needed, (uint64_t)request->data_in_capacity);
	if (request->data_in_length < end) {
		memset(request->data_in + request->data_in_length, 0,
		       end - request->data_in_length);
		request->data_in_length = end;
	}
}

/* The part of Data-Out that the CDB uses; real initiators do send surplus bytes after it. */
static size_t data_out_used(const struct osd_request *request)
{
	const struct osd_cdb_attributes *a = &request->decoded.attributes;
	uint64_t used =
		request->decoded.continuation_length + osd_cdb_command_data_out(&request->decoded);

	if (a->get_list_length)
		used = OSD_MAX(used, a->get_list_offset + a->get_list_length);
	if (osd_cdb_sets(&request->decoded) && a->format != OSD_CDBFMT_SET_ONE)
		used = OSD_MAX(used, a->set_offset + a->set_length);
	if (osd_request_method(request) == OSD_ALLDATA) /* integrity information may lie anywhere */
		used = request->data_out_length;
	return (size_t)OSD_MIN(used, (uint64_t)request->data_out_length);
}

/* No command ends with a status that the target handles itself. */
static enum osd_status answer_of(const struct osd_request *request, enum osd_status status)
{
	if (status < OSD_E_CONFLICT)
		return status;
	return status == OSD_E_CONFLICT
		       ? OSD_E_BUSY
		       : osd_internal("service action %Xh ended with status %s",
				      request->decoded.service_action, osd_status_info(status)->name);
}

void osd_complete(struct osd_request *request, enum osd_status status)
{
	status = answer_of(request, status);
	osd_complete_status(request, status, osd_integrity_responds(request));
	if (status == OSD_OK || osd_status_keeps_data(status)) {
		set_data_in(request);
		request->data_out_used = data_out_used(request);
	}
	osd_integrity_respond(request);
	if (status != OSD_OK && status != OSD_E_SHORT_READ)
		log_failure(request, status);
}
