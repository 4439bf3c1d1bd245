/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_call_gate.c -- how many calls are inside the gate, and in which order they enter. */
#include "exec/session/session.h"

#include <sched.h>

#include "base/test.h"

#define CALLERS 4
#define CALLS	2000

/* Stands for the unit's queue: reports waiting commands so many times. */
struct queue {
	_Atomic unsigned left, asked;
};

static unsigned queued(void *context)
{
	struct queue *queue = context;

	queue->asked++;
	return queue->left > 0 ? queue->left-- : 0;
}

static void test_nothing_queued(void)
{
	struct osd_call_gate gate;
	struct queue queue = {0};

	osd_call_gate_init(&gate, 1, queued, &queue);
	osd_call_gate_enter(&gate);
	osd_call_gate_leave(&gate);
	CHECK_EQ(queue.asked, 1);
	CHECK_EQ(gate.given, 0);
	osd_call_gate_release(&gate);
	osd_call_gate_init(&gate, 1, NULL, NULL);
	osd_call_gate_enter(&gate);
	CHECK_EQ(gate.inside, 1);
	osd_call_gate_leave(&gate);
	osd_call_gate_release(&gate);
}

/* A call checks the queue after each sleep, until it is empty. */
static void test_gives_way(void)
{
	struct osd_call_gate gate;
	struct queue queue = {.left = 3};

	osd_call_gate_init(&gate, 1, queued, &queue);
	osd_call_gate_enter(&gate);
	CHECK_EQ(queue.asked, 4);
	CHECK_EQ(gate.given, 1);
	osd_call_gate_leave(&gate);
	osd_call_gate_release(&gate);
}

/* An endless stream of commands does not block a script for ever. */
static void test_not_for_ever(void)
{
	struct osd_call_gate gate;
	struct queue queue = {.left = 1000};

	osd_call_gate_init(&gate, 1, queued, &queue);
	osd_call_gate_enter(&gate);
	CHECK_EQ(queue.asked, OSD_GATE_STEPS);
	osd_call_gate_leave(&gate);
	osd_call_gate_release(&gate);
}

struct shared {
	struct osd_call_gate gate;
	struct queue queue;
	_Atomic unsigned inside, most, calls, entered;
};

static void *enter_once(void *arg)
{
	struct shared *shared = arg;

	shared->calls++;
	osd_call_gate_enter(&shared->gate);
	shared->entered++;
	osd_call_gate_leave(&shared->gate);
	return NULL;
}

/* Commands that arrive while a call waits for earlier calls go first, too. */
static void test_overtaken_while_waiting(void)
{
	struct shared shared = {0};
	pthread_t thread;

	osd_call_gate_init(&shared.gate, 1, queued, &shared.queue);
	osd_call_gate_enter(&shared.gate);
	CHECK_EQ(shared.queue.asked, 1);
	CHECK(pthread_create(&thread, NULL, enter_once, &shared) == 0);
	while (shared.calls == 0)
		sched_yield();
	shared.queue.left = 5;
	osd_call_gate_leave(&shared.gate);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_EQ(shared.entered, 1);
	CHECK_EQ(shared.queue.left, 0);
	CHECK_EQ(shared.queue.asked, 7);
	CHECK_EQ(shared.gate.given, 1);
	osd_call_gate_release(&shared.gate);
}

static void *call_often(void *arg)
{
	struct shared *shared = arg;

	for (unsigned i = 0; i < CALLS; i++) {
		unsigned inside;

		osd_call_gate_enter(&shared->gate);
		inside = ++shared->inside;
		if (inside > shared->most)
			shared->most = inside;
		shared->inside--;
		osd_call_gate_leave(&shared->gate);
		shared->calls++;
	}
	return NULL;
}

/* The gate never admits more calls than its limit, and admits all in the end. */
static void test_crowd(void)
{
	struct shared shared = {.queue = {.left = 200}};
	pthread_t threads[CALLERS];

	osd_call_gate_init(&shared.gate, 2, queued, &shared.queue);
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK(pthread_create(&threads[i], NULL, call_often, &shared) == 0);
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK_EQ(shared.calls, CALLERS * CALLS);
	CHECK(shared.most <= 2);
	CHECK_EQ(shared.gate.inside, 0);
	osd_call_gate_release(&shared.gate);
}

static void *enter_step(void *arg)
{
	struct shared *shared = arg;

	while (!osd_call_gate_enter_step(&shared->gate))
		;
	shared->entered++;
	osd_call_gate_leave(&shared->gate);
	return NULL;
}

/* A step of a long call lets waiting calls go first, but not for ever. */
static void test_step(void)
{
	struct shared shared = {0};
	pthread_t call, step;

	osd_call_gate_init(&shared.gate, 1, NULL, NULL);
	osd_call_gate_enter(&shared.gate);
	CHECK(pthread_create(&call, NULL, enter_once, &shared) == 0);
	CHECK(pthread_create(&step, NULL, enter_step, &shared) == 0);
	osd_call_gate_leave(&shared.gate);
	CHECK(pthread_join(call, NULL) == 0);
	CHECK(pthread_join(step, NULL) == 0);
	CHECK_EQ(shared.entered, 2);
	CHECK_EQ(shared.gate.waiting, 0);
	/* A call waits, and more calls keep coming. */
	shared.gate.waiting = 1;
	CHECK(osd_call_gate_enter_step(&shared.gate));
	CHECK(shared.gate.given >= 1);
	/* No place: the call inside may be waiting for an object that this call has locked. */
	CHECK(!osd_call_gate_enter_step(&shared.gate));
	osd_call_gate_leave(&shared.gate);
	shared.gate.waiting = 0;
	osd_call_gate_release(&shared.gate);
}

int main(void)
{
	test_nothing_queued();
	test_gives_way();
	test_not_for_ever();
	test_overtaken_while_waiting();
	test_crowd();
	test_step();
	return 0;
}
