/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_turns.c -- see script_turns.h. */
#include "exec/sandbox/script_turns.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/lock.h"
#include "base/thread.h"
#include "base/util.h"

#define LULL_USEC  20000 /* while nobody could be waiting */
#define LEAST_USEC 100

struct turner {
	struct osd_script_turns *turns;
	pthread_t thread;
	int processor;
};

struct osd_script_turns {
	unsigned usec;
	bool (*wanted)(void *context);
	void *context;
	struct osd_lock lock;
	pthread_cond_t changed;
	atomic_bool computing, stopping; /* set under lock */
	unsigned count;
	struct turner turners[];
};

static void nap(unsigned usec)
{
	const struct timespec time = {0, (long)usec * 1000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void wait_for_scripts(struct osd_script_turns *turns)
{
	osd_lock(&turns->lock);
	while (!turns->computing && !turns->stopping)
		osd_cond_wait(&turns->changed, &turns->lock);
	osd_unlock(&turns->lock);
}

static void *run(void *arg)
{
	const struct turner *turner = arg;
	struct osd_script_turns *turns = turner->turns;
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(turner->processor, &here);
	if (sched_setaffinity(0, sizeof(here), &here) != 0)
		return NULL; /* it has been taken offline */
	while (!turns->stopping) {
		if (turns->computing)
			nap(turns->wanted(turns->context) ? turns->usec : LULL_USEC);
		else
			wait_for_scripts(turns);
	}
	return NULL;
}

struct osd_script_turns *osd_script_turns_start(unsigned usec, bool (*wanted)(void *context),
						void *context)
{
	struct osd_script_turns *turns;
	cpu_set_t processors;

	if (sched_getaffinity(0, sizeof(processors), &processors) != 0)
		return NULL;
	turns = calloc(1, sizeof(*turns) + CPU_COUNT(&processors) * sizeof(struct turner));
	if (!turns)
		return NULL;
	turns->usec = OSD_MAX(usec, LEAST_USEC);
	turns->wanted = wanted;
	turns->context = context;
	osd_lock_init(&turns->lock, OSD_RANK_SCRIPT_TURNS);
	pthread_cond_init(&turns->changed, NULL);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		struct turner *turner = &turns->turners[turns->count];

		if (!CPU_ISSET(i, &processors))
			continue;
		*turner = (struct turner){.turns = turns, .processor = i};
		if (!osd_thread_start(&turner->thread, "iosd-turns", run, turner))
			break;
		turns->count++;
	}
	if (turns->count > 0)
		return turns;
	osd_script_turns_stop(turns);
	return NULL;
}

void osd_script_turns_set(struct osd_script_turns *turns, bool computing)
{
	if (turns->computing == computing)
		return;
	osd_lock(&turns->lock);
	turns->computing = computing;
	pthread_cond_broadcast(&turns->changed);
	osd_unlock(&turns->lock);
}

void osd_script_turns_stop(struct osd_script_turns *turns)
{
	if (!turns)
		return;
	osd_lock(&turns->lock);
	turns->stopping = true;
	pthread_cond_broadcast(&turns->changed);
	osd_unlock(&turns->lock);
	for (unsigned i = 0; i < turns->count; i++)
		pthread_join(turns->turners[i].thread, NULL);
	pthread_cond_destroy(&turns->changed);
	osd_lock_destroy(&turns->lock);
	free(turns);
}
