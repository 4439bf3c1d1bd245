/* SPDX-License-Identifier: GPL-2.0-or-later */
/* range_lock.c -- see range_lock.h.  The list is as long as the number of threads that use one object,
 * so a walk is cheaper than a tree. */
#include "object/range_lock.h"

#include <assert.h>
#include <stddef.h>

#include "base/lock.h"
#include "base/thread.h"

void osd_range_lock_init(struct osd_range_lock *lock, struct osd_lock *mutex)
{
	*lock = (struct osd_range_lock){.mutex = mutex, .last = &lock->first};
}

void osd_range_lock_release(struct osd_range_lock *lock)
{
	assert(!lock->first);
	(void)lock;
}

static bool conflict(const struct osd_range *one, const struct osd_range *other)
{
	return (one->exclusive || other->exclusive) && one->start < other->end &&
	       other->start < one->end;
}

/* An older entry that range must wait for.  The walk ends at range itself. */
static bool is_blocked(const struct osd_range_lock *lock, const struct osd_range *range)
{
	for (const struct osd_range *other = lock->first; other && other != range;
	     other = other->next)
		if (conflict(other, range))
			return true;
	return false;
}

static void append(struct osd_range_lock *lock, struct osd_range *range)
{
	*lock->last = range;
	lock->last = &range->next;
}

static void wait_for_turn(struct osd_range_lock *lock, struct osd_range *range)
{
	pthread_cond_t turn = PTHREAD_COND_INITIALIZER;

	osd_thread_waits();
	range->turn = &turn;
	do
		osd_cond_wait(&turn, lock->mutex);
	while (is_blocked(lock, range));
	range->turn = NULL;
	pthread_cond_destroy(&turn);
}

void osd_range_acquire(struct osd_range_lock *lock, struct osd_range *range, uint64_t start,
		       uint64_t end, bool exclusive)
{
	*range = (struct osd_range){.start = start, .end = end, .exclusive = exclusive};
	append(lock, range);
	if (is_blocked(lock, range))
		wait_for_turn(lock, range);
}

bool osd_range_try(struct osd_range_lock *lock, struct osd_range *range, uint64_t start,
		   uint64_t end, bool exclusive)
{
	*range = (struct osd_range){.start = start, .end = end, .exclusive = exclusive};
	if (is_blocked(lock, range))
		return false;
	append(lock, range);
	return true;
}

void osd_range_drop(struct osd_range_lock *lock, struct osd_range *range)
{
	struct osd_range **link = &lock->first;

	while (*link != range)
		link = &(*link)->next;
	*link = range->next;
	if (lock->last == &range->next)
		lock->last = link;
	/* Wakes up only the waiters that can go now.  Otherwise all waiters of one range would wake up,
	 * check and sleep again. */
	for (struct osd_range *other = range->next; other; other = other->next)
		if (other->turn && conflict(range, other) && !is_blocked(lock, other))
			pthread_cond_signal(other->turn);
}
