/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_thread.c -- the processors that count are those that a thread may use. */
#include "base/thread.h"

#include <sched.h>

#include "base/test.h"

int main(void)
{
	cpu_set_t all, one;
	int first = 0;

	CHECK_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	CHECK_EQ(osd_thread_processors(), (unsigned)CPU_COUNT(&all));
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	CHECK_EQ(osd_thread_processors(), 1);
	return 0;
}
