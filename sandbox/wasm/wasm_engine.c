/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_engine.c -- the engine `wasm` (engine.h): WebAssembly modules, compiled by Wasmtime.
 *
 * Each call has a store and an instance of its own, so nothing of it remains.  They are made before the call if it is
 * expected, and if making them runs no code of the module.  The compiled modules of the jobs' code slots remain while
 * the process lives, which is for jobs of one principal.  Nothing interrupts a loop: the daemon kills the process at a
 * limit. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "engine.h"
#include "job_calls.h"
#include "long_read.h"
#include "wasm_end.h"
#include "wasm_imports.h"
#include "wasmtime_api.h"
#include "wire/cursor.h"
#include "wire/exec_param.h"

#define ENTRY	    "main"
#define PREFIX	    "osd_function_" /* of entry points whose own name a compiler keeps for itself, such as main */
#define STACK_BYTES (1u << 20) /* of the guest; the process has 8 MiB */
#define TABLE_MAX   (1 << 20)  /* elements of a table: they are memory of the process */
#define TABLES_MAX  4
#define MEMORY_MAX  (UINT64_C(1) << 32) /* the job's limit comes first */
#define PAGE_BYTES  4096
/* Of the memory: zeroed, not given back, so that a stage that gets and makes 16 MiB has no page faults, which cost more
 * than the copies. */
#define RESIDENT_BYTES (40u << 20)
#define AHEAD_CODE_MAX (256u << 10) /* longer code fills memory that nobody may use */
#define MODULE_HEADER  8 /* bytes */
#define SECTION_START  8 /* id */

#define WT osd_wasmtime

struct compiled {
	wasmtime_module *module;
	wasmtime_instance_pre *ready; /* its imports are found */
	bool ahead;		      /* an instance of it can be made before its call */
};

static wasm_engine *engine;
static wasmtime_linker *linker;
static struct compiled modules[1 + OSD_CODE_SLOTS]; /* by slot; 0: of a job whose code is not kept */
static struct instance {
	wasmtime_store *store; /* or NULL */
	wasmtime_func entry;
	size_t results;
	uint8_t slot;			  /* of its code */
	char name[OSD_EXEC_WORD_MAX + 1]; /* of its entry point */
} instance; /* of the call; after it, until clean, because its memory is emptied after the answer; or of the next call */

/* ---- modules --------------------------------------------------------------------------------- */

static void release(struct compiled *compiled)
{
	if (compiled->ready)
		WT.wasmtime_instance_pre_delete(compiled->ready);
	if (compiled->module)
		WT.wasmtime_module_delete(compiled->module);
	*compiled = (struct compiled){0};
}

/* Loads the machine code of the job, or compiles.  Machine code of another release of Wasmtime is no error: the target
 * may have it from the time before an update. */
static wasmtime_error *get_module(const struct osd_engine_job *job, wasmtime_module **ret_module)
{
	wasmtime_error *error;

	if (job->machine) {
		error = WT.wasmtime_module_deserialize(engine, (const uint8_t *)job->machine,
						       job->run.machine_bytes, ret_module);
		if (!error)
			return NULL;
		WT.wasmtime_error_delete(error);
	}
	return WT.wasmtime_module_new(engine, (const uint8_t *)job->code, job->run.code_bytes,
				      ret_module);
}

/* Whether the sections of a module say that nothing of it runs when an instance is made.  Bounds the time and the
 * memory of that, too. */
static bool starts_nothing(const uint8_t *code, size_t length)
{
	struct osd_rd r = osd_rd_init(code, length);
	bool nothing = length <= AHEAD_CODE_MAX;

	osd_rd_bytes(&r, MODULE_HEADER);
	while (nothing && !r.bad && osd_rd_left(&r) > 0) {
		uint64_t id = osd_rd_be(&r, 1), size = 0, byte = 0x80;

		for (unsigned shift = 0; byte & 0x80 && shift < 35; shift += 7) {
			byte = osd_rd_be(&r, 1);
			size |= (byte & 0x7f) << shift;
		}
		nothing = id != SECTION_START;
		osd_rd_bytes(&r, (size_t)size);
	}
	return nothing && !r.bad;
}

/* NULL: the result says why. */
static struct compiled *prepare_module(const struct osd_engine_job *job, struct osd_engine_result *result)
{
	struct compiled *compiled = &modules[job->run.code_slot];
	wasmtime_error *error;

	if (job->run.code_kept && compiled->ready)
		return compiled;
	if (job->run.code_kept) {
		osd_job_end_fail(result, OSD_FINISH_BAD_CODE, "code", "it was not kept");
		return NULL;
	}
	release(compiled);
	error = get_module(job, &compiled->module);
	if (error) {
		osd_wasm_end_fail(result, OSD_FINISH_BAD_CODE, "compile", error, NULL);
		return NULL;
	}
	error = WT.wasmtime_linker_instantiate_pre(linker, compiled->module, &compiled->ready);
	if (error) {
		osd_wasm_end_fail(result, OSD_FINISH_BAD_CODE, "link", error, NULL);
		release(compiled);
		return NULL;
	}
	compiled->ahead = starts_nothing((const uint8_t *)job->code, job->run.code_bytes);
	return compiled;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The entry point is a function without parameters that returns nothing, or a number of 32 bits. */
static bool find_entry(wasmtime_context *context, const wasmtime_instance *made,
		       const char *name, struct instance *ret_instance)
{
	wasmtime_extern found;
	wasm_functype *type;
	const wasm_valtypes *results;
	bool fine;

	if (!WT.wasmtime_instance_export_get(context, made, name, strlen(name), &found))
		return false;
	if (found.kind != WASM_EXTERN_FUNC) {
		WT.wasmtime_extern_delete(&found);
		return false;
	}
	ret_instance->entry = found.of.func;
	type = WT.wasmtime_func_type(context, &ret_instance->entry);
	results = WT.wasm_functype_results(type);
	ret_instance->results = results->size;
	fine = WT.wasm_functype_params(type)->size == 0 &&
	       (results->size == 0 || (results->size == 1 && WT.wasm_valtype_kind(
				results->data[0]) == WASM_KIND_I32));
	WT.wasm_functype_delete(type);
	WT.wasmtime_extern_delete(&found);
	return fine;
}

static void drop_instance(void)
{
	if (instance.store)
		WT.wasmtime_store_delete(OSD_STEAL(instance.store));
}

/* False: the result says why. */
static bool make_instance(const struct compiled *compiled, struct osd_engine_result *result)
{
	const char *name = instance.name;
	char prefixed[sizeof(PREFIX) + OSD_EXEC_WORD_MAX];
	wasmtime_context *context;
	wasmtime_instance made;
	wasm_trap *trap = NULL;
	wasmtime_error *error;

	instance.store = WT.wasmtime_store_new(engine, NULL, NULL);
	WT.wasmtime_store_limiter(instance.store, -1, TABLE_MAX, 1, TABLES_MAX, 1);
	context = WT.wasmtime_store_context(instance.store);
	error = WT.wasmtime_instance_pre_instantiate(compiled->ready, context, &made, &trap);
	if (error || trap) {
		osd_wasm_end_fail(result, OSD_FINISH_EXCEPTION, "start", error, trap);
		return false;
	}
	snprintf(prefixed, sizeof(prefixed), PREFIX "%s", name);
	if (find_entry(context, &made, name, &instance) ||
	    find_entry(context, &made, prefixed, &instance))
		return true;
	return osd_job_end_fail(
		result, OSD_FINISH_BAD_CODE, name,
		"the module exports no function of this name without parameters that returns "
		"i32 or nothing");
}

/* The instance of the job; false: the result says why there is none. */
static bool get_instance(const struct osd_job_run *given, const char *method,
			 const struct compiled *compiled, struct osd_engine_result *result)
{
	char name[sizeof(instance.name)] = ENTRY;

	if (given->method_bytes)
		snprintf(name, sizeof(name), "%.*s", (int)given->method_bytes, method);
	if (instance.store && given->code_kept && given->code_slot == instance.slot &&
	    strcmp(name, instance.name) == 0)
		return true;
	drop_instance();
	instance.slot = given->code_slot;
	memcpy(instance.name, name, sizeof(name));
	return make_instance(compiled, result);
}

static void run(struct osd_engine_result *result)
{
	wasmtime_context *context = WT.wasmtime_store_context(instance.store);
	wasmtime_value value = {0};
	wasm_trap *trap = NULL;
	wasmtime_error *error = WT.wasmtime_func_call(context, &instance.entry, NULL, 0, &value,
						      instance.results, &trap);

	if (error || trap)
		osd_wasm_end_fail(result, OSD_FINISH_EXCEPTION, instance.name, error, trap);
	else
		osd_job_end_well(result, instance.name,
				 instance.results ? (uint32_t)value.of.i32 : 0);
}

static void call(const struct osd_engine_job *job, struct osd_engine_result *ret_result)
{
	const struct osd_job_run *given = &job->run;
	struct compiled *compiled;

	osd_job_calls_begin(job);
	if (given->code_form) {
		osd_job_end_fail(ret_result, OSD_FINISH_BAD_CODE, "code",
				 "a WebAssembly module is sent as it is, not packed");
		return;
	}
	compiled = prepare_module(job, ret_result);
	if (!compiled)
		return;
	if (get_instance(given, job->method, compiled, ret_result))
		run(ret_result);
	osd_long_read_drop();
	ret_result->kept_code = given->code_slot > 0;
	osd_job_calls_give_result(ret_result);
}

/* Wasmtime does not check what it loads but for release and options, so only a sandbox that has run no code of anybody
 * makes machine code for others.  Imports are checked as well: a module that can never run has none. */
static void compile(const struct osd_engine_job *job, struct osd_engine_result *ret_result)
{
	const struct compiled *compiled;
	wasm_bytes machine = {0};
	wasmtime_error *error;

	osd_job_calls_begin(job);
	compiled = prepare_module(job, ret_result);
	if (!compiled)
		return;
	error = WT.wasmtime_module_serialize(compiled->module, &machine);
	if (error) {
		osd_wasm_end_fail(ret_result, OSD_FINISH_BAD_CODE, "serialize", error, NULL);
		return;
	}
	if (osd_job_result(0, (const uint8_t *)machine.data, machine.size) < 0)
		osd_job_end_fail(ret_result, OSD_FINISH_EXCEPTION, "machine code",
				 osd_job_calls_error());
	else
		osd_job_end_well(ret_result, "", 0);
	WT.wasm_byte_vec_delete(&machine);
	osd_job_calls_give_result(ret_result);
}

/* A call has no descriptors any more. */
static bool clean(void)
{
	drop_instance();
	release(&modules[0]);
	return !osd_job_calls_ended();
}

/* And makes the instance of the next call, while nobody waits for it. */
static bool clean_lightly(void)
{
	const struct compiled *compiled = &modules[instance.slot];
	struct osd_engine_result unused;

	if (!clean())
		return false;
	if (compiled->ready && compiled->ahead && !make_instance(compiled, &unused))
		drop_instance();
	return true;
}

/* ---- zygote and sandbox ---------------------------------------------------------------------- */

/* Memory and tables of one instance are reserved once, in the zygote.  An instance then costs no system call but
 * the one that empties its memory at the end. */
static void reserve(wasm_config *config)
{
	wasmtime_pooling *pooling = WT.wasmtime_pooling_allocation_config_new();

	WT.wasmtime_pooling_allocation_config_total_core_instances_set(pooling, 1);
	WT.wasmtime_pooling_allocation_config_total_memories_set(pooling, 1);
	WT.wasmtime_pooling_allocation_config_total_tables_set(pooling, TABLES_MAX);
	WT.wasmtime_pooling_allocation_config_max_tables_per_module_set(pooling, TABLES_MAX);
	WT.wasmtime_pooling_allocation_config_table_elements_set(pooling, TABLE_MAX);
	WT.wasmtime_pooling_allocation_config_max_memory_size_set(pooling, MEMORY_MAX);
	WT.wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pooling,
									      RESIDENT_BYTES);
	WT.wasmtime_pooling_allocation_strategy_set(config, pooling);
	WT.wasmtime_pooling_allocation_config_delete(pooling);
}

/* No threads, because a zygote forks.  No copy of a module's data in a memfd, because the filter has no
 * memfd_create.  No 64-bit memory: its accesses need a check each. */
static wasm_config *configure(void)
{
	wasm_config *config = WT.wasm_config_new();

	WT.wasmtime_config_parallel_compilation_set(config, false);
	WT.wasmtime_config_cranelift_opt_level_set(config, WASMTIME_OPTIMIZE_SPEED);
	WT.wasmtime_config_max_wasm_stack_set(config, STACK_BYTES);
	WT.wasmtime_config_memory_init_cow_set(config, false);
	WT.wasmtime_config_native_unwind_info_set(config, false);
	WT.wasmtime_config_wasm_gc_set(config, false);
	WT.wasmtime_config_wasm_memory64_set(config, false);
	WT.wasmtime_config_wasm_threads_set(config, false);
	reserve(config);
	return config;
}

/* (module (func (export "main"))) */
static const uint8_t smallest[] = {0,	 'a', 's', 'm', 1, 0, 0, 0, /* version */
				   1,	 4,   1,   0x60, 0, 0,	    /* types */
				   3,	 2,   1,   0,		    /* functions */
				   7,	 8,   1,   4, 'm', 'a', 'i', 'n', 0, 0,
				   10,	 4,   1,   2, 0, 0x0b};

static struct osd_engine_result rehearsed = {.line = ""};

/* Compile and run a module the way jobs do, so that the first job finds its pages in memory. */
static bool rehearse(void)
{
	const struct osd_engine_job job = {
		.run = {.zone_type = 1, .code_bytes = sizeof(smallest)},
		.name = "",
		.method = "",
		.args = "",
		.code = (const char *)smallest,
	};

	call(&job, &rehearsed);
	clean();
	return rehearsed.kind == OSD_FINISH_OK;
}

/* The bytes of this process that RLIMIT_DATA counts; 0: not known. */
static uint64_t data_bytes(int statm_fd)
{
	char text[256];
	ssize_t length = statm_fd < 0 ? -1 : pread(statm_fd, text, sizeof(text) - 1, 0);
	unsigned long long pages;

	if (length <= 0)
		return 0;
	text[length] = '\0';
	return sscanf(text, "%*u %*u %*u %*u %*u %llu", &pages) == 1 ? pages * PAGE_BYTES : 0;
}

static bool prepare(const struct osd_engine_setup *setup, uint64_t *ret_bytes, char *text, size_t size)
{
	uint64_t before = data_bytes(setup->statm_fd), after;

	engine = WT.wasm_engine_new_with_config(configure()); /* takes the configuration */
	linker = engine ? WT.wasmtime_linker_new(engine) : NULL;
	after = data_bytes(setup->statm_fd);
	*ret_bytes = after - OSD_MIN(before, after); /* what is reserved is not a job's */
	if (linker && osd_wasm_imports_define(linker) && rehearse())
		return true;
	snprintf(text, size, "engine wasm: cannot run a first module: %.300s", rehearsed.line);
	return false;
}

const struct osd_engine osd_engine_wasm = {
	.name = "wasm",
	.executable_memory = true,
	.load = osd_wasmtime_load,
	.prepare = prepare,
	.begin = rehearse,
	.call = call,
	.compile = compile,
	.clean = clean,
	.clean_lightly = clean_lightly,
	.interrupt = osd_job_calls_end,
};
