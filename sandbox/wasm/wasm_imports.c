/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_imports.c -- see wasm_imports.h.  An import checks the ranges of its pointers and makes the call of
 * job_calls.h.  A range outside the memory, or a malformed answer of the proxy, is a trap. */
#include "wasm_imports.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "job_calls.h"

#define MODULE	   "osd"
#define MEMORY	   "memory" /* the export that holds what pointers point at */
#define VALUES_MAX 8

/* One call of an import. */
struct asked {
	const wasmtime_raw *values; /* the parameters */
	uint8_t *memory;	    /* of the guest */
	size_t memory_bytes;
	uint8_t *bytes; /* where the pointer among the parameters points */
	size_t length;	/* from there on; checked */
};

struct import {
	const char *name;
	const char *parameters; /* i: 32 bits, I: 64 bits; p at the end: pointer and length */
	int64_t (*serve)(const struct asked *asked);
};

static uint64_t wide(const struct asked *asked, unsigned i)
{
	return (uint64_t)asked->values[i].i64;
}

static uint32_t narrow(const struct asked *asked, unsigned i)
{
	return (uint32_t)asked->values[i].i32;
}

/* Finds the memory that pointer and length name.  Returns NULL, or why the call must not be made. */
static const char *find_range(const struct import *import, struct asked *asked)
{
	const char *p = strchr(import->parameters, 'p');
	unsigned i = p ? (unsigned)(p - import->parameters) : 0;
	size_t at = narrow(asked, i);

	if (!p)
		return NULL;
	if (!asked->memory)
		return "the module exports no memory";
	asked->length = narrow(asked, i + 1);
	if (at > asked->memory_bytes || asked->length > asked->memory_bytes - at)
		return "the range is outside the module's memory";
	asked->bytes = asked->memory + at;
	return NULL;
}

/* Name, parameters (struct import), and the call that it is of what `a` asks. */
#define IMPORTS(X)                                                                                 \
	/* partition, object, offset, to, length -> bytes read */                                  \
	X(read, "IIIp", osd_job_read(wide(a, 0), wide(a, 1), wide(a, 2), a->bytes, a->length))     \
	/* partition, object, offset, from, length -> bytes written */                             \
	X(write, "IIIp", osd_job_write(wide(a, 0), wide(a, 1), wide(a, 2), a->bytes, a->length))   \
	/* partition, object -> bytes */                                                           \
	X(length, "II", osd_job_length(wide(a, 0), wide(a, 1)))                                    \
	/* partition, object, page, number, to, room -> bytes of the value; `room` are stored */   \
	X(getattr, "IIiip",                                                                        \
	  osd_job_getattr(wide(a, 0), wide(a, 1), narrow(a, 2), narrow(a, 3), a->bytes,            \
			  a->length))                                                              \
	/* partition, object, page, number, from, length -> 0 */                                   \
	X(setattr, "IIiip",                                                                        \
	  osd_job_setattr(wide(a, 0), wide(a, 1), narrow(a, 2), narrow(a, 3), a->bytes,            \
			  a->length))                                                              \
	/* to, room -> bytes of the arguments; `room` are stored */                                \
	X(args, "p", osd_job_args_from(0, a->bytes, a->length))                                    \
	/* offset, to, room -> bytes of the arguments behind the offset; `room` are stored */      \
	X(args_from, "ip", osd_job_args_from(narrow(a, 0), a->bytes, a->length))                   \
	/* which -> id of the zone's partition or object, or its type */                           \
	X(zone, "i", osd_job_zone(narrow(a, 0)))                                                   \
	/* encoding, from, length -> 0; adds to the result of the call */                          \
	X(result, "ip", osd_job_result(narrow(a, 0), a->bytes, a->length))                         \
	/* stream (1: output of the job, 2: its errors), from, length -> 0 */                      \
	X(log, "ip", osd_job_log(narrow(a, 0), a->bytes, a->length))                               \
	/* thousandths or -1, from, length -> 0 */                                                 \
	X(progress, "ip", osd_job_progress(narrow(a, 0), a->bytes, a->length))

#define X(name, parameters, call)                                                                  \
	static int64_t serve_##name(const struct asked *a)                                         \
	{                                                                                          \
		return call;                                                                       \
	}
IMPORTS(X)
#undef X

static const struct import imports[] = {
#define X(name, parameters, call) {#name, parameters, serve_##name},
	IMPORTS(X)
#undef X
};

static void find_memory(wasmtime_caller *caller, struct asked *asked)
{
	const wasmtime_context *context = osd_wasmtime.wasmtime_caller_context(caller);
	wasmtime_extern found;

	if (!osd_wasmtime.wasmtime_caller_export_get(caller, MEMORY, strlen(MEMORY), &found))
		return;
	if (found.kind == WASM_EXTERN_MEMORY) {
		asked->memory = osd_wasmtime.wasmtime_memory_data(context, &found.of.memory);
		asked->memory_bytes =
			osd_wasmtime.wasmtime_memory_data_size(context, &found.of.memory);
	}
	osd_wasmtime.wasmtime_extern_delete(&found);
}

static wasm_trap *serve(void *data, wasmtime_caller *caller, wasmtime_raw *values, size_t count)
{
	const struct import *import = data;
	struct asked asked = {.values = values};
	const char *why;
	int64_t result = 0;
	char text[128];

	(void)count; /* Wasmtime has checked the types */
	find_memory(caller, &asked);
	why = find_range(import, &asked);
	if (!why && !osd_job_calls_ended())
		result = import->serve(&asked);
	if (osd_job_calls_ended())
		why = "the job was told to end";
	else if (result == OSD_JOB_MALFORMED)
		why = "malformed answer from the proxy";
	if (why) {
		snprintf(text, sizeof(text), "osd.%s: %s", import->name, why);
		return osd_wasmtime.wasmtime_trap_new(text, strlen(text));
	}
	values[0].i64 = result;
	return NULL;
}

static bool define(wasmtime_linker *linker, const struct import *import)
{
	wasm_valtype *kinds[VALUES_MAX], *result = osd_wasmtime.wasm_valtype_new(WASM_KIND_I64);
	wasm_valtypes parameters, results;
	wasm_functype *type;
	wasmtime_error *error;
	size_t count = 0;

	for (const char *p = import->parameters; *p; p++) {
		kinds[count++] =
			osd_wasmtime.wasm_valtype_new(*p == 'I' ? WASM_KIND_I64 : WASM_KIND_I32);
		if (*p == 'p')
			kinds[count++] = osd_wasmtime.wasm_valtype_new(WASM_KIND_I32);
	}
	osd_wasmtime.wasm_valtype_vec_new(&parameters, count, kinds);
	osd_wasmtime.wasm_valtype_vec_new(&results, 1, &result);
	type = osd_wasmtime.wasm_functype_new(&parameters, &results); /* takes both */
	if (!type)
		return false;
	error = osd_wasmtime.wasmtime_linker_define_func_unchecked(
		linker, MODULE, strlen(MODULE), import->name, strlen(import->name), type, serve,
		(void *)import, NULL);
	osd_wasmtime.wasm_functype_delete(type);
	if (error)
		osd_wasmtime.wasmtime_error_delete(error);
	return !error;
}

bool osd_wasm_imports_define(wasmtime_linker *linker)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(imports); i++)
		if (!define(linker, &imports[i]))
			return false;
	return true;
}
