/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clock.h -- the two clocks: monotonic microseconds for durations and deadlines, milliseconds since
 * 1970 for what people and attributes see. */
#ifndef OSD_BASE_CLOCK_H
#define OSD_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define OSD_NEVER UINT64_MAX /* a deadline that does not come */

static inline uint64_t osd_clock_usec_(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline uint64_t osd_monotonic_usec(void)
{
	return osd_clock_usec_(CLOCK_MONOTONIC);
}

static inline uint64_t osd_wall_msec(void)
{
	return osd_clock_usec_(CLOCK_REALTIME) / 1000;
}

#endif
