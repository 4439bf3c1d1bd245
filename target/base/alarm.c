/* SPDX-License-Identifier: GPL-2.0-or-later */
/* alarm.c -- see alarm.h. */
#include "base/alarm.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

void osd_wake(int eventfd)
{
	uint64_t one = 1;

	if (write(eventfd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		osd_error("cannot wake a thread: %s", strerror(errno));
}

void osd_wake_drain(int eventfd)
{
	uint64_t count;

	if (read(eventfd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		osd_error("cannot read an event counter: %s", strerror(errno));
}

void osd_alarm_by(struct osd_alarm *alarm, uint64_t usec)
{
	if (usec >= alarm->usec)
		return;
	alarm->usec = usec;
	if (!alarm->awake)
		osd_wake(alarm->wake);
}
