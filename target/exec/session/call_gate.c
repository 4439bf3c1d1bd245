/* SPDX-License-Identifier: GPL-2.0-or-later */
/* call_gate.c -- limits how many calls of scripts run at a time, and lets commands go first
 * (session.h). */
#include "exec/session/session.h"

#include <stdbool.h>
#include <time.h>

#include "base/lock.h"

#define STEP_NSEC 50000

void osd_call_gate_init(struct osd_call_gate *gate, unsigned most,
			unsigned (*commands_queued)(void *context), void *context)
{
	*gate = (struct osd_call_gate){
		.commands_queued = commands_queued, .context = context, .most = most};
	osd_lock_init(&gate->lock, OSD_RANK_CALL_GATE);
	pthread_cond_init(&gate->free, NULL);
}

void osd_call_gate_release(struct osd_call_gate *gate)
{
	pthread_cond_destroy(&gate->free);
	osd_lock_destroy(&gate->lock);
}

static void wait_for_place(struct osd_call_gate *gate)
{
	osd_assert_held(&gate->lock);
	gate->waiting++;
	while (gate->inside >= gate->most)
		osd_cond_wait(&gate->free, &gate->lock);
	gate->waiting--;
}

static bool commands_wait(const struct osd_call_gate *gate)
{
	return gate->commands_queued && gate->commands_queued(gate->context) > 0;
}

/* Called with lock held; releases it meanwhile. */
static void give_way(struct osd_call_gate *gate)
{
	const struct timespec step = {.tv_nsec = STEP_NSEC};

	osd_assert_held(&gate->lock);
	pthread_cond_signal(&gate->free); /* the signal may have been meant for another waiter */
	osd_unlock(&gate->lock);
	nanosleep(&step, NULL);
	osd_lock(&gate->lock);
}

void osd_call_gate_enter(struct osd_call_gate *gate)
{
	unsigned steps = 0;

	osd_lock(&gate->lock);
	wait_for_place(gate);
	while (steps < OSD_GATE_STEPS && commands_wait(gate)) {
		steps++;
		give_way(gate);
		wait_for_place(gate);
	}
	gate->inside++;
	gate->given += steps > 0;
	osd_unlock(&gate->lock);
}

bool osd_call_gate_enter_step(struct osd_call_gate *gate)
{
	unsigned steps = 0;
	bool entered;

	osd_lock(&gate->lock);
	while (steps < OSD_GATE_STEPS &&
	       (gate->inside >= gate->most || gate->waiting > 0 || commands_wait(gate))) {
		steps++;
		give_way(gate);
	}
	entered = gate->inside < gate->most;
	gate->inside += entered;
	gate->given += steps > 0;
	osd_unlock(&gate->lock);
	return entered;
}

void osd_call_gate_leave(struct osd_call_gate *gate)
{
	osd_lock(&gate->lock);
	gate->inside--;
	pthread_cond_signal(&gate->free);
	osd_unlock(&gate->lock);
}
