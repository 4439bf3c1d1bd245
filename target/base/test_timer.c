/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_timer.c -- timers run when they are due, or earlier if set so, one at a time; a removed timer
 * does not run any more. */
#include "base/timer.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/test.h"

#define FAR 3600000000u

static struct osd_timers timers;
static atomic_uint at_work, fast_runs, slow_runs;
static atomic_bool hold;

static void enter(void)
{
	CHECK_EQ(atomic_fetch_add(&at_work, 1), 0); /* one at a time */
}

static uint64_t fast(void *arg)
{
	enter();
	CHECK(arg == &timers);
	atomic_fetch_add(&fast_runs, 1);
	atomic_fetch_sub(&at_work, 1);
	return osd_monotonic_usec() + 1000;
}

static uint64_t slow(void *arg)
{
	enter();
	(void)arg;
	atomic_fetch_add(&slow_runs, 1);
	while (atomic_load(&hold))
		sched_yield();
	atomic_fetch_sub(&at_work, 1);
	return OSD_NEVER;
}

static void await_runs(atomic_uint *runs, unsigned count)
{
	while (atomic_load(runs) < count)
		sched_yield();
}

static void *let_go(void *arg)
{
	(void)arg;
	await_runs(&slow_runs, 3);
	atomic_store(&hold, false);
	return NULL;
}

static void test_due_times(struct osd_timer *rare)
{
	await_runs(&fast_runs, 5);
	CHECK_EQ(atomic_load(&slow_runs), 0);
	osd_timer_set(&timers, rare, 0); /* now */
	await_runs(&slow_runs, 1);
	osd_timer_set(&timers, rare, osd_monotonic_usec() + FAR);
	osd_timer_set(&timers, rare, osd_monotonic_usec() + 1000); /* the earlier time counts */
	await_runs(&slow_runs, 2);
	await_runs(&fast_runs, atomic_load(&fast_runs) + 2);
	CHECK_EQ(atomic_load(&slow_runs), 2);
}

static void test_removal(struct osd_timer *rare)
{
	pthread_t thread;
	unsigned before;

	atomic_store(&hold, true);
	osd_timer_set(&timers, rare, 0);
	await_runs(&slow_runs, 3);
	CHECK(pthread_create(&thread, NULL, let_go, NULL) == 0);
	osd_timer_remove(&timers, rare); /* waits for the end of the run */
	CHECK(!atomic_load(&hold));
	pthread_join(thread, NULL);
	before = atomic_load(&slow_runs);
	osd_timer_set(&timers, rare, 0);
	osd_timer_remove(&timers, rare);
	await_runs(&fast_runs, atomic_load(&fast_runs) + 2);
	CHECK_EQ(atomic_load(&slow_runs), before);
}

int main(void)
{
	struct osd_timer often = {fast, &timers, 0, NULL};
	struct osd_timer rare = {slow, NULL, osd_monotonic_usec() + FAR, NULL};
	unsigned before;

	osd_timers_init(&timers);
	osd_timer_add(&timers, &often);
	osd_timer_add(&timers, &rare);
	CHECK(osd_timers_start(&timers, "test-timers"));
	test_due_times(&rare);
	test_removal(&rare);
	osd_timers_stop(&timers);
	before = atomic_load(&fast_runs);
	osd_timer_set(&timers, &often, 0);
	sched_yield();
	CHECK_EQ(atomic_load(&fast_runs), before);
	osd_timers_release(&timers);
	return 0;
}
