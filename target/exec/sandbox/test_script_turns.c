/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_script_turns.c -- one thread for each processor, which works while scripts compute, for all
 * targets of the process. */
#include "exec/sandbox/script_turns.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/test.h"

static cpu_set_t seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint asked;

static bool wanted(void *context)
{
	pthread_mutex_lock(&lock);
	CPU_SET(sched_getcpu(), &seen);
	pthread_mutex_unlock(&lock);
	asked++;
	return context == &asked;
}

static bool wanted_by_other(void *context)
{
	atomic_fetch_add((atomic_uint *)context, 1);
	return true;
}

static bool everywhere(const cpu_set_t *processors)
{
	bool equal;

	pthread_mutex_lock(&lock);
	equal = CPU_EQUAL(&seen, processors);
	pthread_mutex_unlock(&lock);
	return equal;
}

/* The threads go on for one target when the other stops, and end with the last. */
static void test_two_targets(void)
{
	atomic_uint others = 0;
	struct osd_script_turns *one = osd_script_turns_start(500, wanted, &asked);
	struct osd_script_turns *other = osd_script_turns_start(1000, wanted_by_other, &others);
	unsigned before, from;

	CHECK(one && other);
	osd_script_turns_set(one, true);
	for (before = asked; asked < before + 10;)
		sched_yield();
	CHECK_EQ(others, 0);
	osd_script_turns_set(other, true);
	osd_script_turns_stop(one);
	before = asked;
	for (from = others; others < from + 10;)
		sched_yield();
	CHECK_EQ(asked, before);
	osd_script_turns_stop(other);
}

int main(void)
{
	struct osd_script_turns *turns = osd_script_turns_start(0, wanted, &asked);
	cpu_set_t processors;

	CHECK(turns && sched_getaffinity(0, sizeof(processors), &processors) == 0);
	CHECK_EQ(asked, 0);
	osd_script_turns_set(turns, true);
	while (!everywhere(&processors))
		sched_yield();
	osd_script_turns_set(turns, false);
	osd_script_turns_set(turns, true); /* and again */
	for (unsigned before = asked; asked < before + 10;)
		sched_yield();
	osd_script_turns_stop(turns);
	CHECK(asked > 0);
	turns = osd_script_turns_start(1000, wanted, NULL);
	CHECK(turns != NULL);
	osd_script_turns_stop(turns); /* while they sleep */
	osd_script_turns_stop(NULL);
	test_two_targets();
	return 0;
}
