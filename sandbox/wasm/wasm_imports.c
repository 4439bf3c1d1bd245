/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_imports.c -- see wasm_imports.h.  An import returns a number, or -enum osd_answer_code.  A range
 * outside the memory, or a malformed answer of the proxy, is a trap. */
#include "wasm_imports.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "proxy_client.h"
#include "wasm_share.h"
#include "wire/cursor.h"

#define MODULE		"osd"
#define MEMORY		"memory" /* the export that holds what pointers point at */
#define ERROR_MAX	256
#define PROGRESS_MAX	256u
#define PROGRESS_UNSAID 0xffffu
#define VALUE_MAX	65534u /* bytes of an attribute */
#define ENTRY_BYTES	16u    /* of a type 9 list entry, before the value */
#define VALUES_MAX	8

static struct {
	const struct osd_engine_job *job;
	uint64_t result_bytes;
	char error[ERROR_MAX];
} now;

static _Atomic bool ended;

void osd_wasm_imports_begin(const struct osd_engine_job *job)
{
	now.job = job;
	now.result_bytes = 0;
	now.error[0] = '\0';
}

void osd_wasm_imports_end(void)
{
	atomic_store(&ended, true);
}

bool osd_wasm_imports_ended(void)
{
	return atomic_load(&ended);
}

const char *osd_wasm_imports_error(void)
{
	return now.error;
}

/* ---- what all of them need -------------------------------------------------------------------- */

struct import;

/* One call of an import. */
struct asked {
	const struct import *import;
	const wasmtime_raw *values; /* the parameters */
	uint8_t *memory;	    /* of the guest */
	size_t memory_bytes;
	int64_t result;
	const char *trap; /* why the call ends here; NULL: it goes on */
};

struct import {
	const char *name, *parameters; /* i: 32 bits, I: 64 bits */
	void (*serve)(struct asked *asked);
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

static void note(const struct asked *asked, const struct osd_answer *answer, const uint8_t *body)
{
	size_t length = OSD_MIN((size_t)answer->body_bytes, (size_t)ERROR_MAX);

	snprintf(now.error, sizeof(now.error), "%s: %.*s", asked->import->name, (int)length,
		 (const char *)body);
}

/* False: the answer is not OK, and the result or a trap is set. */
static bool heed(struct asked *asked, bool well_formed, const struct osd_answer *answer,
		 const uint8_t *body)
{
	if (!well_formed)
		asked->trap = "malformed answer from the proxy";
	else if (answer->code != OSD_ANSWER_OK) {
		note(asked, answer, body);
		asked->result = -(int64_t)answer->code;
	}
	return well_formed && answer->code == OSD_ANSWER_OK;
}

static bool ask(struct asked *asked, const struct osd_call *call, const void *body,
		struct osd_answer *ret_answer, const uint8_t **ret_body)
{
	bool fine = osd_proxy_call(call, body, ret_answer, ret_body);

	return heed(asked, fine, ret_answer, *ret_body);
}

static void refuse(struct asked *asked, const char *why)
{
	snprintf(now.error, sizeof(now.error), "%s: %s", asked->import->name, why);
	asked->result = -(int64_t)OSD_ANSWER_INVALID;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* read(partition, object, offset, to, length) -> bytes read */
static void serve_read(struct asked *asked)
{
	struct osd_call call = {.op = OSD_CALL_READ,
				.partition_id = wide(asked, 0),
				.object_id = wide(asked, 1),
				.a = wide(asked, 2)};
	size_t length, done = 0, count;
	uint8_t *to = range(asked, 3, &length);
	struct osd_answer answer;
	const uint8_t *body;
	ssize_t shared;

	if (!to)
		return;
	shared = osd_wasm_share_read(call.partition_id, call.object_id, call.a, to, length);
	if (shared >= 0) {
		asked->result = shared;
		return;
	}
	do {
		call.b = OSD_MIN(length - done, (size_t)OSD_CALL_IO_MAX);
		if (!ask(asked, &call, NULL, &answer, &body))
			return;
		count = OSD_MIN((size_t)answer.body_bytes, (size_t)call.b);
		memcpy(to + done, body, count);
		done += count;
		call.a += count;
	} while (done < length && count == call.b && !osd_wasm_imports_ended());
	asked->result = (int64_t)done;
}

/* write(partition, object, offset, from, length) -> bytes written */
static void serve_write(struct asked *asked)
{
	const struct osd_call call = {.op = OSD_CALL_WRITE,
				      .partition_id = wide(asked, 0),
				      .object_id = wide(asked, 1),
				      .a = wide(asked, 2)};
	size_t length, written = 0;
	const uint8_t *from = range(asked, 3, &length);
	struct osd_answer answer;
	const uint8_t *body = NULL;
	bool fine;

	if (!from || length == 0)
		return;
	fine = osd_proxy_write(&call, from, length, &answer, &body, &written);
	if (fine && written > 0)
		asked->result = (int64_t)written;
	else
		heed(asked, fine, &answer, body);
}

/* length(partition, object) -> bytes */
static void serve_length(struct asked *asked)
{
	const struct osd_call call = {.op = OSD_CALL_LENGTH,
				      .partition_id = wide(asked, 0),
				      .object_id = wide(asked, 1)};
	struct osd_answer answer;
	const uint8_t *body;

	if (ask(asked, &call, NULL, &answer, &body))
		asked->result = (int64_t)answer.a;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* getattr(partition, object, page, number, to, room) -> bytes of the value, of which `room` are stored */
static void serve_getattr(struct asked *asked)
{
	uint8_t name[8];
	const struct osd_call call = {.op = OSD_CALL_GETATTR,
				      .partition_id = wide(asked, 0),
				      .object_id = wide(asked, 1),
				      .body_bytes = sizeof(name)};
	size_t room, length;
	uint8_t *to = range(asked, 4, &room);
	struct osd_answer answer;
	const uint8_t *body;

	if (!to)
		return;
	osd_put_be(name, narrow(asked, 2), 4);
	osd_put_be(name + 4, narrow(asked, 3), 4);
	if (!ask(asked, &call, name, &answer, &body))
		return;
	length = answer.body_bytes < ENTRY_BYTES ? 0 : osd_get_be(body + 14, 2);
	if (answer.body_bytes < ENTRY_BYTES || length > answer.body_bytes - ENTRY_BYTES) {
		asked->trap = "malformed answer from the proxy";
		return;
	}
	memcpy(to, body + ENTRY_BYTES, OSD_MIN(length, room));
	asked->result = (int64_t)length;
}

/* setattr(partition, object, page, number, from, length) -> 0 */
static void serve_setattr(struct asked *asked)
{
	static uint8_t entry[ENTRY_BYTES + VALUE_MAX + 8];
	struct osd_call call = {.op = OSD_CALL_SETATTR,
				.partition_id = wide(asked, 0),
				.object_id = wide(asked, 1)};
	size_t length, padded;
	const uint8_t *from = range(asked, 4, &length);
	struct osd_answer answer;
	const uint8_t *body;

	if (!from)
		return;
	if (length > VALUE_MAX) {
		refuse(asked, "a value has 65534 bytes at most");
		return;
	}
	padded = (ENTRY_BYTES + length + 7) / 8 * 8;
	memset(entry, 0, ENTRY_BYTES);
	memset(entry + padded - 8, 0, 8);
	osd_put_be(entry, narrow(asked, 2), 4);
	osd_put_be(entry + 4, narrow(asked, 3), 4);
	osd_put_be(entry + 14, length, 2);
	memcpy(entry + ENTRY_BYTES, from, length);
	call.body_bytes = (uint32_t)padded;
	ask(asked, &call, entry, &answer, &body);
}

/* ---- the job --------------------------------------------------------------------------------- */

/* args(to, room) -> bytes of the arguments, of which `room` are stored */
static void serve_args(struct asked *asked)
{
	size_t room, length = now.job->run.args_bytes;
	uint8_t *to = range(asked, 0, &room);

	if (!to)
		return;
	memcpy(to, now.job->args, OSD_MIN(length, room));
	asked->result = (int64_t)length;
}

enum { ZONE_PARTITION, ZONE_OBJECT, ZONE_TYPE };

/* zone(which) -> id of its partition or object, or its type */
static void serve_zone(struct asked *asked)
{
	const struct osd_job_run *run = &now.job->run;

	switch (narrow(asked, 0)) {
	case ZONE_PARTITION:
		asked->result = (int64_t)run->zone_partition;
		break;
	case ZONE_OBJECT:
		asked->result = (int64_t)run->zone_object;
		break;
	case ZONE_TYPE:
		asked->result = run->zone_type;
		break;
	default:
		refuse(asked, "0: partition, 1: object, 2: type");
	}
}

/* result(encoding, from, length) -> 0.  Adds to the result of the call. */
static void serve_result(struct asked *asked)
{
	struct osd_call call = {.op = OSD_CALL_RESULT, .b = narrow(asked, 0)};
	size_t length, done = 0;
	const uint8_t *from = range(asked, 1, &length);
	struct osd_answer answer;
	const uint8_t *body;

	if (!from)
		return;
	if (call.b > 1) {
		refuse(asked, "the encoding is 0: bytes, or 1: JSON");
		return;
	}
	do {
		call.body_bytes = (uint32_t)OSD_MIN(length - done, (size_t)OSD_CALL_IO_MAX);
		call.a = now.result_bytes;
		if (!ask(asked, &call, from + done, &answer, &body))
			return;
		done += call.body_bytes;
		now.result_bytes += call.body_bytes;
	} while (done < length && !osd_wasm_imports_ended());
}

/* log(stream, from, length) -> 0.  Stream 1 is the output of the job, 2 its errors. */
static void serve_log(struct asked *asked)
{
	uint32_t stream = narrow(asked, 0);
	size_t length, done = 0;
	const uint8_t *from = range(asked, 1, &length);

	if (!from)
		return;
	if (stream != STDOUT_FILENO && stream != STDERR_FILENO) {
		refuse(asked, "the stream is 1: output, or 2: errors");
		return;
	}
	while (done < length && !osd_wasm_imports_ended()) {
		ssize_t count = write((int)stream, from + done, length - done);

		if (count < 0 && errno != EINTR) {
			refuse(asked, strerror(errno));
			return;
		}
		done += count > 0 ? (size_t)count : 0;
	}
}

/* progress(thousandths or -1, from, length) -> 0 */
static void serve_progress(struct asked *asked)
{
	uint32_t share = narrow(asked, 0);
	struct osd_call call = {.op = OSD_CALL_PROGRESS,
				.a = share == UINT32_MAX ? PROGRESS_UNSAID : share};
	size_t length;
	const uint8_t *from = range(asked, 1, &length);
	struct osd_answer answer;
	const uint8_t *body;

	if (!from)
		return;
	if (length > PROGRESS_MAX || (share > 1000 && share != UINT32_MAX)) {
		refuse(asked, "progress is 0 to 1000, or -1, with a text of 256 bytes at most");
		return;
	}
	call.body_bytes = (uint32_t)length;
	ask(asked, &call, from, &answer, &body);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct import imports[] = {
	{"read", "IIIii", serve_read},	       {"write", "IIIii", serve_write},
	{"length", "II", serve_length},	       {"getattr", "IIiiii", serve_getattr},
	{"setattr", "IIiiii", serve_setattr},  {"args", "ii", serve_args},
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
	struct asked asked = {.import = data, .values = values};
	char text[128];

	(void)count; /* Wasmtime has checked the types */
	find_memory(caller, &asked);
	if (!osd_wasm_imports_ended())
		asked.import->serve(&asked);
	if (osd_wasm_imports_ended())
		asked.trap = "the job was told to end";
	if (asked.trap) {
		snprintf(text, sizeof(text), "osd.%s: %s", asked.import->name, asked.trap);
		return osd_wasmtime.wasmtime_trap_new(text, strlen(text));
	}
	values[0].i64 = asked.result;
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
