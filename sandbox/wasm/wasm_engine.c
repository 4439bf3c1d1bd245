/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_engine.c -- the engine `wasm` (engine.h): WebAssembly modules, compiled by Wasmtime.
 *
 * Each call has a store and an instance of its own, so nothing of it remains.  What remains while the
 * process lives, which is for jobs of one principal, are the last compiled modules: a module that comes
 * again is not compiled again.  Nothing interrupts a loop: the daemon kills the process at a limit. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "engine.h"
#include "wasm_imports.h"
#include "wasm_share.h"
#include "wasmtime_api.h"
#include "wire/exec_param.h"

#define ENTRY	    "main"
#define STACK_BYTES (1u << 20) /* of the guest; the process has 8 MiB */
#define TABLE_MAX   (1 << 20)  /* elements of a table: they are memory of the process */
#define TABLES_MAX  4
#define KEPT	    4		/* compiled modules */
#define KEPT_BYTES  (256u << 10) /* of the code of each */
#define REPORT_MAX  (16u << 10)
#define LINE_MAX_   400

#define WT osd_wasmtime

struct compiled {
	uint8_t *code; /* owned: what it was compiled from */
	size_t length;
	wasmtime_module *module;
	wasmtime_instance_pre *ready; /* its imports are found */
};

static wasm_engine *engine;
static wasmtime_linker *linker;
static struct compiled kept[KEPT];
static unsigned next_kept;
static char report[REPORT_MAX], line[LINE_MAX_];

/* ---- ends ------------------------------------------------------------------------------------ */

static void finish(struct osd_engine_result *result, enum osd_finish_kind kind, uint64_t code)
{
	*result = (struct osd_engine_result){.exit_code = code,
					     .kind = kind,
					     .report = report,
					     .line = line,
					     .report_bytes = strlen(report),
					     .line_bytes = strlen(line)};
}

static bool is_about_memory(const char *text)
{
	return strstr(text, "os error 12") || strstr(text, "annot allocate memory");
}

/* The cause in a report of Wasmtime: the words after "wasm trap: ", otherwise the last line. */
static void find_cause(const char *text, char cause[LINE_MAX_])
{
	const char *begin = strstr(text, "wasm trap: ");
	size_t end = strlen(text);

	if (begin) {
		begin += strlen("wasm trap: ");
		end = strcspn(begin, "\n");
	} else {
		while (end > 0 && text[end - 1] == '\n')
			end--;
		begin = text + end;
		while (begin > text && begin[-1] != '\n')
			begin--;
		end -= (size_t)(begin - text);
		while (end > 0 && *begin == ' ')
			begin++, end--;
	}
	snprintf(cause, LINE_MAX_, "%.*s", (int)OSD_MIN(end, (size_t)LINE_MAX_ - 1), begin);
}

/* Ends the call with an error or a trap, which it frees; what: the step or function that failed. */
static void fail(struct osd_engine_result *result, enum osd_finish_kind kind, const char *what,
		 wasmtime_error *error, wasm_trap *trap)
{
	wasm_bytes message = {0};
	char cause[LINE_MAX_];
	size_t length;

	if (error)
		WT.wasmtime_error_message(error, &message);
	else
		WT.wasm_trap_message(trap, &message);
	length = OSD_MIN(message.size, sizeof(report) - 128);
	snprintf(report, sizeof(report), "%s: %.*s\n", what, (int)length,
		 message.data ? message.data : "");
	if (osd_wasm_imports_ended())
		kind = OSD_FINISH_ENDED;
	else if (is_about_memory(report))
		kind = OSD_FINISH_MEMORY;
	find_cause(report, cause);
	if (strncmp(cause, what, strlen(what)) == 0)
		snprintf(line, sizeof(line), "%s", cause);
	else
		snprintf(line, sizeof(line), "%.100s: %.290s", what, cause);
	if (message.data)
		WT.wasm_byte_vec_delete(&message);
	if (error)
		WT.wasmtime_error_delete(error);
	if (trap)
		WT.wasm_trap_delete(trap);
	finish(result, kind, 1);
}

static void say(struct osd_engine_result *result, enum osd_finish_kind kind, const char *what,
		const char *why)
{
	snprintf(line, sizeof(line), "%.100s: %.290s", what, why);
	snprintf(report, sizeof(report), "%s\n", line);
	finish(result, kind, 1);
}

/* ---- modules --------------------------------------------------------------------------------- */

static void release(struct compiled *compiled)
{
	if (compiled->ready)
		WT.wasmtime_instance_pre_delete(compiled->ready);
	if (compiled->module)
		WT.wasmtime_module_delete(compiled->module);
	free(compiled->code);
	*compiled = (struct compiled){0};
}

static struct compiled *find_kept(const void *code, size_t length)
{
	for (unsigned i = 0; i < KEPT; i++) {
		if (kept[i].ready && kept[i].length == length &&
		    memcmp(kept[i].code, code, length) == 0)
			return &kept[i];
	}
	return NULL;
}

static struct compiled *make_room(void)
{
	struct compiled *room = &kept[next_kept];

	next_kept = (next_kept + 1) % KEPT;
	release(room);
	return room;
}

/* NULL: the result says why. */
static struct compiled *compile(const uint8_t *code, size_t length,
				struct osd_engine_result *result)
{
	struct compiled *compiled = find_kept(code, length);
	wasmtime_error *error;

	if (compiled)
		return compiled;
	compiled = make_room();
	error = WT.wasmtime_module_new(engine, code, length, &compiled->module);
	if (error) {
		fail(result, OSD_FINISH_BAD_CODE, "compile", error, NULL);
		return NULL;
	}
	error = WT.wasmtime_linker_instantiate_pre(linker, compiled->module, &compiled->ready);
	if (error) {
		fail(result, OSD_FINISH_BAD_CODE, "link", error, NULL);
		release(compiled);
		return NULL;
	}
	if (length <= KEPT_BYTES)
		compiled->code = malloc(length);
	if (compiled->code) {
		memcpy(compiled->code, code, length);
		compiled->length = length;
	}
	return compiled;
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* The entry point is a function without parameters that returns nothing, or a number of 32 bits. */
static bool find_entry(wasmtime_context *context, const wasmtime_instance *instance,
		       const char *name, size_t length, wasmtime_func *ret_entry,
		       size_t *ret_results)
{
	wasmtime_extern found;
	wasm_functype *type;
	const wasm_valtypes *results;
	bool fine;

	if (!WT.wasmtime_instance_export_get(context, instance, name, length, &found))
		return false;
	if (found.kind != WASM_EXTERN_FUNC) {
		WT.wasmtime_extern_delete(&found);
		return false;
	}
	*ret_entry = found.of.func;
	type = WT.wasmtime_func_type(context, ret_entry);
	results = WT.wasm_functype_results(type);
	*ret_results = results->size;
	fine = WT.wasm_functype_params(type)->size == 0 &&
	       (results->size == 0 || (results->size == 1 && WT.wasm_valtype_kind(
				results->data[0]) == WASM_KIND_I32));
	WT.wasm_functype_delete(type);
	WT.wasmtime_extern_delete(&found);
	return fine;
}

static void end_well(struct osd_engine_result *result, const char *name, uint32_t code)
{
	const char *error = osd_wasm_imports_error();

	report[0] = line[0] = '\0';
	if (code != 0) {
		snprintf(line, sizeof(line), "%.100s returned %u%s%.240s", name, code,
			 error[0] ? "; the last error: " : "", error);
		snprintf(report, sizeof(report), "%s\n", line);
	}
	finish(result, code ? OSD_FINISH_EXIT : OSD_FINISH_OK, code);
}

static void run(wasmtime_store *store, const struct compiled *compiled, const char *name,
		size_t length, struct osd_engine_result *result)
{
	wasmtime_context *context = WT.wasmtime_store_context(store);
	wasmtime_instance instance;
	wasmtime_func entry;
	wasmtime_value value = {0};
	wasm_trap *trap = NULL;
	size_t results;
	char text[OSD_EXEC_WORD_MAX + 1];
	wasmtime_error *error =
		WT.wasmtime_instance_pre_instantiate(compiled->ready, context, &instance, &trap);

	snprintf(text, sizeof(text), "%.*s", (int)length, name);
	if (error || trap) {
		fail(result, OSD_FINISH_EXCEPTION, "start", error, trap);
		return;
	}
	if (!find_entry(context, &instance, name, length, &entry, &results)) {
		say(result, OSD_FINISH_BAD_CODE, text,
		    "the module exports no function of this name without parameters that returns "
		    "i32 or nothing");
		return;
	}
	error = WT.wasmtime_func_call(context, &entry, NULL, 0, &value, results, &trap);
	if (error || trap)
		fail(result, OSD_FINISH_EXCEPTION, text, error, trap);
	else
		end_well(result, text, results ? (uint32_t)value.of.i32 : 0);
}

static void call(const struct osd_engine_job *job, struct osd_engine_result *ret_result)
{
	const struct osd_job_run *given = &job->run;
	struct compiled *compiled;
	wasmtime_store *store;

	osd_wasm_imports_begin(job);
	if (given->code_form) {
		say(ret_result, OSD_FINISH_BAD_CODE, "code",
		    "a WebAssembly module is sent as it is, not packed");
		return;
	}
	compiled = compile((const uint8_t *)job->code, given->code_bytes, ret_result);
	if (!compiled)
		return;
	store = WT.wasmtime_store_new(engine, NULL, NULL);
	WT.wasmtime_store_limiter(store, -1, TABLE_MAX, 1, TABLES_MAX, 1);
	run(store, compiled, given->method_bytes ? job->method : ENTRY,
	    given->method_bytes ? given->method_bytes : strlen(ENTRY), ret_result);
	osd_wasm_share_drop();
	WT.wasmtime_store_delete(store);
	if (!compiled->code)
		release(compiled);
}

/* ---- zygote and sandbox ---------------------------------------------------------------------- */

static bool load(int library_fd, char *text, size_t size)
{
	return osd_wasmtime_load(library_fd, text, size);
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
	return config;
}

/* (module (func (export "main"))) */
static const uint8_t smallest[] = {0,	 'a', 's', 'm', 1, 0, 0, 0, /* version */
				   1,	 4,   1,   0x60, 0, 0,	    /* types */
				   3,	 2,   1,   0,		    /* functions */
				   7,	 8,   1,   4, 'm', 'a', 'i', 'n', 0, 0,
				   10,	 4,   1,   2, 0, 0x0b};

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
	struct osd_engine_result result;

	call(&job, &result);
	for (unsigned i = 0; i < KEPT; i++)
		release(&kept[i]);
	return result.kind == OSD_FINISH_OK;
}

static bool prepare(const struct osd_engine_setup *setup, uint64_t *ret_bytes, char *text, size_t size)
{
	if (setup->set || setup->preload[0]) {
		snprintf(text, size, "engine wasm has no package sets: remove the keys packages and preload");
		return false;
	}
	*ret_bytes = 0;
	engine = WT.wasm_engine_new_with_config(configure()); /* takes the configuration */
	linker = engine ? WT.wasmtime_linker_new(engine) : NULL;
	if (linker && osd_wasm_imports_define(linker) && rehearse())
		return true;
	snprintf(text, size, "engine wasm: cannot run a first module: %.300s", line);
	return false;
}

static pid_t fork_process(void)
{
	pid_t pid = fork();

	return pid < 0 ? -errno : pid;
}

static bool clean(void)
{
	return !osd_wasm_imports_ended();
}

const struct osd_engine osd_engine_wasm = {
	.name = "wasm",
	.executable_memory = true,
	.load = load,
	.prepare = prepare,
	.fork = fork_process,
	.begin = rehearse,
	.call = call,
	.clean = clean,
	.interrupt = osd_wasm_imports_end,
};
