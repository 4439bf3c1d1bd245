/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_function.c -- EXECUTE FUNCTION and ACTIVATE FUNCTION (docs/functions.md).  The data of EXECUTE FUNCTION are the
 * arguments, and its ids are the zone; the parameter FUNCTION names the function. */
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "command/compile.h"
#include "command/resolve.h"
#include "command/submission.h"
#include "function/function.h"
#include "security/box.h"

/* Longer code that a sandbox does not keep is copied into a file, by a worker; encrypted code is decrypted by one. */
#define AT_ONCE_CODE_MAX (128u << 10)

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
	       osd_exec_has(params, OSD_EXEC_PARAM_HOME) ||
	       osd_exec_code_form(params->flags) != 0;
}

static struct osd_function_name name_of(const struct osd_exec_params *params)
{
	return (struct osd_function_name){
		.partition_id = params->function.partition_id,
		.object_id = params->function.object_id,
		.text = params->function.name.bytes,
		.length = params->function.name.length,
	};
}

static enum osd_status find(struct osd_command_context *ctx, const struct osd_exec_params *params,
			    struct osd_function *ret_function)
{
	const struct osd_function_name name = name_of(params);
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

/* Without waiting: all that is not in memory, or takes long, or fails, is left to a worker. */
static enum osd_status find_code_at_once(struct osd_command_context *ctx,
					 const struct osd_exec_params *params,
					 struct osd_function *ret_function,
					 struct osd_function_code **ret_code)
{
	const struct osd_function_name name = name_of(params);
	const struct osd_exec_text *method = &params->function.method;
	enum osd_status status =
		osd_function_find_at_once(ctx->functions, &name, ret_function, ret_code);

	if (status != OSD_OK)
		return status;
	if ((*ret_code)->length + (*ret_code)->machine_length > AT_ONCE_CODE_MAX ||
	    osd_box_is((*ret_code)->bytes, (*ret_code)->length) ||
	    (method->length &&
	     !osd_function_has_method(ret_function, method->bytes, method->length)))
		return OSD_E_WOULD_BLOCK;
	return OSD_OK;
}

/* Whether the client asks for something that only a record can give.  Attributes along with the command are those of the
 * surrogate, but for the Current Command page. */
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
	return request->decoded.immed_tr || params->flags & OSD_EXEC_HOLD ||
	       (request->attributes && !request->attributes->current_only);
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

static void fill(struct osd_exec_submission *submission, const struct osd_exec_params *params,
		 const struct osd_function *function)
{
	const struct osd_exec_text *method = &params->function.method;

	if (method->length)
		memcpy(submission->function.method, method->bytes, method->length);
	else
		osd_function_first_method(function, submission->function.method);
	submission->args_encoding = params->function.args_encoding;
	submission->function.access = function->access;
	osd_submission_call(submission, function);
}

enum osd_status osd_cmd_execute_function(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	struct osd_exec_submission submission = {0};
	bool at_once = ctx->data_flags & OSD_DATA_NOWAIT;
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
	status = at_once ? find_code_at_once(ctx, &params, &function, &code)
			 : find_code(ctx, &params, &function, &code);
	if (status == OSD_OK && !osd_function_permits(&function, request->object.partition_id))
		status = OSD_E_FUNCTION_CAPS;
	if (status == OSD_OK)
		status = choose_record(request, &params, &function, &submission.plain);
	if (status == OSD_OK && submission.plain)
		status = find_zone(ctx, &submission.zone_type);
	if (status == OSD_OK && at_once && !submission.plain)
		status = OSD_E_WOULD_BLOCK; /* its acceptance is a transaction */
	if (status != OSD_OK)
		return status;
	osd_submission_fill(&submission, &params);
	fill(&submission, &params, &function);
	submission.code = code->bytes;
	submission.code_length = code->length;
	submission.function_code = code;
	submission.has_args = true;
	submission.args =
		(struct osd_exec_text){ctx->command_data, (uint32_t)ctx->command_data_length};
	status = osd_submission_send(ctx, &submission);
	osd_compile_for_calls(ctx->functions, ctx->exec, &function, code);
	return status;
}

/* ---- ACTIVATE FUNCTION ------------------------------------------------------------------------------- */

/* The function that loses its alias may be another user's: ending it needs the same permissions as on the one addressed.
 * If it is gone by now, nothing is replaced. */
static enum osd_status authorise_end(struct osd_command_context *ctx, struct osd_function *replaced)
{
	enum osd_status status = osd_authorise_other(ctx, replaced->id, OSD_USER_OBJECT,
						     ctx->def->permissions, OSD_USES_NONE, NULL);

	if (!osd_status_is_gone(status))
		return status;
	replaced->id.object_id = 0;
	return OSD_OK;
}

/* replaced: NULL: none. */
static enum osd_status activate(struct osd_command_context *ctx,
				const struct osd_function *replaced)
{
	struct osd_function_compile needed = {.code = NULL};
	enum osd_status status =
		osd_function_activate(ctx->functions, ctx->request->object, replaced,
				      osd_compiled_code(ctx->request), ctx->exec ? &needed : NULL);

	if (status == OSD_E_WOULD_BLOCK)
		status = osd_compile_for_activation(ctx, &needed);
	osd_function_code_put(needed.code);
	return status;
}

enum osd_status osd_cmd_activate_function(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint8_t bits = request->decoded.command_bits;
	struct osd_function replaced;
	enum osd_status status = OSD_OK;

	if (bits & ~(DEACTIVATE | REPLACE) || bits == (DEACTIVATE | REPLACE))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	if (bits & REPLACE) {
		status = osd_function_replaced(ctx->functions, request->object, &replaced);
		if (status == OSD_OK && replaced.id.object_id) {
			status = authorise_end(ctx, &replaced);
			if (status != OSD_OK)
				return status; /* its field is set */
		}
	}
	if (status == OSD_OK)
		status = bits & DEACTIVATE
				 ? osd_function_deactivate(ctx->functions, request->object)
				 : activate(ctx, bits & REPLACE ? &replaced : NULL);
	if (status == OSD_E_NO_PARTITION)
		return osd_command_fail(request, status, FIELD_PARTITION);
	return status == OSD_E_NO_OBJECT || status == OSD_E_CDB_FIELD
		       ? osd_command_fail(request, status, FIELD_OBJECT)
		       : status;
}

/* ---- removal of functions ---------------------------------------------------------------------------- */

enum osd_status osd_command_in_use(struct osd_command_context *ctx, enum osd_status status)
{
	struct osd_fault *fault = &ctx->request->fault;
	struct osd_object_id job;

	if (status != OSD_E_FUNCTION_IN_USE ||
	    !osd_exec_uses_function(ctx->exec, ctx->request->object, &job) || !job.object_id)
		return status;
	osd_fault_inform(fault, job.object_id);
	osd_fault_inform_command(fault, job.partition_id);
	return status;
}
