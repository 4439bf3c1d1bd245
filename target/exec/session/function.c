/* SPDX-License-Identifier: GPL-2.0-or-later */
/* function.c -- a script's calls of active functions (session.h).  The code runs in the script's own sandbox: it needs
 * no other slot, and has the zone and the rights of the job.  While it runs, its access class restricts the session
 * as well as those of its callers.  Caller and function share a process: a hostile script can leave a function early,
 * and gets no more rights by this than it had before. */
#include <string.h>

#include "base/util.h"
#include "exec/session/session.h"
#include "function/function.h"
#include "security/box.h"

#define TAKE_ATTEMPTS 8 /* of a function that is replaced meanwhile */

struct entering {
	struct osd_function_name name;
	const uint8_t *method;
	size_t method_length;
	struct osd_function function;
};

static enum osd_session_denied denied_by(const struct osd_function *function)
{
	if (function->access == OSD_FUNCTION_WRITE)
		return OSD_DENIES_NOTHING;
	return function->access == OSD_FUNCTION_READ ? OSD_DENIES_CHANGES : OSD_DENIES_ALL;
}

static enum osd_status read_names(struct osd_op *op, struct entering *entering)
{
	const struct osd_call *call = &op->call;
	const uint8_t *names = op->session->scratch;

	if (call->body_bytes > 2 * OSD_FUNCTION_WORD_MAX || call->a > OSD_FUNCTION_WORD_MAX ||
	    call->a > call->body_bytes || call->b)
		return OSD_E_PARAM_FIELD;
	entering->method = names;
	entering->method_length = call->a;
	entering->name = (struct osd_function_name){
		.partition_id = call->partition_id,
		.object_id = call->object_id,
		.text = names + call->a,
		.length = call->body_bytes - call->a,
	};
	return !entering->name.object_id == !entering->name.length ? OSD_E_PARAM_FIELD : OSD_OK;
}

static enum osd_status choose_partition(struct osd_op *op, struct entering *entering)
{
	uint64_t *partition_id = &entering->name.partition_id;
	enum osd_status status = OSD_OK;

	if (!*partition_id)
		*partition_id = op->session->running.partition_id;
	if (!*partition_id)
		status = osd_function_partition(op->session->host->functions, partition_id);
	if (status == OSD_E_CDB_FIELD)
		op->why = "several partitions have active functions; name one";
	return status;
}

static enum osd_status find(struct osd_op *op, struct entering *entering)
{
	struct osd_function *function = &entering->function;
	enum osd_status status =
		osd_function_find(op->session->host->functions, &entering->name, function);

	if (status == OSD_E_CDB_FIELD)
		op->why = "the digits fit several functions";
	if (status != OSD_OK)
		return status;
	if (function->engine[0] && strcmp(function->engine, OSD_FUNCTION_ENGINE) != 0) {
		op->why = "the function runs in another engine than the script";
		return OSD_E_FUNCTION_ENGINE;
	}
	if (!osd_function_permits(function, op->session->zone.id.partition_id)) {
		op->why = "the zone of the job is none of the function's signer";
		return OSD_E_PERMISSION;
	}
	if (entering->method_length && !osd_function_has_method(function, entering->method,
								entering->method_length)) {
		op->why = "the function has no such entry point";
		return OSD_E_PARAM_FIELD;
	}
	return OSD_OK;
}

static void forget_code(struct osd_session *session)
{
	osd_function_code_put(OSD_STEAL(session->code));
}

static void answer(struct osd_op *op, const struct entering *entering)
{
	const struct osd_function *function = &entering->function;
	char method[OSD_FUNCTION_WORD_MAX + 1] = "";
	size_t length = entering->method_length;

	if (length)
		memcpy(method, entering->method, length);
	else
		osd_function_first_method(function, method);
	length = strlen(method);
	memcpy(op->out, function->sha256, sizeof(function->sha256));
	memcpy(op->out + sizeof(function->sha256), method, length);
	op->answer.body_bytes = (uint32_t)(sizeof(function->sha256) + length);
	op->answer.a = op->session->code->length;
	op->answer.b = function->access;
}

/* Finds the function and takes its code.  A function that is replaced and removed between these two steps is found
 * again: the call has the old version or the new one. */
static enum osd_status take(struct osd_op *op, struct entering *entering,
			    struct osd_function_code **ret_code)
{
	struct osd_session *session = op->session;
	enum osd_status status = find(op, entering);

	for (int i = 0; i < TAKE_ATTEMPTS && status == OSD_OK; i++) {
		const struct osd_function before = entering->function;

		status = osd_function_code(session->host->functions, &before, ret_code);
		if (status != OSD_E_NO_FUNCTION && status != OSD_E_FUNCTION_INACTIVE)
			return status;
		if (find(op, entering) != OSD_OK || osd_function_same(&before, &entering->function))
			return status;
		status = OSD_OK;
	}
	return status == OSD_OK ? OSD_E_FUNCTION_INACTIVE : status;
}

/* The bytes of the code count as read: reading them costs the target as much.  A refusal leaves the session as it was:
 * the script cannot read code that it may not call. */
enum osd_status osd_op_enter(struct osd_op *op)
{
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	struct osd_session *session = op->session;
	struct entering entering = {0};
	enum osd_status status = read_names(op, &entering);

	if (status == OSD_OK && session->depth == OSD_SESSION_DEPTH) {
		op->why = "functions call each other more than 16 deep";
		return OSD_E_PARAM_FIELD;
	}
	if (status == OSD_OK && !(session->host && session->host->functions))
		status = OSD_E_NO_FUNCTION;
	if (status == OSD_OK)
		status = choose_partition(op, &entering);
	if (status != OSD_OK)
		return status;
	status = take(op, &entering, &code);
	if (status == OSD_OK && osd_box_is(code->bytes, code->length)) {
		op->why = "its code is encrypted: only EXECUTE FUNCTION can call it";
		status = OSD_E_PERMISSION;
	}
	if (status == OSD_OK)
		status = osd_session_count_io(session, &session->bytes_read, code->length);
	if (status != OSD_OK)
		return status;
	forget_code(session);
	session->code = OSD_STEAL(code);
	answer(op, &entering);
	if (!session->plain)
		osd_used_note(&session->used, entering.function.id, OSD_USED_FUNCTION);
	session->callers[session->depth++] = session->running;
	session->running = (struct osd_session_running){
		OSD_MAX(session->running.denied, denied_by(&entering.function)),
		entering.function.id.partition_id};
	return OSD_OK;
}

enum osd_status osd_op_code(struct osd_op *op)
{
	const struct osd_session *session = op->session;
	size_t piece;

	if (!session->code || op->call.a > session->code->length || op->call.b)
		return OSD_E_PARAM_FIELD;
	piece = OSD_MIN(session->code->length - (size_t)op->call.a, (size_t)OSD_CALL_IO_MAX);
	memcpy(op->out, session->code->bytes + op->call.a, piece);
	op->answer.body_bytes = (uint32_t)piece;
	return OSD_OK;
}

enum osd_status osd_op_leave(struct osd_op *op)
{
	struct osd_session *session = op->session;

	if (!session->depth)
		return OSD_E_PARAM_FIELD;
	forget_code(session);
	session->running = session->callers[--session->depth];
	return OSD_OK;
}
