/* SPDX-License-Identifier: GPL-2.0-or-later */
/* output.c -- what a script prints: stdout into the surrogate, stderr into memory (run.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/util.h"
#include "exec/run/run.h"
#include "object/object.h"

#define PIECE_BYTES    (64u << 10)
#define PIECES_AT_ONCE 16

void osd_output_init(struct osd_output *output, struct osd_objects *objects,
		     struct osd_object_id surrogate, uint64_t stdout_limit)
{
	*output = (struct osd_output){.objects = objects,
				      .surrogate = surrogate,
				      .stdout_limit = stdout_limit,
				      .status = OSD_OK};
	osd_lock_init(&output->lock, OSD_RANK_OUTPUT);
	osd_lock_init(&output->errors_lock, OSD_RANK_OUTPUT_ERRORS);
}

void osd_output_release(struct osd_output *output)
{
	osd_lock(&output->lock);
	osd_object_put(OSD_STEAL(output->object));
	osd_unlock(&output->lock);
	osd_lock(&output->errors_lock);
	free(OSD_STEAL(output->errors));
	output->released = true;
	osd_unlock(&output->errors_lock);
}

void osd_output_destroy(struct osd_output *output)
{
	osd_lock_destroy(&output->errors_lock);
	osd_lock_destroy(&output->lock);
}

uint16_t osd_output_reason(enum osd_status status)
{
	return status == OSD_E_NO_SPACE || status == OSD_E_QUOTA ? OSD_REASON_NO_SPACE
								 : OSD_REASON_STORAGE;
}

/* ---- reading; output->lock held -------------------------------------------------------------- */

static void store_stdout(struct osd_output *output, const uint8_t *bytes, size_t length)
{
	uint64_t at = atomic_load(&output->stdout_length);
	size_t fits = (size_t)OSD_MIN((uint64_t)length, output->stdout_limit - at);

	osd_assert_held(&output->lock);
	if (fits < length)
		atomic_store(&output->over_limit, true);
	if (fits == 0 || output->status != OSD_OK)
		return;
	if (!output->surrogate.object_id) { /* of a plain call: it is counted */
		atomic_store(&output->stdout_length, at + fits);
		return;
	}
	if (!output->object)
		output->status =
			osd_object_get(output->objects, output->surrogate, &output->object);
	if (output->status == OSD_OK)
		output->status =
			osd_object_write(output->object, at, bytes, fits, OSD_DATA_RESERVE);
	if (output->status == OSD_OK)
		atomic_store(&output->stdout_length, at + fits);
	else
		atomic_store(&output->unstored, osd_output_reason(output->status));
}

static void keep_errors(struct osd_output *output, const uint8_t *bytes, size_t length)
{
	uint64_t at = atomic_load(&output->stderr_length);

	osd_assert_held(&output->errors_lock);
	atomic_store(&output->stderr_length, at + length);
	if (!output->errors)
		output->errors = calloc(1, OSD_JOB_PAYLOAD_MAX); /* zeros where one failed */
	if (!output->errors)
		return;
	for (size_t piece; length > 0; at += piece, bytes += piece, length -= piece) {
		uint64_t ring = at < OSD_JOB_STDERR_HEAD
					? 0
					: (at - OSD_JOB_STDERR_HEAD) % OSD_JOB_STDERR_TAIL;

		if (at < OSD_JOB_STDERR_HEAD) {
			piece = (size_t)OSD_MIN((uint64_t)length, OSD_JOB_STDERR_HEAD - at);
			memcpy(output->errors + at, bytes, piece);
		} else {
			piece = (size_t)OSD_MIN((uint64_t)length, OSD_JOB_STDERR_TAIL - ring);
			memcpy(output->errors + OSD_JOB_STDERR_HEAD + ring, bytes, piece);
		}
	}
}

static void store_stderr(struct osd_output *output, const uint8_t *bytes, size_t length)
{
	osd_lock(&output->errors_lock);
	keep_errors(output, bytes, length);
	osd_unlock(&output->errors_lock);
}

typedef void store_fn(struct osd_output *output, const uint8_t *bytes, size_t length);

/* The number of bytes read; 0: the pipe is empty now. */
static size_t read_piece(struct osd_output *output, int fd, store_fn *store)
{
	uint8_t bytes[PIECE_BYTES];
	ssize_t length = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));

	if (length <= 0)
		return 0;
	store(output, bytes, (size_t)length);
	return (size_t)length;
}

static bool drain(struct osd_output *output, int stdout_fd, int stderr_fd)
{
	bool more = true;

	for (int i = 0; i < PIECES_AT_ONCE && more; i++) {
		more = read_piece(output, stdout_fd, store_stdout) > 0;
		more = read_piece(output, stderr_fd, store_stderr) > 0 || more;
		/* The job is being ended because its output is over the limit: discard the rest. */
		if (atomic_load(&output->over_limit))
			break;
	}
	return more;
}

bool osd_output_drain(struct osd_output *output, int stdout_fd, int stderr_fd)
{
	bool more = false;

	osd_lock(&output->lock);
	if (!output->closed)
		more = drain(output, stdout_fd, stderr_fd);
	osd_unlock(&output->lock);
	return more;
}

/* Reads only the bytes in the pipe now: a leftover thread or process of the script could write
 * without end. */
static void drain_once(struct osd_output *output, int fd, store_fn *store)
{
	int there = 0;
	size_t left, got = 1;

	if (fd < 0 || ioctl(fd, FIONREAD, &there) < 0)
		return;
	for (left = (size_t)there; left > 0 && got > 0; left -= OSD_MIN(left, got))
		got = read_piece(output, fd, store);
}

void osd_output_finish(struct osd_output *output, int stdout_fd, int stderr_fd)
{
	osd_lock(&output->lock);
	drain_once(output, stdout_fd, store_stdout);
	drain_once(output, stderr_fd, store_stderr);
	output->closed = true;
	osd_unlock(&output->lock);
}

/* errors_lock held.  Returns the length of the kept part. */
static size_t copy_errors(const struct osd_output *output, uint8_t *buffer)
{
	uint64_t length = atomic_load(&output->stderr_length);
	size_t ring;

	osd_assert_held(&output->errors_lock);
	if (!output->errors || length == 0)
		return 0;
	if (length <= OSD_JOB_PAYLOAD_MAX) {
		memcpy(buffer, output->errors, length);
		return length;
	}
	ring = (length - OSD_JOB_STDERR_HEAD) % OSD_JOB_STDERR_TAIL;
	memcpy(buffer, output->errors, OSD_JOB_STDERR_HEAD);
	memcpy(buffer + OSD_JOB_STDERR_HEAD, output->errors + OSD_JOB_STDERR_HEAD + ring,
	       OSD_JOB_STDERR_TAIL - ring);
	memcpy(buffer + OSD_JOB_PAYLOAD_MAX - ring, output->errors + OSD_JOB_STDERR_HEAD, ring);
	return OSD_JOB_PAYLOAD_MAX;
}

bool osd_output_errors(struct osd_output *output, uint8_t *buffer, size_t *ret_length,
		       uint64_t *ret_total)
{
	bool released;

	osd_lock(&output->errors_lock);
	released = output->released;
	*ret_length = copy_errors(output, buffer);
	*ret_total = atomic_load(&output->stderr_length);
	osd_unlock(&output->errors_lock);
	return !released;
}
