/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_txn_run.c -- work that loses deadlocks: it begins again in a transaction of its own, what it did
 * before is undone, and it ends as txn_run.h says. */
#include "object/internal.h"
#include "object/test_support.h"
#include "object/txn_run.h"

#define TRIES (OSD_TXN_RETRIES + 1)

struct work {
	struct osd_objects *objects;
	unsigned runs, defeats; /* it loses the first so many */
	unsigned stops_at;	/* the run at which the command is aborted; 0: never */
	unsigned aborted;	/* transactions that were undone */
	enum osd_status status; /* its own, once it does not lose */
	bool stop;
	uint64_t pid;
};

static void note_end(void *arg, bool committed)
{
	struct work *work = arg;

	work->aborted += !committed;
}

/* Makes a partition with objects in it. */
static enum osd_status make(struct osd_txn *txn, void *arg)
{
	struct work *work = arg;
	uint64_t first;
	enum osd_status status;

	work->stop = ++work->runs == work->stops_at;
	osd_txn_watch(txn, &work->stop);
	status = osd_txn_on_end(txn, note_end, work);
	if (status == OSD_OK)
		status = osd_partition_create(txn, 0, &work->pid);
	if (status == OSD_OK)
		status = osd_user_object_create(txn, work->pid, 0, 2, &first);
	if (status != OSD_OK)
		return status;
	return work->runs <= work->defeats ? OSD_E_CONFLICT : work->status;
}

static enum osd_status run_make(struct osd_objects *objects, struct work *work)
{
	return osd_txn_run(objects, 0, make, work);
}

static uint64_t count_partitions(struct osd_objects *objects)
{
	struct osd_list_request list = {.kind = OSD_LIST_PARTITIONS};
	struct osd_list_result result;
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	uint64_t ids[4];

	OK(test_end(txn, osd_list(txn, &list, ids, OSD_ARRAY_SIZE(ids), &result)));
	return result.count;
}

/* The last try wins: what the others made is gone. */
static void test_last_chance(struct osd_objects *objects)
{
	struct work work = {.defeats = OSD_TXN_RETRIES};

	OK(run_make(objects, &work));
	CHECK_EQ(work.runs, TRIES);
	CHECK_EQ(work.aborted, OSD_TXN_RETRIES);
	CHECK_EQ(count_partitions(objects), 1);
	OK(test_remove_partition(objects, work.pid));
}

static void test_busy(struct osd_objects *objects)
{
	struct work work = {.defeats = TRIES};

	CHECK_EQ(run_make(objects, &work), OSD_E_BUSY);
	CHECK_EQ(work.runs, TRIES);
	CHECK_EQ(work.aborted, TRIES);
	CHECK_EQ(count_partitions(objects), 0);
}

static void test_refused(struct osd_objects *objects)
{
	struct work work = {.defeats = 2, .status = OSD_E_QUOTA};

	CHECK_EQ(run_make(objects, &work), OSD_E_QUOTA);
	CHECK_EQ(work.runs, 3);
	CHECK_EQ(work.aborted, 3);
	CHECK_EQ(count_partitions(objects), 0);
}

/* A command that is aborted while it loses does not begin again. */
static void test_stopped(struct osd_objects *objects)
{
	struct work work = {.defeats = TRIES, .stops_at = 3};

	CHECK_EQ(run_make(objects, &work), OSD_E_TASK_ABORTED);
	CHECK_EQ(work.runs, 3);
	CHECK_EQ(count_partitions(objects), 0);
}

/* The n-th call of the store makes the transaction a deadlock's victim, for n = 1, 2, ...: the commit
 * too. */
static void test_every_call(struct osd_objects *objects)
{
	unsigned again = 0;
	bool hit = true;

	objects->faults->status = OSD_E_CONFLICT;
	for (uint64_t n = 1; hit; n++) {
		uint64_t at = atomic_load(&objects->faults->calls) + n;
		struct work work = {0};

		atomic_store(&objects->faults->fail_at, at);
		OK(run_make(objects, &work));
		hit = atomic_load(&objects->faults->calls) >= at;
		atomic_store(&objects->faults->fail_at, 0);
		CHECK(work.runs <= 2 && work.aborted == work.runs - 1);
		again += work.runs - 1;
		CHECK_EQ(count_partitions(objects), 1);
		OK(test_remove_partition(objects, work.pid));
	}
	CHECK(again > 3);
}

/* ---- what must be done first ------------------------------------------------------------- */

struct steps {
	struct work work;
	unsigned left;		 /* that do not fit in one transaction */
	enum osd_status fails;	 /* what the last of them returns */
};

static enum osd_status do_step(void *arg, struct osd_object_id id)
{
	struct steps *steps = arg;

	CHECK_EQ(id.partition_id, steps->work.pid);
	return --steps->left ? OSD_OK : steps->fails;
}

static enum osd_status make_in_steps(struct osd_txn *txn, void *arg)
{
	struct steps *steps = arg;
	enum osd_status status = make(txn, &steps->work);

	if (status != OSD_OK || steps->left == 0)
		return status;
	return osd_txn_first(txn, do_step, steps, (struct osd_object_id){steps->work.pid, 0});
}

/* However many steps there are: they are not counted as defeats.  Nothing is left of a run before them. */
static void test_first(struct osd_objects *objects)
{
	struct steps steps = {.left = 2 * TRIES};

	OK(osd_txn_run(objects, 0, make_in_steps, &steps));
	CHECK_EQ(steps.work.runs, 2 * TRIES + 1);
	CHECK_EQ(steps.work.aborted, 2 * TRIES);
	CHECK_EQ(count_partitions(objects), 1);
	OK(test_remove_partition(objects, steps.work.pid));
	steps = (struct steps){.left = 2, .fails = OSD_E_QUOTA};
	CHECK_EQ(osd_txn_run(objects, 0, make_in_steps, &steps), OSD_E_QUOTA);
	CHECK_EQ(steps.work.runs, 2);
	CHECK_EQ(count_partitions(objects), 0);
}

/* ---- the layer's own --------------------------------------------------------------------- */

static const char MARK[] = "a key of this test's own";

static struct osd_bytes mark(void)
{
	return (struct osd_bytes){MARK, sizeof(MARK)};
}

static enum osd_status put_mark(struct osd_kv_txn *kv, void *arg)
{
	struct work *work = arg;
	enum osd_status status =
		osd_kv_put(kv, OSD_KV_META, mark(), (struct osd_bytes){"mark", 4}, 0);

	return status == OSD_OK && ++work->runs <= work->defeats ? OSD_E_CONFLICT : status;
}

static enum osd_status look_for_mark(struct osd_kv_txn *kv, void *arg)
{
	struct work *work = arg;
	uint8_t bytes[8];
	size_t length;
	enum osd_status status = osd_kv_get(work->objects->kv, kv, OSD_KV_META, mark(), 0, bytes,
					    sizeof(bytes), &length);

	return ++work->runs <= work->defeats ? OSD_E_CONFLICT : status;
}

static enum osd_status run_look(struct osd_objects *objects, struct work *work)
{
	return osd_own_run(objects, OSD_TXN_READ_ONLY, look_for_mark, work);
}

static enum osd_status run_put(struct osd_objects *objects, struct work *work)
{
	return osd_own_run(objects, OSD_COMMIT_DURABLE, put_mark, work);
}

static void test_own(struct osd_objects *objects)
{
	struct work look = {.objects = objects}, loses = {.defeats = TRIES};
	struct work wins = {.defeats = OSD_TXN_RETRIES};

	CHECK_EQ(run_put(objects, &loses), OSD_E_BUSY);
	CHECK_EQ(loses.runs, TRIES);
	CHECK_EQ(run_look(objects, &look), OSD_E_NO_OBJECT);
	CHECK_EQ(look.runs, 1);
	OK(run_put(objects, &wins));
	CHECK_EQ(wins.runs, TRIES);
	look = (struct work){.objects = objects, .defeats = 4};
	OK(run_look(objects, &look));
	CHECK_EQ(look.runs, 5);
}

int main(void)
{
	struct test_store store;

	test_store_init(&store, false);
	store.faults.fault_at = UINT64_MAX;
	test_store_open(&store);
	test_last_chance(store.objects);
	test_busy(store.objects);
	test_refused(store.objects);
	test_stopped(store.objects);
	test_every_call(store.objects);
	test_first(store.objects);
	test_own(store.objects);
	test_store_release(&store);
	return 0;
}
