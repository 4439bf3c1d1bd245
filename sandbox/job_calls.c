/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_calls.c -- see job_calls.h. */
#include "job_calls.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "long_read.h"
#include "placed_result.h"
#include "proxy_client.h"
#include "wire/cursor.h"

#define ERROR_MAX	256
#define LINE_BYTES	400u
#define PROGRESS_MAX	256u
#define PROGRESS_UNSAID 0xffffu
#define RESULT_MOST	(8u << 20) /* at a time: the job may be told to end meanwhile */
#define VALUE_MAX	65534u /* bytes of an attribute */
#define ENTRY_BYTES	16u    /* of a type 9 list entry, before the value */

static struct {
	const struct osd_engine_job *job;
	uint32_t encoding;     /* of the result */
	uint64_t result_bytes; /* sent */
	int64_t result_error;  /* of a piece that was not kept: none can follow */
	const void *placed;    /* all of it, put there by osd_place_result; NULL: it is not */
	size_t placed_bytes;
	bool has_result;       /* it waits for FINISH; false once some of it was sent */
	size_t waiting_bytes;
	char error[ERROR_MAX];
	size_t open_bytes; /* of error: a line that the function has begun to log */
} now;

static uint8_t waiting[OSD_FINISH_RESULT_MAX];

static _Atomic bool ended;

void osd_job_calls_begin(const struct osd_engine_job *job)
{
	now.job = job;
	now.result_bytes = 0;
	now.result_error = 0;
	now.placed = NULL;
	now.placed_bytes = 0;
	now.has_result = false;
	now.waiting_bytes = 0;
	now.error[0] = '\0';
	now.open_bytes = 0;
}

void osd_job_calls_give_result(struct osd_engine_result *result)
{
	if (now.placed || now.has_result)
		result->form = (uint8_t)(now.encoding + 1);
	if (now.placed) {
		result->result = now.placed;
		result->result_bytes = now.placed_bytes;
		return;
	}
	if (!now.has_result)
		return;
	result->result = (const char *)waiting;
	result->result_bytes = now.waiting_bytes;
}

void osd_job_calls_end(void)
{
	atomic_store(&ended, true);
}

bool osd_job_calls_ended(void)
{
	return atomic_load(&ended);
}

const char *osd_job_calls_error(void)
{
	return now.error;
}

/* ---- ends ------------------------------------------------------------------------------------- */

static char report[LINE_BYTES + 1], line[LINE_BYTES];

static void finish(struct osd_engine_result *result, enum osd_finish_kind kind, uint64_t code)
{
	snprintf(report, sizeof(report), "%s%s", line, line[0] ? "\n" : "");
	*result = (struct osd_engine_result){.exit_code = code,
					     .kind = kind,
					     .report = report,
					     .line = line,
					     .report_bytes = strlen(report),
					     .line_bytes = strlen(line)};
}

bool osd_job_end_fail(struct osd_engine_result *result, enum osd_finish_kind kind, const char *what,
		      const char *why)
{
	snprintf(line, sizeof(line), "%.100s: %.290s", what, why);
	finish(result, kind, 1);
	return false;
}

void osd_job_end_well(struct osd_engine_result *result, const char *name, int64_t code)
{
	line[0] = '\0';
	if (code != 0)
		snprintf(line, sizeof(line), "%.100s returned %lld%s%.240s", name, (long long)code,
			 now.error[0] ? "; the last error: " : "", now.error);
	finish(result, code ? OSD_FINISH_EXIT : OSD_FINISH_OK, (uint32_t)code);
}

/* ---- what all of them need -------------------------------------------------------------------- */

/* 0: the answer is OK; otherwise what the call returns.  name: of the call, for the report. */
static int64_t heed(const char *name, bool well_formed, const struct osd_answer *answer,
		    const uint8_t *body)
{
	size_t length;

	if (!well_formed)
		return OSD_JOB_MALFORMED;
	if (answer->code != OSD_ANSWER_OK) {
		length = OSD_MIN((size_t)answer->body_bytes, (size_t)ERROR_MAX);
		snprintf(now.error, sizeof(now.error), "%s: %.*s", name, (int)length,
			 (const char *)body);
		now.open_bytes = 0;
	}
	return -(int64_t)answer->code;
}

static int64_t ask(const char *name, const struct osd_call *call, const void *body,
		   struct osd_answer *ret_answer, const uint8_t **ret_body)
{
	bool fine = osd_proxy_call(call, body, ret_answer, ret_body);

	return heed(name, fine, ret_answer, *ret_body);
}

static int64_t refuse(const char *name, const char *why)
{
	snprintf(now.error, sizeof(now.error), "%s: %s", name, why);
	now.open_bytes = 0;
	return -(int64_t)OSD_ANSWER_INVALID;
}

/* ---- data ------------------------------------------------------------------------------------ */

int64_t osd_job_read(uint64_t partition, uint64_t object, uint64_t offset, uint8_t *to, size_t length)
{
	struct osd_call call = {.op = OSD_CALL_READ,
				.partition_id = partition,
				.object_id = object,
				.a = offset};
	ssize_t shared = osd_long_read(partition, object, offset, to, length);
	struct osd_answer answer;
	const uint8_t *body;
	size_t done = 0, count;
	int64_t error;

	if (shared >= 0)
		return shared;
	do {
		call.b = OSD_MIN(length - done, (size_t)OSD_CALL_IO_MAX);
		error = ask("read", &call, NULL, &answer, &body);
		if (error)
			return error;
		count = OSD_MIN((size_t)answer.body_bytes, (size_t)call.b);
		memcpy(to + done, body, count);
		done += count;
		call.a += count;
	} while (done < length && count == call.b && !osd_job_calls_ended());
	return (int64_t)done;
}

int64_t osd_job_write(uint64_t partition, uint64_t object, uint64_t offset, const uint8_t *from,
		      size_t length)
{
	const struct osd_call call = {.op = OSD_CALL_WRITE,
				      .partition_id = partition,
				      .object_id = object,
				      .a = offset};
	size_t written = 0;
	struct osd_answer answer;
	const uint8_t *body = NULL;
	bool fine;

	if (length == 0)
		return 0;
	fine = osd_proxy_write(&call, from, length, &answer, &body, &written);
	if (fine && written > 0)
		return (int64_t)written;
	return heed("write", fine, &answer, body);
}

int64_t osd_job_length(uint64_t partition, uint64_t object)
{
	const struct osd_call call = {
		.op = OSD_CALL_LENGTH, .partition_id = partition, .object_id = object};
	struct osd_answer answer;
	const uint8_t *body;
	int64_t error = ask("length", &call, NULL, &answer, &body);

	return error ? error : (int64_t)answer.a;
}

/* ---- attributes ------------------------------------------------------------------------------ */

int64_t osd_job_getattr(uint64_t partition, uint64_t object, uint32_t page, uint32_t number, uint8_t *to,
			size_t room)
{
	uint8_t name[8];
	const struct osd_call call = {.op = OSD_CALL_GETATTR,
				      .partition_id = partition,
				      .object_id = object,
				      .body_bytes = sizeof(name)};
	struct osd_answer answer;
	const uint8_t *body;
	size_t length;
	int64_t error;

	osd_put_be(name, page, 4);
	osd_put_be(name + 4, number, 4);
	error = ask("getattr", &call, name, &answer, &body);
	if (error)
		return error;
	if (answer.body_bytes < ENTRY_BYTES)
		return OSD_JOB_MALFORMED;
	length = osd_get_be(body + 14, 2);
	if (length > answer.body_bytes - ENTRY_BYTES)
		return OSD_JOB_MALFORMED;
	memcpy(to, body + ENTRY_BYTES, OSD_MIN(length, room));
	return (int64_t)length;
}

int64_t osd_job_setattr(uint64_t partition, uint64_t object, uint32_t page, uint32_t number,
			const uint8_t *from, size_t length)
{
	static uint8_t entry[ENTRY_BYTES + VALUE_MAX + 8];
	struct osd_call call = {
		.op = OSD_CALL_SETATTR, .partition_id = partition, .object_id = object};
	struct osd_answer answer;
	const uint8_t *body;
	size_t padded;

	if (length > VALUE_MAX)
		return refuse("setattr", "a value has 65534 bytes at most");
	padded = (ENTRY_BYTES + length + 7) / 8 * 8;
	memset(entry, 0, ENTRY_BYTES);
	memset(entry + padded - 8, 0, 8);
	osd_put_be(entry, page, 4);
	osd_put_be(entry + 4, number, 4);
	osd_put_be(entry + 14, length, 2);
	memcpy(entry + ENTRY_BYTES, from, length);
	call.body_bytes = (uint32_t)padded;
	return ask("setattr", &call, entry, &answer, &body);
}

/* ---- the job --------------------------------------------------------------------------------- */

int64_t osd_job_args_from(size_t offset, uint8_t *to, size_t room)
{
	size_t skipped = OSD_MIN(offset, (size_t)now.job->run.args_bytes);
	size_t length = now.job->run.args_bytes - skipped;

	memcpy(to, now.job->args + skipped, OSD_MIN(length, room));
	return (int64_t)length;
}

enum { ZONE_PARTITION, ZONE_OBJECT, ZONE_TYPE };

int64_t osd_job_zone(uint32_t part)
{
	const struct osd_job_run *run = &now.job->run;

	switch (part) {
	case ZONE_PARTITION:
		return (int64_t)run->zone_partition;
	case ZONE_OBJECT:
		return (int64_t)run->zone_object;
	case ZONE_TYPE:
		return run->zone_type;
	default:
		return refuse("zone", "0: partition, 1: object, 2: type");
	}
}

static int64_t send_result(const uint8_t *from, size_t length)
{
	struct osd_call call = {.op = OSD_CALL_RESULT, .a = now.result_bytes, .b = now.encoding};
	size_t done = 0, written = 0;
	struct osd_answer answer;
	const uint8_t *body = NULL;

	if (length == 0)
		return ask("result", &call, NULL, &answer, &body);
	while (done < length && !osd_job_calls_ended()) {
		bool fine = osd_proxy_write(&call, from + done,
					    OSD_MIN(length - done, (size_t)RESULT_MOST), &answer,
					    &body, &written);

		if (!fine || written == 0)
			return heed("result", fine, &answer, body);
		done += written;
		call.a = now.result_bytes += written;
	}
	return 0;
}

/* The placed bytes are not all. */
static int64_t send_placed(void)
{
	const void *bytes = OSD_STEAL(now.placed);
	size_t length = now.placed_bytes;

	now.placed_bytes = 0;
	return bytes ? send_result(bytes, length) : 0;
}

/* False: it must be sent. */
static bool add_placed(const void *from, size_t length)
{
	if (now.placed && !osd_place_more(now.placed, now.placed_bytes, from, length))
		return false;
	if (!now.placed)
		now.placed = osd_place_result(from, length, false);
	if (now.placed)
		now.placed_bytes += length;
	return now.placed;
}

/* The result so far that waits for FINISH lies in the shared memory from now on, so that this piece can follow. */
static bool place_waiting(void)
{
	if (now.result_bytes || (now.waiting_bytes && !add_placed(waiting, now.waiting_bytes)))
		return false;
	now.has_result = false;
	now.waiting_bytes = 0;
	return true;
}

static int64_t send_waiting(void)
{
	int64_t error = now.has_result ? send_result(waiting, now.waiting_bytes) : 0;

	now.has_result = false;
	now.waiting_bytes = 0;
	return error ? error : send_placed();
}

/* Without a record nobody sees a result before the end, so a short one waits for it, and so does a long one of a stage
 * if there is room. */
int64_t osd_job_result(uint32_t encoding, const uint8_t *from, size_t length)
{
	bool plain = now.job->run.job_partition == 0;

	if (encoding > 1)
		return refuse("result", "the encoding is 0: bytes, or 1: JSON");
	if (now.result_error)
		return now.result_error;
	now.encoding = encoding;
	if (plain && now.result_bytes == 0 && !now.placed &&
	    length <= sizeof(waiting) - now.waiting_bytes) {
		if (length)
			memcpy(waiting + now.waiting_bytes, from, length);
		now.waiting_bytes += length;
		now.has_result = true;
		return 0;
	}
	if (place_waiting() && add_placed(from, length))
		return 0;
	now.result_error = send_waiting();
	if (!now.result_error)
		now.result_error = send_result(from, length);
	return now.result_error;
}

/* Keeps the last line of errors that is not empty, because nothing else that is logged survives a call without a
 * record. */
static void keep_last_line(const uint8_t *from, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (from[i] == '\n') {
			now.open_bytes = 0;
		} else if (now.open_bytes < ERROR_MAX - 1) {
			now.error[now.open_bytes++] = (char)from[i];
			now.error[now.open_bytes] = '\0';
		}
	}
}

int64_t osd_job_log(uint32_t stream, const uint8_t *from, size_t length)
{
	size_t done = 0;

	if (stream != STDOUT_FILENO && stream != STDERR_FILENO)
		return refuse("log", "the stream is 1: output, or 2: errors");
	while (done < length && !osd_job_calls_ended()) {
		ssize_t count = write((int)stream, from + done, length - done);

		if (count < 0 && errno != EINTR)
			return refuse("log", strerror(errno));
		done += count > 0 ? (size_t)count : 0;
	}
	if (stream == STDERR_FILENO)
		keep_last_line(from, length);
	return 0;
}

int64_t osd_job_progress(uint32_t share, const uint8_t *from, size_t length)
{
	struct osd_call call = {.op = OSD_CALL_PROGRESS,
				.a = share == UINT32_MAX ? PROGRESS_UNSAID : share,
				.body_bytes = (uint32_t)length};
	struct osd_answer answer;
	const uint8_t *body;

	if (length > PROGRESS_MAX || (share > 1000 && share != UINT32_MAX))
		return refuse("progress",
			      "progress is 0 to 1000, or -1, with a text of 256 bytes at most");
	return ask("progress", &call, from, &answer, &body);
}
