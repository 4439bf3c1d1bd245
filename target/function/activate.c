/* SPDX-License-Identifier: GPL-2.0-or-later */
/* activate.c -- activation (function.h).
 *
 * One transaction marks the object.  An activation that replaces the function with its alias ends that one in the same
 * transaction. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "function/machine.h"
#include "function/signing.h"
#include "object/txn_run.h"
#include "security/box.h"

struct activation {
	struct osd_functions *functions;
	struct osd_function function;
	struct osd_object_id replaced; /* object 0: none */
	struct osd_signing signing;    /* as it was checked */
};

static bool same_manifest(const struct osd_function *a, const struct osd_function *b)
{
	return a->access == b->access && a->abi == b->abi && strcmp(a->engine, b->engine) == 0 &&
	       strcmp(a->alias, b->alias) == 0 && strcmp(a->pool, b->pool) == 0 &&
	       strcmp(a->methods, b->methods) == 0 && strcmp(a->inverse, b->inverse) == 0 &&
	       osd_contract_same(&a->contract, &b->contract) && a->wall_usec == b->wall_usec &&
	       a->cpu_usec == b->cpu_usec && a->memory_bytes == b->memory_bytes &&
	       a->output_bytes == b->output_bytes;
}

/* The manifest may have changed since it was read, and since its signature was checked: both must be those that are
 * stored. */
static enum osd_status mark(struct osd_txn *txn, void *arg)
{
	struct activation *activation = arg;
	struct osd_function now;
	enum osd_status status = osd_object_hold(txn, activation->function.id);

	if (status == OSD_OK)
		status = osd_function_read(txn, activation->function.id, &now);
	if (status != OSD_OK)
		return status;
	if (!same_manifest(&now, &activation->function))
		return OSD_E_BUSY;
	status = osd_signing_same(txn, &activation->function, &activation->signing);
	if (status != OSD_OK)
		return status;
	status = osd_function_mark(txn, now.id, &activation->function);
	if (status == OSD_OK && activation->replaced.object_id) {
		status = osd_function_mark(txn, activation->replaced, NULL);
		if (status == OSD_E_NO_OBJECT) /* removed meanwhile */
			status = OSD_OK;
	}
	return status;
}

/* A function that transforms data gets them as arguments and needs nothing else (stack.h). */
static bool is_sound(const struct osd_function *function)
{
	const struct osd_contract *contract = &function->contract;

	return osd_contract_is_sound(contract) &&
	       (!contract->size || function->access == OSD_FUNCTION_NONE) &&
	       (!contract->inverse ||
		osd_function_has_method(function, function->inverse, strlen(function->inverse)));
}

void osd_functions_set_jobs(struct osd_functions *functions, const struct osd_functions_jobs *jobs)
{
	functions->jobs = *jobs;
}

static enum osd_status check_engine(const struct osd_functions *functions,
				    const struct osd_function *function)
{
	const char *engine = osd_function_engine(function);
	bool found = strcmp(engine, OSD_FUNCTION_ENGINE) == 0 ||
		     (functions->jobs.has_engine &&
		      functions->jobs.has_engine(functions->jobs.arg, engine));

	return found && osd_function_abi_fits(function) ? OSD_OK : OSD_E_FUNCTION_ENGINE;
}

/* Calls decrypt the code when they hand it to a sandbox (exec/run/run.c): here they find out that they can. */
static enum osd_status check_box(struct osd_functions *functions, const uint8_t *box, size_t length)
{
	uint8_t *code = NULL;
	size_t code_length = 0;
	enum osd_status status = osd_box_open(functions->objects, box, length, &code, &code_length);

	osd_box_free(code, code_length);
	return status;
}

/* Makes a checked function active. */
static enum osd_status store(struct activation *activation, const struct osd_function *replaced)
{
	struct osd_functions *functions = activation->functions;
	enum osd_status status = osd_function_reserve(functions, &activation->function, replaced,
						      &activation->replaced);

	if (status != OSD_OK)
		return status;
	status = osd_txn_run(functions->objects, OSD_COMMIT_DURABLE, mark, activation);
	osd_function_match(functions, activation->replaced.object_id ? activation->replaced
								     : activation->function.id);
	osd_function_drop(functions, &activation->function, true);
	return status;
}

static void log_active(const struct osd_function *function)
{
	osd_info("function 0x%" PRIx64 "/0x%" PRIx64 " is active: %s, SHA-256 %02x%02x%02x%02x..., "
		 "%s%s%s%s%s",
		 function->id.partition_id, function->id.object_id, osd_function_engine(function),
		 function->sha256[0], function->sha256[1], function->sha256[2], function->sha256[3],
		 function->signer[0] ? "signed by " : "not signed", function->signer,
		 function->signer[0] ? " (" : "", function->fingerprint,
		 function->signer[0] ? ")" : "");
}

/* Exchanges the code for the same with machine code.  OSD_E_WOULD_BLOCK: there is none yet. */
static enum osd_status take_compiled(const struct osd_function *function,
				     struct osd_function_code *compiled,
				     struct osd_function_code **code,
				     struct osd_function_compile *ret_compile)
{
	if (!ret_compile || !osd_function_needs_compiler(function, *code))
		return OSD_OK;
	if (compiled && memcmp(compiled->sha256, (*code)->sha256, sizeof(compiled->sha256)) == 0) {
		osd_function_code_put(*code);
		*code = osd_function_code_ref(compiled);
		return OSD_OK;
	}
	*ret_compile = (struct osd_function_compile){*function, OSD_STEAL(*code)};
	return OSD_E_WOULD_BLOCK;
}

enum osd_status osd_function_activate(struct osd_functions *functions, struct osd_object_id id,
				      const struct osd_function *replaced,
				      struct osd_function_code *compiled,
				      struct osd_function_compile *ret_compile)
{
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	struct activation activation = {.functions = functions, .function.id = id};
	struct osd_function *function = &activation.function;
	struct osd_signers *signers;
	bool current;
	enum osd_status status;

	status = osd_function_load(functions, function);
	if (status == OSD_OK && !osd_function_is_one(id))
		status = OSD_E_NO_OBJECT;
	if (status == OSD_OK)
		status = is_sound(function) ? check_engine(functions, function) : OSD_E_CONTRACT;
	if (status == OSD_OK)
		status = osd_function_fetch(functions, id, &code);
	if (status == OSD_OK && osd_box_is(code->bytes, code->length))
		status = check_box(functions, code->bytes, code->length);
	if (status != OSD_OK)
		return status;
	memcpy(function->sha256, code->sha256, sizeof(function->sha256));
	function->activated_msec = osd_wall_msec();
	status = osd_signing_check(functions, function, &activation.signing, &signers);
	if (status != OSD_OK)
		return status;
	status = take_compiled(function, compiled, &code, ret_compile);
	if (status == OSD_OK)
		status = store(&activation, replaced);
	current = osd_signers_are_current(functions, signers);
	osd_signers_put(functions, signers);
	if (status != OSD_OK)
		return status;
	if (code->machine_length) {
		osd_function_keep(functions, function, code);
		osd_machine_put(functions, function, code);
	}
	log_active(function);
	return current ? OSD_OK : osd_signing_recheck(functions, function);
}
