/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_thread.c -- a thread before ordinary ones: where it is permitted, and nowhere else. */
#include "base/thread.h"

#include <sched.h>
#include <unistd.h>

#include "base/test.h"

static int policy_of(pid_t thread)
{
	return sched_getscheduler(thread) & ~SCHED_RESET_ON_FORK;
}

static void *policy_here(void *arg)
{
	*(int *)arg = sched_getscheduler(0);
	return NULL;
}

static bool permitted(void)
{
	const struct sched_param first = {.sched_priority = 1}, usual = {0};
	cpu_set_t processors;

	CHECK(sched_getaffinity(0, sizeof(processors), &processors) == 0);
	return CPU_COUNT(&processors) > 1 && sched_setscheduler(0, SCHED_RR, &first) == 0 &&
	       sched_setscheduler(0, SCHED_OTHER, &usual) == 0;
}

static void test_there_and_back(void)
{
	pthread_t other;
	int policy = -1;

	CHECK(osd_thread_put_first(gettid(), true));
	CHECK_EQ(policy_of(0), SCHED_RR);
	CHECK(osd_thread_start(&other, "other", policy_here, &policy));
	CHECK(pthread_join(other, NULL) == 0);
	CHECK_EQ(policy, SCHED_OTHER);
	CHECK(!osd_thread_put_first(gettid(), true));
	CHECK(osd_thread_put_first(gettid(), false));
	CHECK_EQ(policy_of(0), SCHED_OTHER);
}

static void test_refused(void)
{
	const struct sched_param usual = {0};
	cpu_set_t all, one;

	CHECK(sched_setscheduler(0, SCHED_BATCH, &usual) == 0);
	CHECK(!osd_thread_put_first(gettid(), true));
	CHECK(!osd_thread_put_first(gettid(), false));
	CHECK_EQ(policy_of(0), SCHED_BATCH);
	CHECK(sched_setscheduler(0, SCHED_OTHER, &usual) == 0);
	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0);
	CPU_ZERO(&one);
	for (int i = 0; CPU_COUNT(&one) == 0; i++) {
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	}
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	CHECK(!osd_thread_put_first(gettid(), true));
	CHECK_EQ(policy_of(0), SCHED_OTHER);
	CHECK(sched_setaffinity(0, sizeof(all), &all) == 0);
}

int main(void)
{
	test_refused();
	if (permitted())
		test_there_and_back();
	else
		CHECK(!osd_thread_put_first(gettid(), true));
	return 0;
}
