/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fork_pages.c -- see fork_pages.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "fork_pages.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

#define PAGE_BYTES    ((uintptr_t)4096)
#define HUGE_BYTES    ((uintptr_t)2 << 20)
#define RESERVE_BYTES (64u << 20) /* of addresses; larger blocks are placed elsewhere */
#define SMALL_MOST    512u	  /* sizes of the interpreter's own allocator, in steps of 16 */
#define SMALL_STEP    16u
#define CHUNK_MOST    (64u << 10) /* of the C library's that are looked for */

/* one per process */
static struct {
	char *start; /* NULL: none */
	size_t used;
	uintptr_t heap; /* where the C library's began */
} reserve;

/* ---- arenas ---------------------------------------------------------------------------------- */

/* The next block of the reserve; NULL: there is no room, or no memory within the limit on data. */
static void *take_reserve(size_t bytes)
{
	char *at = reserve.start + reserve.used;

	if (!reserve.start || bytes > RESERVE_BYTES - reserve.used ||
	    mprotect(at, bytes, PROT_READ | PROT_WRITE) < 0)
		return NULL;
	reserve.used += bytes;
	return at;
}

static void *take_arena(void *context, size_t bytes)
{
	void *elsewhere;

	(void)context;
	if (reserve.start && bytes <= RESERVE_BYTES - reserve.used)
		return take_reserve(bytes);
	elsewhere = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return elsewhere == MAP_FAILED ? NULL : elsewhere;
}

static void give_arena(void *context, void *arena, size_t bytes)
{
	(void)context;
	munmap(arena, bytes);
}

/* Makes later allocations of the C library use whole huge pages: its heap continues at the beginning of
 * one, and the skipped part is returned. */
static void align_heap(void)
{
	uintptr_t end = osd_round_up((uintptr_t)sbrk(0), PAGE_BYTES);
	uintptr_t start = osd_round_up(end, HUGE_BYTES);

	if (brk((void *)start) == 0)
		munmap((void *)end, start - end);
	reserve.heap = (uintptr_t)sbrk(0);
}

void osd_fork_pages_prepare(void)
{
	PyObjectArenaAllocator arenas = {NULL, take_arena, give_arena};
	void *found = mmap(NULL, RESERVE_BYTES + HUGE_BYTES, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	align_heap();
	if (found != MAP_FAILED)
		reserve.start = (char *)osd_round_up((uintptr_t)found, HUGE_BYTES);
	PyObject_SetArenaAllocator(&arenas);
}

/* ---- free blocks ----------------------------------------------------------------------------- */

/* Blocks that were freed while the interpreter started are scattered.  A sandbox that allocates one
 * would write to its page, to the head of its pool, and to the heads of the neighbouring pools.  So all
 * of them are allocated for good, and a sandbox allocates from the beginning of unused pools. */
static void take_free_blocks(void)
{
	size_t used = reserve.used;
	const char *fresh;

	/* up to a huge page of its own, so that the earlier ones stay whole; an arena fits in it */
	if (RESERVE_BYTES - osd_round_up(used, HUGE_BYTES) < HUGE_BYTES ||
	    !take_reserve(osd_round_up(used, HUGE_BYTES) - used))
		return;
	used = reserve.used;
	fresh = reserve.start + used;
	while (reserve.used == used && PyObject_Malloc(SMALL_MOST))
		; /* the empty pools of old arenas */
	for (size_t bytes = SMALL_STEP; bytes <= SMALL_MOST; bytes += SMALL_STEP) {
		const char *block;

		do
			block = PyObject_Malloc(bytes);
		while (block && (block < fresh || block >= reserve.start + RESERVE_BYTES));
	}
}

static uintptr_t top_of_heap(void)
{
	return (uintptr_t)sbrk(0) - mallinfo2().keepcost;
}

/* Allocates so many bytes after all others.  Free blocks before them are allocated for good. */
static void *take_top(size_t bytes)
{
	uintptr_t top = top_of_heap();
	void *chunk;

	do
		chunk = malloc(bytes);
	while (chunk && (uintptr_t)chunk < top);
	return chunk;
}

/* The same for the C library's heap: the next allocations are after all others, and outside its huge
 * pages. */
static void take_free_chunks(void)
{
	uintptr_t top;

	for (size_t bytes = CHUNK_MOST; bytes >= 24; bytes -= bytes > 1024 ? 1024 : 16)
		free(take_top(bytes));
	top = top_of_heap();
	take_top(osd_round_up(top, HUGE_BYTES) - top);
}

void osd_fork_pages_gather(void)
{
	if (reserve.used == 0)
		return; /* the interpreter has another allocator */
	take_free_blocks();
	take_free_chunks();
}

/* ---- libraries' data ------------------------------------------------------------------------- */

struct data {
	int fd;	     /* of a file in memory */
	off_t bytes; /* written to it */
};

/* Replaces this memory by a private mapping of a file with the same content. */
static void replace_data(struct data *data, uintptr_t from, uintptr_t to, int protection)
{
	size_t length = to - from;

	if (from >= to ||
	    pwrite(data->fd, (const void *)from, length, data->bytes) != (ssize_t)length)
		return;
	if (mmap((void *)from, length, protection, MAP_PRIVATE | MAP_FIXED, data->fd,
		 data->bytes) == MAP_FAILED)
		abort(); /* the old content may be lost */
	data->bytes += (off_t)length;
}

/* The loader has written to nearly all of it.  A fork copies the entries of written pages, and the end
 * of a sandbox frees them.  Pages of a file cost nothing until a sandbox uses them. */
static int share_data(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t constant = 0; /* no code writes below this any more */
	struct data *data = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_GNU_RELRO)
			constant = (info->dlpi_addr + part->p_vaddr + part->p_memsz) &
				   ~(PAGE_BYTES - 1);
	}
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t from = (info->dlpi_addr + part->p_vaddr) & ~(PAGE_BYTES - 1);
		uintptr_t to =
			osd_round_up(info->dlpi_addr + part->p_vaddr + part->p_filesz, PAGE_BYTES);

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_W))
			continue;
		replace_data(data, from, OSD_MIN(constant, to), PROT_READ);
		replace_data(data, OSD_MAX(constant, from), to, PROT_READ | PROT_WRITE);
	}
	return 0;
}

/* ---- huge pages ------------------------------------------------------------------------------ */

static void collapse(uintptr_t from, uintptr_t to)
{
	for (from = osd_round_up(from, HUGE_BYTES); from + HUGE_BYTES <= to; from += HUGE_BYTES)
		madvise((void *)from, HUGE_BYTES, MADV_COLLAPSE);
}

/* Replaces 2 MiB of machine code by a copy in one huge page.  False: there is no such page. */
static bool replace_code(uintptr_t at)
{
	char *found = mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *copy = (char *)osd_round_up((uintptr_t)found, HUGE_BYTES);
	bool done;

	if (found == MAP_FAILED)
		return false;
	memcpy(copy, (const void *)at, HUGE_BYTES);
	done = madvise(copy, HUGE_BYTES, MADV_COLLAPSE) == 0 &&
	       mprotect(copy, HUGE_BYTES, PROT_READ | PROT_EXEC) == 0 &&
	       mremap(copy, HUGE_BYTES, HUGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)at) !=
		       MAP_FAILED;
	munmap(found, (size_t)(copy - found));
	if (!done)
		munmap(copy, HUGE_BYTES);
	munmap(copy + HUGE_BYTES, (size_t)(found + HUGE_BYTES - copy));
	return done;
}

/* The constant parts of a library are three mappings: tables, code and constants.  With the same
 * protection, all executable, the kernel makes them one.  A sandbox then has 120 mappings instead of 183,
 * which fork copies and exit takes down.  The interpreter's code is also copied into huge pages. */
static int join_code(struct dl_phdr_info *info, size_t size, void *interpreter)
{
	uintptr_t from = 0, to = 0; /* of the parts so far, which lie side by side */

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;
		uintptr_t end = osd_round_up(start + part->p_memsz, PAGE_BYTES);

		start &= ~(PAGE_BYTES - 1);
		if (part->p_type != PT_LOAD || part->p_flags & PF_W)
			continue;
		if (mprotect((void *)start, end - start, PROT_READ | PROT_EXEC) < 0)
			return 0;
		if (start != to)
			from = start;
		to = end;
	}
	if ((uintptr_t)interpreter < from || (uintptr_t)interpreter >= to)
		return 0;
	for (from = osd_round_up(from, HUGE_BYTES); from + HUGE_BYTES <= to; from += HUGE_BYTES)
		if (!replace_code(from))
			break;
	return 0;
}

void osd_fork_pages_settle(void)
{
	struct data data = {.fd = memfd_create("iosd-zygote", MFD_CLOEXEC)};

	if (data.fd >= 0) {
		dl_iterate_phdr(share_data, &data);
		close(data.fd);
	}
	dl_iterate_phdr(join_code, (void *)(uintptr_t)PyObject_Malloc);
	collapse((uintptr_t)reserve.start, (uintptr_t)reserve.start + reserve.used);
	collapse(reserve.heap, (uintptr_t)sbrk(0));
	if (reserve.start) /* the additions of a sandbox are ordinary pages of its own */
		madvise(reserve.start, RESERVE_BYTES, MADV_NOHUGEPAGE);
}
