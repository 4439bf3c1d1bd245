/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pace.h -- a rate of bytes per second that many threads share.  A caller that moves bytes notes them, and then
 * waits until they are due, without a lock.  Pure but for the counters: no clock, no sleep.
 *
 * Any thread.  One number is the whole state: when the bytes noted so far are due.  Unused time is kept for up to
 * OSD_PACE_BURST_NSEC, so short pauses cost no bandwidth. */
#ifndef OSD_BASE_PACE_H
#define OSD_BASE_PACE_H

#include <stdatomic.h>
#include <stdint.h>

#define OSD_PACE_BURST_NSEC UINT64_C(100000000)

struct osd_pace {
	_Atomic uint64_t rate;	    /* bytes per second; 0: no bound */
	_Atomic uint64_t due_nsec;  /* monotonic */
	_Atomic uint64_t bytes;	    /* noted while there was a bound */
	_Atomic uint64_t held_usec; /* that threads have waited, all together; the caller adds */
};

/* Notes the bytes.  Returns the monotonic time in microseconds at which they are due; 0: at once. */
uint64_t osd_pace_take(struct osd_pace *pace, uint64_t bytes, uint64_t now_usec);

#endif
