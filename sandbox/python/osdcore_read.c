/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_read.c -- `_osdcore.pread`: the usual case of a read through the descriptors that the proxy
 * passed (design D19), in C: no write is running, and the descriptors are those of the current files.
 * The caller in Python (osd/_sandbox.py) handles every other case. */
#include "osdcore_module.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

#define HUGE_PAGE   (2u << 20)
#define FRESH_BYTES (32u << 20) /* from there on malloc maps every block anew */

/* 64-bit words of the version page. */
enum { WORD_COUNTER, WORD_LENGTH, WORD_REMOVED, WORD_LAYOUT, WORDS };

struct reading {
	const _Atomic uint64_t *words;
	unsigned long long layout, head_bytes, offset;
	int head_fd, tail_fd;
	uint8_t *bytes;
	size_t room;
};

/* Reads the range, with zeros where the file ends before the object.  False: an error, or a signal. */
static bool fill(int fd, uint64_t at, uint8_t *bytes, size_t length)
{
	while (length > 0) {
		ssize_t count = pread(fd, bytes, length, (off_t)at);

		if (count < 0)
			return false;
		if (count == 0) {
			memset(bytes, 0, length);
			return true;
		}
		at += (uint64_t)count;
		bytes += count;
		length -= (size_t)count;
	}
	return true;
}

/* malloc has just mapped a block of this size, and every page of it will fault: request huge pages. */
static void expect_much(uint8_t *bytes, size_t room)
{
	size_t until_page = -(uintptr_t)bytes % HUGE_PAGE;

	if (room >= FRESH_BYTES)
		madvise(bytes + until_page, (room - until_page) / HUGE_PAGE * HUGE_PAGE,
			MADV_HUGEPAGE);
}

/* Bytes read; -1: not the usual case. */
static Py_ssize_t read_now(const struct reading *r)
{
	uint64_t before = atomic_load(&r->words[WORD_COUNTER]);
	uint64_t length = atomic_load(&r->words[WORD_LENGTH]);
	size_t count, in_head;

	if (before & 1 || atomic_load(&r->words[WORD_REMOVED]) ||
	    atomic_load(&r->words[WORD_LAYOUT]) != r->layout)
		return -1;
	expect_much(r->bytes, r->room);
	count = r->offset < length ? (size_t)OSD_MIN((uint64_t)r->room, length - r->offset) : 0;
	in_head = r->offset < r->head_bytes
			  ? (size_t)OSD_MIN((uint64_t)count, r->head_bytes - r->offset)
			  : 0;
	if ((count > 0 && r->head_fd < 0) || (count > in_head && r->tail_fd < 0))
		return -1;
	if (!fill(r->head_fd, r->offset, r->bytes, in_head) ||
	    !fill(r->tail_fd, r->offset + in_head - r->head_bytes, r->bytes + in_head,
		  count - in_head))
		return -1;
	return atomic_load(&r->words[WORD_COUNTER]) == before ? (Py_ssize_t)count : -1;
}

PyObject *osd_core_pread(PyObject *module, PyObject *args)
{
	struct reading reading;
	Py_buffer page, buffer;
	Py_ssize_t count = -1;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*KiKiKw*:pread", &page, &reading.layout, &reading.head_fd,
			      &reading.head_bytes, &reading.tail_fd, &reading.offset, &buffer))
		return NULL;
	reading.words = page.buf;
	reading.bytes = buffer.buf;
	reading.room = (size_t)buffer.len;
	if (page.len >= (Py_ssize_t)(WORDS * sizeof(uint64_t))) {
		Py_BEGIN_ALLOW_THREADS count = read_now(&reading);
		Py_END_ALLOW_THREADS
	}
	PyBuffer_Release(&buffer);
	PyBuffer_Release(&page);
	return PyLong_FromSsize_t(count);
}
