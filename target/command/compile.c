/* SPDX-License-Identifier: GPL-2.0-or-later */
/* compile.c -- see compile.h. */
#include "command/compile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/hook_call.h"
#include "security/security.h"

#define TRIES 4 /* of an activation, while others change the code */

struct osd_compiled {
	struct osd_function_code *code; /* owned reference; NULL: it cannot be compiled */
	unsigned tries;
	char text[OSD_HOOK_TEXT_MAX + 1]; /* why not */
};

struct compiling {
	struct osd_functions *functions;
	struct osd_function function;
	struct osd_function_code *code; /* owned reference */
	struct osd_request *request;	/* parked; NULL: it is for calls */
};

static void free_compiling(struct compiling *compiling)
{
	if (compiling)
		osd_function_code_put(compiling->code);
	free(compiling);
}

OSD_DEFINE_CLEANUP(struct compiling *, free_compiling)

struct osd_function_code *osd_compiled_code(const struct osd_request *request)
{
	return request->compiled ? request->compiled->code : NULL;
}

void osd_compile_forget(struct osd_request *request)
{
	osd_function_code_put(osd_compiled_code(request));
	free(request->compiled);
	request->compiled = NULL;
}

/* ---- the call ----------------------------------------------------------------------------------------- */

/* Its own limits are those of the pool: those of the function are for its calls. */
static enum osd_status submit(struct osd_exec *exec, struct compiling *compiling,
			      void (*done)(void *arg, const struct osd_exec_outcome *outcome))
{
	const struct osd_function *function = &compiling->function;
	struct osd_exec_refusal refusal = {0};
	char principal[OSD_PRINCIPAL_MAX];
	struct osd_object_id job;
	struct osd_exec_submission submission = {
		.zone = function->id,
		.zone_type = OSD_USER_OBJECT,
		.code = compiling->code->bytes,
		.code_length = compiling->code->length,
		.function_code = compiling->code,
		.has_args = true,
		.plain = true,
		.stage = true,
		.compile = true,
		.principal = principal,
		.engine = {(const uint8_t *)function->engine, (uint32_t)strlen(function->engine)},
		.pool = {(const uint8_t *)function->pool, (uint32_t)strlen(function->pool)},
		.name = {(const uint8_t *)function->alias, (uint32_t)strlen(function->alias)},
		.done = done,
		.arg = compiling,
		.aborted = compiling->request ? &compiling->request->aborted : NULL,
	};
	enum osd_status status;

	snprintf(principal, sizeof(principal),
		 "compile:%" PRIx64 "/%" PRIx64 ":%02x%02x%02x%02x%02x%02x%02x%02x",
		 function->id.partition_id, function->id.object_id, compiling->code->sha256[0],
		 compiling->code->sha256[1], compiling->code->sha256[2], compiling->code->sha256[3],
		 compiling->code->sha256[4], compiling->code->sha256[5], compiling->code->sha256[6],
		 compiling->code->sha256[7]);
	status = osd_exec_submit(exec, &submission, &job, &refusal);
	return status == OSD_E_CDB_FIELD ? OSD_E_FUNCTION_ENGINE : status;
}

/* NULL: it failed, or there is no memory. */
static struct osd_function_code *make_code(const struct compiling *compiling,
					   const struct osd_exec_outcome *outcome)
{
	if (outcome->status == OSD_OK && outcome->form == OSD_RESULT_BYTES && outcome->result &&
	    outcome->result_length == outcome->whole_length)
		return osd_function_code_compiled(compiling->code, outcome->result,
						  outcome->result_length);
	/* Calls still work: each sandbox compiles for itself. */
	if (outcome->reason == OSD_REASON_RESULT_LIMIT)
		return osd_function_code_compiled(compiling->code, NULL, 0);
	return NULL;
}

/* ---- activation --------------------------------------------------------------------------------------- */

static enum osd_status take(struct compiling *compiling, const struct osd_exec_outcome *outcome)
{
	struct osd_request *request = compiling->request;
	struct osd_compiled *compiled = request->compiled;

	compiled->code = make_code(compiling, outcome);
	if (compiled->code)
		return OSD_OK;
	if (outcome->status != OSD_OK && !osd_status_is_of_job(outcome->status))
		return outcome->status;
	osd_hook_text(outcome, compiled->text);
	request->fault.text = compiled->text;
	osd_fault_inform_command(&request->fault, outcome->reason);
	osd_info("function 0x%" PRIx64 "/0x%" PRIx64 " cannot be compiled: reason %u: %s",
		 request->object.partition_id, request->object.object_id, outcome->reason,
		 compiled->text);
	return OSD_E_FUNCTION_CODE;
}

/* exec/ calls this once, from any thread. */
static void activation_compiled(void *arg, const struct osd_exec_outcome *outcome)
{
	struct compiling *compiling = arg;
	struct osd_request *request = compiling->request;
	enum osd_status status = take(compiling, outcome);

	if (status == OSD_OK) {
		osd_attributes_forget(request);
		request->again = true;
	}
	request->fault.status = status;
	free_compiling(compiling);
	request->resume(request);
}

static struct compiling *make(struct osd_functions *functions, const struct osd_function *function,
			      struct osd_function_code *code)
{
	struct compiling *compiling = malloc(sizeof(*compiling));

	if (compiling)
		*compiling = (struct compiling){.functions = functions,
						.function = *function,
						.code = osd_function_code_ref(code)};
	return compiling;
}

enum osd_status osd_compile_for_activation(struct osd_command_context *ctx,
					   const struct osd_function_compile *needed)
{
	OSD_CLEANUP(free_compilingp)
	struct compiling *compiling = make(ctx->functions, &needed->function, needed->code);
	struct osd_request *request = ctx->request;
	enum osd_status status;

	if (!request->compiled)
		request->compiled = calloc(1, sizeof(*request->compiled));
	if (!compiling || !request->compiled)
		return OSD_E_NO_MEMORY;
	if (request->compiled->tries++ == TRIES)
		return OSD_E_BUSY;
	osd_function_code_put(OSD_STEAL(request->compiled->code));
	compiling->request = request;
	status = submit(ctx->exec, compiling, activation_compiled);
	if (status == OSD_PENDING)
		compiling = NULL; /* from here on activation_compiled owns it and the request */
	return status;
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static void call_compiled(void *arg, const struct osd_exec_outcome *outcome)
{
	struct compiling *compiling = arg;
	OSD_CLEANUP(osd_function_code_putp)
	struct osd_function_code *code = make_code(compiling, outcome);

	osd_function_compile_ends(compiling->functions, &compiling->function, code);
	free_compiling(compiling);
}

void osd_compile_for_calls(struct osd_functions *functions, struct osd_exec *exec,
			   const struct osd_function *function, struct osd_function_code *code)
{
	struct compiling *compiling;

	if (!osd_function_compile_begins(functions, function, code))
		return;
	compiling = make(functions, function, code);
	if (compiling && submit(exec, compiling, call_compiled) == OSD_PENDING)
		return;
	osd_function_compile_ends(functions, function, NULL);
	free_compiling(compiling);
}
