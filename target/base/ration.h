/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ration.h -- limits how many log lines of one kind are written in a period, and counts the others.
 *
 * Any thread. */
#ifndef OSD_BASE_RATION_H
#define OSD_BASE_RATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

struct osd_ration {
	struct osd_lock lock;
	unsigned most;       /* lines in one period */
	uint64_t period_usec;
	uint64_t period; /* the number of the period that used counts */
	unsigned used, withheld;
};

#define OSD_RATION(lines, usec)                                                                    \
	{                                                                                          \
		OSD_LOCK_INITIALIZER(OSD_RANK_RATION), lines, usec, 0, 0, 0                        \
	}

/* Whether another line may be written now, at this monotonic time.  *ret_withheld: the number of
 * lines refused since the last one permitted; 0 if this one is refused. */
bool osd_ration_take(struct osd_ration *ration, uint64_t now_usec, unsigned *ret_withheld);

#endif
