/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_array.c -- the state of an array, as derived from its members. */
#include "base/test.h"
#include "exec/target.h"

#define PARTITION UINT64_C(0x10000)

static const struct osd_exec_ops ops = {.kind_of = osd_flow_kind_of};
static struct osd_flow flow;
static struct osd_exec exec = {.ops = &ops, .flow = &flow};
static struct osd_pool pool;

static struct osd_job *make_array(uint8_t state, uint32_t members)
{
	struct osd_job_record record = {.id = {0x10000, 0x10000},
					.flags = OSD_JOB_ARRAY,
					.state = state,
					.array = {.object_id = 0x10000, .count = members}};
	struct osd_job *head = osd_job_create(&exec, &record, &pool);

	CHECK(head && osd_array_create(head) == OSD_OK);
	return head;
}

/* Returns the array's state after the change. */
static uint8_t note(const struct osd_job *head, uint32_t index, uint8_t state)
{
	struct osd_job_record member = {.id = {PARTITION, 0x10001 + index},
					.state = state,
					.array = {.object_id = 0x10000, .index = index}};

	osd_array_count(head->array, &member);
	return osd_array_state(head->array);
}

/* The members were released one by one.  The array does not become HELD again when the last of them
 * has been cancelled and the array has not ended yet. */
static void test_not_held_again(void)
{
	struct osd_job *head = make_array(OSD_STATE_HELD, 2);

	CHECK(osd_array_state(head->array) == OSD_STATE_HELD);
	CHECK(note(head, 0, OSD_STATE_HELD) == OSD_STATE_HELD);
	CHECK(note(head, 1, OSD_STATE_HELD) == OSD_STATE_HELD);
	CHECK(note(head, 1, OSD_STATE_QUEUED) == OSD_STATE_QUEUED);
	CHECK(note(head, 0, OSD_STATE_QUEUED) == OSD_STATE_QUEUED);
	CHECK(note(head, 1, OSD_STATE_CANCELLED) == OSD_STATE_QUEUED);
	CHECK(note(head, 0, OSD_STATE_CANCELLED) == OSD_STATE_QUEUED);
	osd_job_unref(head);
}

static void test_stays_held(void)
{
	struct osd_job *head = make_array(OSD_STATE_QUEUED, 1);

	CHECK(note(head, 0, OSD_STATE_QUEUED) == OSD_STATE_QUEUED);
	CHECK(note(head, 0, OSD_STATE_HELD) == OSD_STATE_HELD);
	CHECK(note(head, 0, OSD_STATE_CANCELLED) == OSD_STATE_HELD);
	osd_job_unref(head);
}

/* ---- a restart -------------------------------------------------------------------------------- */

static void open_exec(struct osd_objects *objects, struct osd_exec **ret_exec)
{
	struct osd_exec_config config = {.objects = objects};
	char message[256];

	CHECK_EQ(osd_exec_open(&config, message, ret_exec), OSD_OK);
}

static struct osd_object_id submit_held(struct osd_exec *on, uint32_t members)
{
	struct osd_exec_submission submission = {.zone = {PARTITION, 0},
						 .principal = "test",
						 .code = (const uint8_t *)"pass",
						 .code_length = 4,
						 .flags = OSD_EXEC_HOLD,
						 .array.members = members};
	struct osd_exec_refusal refusal;
	struct osd_object_id id;

	CHECK_EQ(osd_exec_submit(on, &submission, &id, &refusal), OSD_OK);
	return id;
}

/* Writes what the cancel of a released member writes: the member's record, not the array's. */
static void cancel_stored(struct osd_objects *objects, struct osd_object_id id, uint32_t at)
{
	struct osd_job_record head, member;
	struct osd_txn *txn;

	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_job_record_get(txn, id, &head), OSD_OK);
	osd_array_member_record(&head, at, at, &member);
	member.state = OSD_STATE_QUEUED;
	osd_job_record_end(&member, OSD_STATE_CANCELLED, OSD_REASON_CANCELLED);
	CHECK_EQ(osd_job_write_end(NULL, txn, &member), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
}

/* The state that a client reads, from memory or from the store. */
static uint8_t state_now(struct osd_exec *on, struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_job_record record;
	struct osd_job *head;
	struct osd_txn *txn;
	uint8_t state;

	osd_lock(&on->lock);
	head = osd_exec_find(on, id);
	state = head ? osd_array_state(head->array) : 0;
	osd_unlock(&on->lock);
	if (state)
		return state;
	CHECK_EQ(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn), OSD_OK);
	CHECK_EQ(osd_job_record_get(txn, id, &record), OSD_OK);
	osd_txn_abort(txn);
	return record.state;
}

/* The target crashed between the last member's end and the array's.  The restart notices that the
 * array has ended.  An array with one member left still waits. */
static void test_over_at_restart(void)
{
	struct osd_objects_config store = {.cache_bytes = 8u << 20};
	struct osd_objects *objects;
	struct osd_object_id over, left;
	struct osd_exec *on;
	struct osd_txn *txn;
	uint64_t partition;
	char message[256];

	CHECK_EQ(osd_objects_open(&store, message, &objects), OSD_OK);
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_partition_create(txn, PARTITION, &partition), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	open_exec(objects, &on);
	over = submit_held(on, 2);
	left = submit_held(on, 2);
	osd_exec_close(on);
	cancel_stored(objects, over, 0);
	cancel_stored(objects, over, 1);
	cancel_stored(objects, left, 1);
	open_exec(objects, &on);
	CHECK_EQ(state_now(on, objects, over), OSD_STATE_CANCELLED);
	CHECK_EQ(state_now(on, objects, left), OSD_STATE_HELD);
	osd_exec_close(on);
	osd_objects_close(objects);
}

int main(void)
{
	pthread_cond_init(&exec.changed, NULL);
	pool.exec = &exec;
	test_not_held_again();
	test_stays_held();
	test_over_at_restart();
	return 0;
}
