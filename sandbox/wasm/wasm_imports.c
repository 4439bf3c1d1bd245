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
	const char *trap; /* why the call ends here; NULL: it goes on */
};

struct import {
	const char *name, *parameters; /* i: 32 bits, I: 64 bits */
	int64_t (*serve)(struct asked *asked);
};

static uint64_t wide(const struct asked *asked, unsigned i)
{
	return (uint64_t)asked->values[i].i64;
}

static uint32_t narrow(const struct asked *asked, unsigned i)
{
	return (uint32_t)asked->values[i].i32;
}

/* The memory that parameters i and i + 1, pointer and length, name.  NULL: a trap is set. */
static uint8_t *range(struct asked *asked, unsigned i, size_t *ret_length)
{
	size_t at = narrow(asked, i), length = narrow(asked, i + 1);

	if (!asked->memory)
		asked->trap = "the module exports no memory";
	else if (at > asked->memory_bytes || length > asked->memory_bytes - at)
		asked->trap = "the range is outside the module's memory";
	if (asked->trap)
		return NULL;
	*ret_length = length;
	return asked->memory + at;
}

/* read(partition, object, offset, to, length) -> bytes read */
static int64_t serve_read(struct asked *a)
{
	size_t length;
	uint8_t *to = range(a, 3, &length);

	return to ? osd_job_read(wide(a, 0), wide(a, 1), wide(a, 2), to, length) : 0;
}

/* write(partition, object, offset, from, length) -> bytes written */
static int64_t serve_write(struct asked *a)
{
	size_t length;
	const uint8_t *from = range(a, 3, &length);

	return from ? osd_job_write(wide(a, 0), wide(a, 1), wide(a, 2), from, length) : 0;
}

/* length(partition, object) -> bytes */
static int64_t serve_length(struct asked *a)
{
	return osd_job_length(wide(a, 0), wide(a, 1));
}

/* getattr(partition, object, page, number, to, room) -> bytes of the value, of which `room` are stored */
static int64_t serve_getattr(struct asked *a)
{
	size_t room;
	uint8_t *to = range(a, 4, &room);

	return to ? osd_job_getattr(wide(a, 0), wide(a, 1), narrow(a, 2), narrow(a, 3), to, room) : 0;
}

/* setattr(partition, object, page, number, from, length) -> 0 */
static int64_t serve_setattr(struct asked *a)
{
	size_t length;
	const uint8_t *from = range(a, 4, &length);

	return from ? osd_job_setattr(wide(a, 0), wide(a, 1), narrow(a, 2), narrow(a, 3), from,
				      length)
		    : 0;
}

/* args(to, room) -> bytes of the arguments, of which `room` are stored */
static int64_t serve_args(struct asked *a)
{
	size_t room;
	uint8_t *to = range(a, 0, &room);

	return to ? osd_job_args(to, room) : 0;
}

/* args_from(offset, to, room) -> bytes of the arguments behind the offset, of which `room` are stored */
static int64_t serve_args_from(struct asked *a)
{
	size_t room;
	uint8_t *to = range(a, 1, &room);

	return to ? osd_job_args_from(narrow(a, 0), to, room) : 0;
}

/* zone(which) -> id of its partition or object, or its type */
static int64_t serve_zone(struct asked *a)
{
	return osd_job_zone(narrow(a, 0));
}

/* result(encoding, from, length) -> 0.  Adds to the result of the call. */
static int64_t serve_result(struct asked *a)
{
	size_t length;
	const uint8_t *from = range(a, 1, &length);

	return from ? osd_job_result(narrow(a, 0), from, length) : 0;
}

/* log(stream, from, length) -> 0.  Stream 1 is the output of the job, 2 its errors. */
static int64_t serve_log(struct asked *a)
{
	size_t length;
	const uint8_t *from = range(a, 1, &length);

	return from ? osd_job_log(narrow(a, 0), from, length) : 0;
}

/* progress(thousandths or -1, from, length) -> 0 */
static int64_t serve_progress(struct asked *a)
{
	size_t length;
	const uint8_t *from = range(a, 1, &length);

	return from ? osd_job_progress(narrow(a, 0), from, length) : 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct import imports[] = {
	{"read", "IIIii", serve_read},	       {"write", "IIIii", serve_write},
	{"length", "II", serve_length},	       {"getattr", "IIiiii", serve_getattr},
	{"setattr", "IIiiii", serve_setattr},  {"args", "ii", serve_args},
	{"args_from", "iii", serve_args_from},
	{"zone", "i", serve_zone},	       {"result", "iii", serve_result},
	{"log", "iii", serve_log},	       {"progress", "iii", serve_progress},
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
	int64_t result = 0;
	char text[128];

	(void)count; /* Wasmtime has checked the types */
	find_memory(caller, &asked);
	if (!osd_job_calls_ended())
		result = import->serve(&asked);
	if (osd_job_calls_ended())
		asked.trap = "the job was told to end";
	else if (result == OSD_JOB_MALFORMED)
		asked.trap = "malformed answer from the proxy";
	if (asked.trap) {
		snprintf(text, sizeof(text), "osd.%s: %s", import->name, asked.trap);
		return osd_wasmtime.wasmtime_trap_new(text, strlen(text));
	}
	values[0].i64 = result;
	return NULL;
}

static bool define(wasmtime_linker *linker, const struct import *import)
{
	wasm_valtype *kinds[VALUES_MAX], *result = osd_wasmtime.wasm_valtype_new(WASM_KIND_I64);
	size_t count = strlen(import->parameters);
	wasm_valtypes parameters, results;
	wasm_functype *type;
	wasmtime_error *error;

	for (size_t i = 0; i < count; i++)
		kinds[i] = osd_wasmtime.wasm_valtype_new(
			import->parameters[i] == 'I' ? WASM_KIND_I64 : WASM_KIND_I32);
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
