/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_after.c -- jobs that wait for other jobs, on an in-memory store without sandboxes.  A job
 * may name only its principal's jobs, a refused submission has no effect, and records stay while
 * they decide about other jobs. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/test.h"
#include "base/util.h"
#include "exec/acceptance.h"
#include "exec/target.h"
#include "wire/cursor.h"

static struct osd_objects *objects;
static struct osd_exec *exec;
static uint64_t pid;

static void fill_store(void)
{
	struct osd_objects_config config = {0};
	struct osd_exec_config exec_config = {.slots = 1};
	char message[256];
	struct osd_txn *txn;

	CHECK(osd_objects_open(&config, message, &objects) == OSD_OK);
	exec_config.objects = objects;
	CHECK(osd_exec_open(&exec_config, message, &exec) == OSD_OK);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_create(txn, 0, &pid) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static enum osd_status submit(const char *principal, uint64_t after, struct osd_object_id *ret_job)
{
	const struct osd_exec_after named = {pid, after, OSD_AFTER_COMPLETED};
	struct osd_exec_submission submission = {
		.zone = {pid, 0},
		.principal = principal,
		.code = (const uint8_t *)"pass",
		.code_length = 4,
	};
	struct osd_exec_refusal refusal;

	if (after) {
		submission.after_count = 1;
		submission.after = &named;
	}
	return osd_exec_submit(exec, &submission, ret_job, &refusal);
}

static struct osd_job_record read_record(struct osd_object_id id)
{
	struct osd_job_record record;
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
	CHECK(osd_job_record_get(txn, id, &record) == OSD_OK);
	osd_txn_abort(txn);
	return record;
}

static bool has_record(struct osd_object_id id)
{
	struct osd_job_record record;
	struct osd_txn *txn;
	enum osd_status status;

	CHECK(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
	status = osd_job_record_get(txn, id, &record);
	osd_txn_abort(txn);
	CHECK(status == OSD_OK || status == OSD_E_NO_OBJECT);
	return status == OSD_OK;
}

static enum osd_status forget(struct osd_object_id id)
{
	struct osd_txn *txn;
	enum osd_status status;

	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	status = osd_exec_removed(exec, txn, id);
	osd_txn_abort(txn);
	return status;
}

static size_t awaited(void)
{
	size_t count;

	osd_lock(&exec->lock);
	count = exec->flow->awaited.count;
	osd_unlock(&exec->lock);
	return count;
}

/* The start counts what principals use.  Threads that count later find a good lock. */
static void test_lock_after_start(void)
{
	CHECK(osd_trylock(&exec->stored.lock));
	osd_unlock(&exec->stored.lock);
}

static void test_other_principals(void)
{
	struct osd_object_id first, job;
	size_t places;

	CHECK(submit("alice", 0, &first) == OSD_OK);
	places = exec->pools->first->queue.place_count;
	CHECK(submit("bob", first.object_id, &job) == OSD_E_CDB_FIELD);
	CHECK(submit("alice", first.object_id + 100, &job) == OSD_E_CDB_FIELD);
	CHECK(exec->pools->first->queue.place_count == places && awaited() == 0);
	CHECK(submit("alice", first.object_id, &job) == OSD_OK);
	CHECK(awaited() == 1);
	CHECK(read_record(job).reason == OSD_REASON_WAITS_FOR_JOB);
	osd_exec_end_one(exec, job, OSD_REASON_KILLED);
	CHECK(awaited() == 0);
	osd_exec_end_one(exec, first, OSD_REASON_KILLED);
	CHECK(exec->pools->first->queue.place_count == places - 1);
}

/* A submission without code uses the code of another job of the same principal, and of no other
 * principal. */
static void test_code_of_predecessors(void)
{
	struct osd_exec_submission submission = {.principal = "bob"};
	struct osd_object_id first;
	uint8_t *content;

	CHECK(submit("alice", 0, &first) == OSD_OK);
	submission.predecessor = first;
	CHECK_EQ(osd_exec_take_content(exec, &submission, &content), OSD_E_CDB_FIELD);
	CHECK(!content && !submission.code);
	submission.principal = "alice";
	CHECK_EQ(osd_exec_take_content(exec, &submission, &content), OSD_OK);
	CHECK(submission.code_length == 4 && !memcmp(submission.code, "pass", 4));
	free(content);
	submission.predecessor.object_id += 100;
	CHECK_EQ(osd_exec_take_content(exec, &submission, &content), OSD_E_CDB_FIELD);
	osd_exec_end_one(exec, first, OSD_REASON_KILLED);
	submission.predecessor.object_id = first.object_id;
	CHECK(read_record(first).flags & OSD_JOB_CODE_KEPT);
	CHECK_EQ(osd_exec_take_content(exec, &submission, &content), OSD_OK);
	free(content);
	submission.code = (const uint8_t *)"1";
	submission.code_length = 1;
	submission.args.length = 7; /* the predecessor has none */
	CHECK_EQ(osd_exec_take_content(exec, &submission, &content), OSD_OK);
	CHECK(submission.code_length == 1 && *submission.code == '1' && !submission.args.length);
	free(content);
}

/* The record of an ended job stays until all jobs that wait for it have ended. */
static void test_record_stays(void)
{
	struct osd_object_id first, jobs[300];
	enum osd_status status;

	CHECK(submit("alice", 0, &first) == OSD_OK);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(jobs); i++)
		CHECK(submit("alice", first.object_id, &jobs[i]) == OSD_OK);
	osd_exec_end_one(exec, first, OSD_REASON_KILLED);
	while ((status = forget(first)) == OSD_E_CONFLICT)
		sched_yield();
	CHECK(status == OSD_OK && awaited() == 0);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(jobs); i++)
		CHECK(read_record(jobs[i]).reason == OSD_REASON_UNREACHABLE);
}

/* An end that could not be stored is decided again at the next start: the records that decide it
 * stay. */
static void test_pinned(void)
{
	struct osd_object_id first, job;

	CHECK(submit("alice", 0, &first) == OSD_OK);
	CHECK(submit("alice", first.object_id, &job) == OSD_OK);
	osd_lock(&exec->lock);
	osd_after_pin(osd_exec_find(exec, first)); /* waits for none: nothing to pin */
	osd_after_pin(osd_exec_find(exec, job));
	osd_unlock(&exec->lock);
	osd_exec_end_one(exec, job, OSD_REASON_KILLED);
	osd_exec_end_one(exec, first, OSD_REASON_KILLED);
	for (int i = 0; i < 3; i++)
		CHECK(forget(first) == OSD_E_CONFLICT);
	CHECK(awaited() == 1 && forget(job) == OSD_OK);
}

/* Once it has ended, its record expires at once.  exec->lock held. */
static void shorten(struct osd_object_id id)
{
	osd_exec_find(exec, id)->record.keep_msec = 0;
}

/* The sweep keeps a record that still decides about another job. */
static void test_expired(void)
{
	struct osd_object_id first, job, other;

	CHECK(submit("alice", 0, &first) == OSD_OK);
	CHECK(submit("alice", 0, &other) == OSD_OK);
	CHECK(submit("alice", first.object_id, &job) == OSD_OK);
	osd_lock(&exec->lock);
	osd_after_pin(osd_exec_find(exec, job));
	shorten(first);
	shorten(other);
	shorten(job);
	osd_unlock(&exec->lock);
	osd_exec_end_one(exec, job, OSD_REASON_KILLED);
	osd_exec_end_one(exec, first, OSD_REASON_KILLED);
	osd_exec_end_one(exec, other, OSD_REASON_KILLED);
	while (has_record(job) || has_record(other)) {
		osd_flow_sweep(exec);
		sched_yield();
	}
	CHECK(has_record(first));
}

/* The record expires at this time.  It may be damaged. */
static void set_expiry(struct osd_object_id id, uint64_t msec, bool damaged)
{
	uint8_t key[17] = {1}; /* KEY_RECORD of store.c */
	struct osd_job_record record = read_record(id);
	uint64_t old = record.expiry_msec;
	struct osd_txn *txn;

	record.expiry_msec = msec;
	osd_put_be(key + 1, id.partition_id, 8);
	osd_put_be(key + 9, id.object_id, 8);
	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	CHECK(osd_job_expiry_move(txn, &record, old) == OSD_OK);
	CHECK(osd_job_record_put(txn, &record) == OSD_OK);
	if (damaged)
		CHECK(osd_txn_record_put(txn, OSD_TABLE_JOBS, key, sizeof(key), "?", 1) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

/* Records that cannot be removed do not keep others, however many they are. */
static void test_damaged(void)
{
	const size_t damaged = 100;
	struct osd_object_id job;

	for (size_t i = 0; i <= damaged; i++) {
		CHECK(submit("alice", 0, &job) == OSD_OK);
		osd_exec_end_one(exec, job, OSD_REASON_KILLED);
		set_expiry(job, 1 + i, i < damaged);
	}
	osd_flow_sweep(exec);
	CHECK(!has_record(job));
}

static struct osd_object_id submit_later(void)
{
	struct osd_exec_submission submission = {.zone = {pid, 0},
						 .principal = "alice",
						 .code = (const uint8_t *)"pass",
						 .code_length = 4,
						 .begin_msec = osd_wall_msec() + 600000};
	struct osd_exec_refusal refusal;
	struct osd_object_id job;

	CHECK(osd_exec_submit(exec, &submission, &job, &refusal) == OSD_OK);
	return job;
}

/* A job that cannot begin, because another command is changing it, keeps no other. */
static void test_begin(size_t stuck)
{
	const struct osd_object_id jobs[2] = {submit_later(), submit_later()};

	osd_lock(&exec->lock);
	for (size_t i = 0; i < 2; i++)
		osd_exec_find(exec, jobs[i])->record.begin_msec = 1;
	osd_exec_find(exec, jobs[stuck])->pending.txn = (struct osd_txn *)&stuck;
	exec->begin_msec = 1;
	osd_unlock(&exec->lock);
	osd_flow_sweep(exec);
	while (read_record(jobs[1 - stuck]).state == OSD_STATE_HELD)
		sched_yield();
	osd_lock(&exec->lock);
	osd_exec_find(exec, jobs[stuck])->pending.txn = NULL;
	osd_unlock(&exec->lock);
	for (size_t i = 0; i < 2; i++)
		osd_exec_end_one(exec, jobs[i], OSD_REASON_KILLED);
}

static void note_done(void *arg, const struct osd_exec_outcome *outcome)
{
	CHECK_EQ(outcome->status, OSD_E_STILL_RUNNING);
	atomic_store((_Atomic bool *)arg, true);
}

/* The sweep waits for the store.  A command that waits for a job is answered meanwhile. */
static void test_late(void)
{
	_Atomic bool done = false;
	const struct osd_exec_wait wanted = {.done = note_done, .arg = &done};
	const uint64_t after_sweep = 500000;
	struct osd_exec_wait *wait;
	struct osd_object_id job;
	struct osd_txn *txn;

	CHECK(submit("alice", 0, &job) == OSD_OK);
	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	CHECK(osd_object_hold(txn, job) == OSD_OK);
	osd_lock(&exec->lock);
	osd_exec_sweep_by(exec, 0);
	CHECK(osd_exec_wait_reserve(exec, &wanted, "alice", after_sweep, &wait) == OSD_OK);
	osd_exec_wait_start(exec, wait, job);
	osd_unlock(&exec->lock);
	while (!atomic_load(&done))
		sched_yield();
	osd_txn_abort(txn);
	osd_exec_end_one(exec, job, OSD_REASON_KILLED);
}

static void note_reason(void *arg, const struct osd_exec_outcome *outcome)
{
	*(uint16_t *)arg = outcome->reason;
}

/* The answer to a repeated submission, as of this record of a job that has ended. */
static uint16_t repeated(const struct osd_job_record *record)
{
	uint16_t reason = 0;
	const struct osd_exec_wait wanted = {.done = note_reason, .arg = &reason};
	struct osd_exec_wait *wait;

	osd_lock(&exec->lock);
	CHECK(osd_exec_wait_reserve(exec, &wanted, "alice", 0, &wait) == OSD_OK);
	osd_exec_wait_take(exec, wait);
	osd_unlock(&exec->lock);
	osd_repeated_deliver(exec, wait, record);
	return reason;
}

/* A repeated submission is not answered by another job that has got the id of the earlier one. */
static void test_repeated(void)
{
	struct osd_job_record record;
	struct osd_object_id job;

	CHECK(submit("alice", 0, &job) == OSD_OK);
	record = read_record(job);
	record.reason = OSD_REASON_EXPIRED;
	osd_exec_end_one(exec, job, OSD_REASON_KILLED);
	CHECK_EQ(repeated(&record), OSD_REASON_KILLED);
	record.sequence--;
	CHECK_EQ(repeated(&record), OSD_REASON_EXPIRED);
}

/* Closing in the middle of the work leaks nothing. */
static void test_close_under_way(void)
{
	struct osd_object_id first, job;

	CHECK(submit("alice", 0, &first) == OSD_OK);
	for (size_t i = 0; i < 200; i++)
		CHECK(submit("alice", first.object_id, &job) == OSD_OK);
	osd_exec_end_one(exec, first, OSD_REASON_KILLED);
	osd_exec_close(exec);
	osd_objects_close(objects);
}

static bool stop_at_first(const struct osd_job *job, const void *arg)
{
	(void)job, (void)arg;
	exec->stopping = true;
	return true;
}

/* Nor until all jobs have ended that are to end, or have begun that are to begin. */
static void test_ends_stop(void)
{
	struct osd_object_id jobs[3], later = submit_later();

	for (size_t i = 0; i < OSD_ARRAY_SIZE(jobs); i++)
		CHECK(submit("alice", 0, &jobs[i]) == OSD_OK);
	osd_exec_end_matching(exec, stop_at_first, NULL, OSD_REASON_EXPIRED);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(jobs); i++)
		CHECK(read_record(jobs[i]).state == OSD_STATE_QUEUED);
	osd_lock(&exec->lock);
	osd_exec_find(exec, later)->record.begin_msec = exec->begin_msec = 1;
	osd_unlock(&exec->lock);
	osd_flow_sweep(exec);
	CHECK(read_record(later).state == OSD_STATE_HELD);
}

static enum osd_status remove_job(struct osd_txn *txn, void *arg)
{
	struct osd_job_record record;
	enum osd_status status =
		osd_job_record_get(txn, *(const struct osd_object_id *)arg, &record);

	return status == OSD_OK ? osd_flow_remove(exec, txn, &record) : status;
}

/* An array that takes several transactions. */
static struct osd_object_id submit_large(void)
{
	struct osd_exec_submission submission = {.zone = {pid, 0},
						 .principal = "alice",
						 .code = (const uint8_t *)"pass",
						 .code_length = 4,
						 .array.members = 600};
	struct osd_exec_refusal refusal;
	struct osd_object_id job;

	CHECK(osd_exec_submit(exec, &submission, &job, &refusal) == OSD_OK);
	osd_exec_end_one(exec, job, OSD_REASON_KILLED);
	while (!osd_job_state_terminal(read_record(job).state))
		sched_yield();
	return job;
}

/* The end of the target does not wait until all records that have expired are removed. */
static void test_sweep_stops(void)
{
	struct osd_object_id job, large = submit_large();

	osd_helper_stop(&exec->flow->sweeper); /* no other sweep removes the record */
	CHECK(submit("alice", 0, &job) == OSD_OK);
	osd_exec_end_one(exec, job, OSD_REASON_KILLED);
	set_expiry(job, 1, false);
	osd_lock(&exec->lock);
	exec->stopping = true;
	osd_unlock(&exec->lock);
	osd_flow_sweep(exec);
	CHECK(has_record(job));
	CHECK_EQ(osd_txn_run(objects, OSD_TXN_INTERNAL, remove_job, &large), OSD_E_BUSY);
	CHECK(has_record(large));
	exec->stopping = false;
	test_ends_stop();
	osd_exec_close(exec);
	osd_objects_close(objects);
}

int main(void)
{
	fill_store();
	test_lock_after_start();
	test_other_principals();
	test_code_of_predecessors();
	test_record_stays();
	test_pinned();
	test_expired();
	test_damaged();
	test_begin(0);
	test_begin(1);
	test_late();
	test_repeated();
	test_close_under_way();
	fill_store();
	test_sweep_stops();
	return 0;
}
