/* SPDX-License-Identifier: GPL-2.0-or-later */
/* call_gate.c -- see call_gate.h. */
#include "exec/call_gate.h"

#include <stdbool.h>
#include <time.h>

#define STEP_NSEC 50000

void osd_call_gate_init(struct osd_call_gate *gate, unsigned most,
			unsigned (*commands_queued)(void *context), void *context)
{
	*gate = (struct osd_call_gate){
		.commands_queued = commands_queued, .context = context, .most = most};
	pthread_mutex_init(&gate->lock, NULL);
	pthread_cond_init(&gate->free, NULL);
}

void osd_call_gate_release(struct osd_call_gate *gate)
{
	pthread_cond_destroy(&gate->free);
	pthread_mutex_destroy(&gate->lock);
}

/* Under lock. */
static void wait_for_place(struct osd_call_gate *gate, bool step)
{
	gate->waiting += !step;
	while (gate->inside >= gate->most)
		pthread_cond_wait(&gate->free, &gate->lock);
	gate->waiting -= !step;
}

static bool commands_wait(const struct osd_call_gate *gate)
{
	return gate->commands_queued && gate->commands_queued(gate->context) > 0;
}

/* Under lock. */
static bool others_wait(const struct osd_call_gate *gate, bool step)
{
	return commands_wait(gate) || (step && gate->waiting > 0);
}

static void enter(struct osd_call_gate *gate, bool step_of_long)
{
	const struct timespec step = {.tv_nsec = STEP_NSEC};
	unsigned steps = 0;

	pthread_mutex_lock(&gate->lock);
	wait_for_place(gate, step_of_long);
	while (steps < OSD_GATE_STEPS && others_wait(gate, step_of_long)) {
		steps++;
		pthread_cond_signal(&gate->free); /* the word may have been for somebody else */
		pthread_mutex_unlock(&gate->lock);
		nanosleep(&step, NULL);
		pthread_mutex_lock(&gate->lock);
		wait_for_place(gate, step_of_long);
	}
	gate->inside++;
	gate->given += steps > 0;
	pthread_mutex_unlock(&gate->lock);
}

void osd_call_gate_enter(struct osd_call_gate *gate)
{
	enter(gate, false);
}

void osd_call_gate_enter_step(struct osd_call_gate *gate)
{
	enter(gate, true);
}

void osd_call_gate_leave(struct osd_call_gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->inside--;
	pthread_cond_signal(&gate->free);
	pthread_mutex_unlock(&gate->lock);
}
