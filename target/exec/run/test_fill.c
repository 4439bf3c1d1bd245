/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_fill.c -- arguments that are written to where the sandbox gets them: in its memory if the call starts at once,
 * else in memory of the target.  If they cannot be written, there is no call. */
#include "exec/run/test_start.h"

#define LONG_ARGS (2 * OSD_JOB_INLINE_MAX) /* they would travel in the shared memory anyway */

static struct osd_function_code *code;
static struct osd_exec_refusal refusal;
static enum osd_status fills; /* status of fill() */
static uint8_t *filled;
static size_t args_bytes = LONG_ARGS;

static enum osd_status fill(void *arg, uint8_t *args)
{
	(void)arg;
	filled = args;
	memset(args, 0xa5, args_bytes);
	args[args_bytes - 1] = 0x5a;
	return fills;
}

static void ended(void *arg, const struct osd_exec_outcome *outcome)
{
	(void)arg;
	(void)outcome;
}

static enum osd_status submit(void)
{
	struct osd_exec_submission submission = call_of(code, ended);
	struct osd_object_id job;

	submission.args.length = args_bytes;
	submission.name = (struct osd_exec_text){(const uint8_t *)"name", 4};
	submission.stage = true;
	submission.fill_args = fill;
	filled = NULL;
	return osd_exec_submit(exec, &submission, &job, &refusal);
}

static uint8_t *place_in(const struct osd_sandbox *which)
{
	return (uint8_t *)which->shm + OSD_SHM_TEXTS_AT + strlen("name") + strlen("main");
}

/* Reads the job that a sandbox was sent; its texts are complete. */
static void check_sent(const struct osd_sandbox *which, int its_peer)
{
	const struct timeval limit = {.tv_sec = 30};
	const uint8_t *args = place_in(which);
	uint8_t bytes[4096];
	struct osd_job_run run;

	CHECK_EQ(setsockopt(its_peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	CHECK(recv(its_peer, bytes, sizeof(bytes), 0) > 0);
	CHECK(osd_job_run_decode(bytes, &run) && run.in_shared && run.stage);
	CHECK_EQ(run.args_bytes, args_bytes);
	CHECK(memcmp(args - 8, "namemain", 8) == 0);
	CHECK(args[0] == 0xa5 && args[args_bytes - 1] == 0x5a);
	CHECK(memcmp(args + args_bytes, code->bytes, code->length) == 0);
}

static void test_starts(size_t length)
{
	args_bytes = length;
	start_welcome();
	CHECK_EQ(submit(), OSD_PENDING);
	CHECK(filled == place_in(sandbox));
	check_sent(sandbox, peer);
	stop();
}

/* The sandbox runs the next call, which may be of somebody else. */
static void test_fails(void)
{
	start_welcome();
	fills = OSD_E_CONFLICT;
	CHECK_EQ(submit(), OSD_E_CONFLICT);
	fills = OSD_OK;
	CHECK(filled == place_in(sandbox));
	for (size_t i = 0; i < args_bytes; i++)
		CHECK_EQ(filled[i], 0);
	osd_lock(&exec->lock);
	CHECK(exec->table.count == 0 && exec->pools->first->supply.busy == 0);
	CHECK(sandbox->state == OSD_SANDBOX_READY && !sandbox->kill_sent);
	osd_unlock(&exec->lock);
	CHECK_EQ(submit(), OSD_PENDING);
	check_sent(sandbox, peer);
	stop();
}

static void test_waits(void)
{
	struct osd_run *run;
	int second_peer;

	start_welcome();
	osd_lock(&exec->lock);
	run = take_sandbox();
	osd_unlock(&exec->lock);
	second = add_sandbox(2, &second_peer);
	CHECK_EQ(submit(), OSD_PENDING);
	CHECK(filled && filled != place_in(sandbox) && filled != place_in(second));
	osd_lock(&exec->lock);
	osd_start_give_back(run, exec->pools->first);
	osd_unlock(&exec->lock);
	check_sent(second, second_peer);
	stop();
	osd_sandbox_unref(second);
	second = NULL;
	close(second_peer);
}

int main(void)
{
	code = make_code();
	test_starts(100);
	test_starts(LONG_ARGS);
	test_fails();
	test_waits();
	osd_function_code_put(code);
	return 0;
}
