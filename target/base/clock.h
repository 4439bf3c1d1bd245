/* SPDX-License-Identifier: GPL-2.0-or-later */
/* clock.h -- the two clocks: monotonic microseconds for durations and deadlines, and milliseconds since
 * 1970 for times that are shown or stored. */
#ifndef OSD_BASE_CLOCK_H
#define OSD_BASE_CLOCK_H

#include <stdint.h>
#include <sys/time.h>
#include <time.h>

#include "base/util.h"

#define OSD_NEVER UINT64_MAX /* a deadline that never comes */

static inline uint64_t osd_clock_nsec_(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t osd_monotonic_nsec(void)
{
	return osd_clock_nsec_(CLOCK_MONOTONIC);
}

static inline uint64_t osd_monotonic_usec(void)
{
	return osd_monotonic_nsec() / 1000;
}

/* For osd_cond_timedwait, or to sleep so long. */
static inline struct timespec osd_timespec(uint64_t usec)
{
	return (struct timespec){(time_t)(usec / 1000000), (long)(usec % 1000000) * 1000};
}

static inline uint64_t osd_timeval_usec(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* Milliseconds until a deadline, for poll(2); -1: there is none. */
static inline int osd_msec_until(uint64_t deadline)
{
	uint64_t now = osd_monotonic_usec(), left = deadline > now ? deadline - now : 0;

	return deadline == OSD_NEVER ? -1 : (int)OSD_MIN((left + 999) / 1000, UINT64_C(60000));
}

/* These two since 1970; the second is the clock of timestamps and of capabilities. */
static inline uint64_t osd_wall_nsec(void)
{
	return osd_clock_nsec_(CLOCK_REALTIME);
}

static inline uint64_t osd_wall_msec(void)
{
	return osd_wall_nsec() / 1000000;
}

#endif
