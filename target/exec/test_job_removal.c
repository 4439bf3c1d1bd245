/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_job_removal.c -- job records that go with their partition, on an in-memory store.  What the removal reads
 * stays locked until it is committed, so it reads no record of another partition's jobs. */
#include "base/log.h"
#include "base/test.h"
#include "exec/target.h"
#include "object/internal.h"
#include "wire/cursor.h"

#define JOBS 3

static struct osd_flow flow;
static struct osd_exec exec = {.flow = &flow};
static struct osd_objects *objects;
static uint64_t removed, other;

static void make(uint64_t *ret_partition)
{
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_create(txn, 0, ret_partition) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void store(uint64_t partition_id)
{
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	for (uint64_t i = 0; i < JOBS; i++) {
		struct osd_job_record record = {.id = {partition_id, 0x10000 + i},
						.state = OSD_STATE_COMPLETED,
						.result_object = 0x20000 + i,
						.expiry_msec = 1000};

		CHECK(osd_job_record_put(txn, &record) == OSD_OK);
		CHECK(osd_job_expiry_move(txn, &record, 0) == OSD_OK);
		CHECK(osd_job_payload_put(txn, record.id, OSD_PAYLOAD_RESULT, "42", 2) == OSD_OK);
		CHECK(osd_job_companion_put(txn, record.id, record.result_object) == OSD_OK);
	}
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

/* ---- the keys that a removal reads ------------------------------------------------------------- */

struct watched {
	osd_kv_scan_fn *fn;
	void *arg;
};

static const struct osd_kv_ops *below;
static unsigned seen_of_others; /* that begin with a kind and the other partition */

static bool see(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	const struct watched *watched = arg;

	seen_of_others += key.length >= 9 && osd_get_be((const uint8_t *)key.data + 1, 8) == other;
	return watched->fn(watched->arg, key, value);
}

static enum osd_status scan(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			    struct osd_bytes from, size_t prefix_length, osd_kv_scan_fn *fn,
			    void *arg)
{
	struct watched watched = {fn, arg};

	if (table != OSD_KV_JOBS)
		return below->scan(kv, txn, table, from, prefix_length, fn, arg);
	return below->scan(kv, txn, table, from, prefix_length, see, &watched);
}

static size_t left_of(uint64_t partition_id)
{
	struct osd_job_record record;
	uint8_t payload[2];
	struct osd_txn *txn;
	size_t left = 0, length;

	CHECK(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
	for (uint64_t i = 0; i < JOBS; i++) {
		struct osd_object_id id = {partition_id, 0x10000 + i}, job;
		struct osd_object_id companion = {partition_id, 0x20000 + i};

		left += osd_job_record_get(txn, id, &record) == OSD_OK;
		left += osd_job_payload_get(txn, id, OSD_PAYLOAD_RESULT, payload, sizeof(payload),
					    &length) == OSD_OK;
		left += osd_job_companion_find(txn, companion, &job) == OSD_OK;
	}
	osd_txn_abort(txn);
	return left;
}

static void damage(struct osd_object_id id)
{
	uint8_t key[17] = {1}; /* KEY_RECORD of record/store.c */
	struct osd_txn *txn;

	osd_put_be(key + 1, id.partition_id, 8);
	osd_put_be(key + 9, id.object_id, 8);
	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	CHECK(osd_txn_record_put(txn, OSD_TABLE_JOBS, key, sizeof(key), "?", 1) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static size_t expired(void)
{
	struct osd_expired_jobs expired = {.now_msec = 2000};
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
	CHECK(osd_job_record_expired(txn, &expired) == OSD_OK);
	osd_txn_abort(txn);
	return expired.count;
}

/* One record in each partition is damaged. */
static void test_remove_partition(void)
{
	struct osd_kv_ops watched = *objects->kv->ops;
	struct osd_txn *txn;

	make(&removed);
	make(&other);
	store(removed);
	store(other);
	damage((struct osd_object_id){removed, 0x10001});
	damage((struct osd_object_id){other, 0x10001});
	CHECK(left_of(removed) == 3 * JOBS - 1 && expired() == 2 * JOBS);
	below = objects->kv->ops;
	watched.scan = scan;
	objects->kv->ops = &watched;
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_remove(txn, removed, false) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	objects->kv->ops = below;
	CHECK(seen_of_others == 0);
	CHECK(left_of(removed) == 0 && left_of(other) == 3 * JOBS - 1 && expired() == JOBS);
}

int main(void)
{
	struct osd_objects_config config = {0};
	char message[256];

	osd_log_init(-1, "test", OSD_LOG_ERROR);
	osd_lock_init(&exec.lock, OSD_RANK_EXEC);
	CHECK(osd_job_table_init(&exec.table) == OSD_OK);
	CHECK(osd_job_table_init(&flow.awaited) == OSD_OK);
	CHECK(osd_objects_open(&config, message, &objects) == OSD_OK);
	osd_objects_watch_removals(objects, osd_exec_removed, &exec);
	osd_timers_stop(&objects->timers); /* they and the reaper read the operations, too */
	osd_helper_stop(&objects->reaper);
	test_remove_partition();
	osd_objects_close(objects);
	osd_job_table_release(&flow.awaited);
	osd_job_table_release(&exec.table);
	return 0;
}
