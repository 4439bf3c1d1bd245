/* SPDX-License-Identifier: GPL-2.0-or-later */
/* alarm.h -- wakes a thread that sleeps in epoll_wait(): at once, by an eventfd, or by a given time
 * of the monotonic clock. */
#ifndef OSD_BASE_ALARM_H
#define OSD_BASE_ALARM_H

#include <stdbool.h>
#include <stdint.h>

void osd_wake(int eventfd);
/* Called once the thread has woken up: resets the eventfd until the next osd_wake. */
void osd_wake_drain(int eventfd);

/* The caller serialises. */
struct osd_alarm {
	uint64_t usec; /* when the thread checks its work without a wake-up; OSD_NEVER: it does not */
	bool awake;    /* it checks its work now, and reads usec again before it sleeps */
	int wake;      /* the eventfd; -1: there is none */
};

/* Makes the thread check its work at this time at the latest. */
void osd_alarm_by(struct osd_alarm *alarm, uint64_t usec);

#endif
