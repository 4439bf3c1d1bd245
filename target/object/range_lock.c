/* SPDX-License-Identifier: GPL-2.0-or-later */
/* range_lock.c -- see range_lock.h.  The list is short (threads at work on one object), so a walk
 * is cheaper than a tree. */
#include "object/range_lock.h"

#include <assert.h>
#include <stddef.h>

void osd_range_lock_init(struct osd_range_lock *lock, pthread_mutex_t *mutex)
{
	*lock = (struct osd_range_lock){.mutex = mutex, .last = &lock->first};
	pthread_cond_init(&lock->changed, NULL);
}

void osd_range_lock_release(struct osd_range_lock *lock)
{
	assert(!lock->first);
	pthread_cond_destroy(&lock->changed);
}

/* An older entry that range must wait for; stop at range itself. */
static bool is_blocked(const struct osd_range_lock *lock, const struct osd_range *range)
{
	for (const struct osd_range *other = lock->first; other && other != range;
	     other = other->next)
		if ((other->exclusive || range->exclusive) && other->start < range->end &&
		    range->start < other->end)
			return true;
	return false;
}

static void append(struct osd_range_lock *lock, struct osd_range *range)
{
	*lock->last = range;
	lock->last = &range->next;
}

void osd_range_acquire(struct osd_range_lock *lock, struct osd_range *range, uint64_t start,
		       uint64_t end, bool exclusive)
{
	*range = (struct osd_range){NULL, start, end, exclusive};
	append(lock, range);
	while (is_blocked(lock, range)) {
		lock->waiters++;
		pthread_cond_wait(&lock->changed, lock->mutex);
		lock->waiters--;
	}
}

bool osd_range_try(struct osd_range_lock *lock, struct osd_range *range, uint64_t start,
		   uint64_t end, bool exclusive)
{
	*range = (struct osd_range){NULL, start, end, exclusive};
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
	if (lock->waiters)
		pthread_cond_broadcast(&lock->changed);
}
