/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lock.c -- see lock.h: the locks that each thread holds, in builds with assertions. */
#include "base/lock.h"

#ifndef NDEBUG

#include <stdio.h>
#include <stdlib.h>

#define DEPTH 16u /* locks that one thread holds at a time */

static const char *const names[] = {
#define NAME(rank, name) [OSD_RANK_##rank] = (name),
	OSD_LOCKS(NAME)
#undef NAME
};

struct held {
	const void *lock;
	enum osd_rank rank;
};

static _Thread_local struct {
	struct held locks[DEPTH];
	unsigned count;
} mine;

static _Noreturn void refuse(const char *what, enum osd_rank rank, const char *other)
{
	fprintf(stderr, "lock order: %s %s%s\n", names[rank], what, other);
	abort();
}

void osd_lock_has(const void *lock, enum osd_rank rank)
{
	if (mine.count == DEPTH)
		refuse("is one lock too many for its thread", rank, "");
	mine.locks[mine.count++] = (struct held){lock, rank};
}

void osd_lock_takes(const void *lock, enum osd_rank rank)
{
	for (unsigned i = 0; i < mine.count; i++)
		if (mine.locks[i].rank >= rank)
			refuse("is taken by a thread that holds ", rank, names[mine.locks[i].rank]);
	osd_lock_has(lock, rank);
}

/* The index of the lock among this thread's locks; count: it is not there. */
static unsigned place_of(const void *lock)
{
	unsigned i = mine.count;

	while (i-- > 0)
		if (mine.locks[i].lock == lock)
			return i;
	return mine.count;
}

void osd_lock_drops(const void *lock, enum osd_rank rank)
{
	unsigned place = place_of(lock);

	if (place == mine.count)
		refuse("is let go by a thread that does not hold it", rank, "");
	mine.locks[place] = mine.locks[--mine.count];
}

void osd_lock_must_be_held(const void *lock, enum osd_rank rank)
{
	if (place_of(lock) == mine.count)
		refuse("is not held", rank, "");
}

#endif
