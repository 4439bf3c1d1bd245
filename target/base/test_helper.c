/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_helper.c -- no call is lost, the thread is gone when there is nothing to do, and stop waits for it. */
#include "base/helper.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/test.h"

#define CALLERS 4u
#define CALLS	2000u

static atomic_uint noted, seen, at_work;
static atomic_bool hold;

static void work(void *arg)
{
	CHECK(arg == &noted);
	CHECK_EQ(atomic_fetch_add(&at_work, 1), 0); /* one at a time */
	while (atomic_load(&hold))
		sched_yield();
	atomic_store(&seen, atomic_load(&noted));
	atomic_fetch_sub(&at_work, 1);
}

static void *call_often(void *arg)
{
	struct osd_helper *helper = arg;

	for (unsigned i = 0; i < CALLS; i++) {
		atomic_fetch_add(&noted, 1);
		CHECK(osd_helper_call(helper));
	}
	return NULL;
}

static bool is_gone(struct osd_helper *helper)
{
	bool gone;

	osd_lock(&helper->lock);
	gone = !helper->at_work;
	osd_unlock(&helper->lock);
	return gone;
}

static void wait_until_gone(struct osd_helper *helper)
{
	while (!is_gone(helper))
		sched_yield();
}

static void test_no_call_is_lost(void)
{
	struct osd_helper helper;
	pthread_t callers[CALLERS];

	osd_helper_init(&helper, "test-helper", work, &noted);
	CHECK(is_gone(&helper));
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK(pthread_create(&callers[i], NULL, call_often, &helper) == 0);
	for (unsigned i = 0; i < CALLERS; i++)
		pthread_join(callers[i], NULL);
	wait_until_gone(&helper);
	CHECK_EQ(atomic_load(&seen), CALLERS * CALLS);
	atomic_fetch_add(&noted, 1);
	CHECK(osd_helper_call(&helper)); /* after it has ended: a new thread */
	wait_until_gone(&helper);
	CHECK_EQ(atomic_load(&seen), CALLERS * CALLS + 1);
	osd_helper_stop(&helper);
	osd_helper_release(&helper);
}

static void *let_go(void *arg)
{
	(void)arg;
	while (!atomic_load(&at_work))
		sched_yield();
	atomic_store(&hold, false);
	return NULL;
}

static void test_stop_waits_for_the_work(void)
{
	struct osd_helper helper;
	pthread_t thread;

	osd_helper_init(&helper, "test-helper", work, &noted);
	atomic_store(&seen, 0);
	atomic_store(&hold, true);
	CHECK(osd_helper_call(&helper));
	while (!atomic_load(&at_work))
		sched_yield();
	CHECK(pthread_create(&thread, NULL, let_go, NULL) == 0);
	osd_helper_stop(&helper);
	pthread_join(thread, NULL);
	CHECK_EQ(atomic_load(&seen), atomic_load(&noted));
	atomic_fetch_add(&noted, 1);
	CHECK(osd_helper_call(&helper)); /* ignored */
	CHECK(is_gone(&helper));
	CHECK(atomic_load(&seen) != atomic_load(&noted));
	osd_helper_release(&helper);
}

int main(void)
{
	test_no_call_is_lost();
	test_stop_waits_for_the_work();
	return 0;
}
