/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_turns.c -- see script_turns.h. */
#include "exec/sandbox/script_turns.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/helper.h"
#include "base/util.h"

#define LULL_USEC  20000 /* while nobody could be waiting */
#define LEAST_USEC 100

struct turner {
	struct osd_script_turns *turns;
	struct osd_helper helper;
	int processor;
};

struct osd_script_turns {
	unsigned usec;
	bool (*wanted)(void *context);
	void *context;
	atomic_bool computing;
	unsigned count;
	struct turner turners[];
};

static void nap(unsigned usec)
{
	const struct timespec time = {0, (long)usec * 1000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void take_turns(void *arg)
{
	const struct turner *turner = arg;
	struct osd_script_turns *turns = turner->turns;
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(turner->processor, &here);
	if (sched_setaffinity(0, sizeof(here), &here) != 0)
		return; /* it has been taken offline */
	while (turns->computing)
		nap(turns->wanted(turns->context) ? turns->usec : LULL_USEC);
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
	for (int i = 0; i < CPU_SETSIZE; i++) {
		struct turner *turner = &turns->turners[turns->count];

		if (!CPU_ISSET(i, &processors))
			continue;
		*turner = (struct turner){.turns = turns, .processor = i};
		osd_helper_init(&turner->helper, "iosd-turns", take_turns, turner);
		turns->count++;
	}
	return turns;
}

void osd_script_turns_set(struct osd_script_turns *turns, bool computing)
{
	if (turns->computing == computing)
		return;
	turns->computing = computing;
	for (unsigned i = 0; computing && i < turns->count; i++)
		(void)osd_helper_call(
			&turns->turners[i].helper); /* done without, if it cannot start */
}

void osd_script_turns_stop(struct osd_script_turns *turns)
{
	if (!turns)
		return;
	turns->computing = false;
	for (unsigned i = 0; i < turns->count; i++) {
		osd_helper_stop(&turns->turners[i].helper);
		osd_helper_release(&turns->turners[i].helper);
	}
	free(turns);
}
