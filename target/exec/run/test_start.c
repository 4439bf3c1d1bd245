/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_start.c -- a job whose sandbox has it before the store has: whatever store call of its
 * acceptance fails, or is to be tried again, the sandbox runs the job that was accepted, or ends. */
#include <sys/time.h>

#include "exec/run/test_start.h"

static struct osd_exec_refusal refusal;

static enum osd_status submit(struct osd_object_id *ret_job)
{
	const struct osd_exec_submission submission = {
		.zone = {PARTITION, 0},
		.principal = "addr:a",
		.code = (const uint8_t *)"pass",
		.code_length = 4,
	};

	return osd_exec_submit(exec, &submission, ret_job, &refusal);
}

/* How often the sandbox was given a job, and which one last. */
static unsigned count_sent(struct osd_object_id *ret_job)
{
	uint8_t bytes[4096];
	struct osd_job_run run;
	unsigned count = 0;

	for (; recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT) > 0; count++) {
		CHECK(osd_job_run_decode(bytes, &run));
		*ret_job = (struct osd_object_id){run.job_partition, run.job_object};
	}
	return count;
}

/* exec->lock held.  What a job that was accepted is to be like. */
static void check_accepted(struct osd_object_id id, bool runs)
{
	struct osd_job_record record;

	CHECK(osd_exec_find(exec, id));
	record = osd_exec_find(exec, id)->record;
	CHECK_EQ(record.state, runs ? OSD_STATE_RUNNING : OSD_STATE_QUEUED);
	CHECK_EQ(record.attempt, runs);
	CHECK_EQ(record.started_msec != 0, runs);
}

/* The n-th store call from here on gets status.  False: there were not so many. */
static bool submit_with_fault(uint64_t n, enum osd_status status, bool *ret_taken_back)
{
	struct osd_object_id job = {0}, sent = {0};
	enum osd_status got;
	unsigned count;
	bool hit;

	start();
	objects->faults->status = status;
	atomic_store(&objects->faults->fail_at, atomic_load(&objects->faults->calls) + n);
	got = submit(&job);
	hit = atomic_load(&objects->faults->calls) >= atomic_load(&objects->faults->fail_at);
	count = count_sent(&sent);
	CHECK(count <= 1);
	osd_lock(&exec->lock);
	*ret_taken_back = sandbox->kill_sent;
	if (got == OSD_OK)
		check_accepted(job, count == 1 && !sandbox->kill_sent);
	if (got == OSD_OK && count == 1 && !sandbox->kill_sent)
		CHECK(sent.partition_id == job.partition_id && sent.object_id == job.object_id);
	if (got != OSD_OK) {
		CHECK(hit && exec->table.count == 0);
		CHECK_EQ(sandbox->kill_sent, count == 1);
	}
	CHECK_EQ(exec->pools->first->supply.busy, got == OSD_OK && !sandbox->kill_sent);
	CHECK_EQ(sandbox->state, sandbox->kill_sent ? OSD_SANDBOX_ENDING
				 : got == OSD_OK    ? OSD_SANDBOX_TAKEN
						    : OSD_SANDBOX_READY);
	osd_unlock(&exec->lock);
	stop();
	return hit;
}

static void test_faults(enum osd_status status)
{
	unsigned taken_back = 0;
	bool one;

	for (uint64_t n = 1; submit_with_fault(n, status, &one); n++)
		taken_back += one;
	CHECK(taken_back > 0);
}

/* One that loses every deadlock is not told that the queue is full. */
static void test_loses(void)
{
	struct osd_object_id job;

	start();
	objects->faults->status = OSD_E_CONFLICT;
	atomic_store(&objects->faults->fail_at, 1);
	atomic_store(&objects->faults->goes_on, true);
	CHECK_EQ(submit(&job), OSD_E_BUSY);
	atomic_store(&objects->faults->goes_on, false);
	CHECK(refusal.queue_depth == 0 && refusal.retry_after_msec == 0);
	osd_lock(&exec->lock);
	CHECK_EQ(exec->pools->first->queue.place_count, 0);
	for (size_t i = 0; i < OSD_REFUSAL_COUNT; i++)
		CHECK_EQ(exec->pools->refused[i], 0);
	osd_unlock(&exec->lock);
	stop();
}

/* Until a proxy waits for work. */
static void wait_until_idle(void)
{
	bool idle = false;

	while (!idle) {
		osd_lock(&exec->lock);
		idle = exec->runs->idle > 0;
		osd_unlock(&exec->lock);
		if (!idle)
			usleep(1000);
	}
}

/* A start that is given back frees the only slot, and its sandbox is ended.  A job in the queue then gets
 * the other sandbox: nothing else would wake a proxy, since that sandbox has been READY for long. */
static void test_give_back_wakes(void)
{
	const struct timeval limit = {.tv_sec = 30};
	struct osd_object_id job;
	struct osd_run *run;
	uint8_t bytes[4096];
	struct osd_job_run sent;
	int second_peer;

	start();
	osd_lock(&exec->lock);
	run = take_sandbox();
	osd_unlock(&exec->lock);
	second = add_sandbox(2, &second_peer);
	CHECK_EQ(setsockopt(second_peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	CHECK_EQ(submit(&job), OSD_OK);
	wait_until_idle();
	CHECK(recv(second_peer, bytes, sizeof(bytes), MSG_DONTWAIT) < 0);
	osd_lock(&exec->lock);
	osd_start_give_back(run, exec->pools->first);
	osd_unlock(&exec->lock);
	CHECK(recv(second_peer, bytes, sizeof(bytes), 0) > 0);
	CHECK(osd_job_run_decode(bytes, &sent));
	CHECK(sent.job_partition == job.partition_id && sent.job_object == job.object_id);
	stop();
	osd_sandbox_unref(second);
	second = NULL;
	close(second_peer);
}

static void ended(void *arg, const struct osd_exec_outcome *outcome)
{
	(void)arg;
	(void)outcome;
}

/* The cap of a reader counts the calls of all functions that the reader reads through. */
static void test_payer_at_once(void)
{
	const struct osd_fair_share share = {.weight = 1, .at_once = 1};
	struct osd_function_code *code = make_code();
	struct osd_exec_submission submission = call_of(code, ended);
	struct osd_object_id job;
	struct osd_pool *pool;
	int second_peer;

	start_welcome();
	second = add_sandbox(2, &second_peer);
	osd_lock(&exec->lock);
	pool = exec->pools->first;
	pool->supply.active = 2;
	CHECK_EQ(osd_fair_queue_set_share(&pool->queue, "audit:reader", share), OSD_OK);
	osd_unlock(&exec->lock);
	submission.stage = true;
	submission.payer = "audit:reader";
	submission.principal = "stage:one";
	CHECK_EQ(osd_exec_submit(exec, &submission, &job, &refusal), OSD_PENDING);
	submission.principal = "stage:two";
	CHECK_EQ(osd_exec_submit(exec, &submission, &job, &refusal), OSD_PENDING);
	osd_lock(&exec->lock);
	CHECK(pool->supply.busy == 1 && pool->queue.entry_count == 1);
	osd_unlock(&exec->lock);
	submission.payer = NULL;
	CHECK_EQ(osd_exec_submit(exec, &submission, &job, &refusal), OSD_PENDING);
	osd_lock(&exec->lock);
	CHECK(pool->supply.busy == 2 && pool->queue.entry_count == 1);
	osd_unlock(&exec->lock);
	stop();
	osd_sandbox_unref(second);
	second = NULL;
	close(second_peer);
	osd_function_code_put(code);
}

int main(void)
{
	test_give_back_wakes();
	test_payer_at_once();
	test_loses();
	test_faults(OSD_E_MEDIUM);
	test_faults(OSD_E_CONFLICT);
	return 0;
}
