/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_function.c -- EXECUTE FUNCTION and ACTIVATE FUNCTION (docs/functions.md).  The data of EXECUTE FUNCTION are the
 * arguments, and its ids are the zone; the parameter FUNCTION names the function. */
#include <string.h>

#include "base/util.h"
#include "command/commands.h"
#include "command/resolve.h"
#include "command/submission.h"
#include "function/function.h"

enum { FIELD_BYTE11 = 11, FIELD_PARTITION = 16, FIELD_OBJECT = 24, FIELD_ARGS_LENGTH = 32 };

/* Of byte 11. */
#define DEACTIVATE 0x01
#define REPLACE	   0x02

/* ---- EXECUTE FUNCTION -------------------------------------------------------------------------------- */

/* The code, and so what goes with it, is the function's. */
static bool says_more_than_allowed(const struct osd_exec_params *params)
{
	return !osd_exec_has(params, OSD_EXEC_PARAM_FUNCTION) ||
	       osd_exec_has(params, OSD_EXEC_PARAM_ENGINE) ||
	       osd_exec_has(params, OSD_EXEC_PARAM_ARGS) ||
	       osd_exec_has(params, OSD_EXEC_PARAM_PREDECESSOR) ||
	       osd_exec_code_form(params->flags) != 0;
}

static enum osd_status find(struct osd_command_context *ctx, const struct osd_exec_params *params,
			    struct osd_function *ret_function)
{
	const struct osd_function_name name = {
		.partition_id = params->function.partition_id,
		.object_id = params->function.object_id,
		.text = params->function.name.bytes,
		.length = params->function.name.length,
	};
	const struct osd_exec_text *method = &params->function.method;
	enum osd_status status = osd_function_find(ctx->functions, &name, ret_function);

	if (status == OSD_OK && method->length &&
	    !osd_function_has_method(ret_function, method->bytes, method->length))
		status = OSD_E_CDB_FIELD;
	return status == OSD_E_CDB_FIELD
		       ? osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD)
		       : status;
}

/* A function with its code.  If others change or replace it between the two, the name is looked up again: a call
 * finds the function that was, or the one that is. */
static enum osd_status find_code(struct osd_command_context *ctx,
				 const struct osd_exec_params *params,
				 struct osd_function *ret_function,
				 struct osd_function_code **ret_code)
{
	enum osd_status status = find(ctx, params, ret_function);

	while (status == OSD_OK) {
		struct osd_function found = *ret_function;
		enum osd_status missing = osd_function_code(ctx->functions, &found, ret_code);

		if (missing != OSD_E_FUNCTION_INACTIVE && missing != OSD_E_NO_FUNCTION)
			return missing;
		status = find(ctx, params, ret_function);
		if (status == OSD_OK && osd_function_same(ret_function, &found))
			return missing;
	}
	return status;
}

/* A limit of the manifest is the default, and the most. */
static void bound(uint64_t *limit, uint64_t most)
{
	if (most && (*limit == 0 || *limit > most))
		*limit = most;
}

/* What a client asks of a call that only a record can give. */
static bool asks_for_record(const struct osd_request *request, const struct osd_exec_params *params)
{
	static const enum osd_exec_param_tag tags[] = {
		OSD_EXEC_PARAM_SURROGATE_PARTITION, OSD_EXEC_PARAM_SURROGATE_ID,
		OSD_EXEC_PARAM_KEY,		    OSD_EXEC_PARAM_TAG,
		OSD_EXEC_PARAM_AFTER,		    OSD_EXEC_PARAM_ARRAY,
		OSD_EXEC_PARAM_EXPIRY,		    OSD_EXEC_PARAM_BEGIN,
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(tags); i++)
		if (osd_exec_has(params, tags[i]))
			return true;
	return request->decoded.immed_tr || params->flags & OSD_EXEC_HOLD;
}

/* Sets how the call is made.  A call that may write always has a record: after a crash, it says whether it
 * has.  OSD_E_CDB_FIELD: the parameters contradict each other. */
static enum osd_status choose_record(struct osd_request *request,
				     const struct osd_exec_params *params,
				     const struct osd_function *function, bool *ret_plain)
{
	bool needed = function->access == OSD_FUNCTION_WRITE || asks_for_record(request, params);

	*ret_plain = params->function.record != OSD_RECORD_ALWAYS && !needed;
	return needed && params->function.record == OSD_RECORD_NEVER
		       ? osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD)
		       : OSD_OK;
}

/* The acceptance of a recorded call finds the zone in its transaction. */
static enum osd_status find_zone(struct osd_command_context *ctx, enum osd_object_type *ret_type)
{
	enum osd_status status = OSD_OK;

	if (!ctx->facts.type) /* the command needed no permission: nothing has looked it up */
		status = osd_resolve_facts(ctx, false);
	if (status == OSD_OK && ctx->facts.missing)
		status = ctx->absent;
	if (status == OSD_E_NO_PARTITION)
		return osd_command_fail(ctx->request, status, FIELD_PARTITION);
	if (status == OSD_E_NO_OBJECT)
		return osd_command_fail(ctx->request, status, FIELD_OBJECT);
	*ret_type = ctx->facts.type;
	return status;
}

static struct osd_exec_text text_of(const char *text)
{
	return (struct osd_exec_text){(const uint8_t *)text, (uint32_t)strlen(text)};
}

static void fill(struct osd_exec_submission *submission, const struct osd_exec_params *params,
		 const struct osd_function *function)
{
	const struct osd_exec_text *method = &params->function.method;

	submission->function =
		(struct osd_job_function){.id = function->id, .access = function->access};
	if (method->length)
		memcpy(submission->function.method, method->bytes, method->length);
	else
		osd_function_first_method(function, submission->function.method);
	submission->engine = text_of(function->engine[0] ? function->engine
								: OSD_FUNCTION_ENGINE);
	submission->args_encoding = params->function.args_encoding;
	if (!submission->pool.length)
		submission->pool = text_of(function->pool);
	if (!submission->name.length)
		submission->name = text_of(function->alias);
	bound(&submission->limits.wall_usec, function->wall_usec);
	bound(&submission->limits.cpu_usec, function->cpu_usec);
	bound(&submission->limits.memory_bytes, function->memory_bytes);
	bound(&submission->limits.output_bytes, function->output_bytes);
}

enum osd_status osd_cmd_execute_function(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	struct osd_exec_submission submission = {0};
	struct osd_function function;
	struct osd_exec_params params;
	enum osd_status status;

	if (!ctx->exec)
		return OSD_E_ISOLATION;
	if (ctx->command_data_length > osd_exec_limits[OSD_LIMIT_ARGS].maximum)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ARGS_LENGTH);
	status = osd_submission_params(ctx, &params);
	if (status != OSD_OK)
		return status;
	if (says_more_than_allowed(&params) ||
	    (params.function.args_encoding == OSD_ARGS_NONE && ctx->command_data_length > 0))
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	status = find_code(ctx, &params, &function, &code);
	if (status == OSD_OK)
		status = choose_record(request, &params, &function, &submission.plain);
	if (status == OSD_OK && submission.plain)
		status = find_zone(ctx, &submission.zone_type);
	if (status != OSD_OK)
		return status;
	osd_submission_fill(&submission, &params);
	fill(&submission, &params, &function);
	submission.code = code->bytes;
	submission.code_length = code->length;
	submission.code_sha256 = code->sha256;
	submission.has_args = true;
	submission.args =
		(struct osd_exec_text){ctx->command_data, (uint32_t)ctx->command_data_length};
	return osd_submission_send(ctx, &submission);
}

/* ---- ACTIVATE FUNCTION ------------------------------------------------------------------------------- */

enum osd_status osd_cmd_activate_function(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint8_t bits = request->decoded.command_bits;
	enum osd_status status;

	if (bits & ~(DEACTIVATE | REPLACE) || bits == (DEACTIVATE | REPLACE))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	status = bits & DEACTIVATE ? osd_function_deactivate(ctx->functions, request->object)
				   : osd_function_activate(ctx->functions, request->object,
							   bits & REPLACE);
	if (status == OSD_E_NO_PARTITION)
		return osd_command_fail(request, status, FIELD_PARTITION);
	return status == OSD_E_NO_OBJECT || status == OSD_E_CDB_FIELD
		       ? osd_command_fail(request, status, FIELD_OBJECT)
		       : status;
}
