/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shared_read.c -- see shared_read.h. */
#include "shared_read.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

#define HUGE_PAGE   (2u << 20)
#define FRESH_BYTES (32u << 20) /* from there on malloc maps every block anew */

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

ssize_t osd_shared_read(const struct osd_shared_reading *r)
{
	uint64_t before = atomic_load(&r->words[OSD_SHARED_COUNTER]);
	uint64_t length = atomic_load(&r->words[OSD_SHARED_LENGTH]);
	size_t count, in_head;

	if (before & 1 || atomic_load(&r->words[OSD_SHARED_REMOVED]) ||
	    atomic_load(&r->words[OSD_SHARED_LAYOUT]) != r->layout)
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
	return atomic_load(&r->words[OSD_SHARED_COUNTER]) == before ? (ssize_t)count : -1;
}
