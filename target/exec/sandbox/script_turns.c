/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_turns.c -- see script_turns.h. */
#include "exec/sandbox/script_turns.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "base/helper.h"
#include "base/util.h"

#define LULL_USEC  20000 /* while no thread can be waiting */
#define LEAST_USEC 100

/* The thread of one processor. */
struct turner {
	const struct crew *crew;
	struct osd_helper helper;
	int processor;
};

/* One thread for each processor. */
struct crew {
	bool over; /* under host.lock: they end */
	unsigned count;
	struct turner turners[];
};

struct osd_script_turns {
	struct osd_script_turns *next;
	unsigned usec;
	bool (*wanted)(void *context);
	void *context;
	bool computing;
};

/* Of the process. */
static struct {
	struct osd_lock lock;
	struct osd_script_turns *targets; /* under lock */
	struct crew *crew;		  /* under lock; while there are targets */
} host = {.lock = OSD_LOCK_INITIALIZER(OSD_RANK_TURNS)};

static void nap(unsigned usec)
{
	const struct timespec time = {0, (long)usec * 1000};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

/* The shortest time slice that a target needs now; 0: no script computes. */
static unsigned next_turn(const struct crew *crew)
{
	const struct osd_script_turns *each;
	unsigned least = 0, usec;

	osd_lock(&host.lock);
	for (each = crew->over ? NULL : host.targets; each; each = each->next) {
		if (!each->computing)
			continue;
		usec = each->wanted(each->context) ? each->usec : LULL_USEC;
		least = least ? OSD_MIN(least, usec) : usec;
	}
	osd_unlock(&host.lock);
	return least;
}

static void take_turns(void *arg)
{
	const struct turner *turner = arg;
	unsigned usec;
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(turner->processor, &here);
	if (sched_setaffinity(0, sizeof(here), &here) != 0)
		return; /* it has been taken offline */
	while ((usec = next_turn(turner->crew)) != 0)
		nap(usec);
}

/* For the processors that the calling thread may run on.  NULL: no memory. */
static struct crew *create_crew(void)
{
	struct crew *crew;
	cpu_set_t processors;

	if (sched_getaffinity(0, sizeof(processors), &processors) != 0)
		return NULL;
	crew = calloc(1, sizeof(*crew) + CPU_COUNT(&processors) * sizeof(struct turner));
	for (int i = 0; crew && i < CPU_SETSIZE; i++) {
		struct turner *turner = &crew->turners[crew->count];

		if (!CPU_ISSET(i, &processors))
			continue;
		turner->crew = crew;
		turner->processor = i;
		osd_helper_init(&turner->helper, "iosd-turns", take_turns, turner);
		crew->count++;
	}
	return crew;
}

static void end_crew(struct crew *crew)
{
	for (unsigned i = 0; i < crew->count; i++) {
		osd_helper_stop(&crew->turners[i].helper);
		osd_helper_release(&crew->turners[i].helper);
	}
	free(crew);
}

struct osd_script_turns *osd_script_turns_start(unsigned usec, bool (*wanted)(void *context),
						void *context)
{
	OSD_CLEANUP_FREE struct osd_script_turns *turns = calloc(1, sizeof(*turns));
	struct osd_script_turns *started = NULL;

	if (!turns)
		return NULL;
	*turns = (struct osd_script_turns){
		.usec = OSD_MAX(usec, LEAST_USEC), .wanted = wanted, .context = context};
	osd_lock(&host.lock);
	if (!host.crew)
		host.crew = create_crew();
	if (host.crew) {
		turns->next = host.targets;
		host.targets = started = OSD_STEAL(turns);
	}
	osd_unlock(&host.lock);
	return started;
}

void osd_script_turns_set(struct osd_script_turns *turns, bool computing)
{
	if (turns->computing == computing)
		return;
	osd_lock(&host.lock);
	turns->computing = computing;
	/* A thread that cannot be started is missing until scripts compute the next time. */
	for (unsigned i = 0; computing && i < host.crew->count; i++)
		(void)osd_helper_call(&host.crew->turners[i].helper);
	osd_unlock(&host.lock);
}

void osd_script_turns_stop(struct osd_script_turns *turns)
{
	struct osd_script_turns **link = &host.targets;
	struct crew *last = NULL;

	if (!turns)
		return;
	osd_lock(&host.lock);
	while (*link != turns)
		link = &(*link)->next;
	*link = turns->next;
	if (!host.targets) {
		last = OSD_STEAL(host.crew);
		last->over = true;
	}
	osd_unlock(&host.lock);
	if (last)
		end_crew(last);
	free(turns);
}
