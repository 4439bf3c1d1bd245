/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copy_extents.c -- copies a range of one object's files to another's; holes stay holes. */
#include "object/internal.h"

#include <sched.h>

#include "base/util.h"

#define COPY_PIECE (UINT64_C(8) << 20)
#define STEP_PIECE (UINT64_C(128) << 10) /* the same, if the caller is asked before each piece */
/* The kernel copies a piece without a break.  A thread that wakes up on this CPU meanwhile may wait for
 * the next tick, up to 4 ms.  Small pieces let it run between them. */

enum osd_status osd_copy_extents(struct osd_tier_file *from, uint64_t from_offset, uint64_t length,
				 struct osd_tier_file *to, uint64_t to_offset,
				 const struct osd_copy_how *how)
{
	const struct osd_change_steps *steps = how ? how->steps : NULL;
	uint64_t at = from_offset, end = from_offset + length;
	enum osd_status status = OSD_OK;

	while (status == OSD_OK && at < end) {
		uint64_t start, stop;

		if (how && how->stop && how->stop(how->arg))
			return OSD_E_TASK_ABORTED;
		status = osd_tier_next_extent(from, at, &start, &stop);
		if (status == OSD_E_BEYOND_END)
			return OSD_OK;
		if (status != OSD_OK || start >= end)
			return status;
		at = OSD_MIN(OSD_MIN(stop, end), start + (steps ? STEP_PIECE : COPY_PIECE));
		if (steps && !steps->go_on(steps->arg, at - start))
			return OSD_E_TASK_ABORTED;
		if (steps)
			sched_yield();
		status = osd_tier_copy(from, start, to, to_offset + (start - from_offset),
				       at - start, how ? how->flags : 0);
	}
	return status;
}
