/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fork_pages.c -- see fork_pages.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "fork_pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#define HUGE_BYTES    ((uintptr_t)2 << 20)
#define RESERVE_BYTES (64u << 20) /* of addresses; what does not fit lies elsewhere */

/* one per process */
static struct {
	char *start; /* NULL: none */
	size_t used;
	uintptr_t heap; /* where the C library's began */
} reserve;

static uintptr_t round_up(uintptr_t address, uintptr_t unit)
{
	return (address + unit - 1) & ~(unit - 1);
}

static void *take_arena(void *context, size_t bytes)
{
	char *at = reserve.start + reserve.used;
	void *elsewhere;

	(void)context;
	if (reserve.start && bytes <= RESERVE_BYTES - reserve.used) {
		if (mprotect(at, bytes, PROT_READ | PROT_WRITE) < 0)
			return NULL; /* the limit on data */
		reserve.used += bytes;
		return at;
	}
	elsewhere = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return elsewhere == MAP_FAILED ? NULL : elsewhere;
}

static void give_arena(void *context, void *arena, size_t bytes)
{
	(void)context;
	munmap(arena, bytes);
}

void osd_fork_pages_prepare(void)
{
	PyObjectArenaAllocator arenas = {NULL, take_arena, give_arena};
	void *found = mmap(NULL, RESERVE_BYTES + HUGE_BYTES, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	reserve.heap = (uintptr_t)sbrk(0);
	if (found != MAP_FAILED)
		reserve.start = (char *)round_up((uintptr_t)found, HUGE_BYTES);
	PyObject_SetArenaAllocator(&arenas);
}

static void collapse(uintptr_t from, uintptr_t to)
{
	for (from = round_up(from, HUGE_BYTES); from + HUGE_BYTES <= to; from += HUGE_BYTES)
		madvise((void *)from, HUGE_BYTES, MADV_COLLAPSE);
}

void osd_fork_pages_settle(void)
{
	collapse((uintptr_t)reserve.start, (uintptr_t)reserve.start + reserve.used);
	collapse(reserve.heap, (uintptr_t)sbrk(0));
	if (reserve.start) /* what a sandbox adds is its own, page by page */
		madvise(reserve.start, RESERVE_BYTES, MADV_NOHUGEPAGE);
}
