/* SPDX-License-Identifier: GPL-2.0-or-later */
/* range_lock.h -- reader/writer locks on byte ranges of one object: a WRITE is atomic against READs of
 * the same bytes.  First come, first served: a later conflicting range never overtakes a
 * waiter. struct osd_range is on its owner's stack. */
#ifndef OSD_OBJECT_RANGE_LOCK_H
#define OSD_OBJECT_RANGE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct osd_range {
	struct osd_range *next;
	uint64_t start, end; /* [start, end); end UINT64_MAX: without end */
	bool exclusive;
	pthread_cond_t *turn; /* of the waiter; NULL: it is held */
};

struct osd_range_lock {
	struct osd_lock *mutex;		 /* borrowed: the object's */
	struct osd_range *first, **last; /* under mutex: held or waited for, oldest first */
};

void osd_range_lock_init(struct osd_range_lock *lock, struct osd_lock *mutex);
void osd_range_lock_release(struct osd_range_lock *lock);
/* All are called with the mutex held. acquire releases it while it waits. */
void osd_range_acquire(struct osd_range_lock *lock, struct osd_range *range, uint64_t start,
		       uint64_t end, bool exclusive);
bool osd_range_try(struct osd_range_lock *lock, struct osd_range *range, uint64_t start,
		   uint64_t end, bool exclusive);
void osd_range_drop(struct osd_range_lock *lock, struct osd_range *range);

#endif
