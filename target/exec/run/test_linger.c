/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_linger.c -- the thread that submits a short call serves its end, and nothing else.  A thread plays the
 * sandbox. */
#include <pthread.h>

#include "exec/run/test_start.h"

enum part { FINISHES, IS_ROUSED, BREAKS_PROTOCOL, CALLS_FIRST, PARTS };

static enum part part;
static _Atomic unsigned ends; /* calls of ended() */
static _Atomic bool was_here; /* on the submitting thread */
static pthread_t submitter;
static struct osd_exec_outcome outcome;
static uint8_t result[8];
static struct osd_function_code *code;

static void ended(void *arg, const struct osd_exec_outcome *how)
{
	(void)arg;
	outcome = *how;
	if (how->result_length == sizeof(result))
		memcpy(result, how->result, sizeof(result));
	atomic_store(&was_here, pthread_equal(pthread_self(), submitter));
	atomic_fetch_add(&ends, 1);
}

static void make_call(const struct osd_call *call, const uint8_t *body)
{
	uint8_t *shared = (uint8_t *)sandbox->shm;

	if (body)
		memcpy(shared + OSD_SHM_BODY_AT, body, call->body_bytes);
	osd_call_encode(call, shared + OSD_SHM_FRAME_AT);
	osd_shm_post(&sandbox->shm->areas[0].call);
}

/* It has the job once NEXT is answered. */
static void *play(void *unused)
{
	static const uint8_t body[12] = {0, 0, 0, 0, 'a', ' ', 'r', 'e', 's', 'u', 'l', 't'};
	struct osd_shm_line *answer = &sandbox->shm->areas[0].answer;
	struct osd_call call = {.op = OSD_CALL_LENGTH, .partition_id = PARTITION, .object_id = PARTITION};
	uint32_t seen = 0;

	(void)unused;
	if (part == IS_ROUSED)
		osd_shm_rest(answer, &seen, 0);
	else
		while (!osd_shm_changed_(answer, &seen)) /* awake */
			sched_yield();
	if (part == CALLS_FIRST) {
		make_call(&call, NULL);
		osd_shm_wait(answer, &seen, OSD_SHM_FOREVER, NULL);
	}
	call = (struct osd_call){.op = OSD_CALL_FINISH,
				 .b = OSD_FINISH_OK | OSD_FINISH_KEPT,
				 .partition_id = 1,
				 .object_id = 8,
				 .body_bytes = sizeof(body)};
	if (part == BREAKS_PROTOCOL)
		call.object_id = 9; /* more than there is */
	make_call(&call, body);
	return NULL;
}

/* Kept for the caller, with the code of a function that was short before. */
static void keep_sandbox(void)
{
	struct osd_kept_code *kept = &sandbox->codes.slots[0];

	osd_lock(&exec->lock);
	exec->pools->first->supply.reuse = OSD_REUSE_TRUSTED;
	exec->pools->first->supply.sandbox_jobs = 100;
	sandbox->state = OSD_SANDBOX_KEPT;
	sandbox->principal = strdup("addr:a");
	sandbox->function = (struct osd_object_id){1, OSD_FIRST_ID}; /* of call_of */
	memset(sandbox->function_sha256, 1, sizeof(sandbox->function_sha256));
	sandbox->ready_again = true;
	sandbox->last_slot = 1;
	sandbox->look_usec = OSD_NEVER; /* its process is the test, which computes */
	exec->sandboxes->called = sandbox->supply;
	kept->kept = true;
	memset(kept->sha256, 1, sizeof(kept->sha256));
	osd_unlock(&exec->lock);
}

static void submit_call(void)
{
	struct osd_exec_submission submission = call_of(code, ended);
	struct osd_exec_refusal refusal;
	struct osd_object_id job;

	submission.lingers = true;
	CHECK_EQ(osd_exec_submit(exec, &submission, &job, &refusal), OSD_PENDING);
}

static void await_end(void)
{
	const struct timespec step = {.tv_nsec = 1000000};

	while (!atomic_load(&ends)) {
		osd_lock(&exec->lock);
		if (part == BREAKS_PROTOCOL && sandbox->kill_sent && !sandbox->dead) {
			sandbox->exit_known = true;
			osd_sandbox_died(exec->sandboxes, sandbox);
		}
		osd_unlock(&exec->lock);
		nanosleep(&step, NULL);
	}
	CHECK_EQ(atomic_load(&ends), 1);
}

/* True: the submitting thread has served the end. */
static bool call_once(void)
{
	pthread_t player;
	bool here;

	start_welcome();
	keep_sandbox();
	atomic_store(&ends, 0);
	CHECK_EQ(pthread_create(&player, NULL, play, NULL), 0);
	osd_exec_expect_call(exec);
	submit_call();
	here = atomic_load(&ends) && atomic_load(&was_here);
	await_end();
	pthread_join(player, NULL);
	if (part == BREAKS_PROTOCOL) {
		CHECK_EQ(outcome.reason, OSD_REASON_PROTOCOL);
	} else {
		CHECK_EQ(outcome.status, OSD_OK);
		CHECK(memcmp(result, "a result", sizeof(result)) == 0);
	}
	stop();
	return here;
}

int main(void)
{
	code = make_code();
	submitter = pthread_self();
	for (part = FINISHES; part < PARTS; part++)
		for (unsigned i = 0; i < 20; i++)
			CHECK(!call_once() || part == FINISHES || part == IS_ROUSED);
	part = FINISHES; /* where another processor is free, it happens before long */
	for (unsigned i = 0; i < 2000 && !call_once(); i++)
		;
	osd_function_code_put(code);
	return 0;
}
