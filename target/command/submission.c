/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submission.c -- see submission.h.  Jobs themselves are in exec/. */
#include "command/submission.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "security/security.h"
#include "wire/continuation.h"

enum { FIELD_PARTITION = 16, FIELD_OBJECT = 24 };

#define RESULT_PIECE (256u << 10) /* of a result that lies in an object */

/* A synchronous EXEC whose job has been accepted: the data needed at its end, when the context no
 * longer exists. */
struct waiting {
	struct osd_request *request;
	struct osd_objects *objects;
};

enum osd_status osd_submission_params(struct osd_command_context *ctx,
				      struct osd_exec_params *params)
{
	struct osd_descriptor descriptor;
	const char *why = "";
	enum osd_status status;

	*params = (struct osd_exec_params){0};
	if (!osd_continuation_find(&ctx->continuation, OSD_DESC_EXEC_PARAMS, &descriptor))
		return OSD_OK;
	status = osd_exec_params_decode(descriptor.content, descriptor.length, params, &why);
	if (status == OSD_OK)
		return OSD_OK;
	osd_debug("parameters refused: %s", why);
	return osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD);
}

void osd_submission_fill(struct osd_exec_submission *submission,
			 const struct osd_exec_params *params)
{
	submission->engine = params->engine;
	submission->has_args = osd_exec_has(params, OSD_EXEC_PARAM_ARGS);
	submission->args_encoding = params->args_encoding;
	submission->args = params->args;
	submission->predecessor =
		(struct osd_object_id){params->predecessor_partition, params->predecessor_id};
	submission->flags = params->flags;
	submission->pool = params->pool;
	submission->limits = (struct osd_job_limits){
		.wall_usec = params->wall_usec,
		.cpu_usec = params->cpu_usec,
		.memory_bytes = params->memory_bytes,
		.processes = params->processes,
		.output_bytes = params->output_bytes,
		.open_files = params->open_files,
		.io_bytes = params->io_bytes,
	};
	submission->grace_usec = params->grace_usec;
	submission->priority = params->priority;
	submission->begin_msec = params->begin_msec;
	submission->reuse_usec = params->reuse_usec;
	submission->after = params->after;
	submission->after_count = params->after_count;
	submission->array.first = params->array_first;
	submission->array.at_once = params->array_at_once;
	submission->array.members = osd_exec_array_members(params);
	submission->array.ranges = params->array_ranges;
	submission->name = params->name;
	submission->key = params->key;
	submission->tags = params->tags;
	submission->tag_count = params->tag_count;
	submission->surrogate_partition = params->surrogate_partition;
	submission->surrogate_id = params->surrogate_id;
	submission->keep_usec = params->expiry_usec;
	submission->sync_wait_usec = params->sync_wait_usec;
	submission->pure = osd_exec_has(params, OSD_EXEC_PARAM_HOME);
	submission->home_usec = params->home_usec;
	submission->home_bytes = params->home_bytes;
}

/* Command data at Data-In 0, as far as RESULT ALLOCATION LENGTH goes. */
static void return_bytes(struct osd_request *request, uint64_t at, const uint8_t *bytes,
			 size_t length)
{
	uint64_t allocation = request->decoded.result_allocation_length;

	if (at < allocation)
		osd_command_data_in(request, bytes,
				    (size_t)OSD_MIN((uint64_t)length, allocation - at));
}

static void return_object(struct waiting *waiting, struct osd_object_id id)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	OSD_CLEANUP_FREE uint8_t *piece = malloc(RESULT_PIECE);
	struct osd_request *request = waiting->request;
	uint64_t end = OSD_MIN(request->decoded.result_allocation_length,
			       (uint64_t)request->data_in_capacity);
	size_t got = RESULT_PIECE;

	if (!piece || osd_object_get(waiting->objects, id, &object) != OSD_OK)
		return;
	for (uint64_t at = 0; at < end && got == RESULT_PIECE; at += got) {
		if (osd_object_read(object, at, piece, RESULT_PIECE, 0, &got) != OSD_OK)
			return;
		return_bytes(request, at, piece, got);
	}
}

static void name_job(struct osd_request *request, struct osd_object_id job)
{
	if (job.partition_id == 0) { /* a plain call: there is none */
		request->object = (struct osd_object_id){0, 0};
		request->object_type = OSD_ROOT;
		return;
	}
	request->object = job;
	request->object_type = OSD_USER_OBJECT;
}

static void return_outcome(struct waiting *waiting, const struct osd_exec_outcome *outcome)
{
	struct osd_request *request = waiting->request;

	name_job(request, outcome->job);
	request->result_length = outcome->whole_length;
	request->result_form = outcome->form;
	request->fault.status = outcome->status;
	if (outcome->reason && outcome->status != OSD_OK)
		osd_fault_inform_command(&request->fault, outcome->reason);
	if (outcome->result)
		return_bytes(request, 0, outcome->result, outcome->result_length);
	else if (outcome->result_object)
		return_object(waiting, (struct osd_object_id){outcome->job.partition_id,
							      outcome->result_object});
}

/* exec/ calls this once, from any thread. */
static void job_ended(void *arg, const struct osd_exec_outcome *outcome)
{
	struct waiting *waiting = arg;

	return_outcome(waiting, outcome);
	waiting->request->resume(waiting->request);
	free(waiting);
}

static void answered(void *arg, const struct osd_exec_outcome *outcome)
{
	return_outcome(arg, outcome);
}

static void report_full(struct osd_fault *fault, const struct osd_exec_refusal *refusal)
{
	osd_fault_inform(fault, refusal->queue_depth);
	osd_fault_inform_command(fault, refusal->retry_after_msec);
}

static enum osd_status refuse(struct osd_request *request, enum osd_status status,
			      const struct osd_exec_refusal *refusal)
{
	const uint64_t most = UINT32_MAX;
	const struct osd_advice_numbers *numbers = &refusal->numbers;
	uint64_t wait = OSD_MIN(numbers->wait_usec, most), other = numbers->home_usec;

	if (status == OSD_E_LATE)
		other = refusal->deadline_usec / 1000;
	switch (status) {
	case OSD_E_QUEUE_FULL:
		report_full(&request->fault, refusal);
		return status;
	case OSD_E_PUSHED_BACK:
	case OSD_E_LATE:
		osd_fault_inform(&request->fault, numbers->near_usec);
		osd_fault_inform_command(&request->fault, wait << 32 | OSD_MIN(other, most));
		return status;
	case OSD_E_NO_PARTITION:
		return osd_command_fail(request, status, FIELD_PARTITION);
	case OSD_E_NO_OBJECT:
		return osd_command_fail(request, status, FIELD_OBJECT);
	case OSD_E_EXISTS:
	case OSD_E_CDB_FIELD:
		return osd_command_fail(request, status, OSD_CONTINUATION_FIELD);
	default:
		return status;
	}
}

/* Puts in what the command says; principal lasts as long as the submission. */
static void fill_sender(struct osd_command_context *ctx, struct osd_exec_submission *submission,
			struct osd_principal *principal)
{
	struct osd_request *request = ctx->request;

	osd_command_principal(ctx->request, principal);
	submission->zone = request->object;
	submission->grant = &request->security.proof.grant;
	submission->principal = principal->key;
	request->cached_result = false; /* requests are used again */
	submission->cached = &request->cached_result;
}

enum osd_status osd_submission_at_once(struct osd_command_context *ctx,
				       struct osd_exec_submission *submission)
{
	struct osd_request *request = ctx->request;
	struct waiting waiting = {request, ctx->objects};
	struct osd_principal principal;

	if (!submission->reuse_usec || !submission->code || osd_exec_takes_args(submission) ||
	    request->decoded.immed_tr || request->security.extension_count)
		return OSD_E_WOULD_BLOCK;
	fill_sender(ctx, submission, &principal);
	submission->done = answered;
	submission->arg = &waiting;
	return osd_exec_answer_at_once(ctx->exec, submission);
}

static bool same_code(const struct osd_function_code *code,
		      const struct osd_exec_submission *submission)
{
	return code->length == submission->code_length &&
	       memcmp(code->bytes, submission->code, code->length) == 0;
}

/* The code of a predecessor that called a function runs as a call of it would now, or not at all: the signature holds for
 * its engine, and the signer's caps for zone and limits.  The submission borrows from function and code. */
static enum osd_status call_again(struct osd_command_context *ctx,
				  struct osd_exec_submission *submission,
				  struct osd_function *function, struct osd_function_code **code)
{
	const char *method = submission->function.method;
	enum osd_status status = OSD_E_FUNCTION_INACTIVE;

	if (!submission->function.id.object_id)
		return OSD_OK;
	if (ctx->functions && osd_function_peek(ctx->functions, submission->function.id, function))
		status = osd_function_code(ctx->functions, function, code);
	if (status == OSD_E_NO_FUNCTION ||
	    (status == OSD_OK && (!same_code(*code, submission) ||
				  !osd_function_has_method(function, method, strlen(method)))))
		return OSD_E_FUNCTION_INACTIVE;
	if (status == OSD_OK && !osd_function_permits(function, submission->zone.partition_id))
		status = OSD_E_FUNCTION_CAPS;
	else if (status == OSD_OK && submission->pure)
		status = OSD_E_CDB_FIELD; /* a pure job reads, whatever its function may do */
	if (status != OSD_OK)
		return status;
	submission->function_code = *code;
	submission->function.access = function->access;
	osd_submission_call(submission, function);
	return OSD_OK;
}

enum osd_status osd_submission_send(struct osd_command_context *ctx,
				    struct osd_exec_submission *submission)
{
	struct osd_request *request = ctx->request;
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	OSD_CLEANUP_FREE struct waiting *waiting = NULL;
	OSD_CLEANUP_FREE uint8_t *content = NULL;
	struct osd_function function;
	struct osd_exec_refusal refusal = {0};
	struct osd_principal principal;
	struct osd_object_id job;
	enum osd_status status;

	/* A job acts with one capability. */
	if (request->security.extension_count)
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	fill_sender(ctx, submission, &principal);
	if (!submission->code || osd_exec_takes_args(submission)) {
		status = osd_exec_take_content(ctx->exec, submission, &content);
		if (status == OSD_OK)
			status = call_again(ctx, submission, &function, &code);
		if (status != OSD_OK)
			return refuse(request, status, &refusal);
	}
	if (!request->decoded.immed_tr) {
		waiting = malloc(sizeof(*waiting));
		if (!waiting)
			return OSD_E_NO_MEMORY;
		*waiting = (struct waiting){request, ctx->objects};
		submission->done = job_ended;
		submission->arg = waiting;
		submission->aborted = &request->aborted;
		submission->lingers = request->lingers;
	}
	status = osd_exec_submit(ctx->exec, submission, &job, &refusal);
	if (status == OSD_PENDING) {
		waiting = NULL; /* from here on job_ended owns it and the request */
		return status;
	}
	if (status != OSD_OK)
		return refuse(request, status, &refusal);
	name_job(request, job);
	return OSD_OK;
}

static struct osd_exec_text text_of(const char *text)
{
	return (struct osd_exec_text){(const uint8_t *)text, (uint32_t)strlen(text)};
}

/* A limit of the manifest is the default, and the most. */
static void bound(uint64_t *limit, uint64_t most)
{
	if (most && (*limit == 0 || *limit > most))
		*limit = most;
}

void osd_submission_call(struct osd_exec_submission *submission,
			 const struct osd_function *function)
{
	const struct osd_signer_caps *caps = &function->caps;

	submission->function.id = function->id;
	memcpy(submission->function.signer, function->signer, sizeof(function->signer));
	submission->engine = text_of(function->engine[0] ? function->engine : OSD_FUNCTION_ENGINE);
	if (!submission->pool.length)
		submission->pool = text_of(function->pool);
	if (!submission->name.length)
		submission->name = text_of(function->alias);
	bound(&submission->limits.wall_usec, function->wall_usec);
	bound(&submission->limits.cpu_usec, function->cpu_usec);
	bound(&submission->limits.memory_bytes, function->memory_bytes);
	bound(&submission->limits.output_bytes, function->output_bytes);
	bound(&submission->limits.wall_usec, caps->wall_usec);
	bound(&submission->limits.cpu_usec, caps->cpu_usec);
	bound(&submission->limits.memory_bytes, caps->memory_bytes);
}

struct osd_exec_submission osd_submission_own(const struct osd_function *function,
					      struct osd_function_code *code, const char *method,
					      struct osd_object_id zone, uint64_t wall_usec)
{
	struct osd_exec_submission submission = {
		.zone = zone,
		.zone_type = zone.object_id ? OSD_USER_OBJECT : OSD_PARTITION,
		.code = code->bytes,
		.code_length = code->length,
		.function_code = code,
		.has_args = true,
		.args_encoding = OSD_ARGS_BYTES,
		.function.access = OSD_JOB_NO_ACCESS,
		.plain = true,
		.stage = true,
		.limits.wall_usec = wall_usec,
	};

	memcpy(submission.function.method, method, strlen(method) + 1);
	osd_submission_call(&submission, function);
	return submission;
}

enum osd_status osd_submission_send_own(struct osd_exec *exec,
					const struct osd_exec_submission *submission,
					struct osd_fault *fault)
{
	struct osd_exec_refusal refusal = {0};
	struct osd_object_id job;
	enum osd_status status = osd_exec_submit(exec, submission, &job, &refusal);

	if (status == OSD_E_QUEUE_FULL && fault)
		report_full(fault, &refusal);
	return status == OSD_E_CDB_FIELD ? OSD_E_POOL_ACCESS : status;
}

enum osd_status osd_submission_outcome(const struct osd_exec_outcome *outcome)
{
	return outcome->reason == OSD_REASON_ZONE_REMOVED ? OSD_E_NO_PARTITION : outcome->status;
}

const char *osd_submission_payer(const char *key)
{
	return strcmp(key, "addr:") == 0 ? NULL : key;
}
