/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prepare.c -- see dispatch_impl.h.  Here: the order of the steps before a command acts (decoding, proof of
 * the capability, ids, authorisation, validation, lists in Data-Out), and the context they fill.
 * Elsewhere: each of these checks (authorise.c, validate.c, attributes.c, security/check.c), the
 * execution (dispatch.c). */
#include "command/dispatch_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "command/attributes.h"
#include "command/integrity.h"
#include "command/osc.h"
#include "command/table.h"
#include "command/validate.h"

void osd_prepare_attempt(struct osd_request *request)
{
	request->completed &=
		~(uint32_t)(OSD_FN_COMMAND | OSD_FN_IMP_ST_ATT | OSD_FN_SET_ATTR | OSD_FN_GET_ATTR);
	request->command_data_in = 0;
	request->retrieved_length = 0;
	request->retrieved_needed = 0;
	request->made_count = 0;
	request->shows_version = false;
	request->capacity_change = 0;
	request->set_change = 0;
}

void osd_prepare_reset(const struct osd_dispatcher *dispatcher, struct osd_request *request)
{
	request->osc_compat = dispatcher->config.osc_compat;
	request->sam_status = OSD_SAM_GOOD;
	request->sense_length = 0;
	request->data_in_length = 0;
	request->data_in_needed = 0;
	request->data_out_used = 0;
	memset(&request->fault, 0, sizeof(request->fault));
	request->def = NULL;
	request->attributes = NULL;
	request->object = (struct osd_object_id){0, 0};
	request->object_type = OSD_ROOT;
	request->append_start = 0;
	request->initiated = 0;
	request->completed = 0;
	osd_prepare_attempt(request);
	request->security.exec = dispatcher->config.exec;
	request->security.own_job = false;
	request->security.addressed = (struct osd_object_facts){0};
}

enum osd_status osd_prepare_decode(struct osd_request *request, struct osd_command_context *ctx)
{
	uint16_t field = OSD_NO_FIELD;
	enum osd_status status = osd_cdb_decode(request->cdb, request->cdb_length,
						request->osc_compat, &request->decoded, &field);

	ctx->copy = NULL;
	ctx->object = NULL;
	ctx->draft = NULL;
	if (status == OSD_OK)
		request->def = osd_command_find(request->decoded.service_action);
	request->object =
		(struct osd_object_id){request->decoded.partition_id, request->decoded.object_id};
	if (status != OSD_OK)
		return field == OSD_NO_FIELD ? status : osd_command_fail(request, status, field);
	if (!request->def)
		return osd_command_fail(request, OSD_E_CDB_FIELD, 8);
	return OSD_OK;
}

/* Logs the reason of a refusal, at most once per second: an initiator that repeats the request must
 * not fill the log. */
static void explain_refusal(const struct osd_request *request)
{
	static struct osd_ration ration = OSD_RATION(1, 1000000);
	unsigned withheld;

	if (osd_ration_take(&ration, osd_monotonic_usec(), &withheld))
		osd_warning("refused: the capability of a request is not one for this target and "
			    "partition 0x%" PRIx64 ", or less than the partition demands",
			    request->decoded.partition_id);
}

/* The row counts even if the rest of the CDB could not be decoded. */
static enum osd_signing signing_of(const struct osd_request *request)
{
	const struct osd_command_def *def = request->def;

	if (!def)
		def = osd_command_find(request->decoded.service_action);
	return def ? def->signing : OSD_SIGNED_PARTITION;
}

/* Checks that the capability is genuine and the request fresh.  Other errors of the request are
 * reported only to a sender that has proved its identity. */
static enum osd_status admit(struct osd_dispatcher *dispatcher, struct osd_request *request,
			     bool nowait)
{
	struct osd_request_security *security = &request->security;
	uint16_t field = OSD_NO_FIELD;
	enum osd_status status;

	if (security->admitted)
		return OSD_OK;
	status = osd_check_request(&dispatcher->checker, request->cdb, &request->decoded,
				   signing_of(request), request->nexus.id, nowait, &security->proof,
				   &field);
	if (status == OSD_OK) {
		security->admitted = true;
		security->now_ms = security->proof.grant.open ? 0 : osd_wall_msec();
		return OSD_OK;
	}
	if (status == OSD_E_WOULD_BLOCK)
		return status;
	if (!security->proof.grant.verified)
		explain_refusal(request);
	if (status == OSD_E_NONCE_TIME) /* so that a sender without our clock can set its own */
		osd_fault_inform(&request->fault, security->proof.clock_ms);
	request->initiated = OSD_FN_VALIDATION | OSD_FN_CAPABILITY;
	request->completed = OSD_FN_VALIDATION;
	return field == OSD_NO_FIELD ? status : osd_command_fail(request, status, field);
}

/* A command that was accepted before: in the background it does what it was allowed to. */
static void readmit(struct osd_request *request)
{
	struct osd_grant *grant = &request->security.proof.grant;

	osd_capability_decode(request->decoded.capability, &grant->capability);
	grant->open = grant->capability.security_method == OSD_NOSEC;
	grant->verified = !grant->open;
	request->security.admitted = request->security.accepted = true;
}

/* The lists of attributes are checked after this; that check counts as validation. */
static enum osd_status authorise(struct osd_command_context *ctx)
{
	enum osd_status status = osd_authorise(ctx);

	if (status != OSD_OK) {
		ctx->request->initiated = OSD_FN_VALIDATION | OSD_FN_CAPABILITY;
		ctx->request->completed = OSD_FN_VALIDATION;
	}
	return status;
}

/* The private copy of the continuation segment lives as long as the command function runs. */
static enum osd_status load_continuation(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	size_t length;
	enum osd_status status = osd_osc_segment(request, &ctx->copy, &length);

	if (status != OSD_OK)
		return status;
	if (!ctx->copy && request->decoded.continuation_length) {
		length = request->decoded.continuation_length;
		ctx->copy = malloc(length);
		if (!ctx->copy)
			return OSD_E_NO_MEMORY;
		memcpy(ctx->copy, request->data_out, length);
		status = osd_integrity_continuation(request, ctx->copy, length);
		if (status != OSD_OK)
			return status;
	}
	status = osd_continuation_open(ctx->copy, length, request->decoded.service_action,
				       &ctx->continuation);
	return status == OSD_OK ? OSD_OK
				: osd_command_fail(request, status, OSD_CONTINUATION_FIELD);
}

static enum osd_status load(const struct osd_dispatcher *dispatcher,
			    struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	enum osd_status status = load_continuation(ctx);

	if (status == OSD_OK)
		status = osd_authorise_extensions(&dispatcher->checker, ctx);
	if (status == OSD_OK)
		status = osd_attributes_load(request, &request->attributes);
	if (status != OSD_OK)
		return status;
	ctx->attributes = request->attributes;
	/* After the continuation: OSC's segments are part of LENGTH (osc.c). */
	if (ctx->def->flags & OSD_CMD_DATA_OUT && request->decoded.length) {
		ctx->command_data = request->data_out + request->decoded.continuation_length;
		ctx->command_data_length = request->decoded.length;
	}
	status = osd_authorise_sources(ctx);
	if (status == OSD_OK)
		status = osd_authorise_attributes(ctx);
	if (status == OSD_OK)
		request->initiated = request->completed = OSD_FN_VALIDATION | OSD_FN_CAPABILITY;
	return status;
}

static void fill_context(struct osd_dispatcher *dispatcher, struct osd_request *request,
			 bool nowait, struct osd_command_context *ctx)
{
	*ctx = (struct osd_command_context){
		.request = request,
		.def = request->def,
		.addressed = request->object,
		.objects = dispatcher->config.objects,
		.exec = dispatcher->config.exec,
		.functions = dispatcher->config.functions,
		.keyring = dispatcher->config.keyring,
		.manage_tasks = dispatcher->config.manage_tasks,
		.backgrounds = dispatcher->backgrounds,
		.copies = dispatcher->config.copies,
		.flights = &dispatcher->flights,
		.hold = dispatcher->config.hold,
		.data_flags = OSD_DATA_CHECKED | (nowait ? OSD_DATA_NOWAIT : 0),
	};
	request->resume = dispatcher->config.resume;
	if (request->decoded.isolation == OSD_ISOLATION_DEFAULT)
		request->decoded.isolation = osd_objects_isolation(ctx->objects);
	if (request->decoded.timestamps_control == OSD_TIMESTAMPS_BYPASS)
		ctx->data_flags |= OSD_DATA_NO_TIMESTAMPS;
	if (request->decoded.fua)
		ctx->data_flags |= OSD_DATA_FUA;
}

/* From the CDB decoded to the command function: everything that can be checked before acting. */
enum osd_status osd_prepare(struct osd_dispatcher *dispatcher, struct osd_request *request,
			    enum osd_status decoded, bool nowait, struct osd_command_context *ctx)
{
	enum osd_status status = admit(dispatcher, request, nowait);

	if (status == OSD_OK)
		status = decoded;
	if (status == OSD_OK)
		status = osd_validate_ids(request);
	if (status != OSD_OK)
		return status;
	fill_context(dispatcher, request, nowait, ctx);
	status = authorise(ctx);
	if (status == OSD_OK)
		status = osd_validate(request);
	return status == OSD_OK ? load(dispatcher, ctx) : status;
}

enum osd_status osd_prepare_again(struct osd_dispatcher *dispatcher, struct osd_request *request,
				  struct osd_command_context *ctx)
{
	enum osd_status status = osd_prepare_decode(request, ctx);

	readmit(request);
	if (status == OSD_OK)
		status = osd_validate_ids(request);
	if (status != OSD_OK)
		return status;
	fill_context(dispatcher, request, false, ctx);
	status = osd_validate(request);
	return status == OSD_OK ? load(dispatcher, ctx) : status;
}
