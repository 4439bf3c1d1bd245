/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_order.c -- two transactions change one record, and end in the other order than they were committed in: memory and
 * store have what the later one says. */
#include <pthread.h>

#include "object/internal.h"
#include "object/test_support.h"

#define PID UINT64_C(0x10000)

static const struct osd_object_id root, partition = {PID, 0};

/* The work of another thread meanwhile. */
struct other {
	struct osd_objects *objects;
	void (*fn)(struct osd_objects *objects);
};

static void *other_main(void *arg)
{
	const struct other *other = arg;

	other->fn(other->objects);
	return NULL;
}

static void run_other(const struct other *other)
{
	struct other copy = *other;
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, other_main, &copy), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void when_committed(void *arg, bool committed)
{
	CHECK(committed);
	run_other(arg);
}

/* Sets the attribute; the other transaction comes between the commit and the change of memory. */
static void set_before(struct osd_objects *objects, void (*fn)(struct osd_objects *objects),
		       struct osd_object_id id, uint32_t page, uint32_t number, uint64_t value,
		       size_t width)
{
	struct other other = {objects, fn};
	struct osd_txn *txn = test_begin(objects, 0);
	uint8_t bytes[8];

	osd_put_be(bytes, value, width);
	OK(osd_txn_on_end(txn, when_committed, &other));
	OK(osd_attr_set(txn, id, page, number, bytes, width));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

static void limit_objects(struct osd_objects *objects)
{
	OK(test_set_number(objects, partition, 0x30000002, 0x10002, 1, 8));
}

static void test_quotas(struct osd_objects *objects)
{
	uint64_t id;

	set_before(objects, limit_objects, partition, 0x30000002, 0x10001, 1 << 20, 8);
	OK(test_create(objects, PID, 0, &id));
	CHECK_EQ(test_create(objects, PID, 0, &id), OSD_E_QUOTA);
	OK(test_set_number(objects, partition, 0x30000002, 0x10002, UINT64_MAX, 8));
}

static void limit_partitions(struct osd_objects *objects)
{
	OK(test_set_number(objects, root, 0x90000002, 0x20002, 1, 8));
}

static void test_root(struct osd_objects *objects)
{
	set_before(objects, limit_partitions, root, 0x90000002, 0x10001, 1 << 20, 8);
	CHECK_EQ(test_get_number(objects, root, 0x90000002, 0x20002), 1);
	OK(test_set_number(objects, root, 0x90000002, 0x20002, UINT64_MAX, 8));
}

static struct osd_object_id tagged = {PID, 0};

static uint32_t tag_in_memory(struct osd_objects *objects)
{
	struct osd_object_facts facts;
	struct osd_object *object;

	OK(osd_object_get(objects, tagged, &object));
	osd_object_facts(object, &facts);
	osd_object_put(object);
	return facts.tag;
}

static void revoke_tag(struct osd_objects *objects)
{
	OK(test_set_number(objects, tagged, 5, 0x40000001, 6, 4));
	CHECK_EQ(tag_in_memory(objects), 6);
}

/* With the object in memory before, and not. */
static void test_tag(struct test_store *store)
{
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		OK(test_create(store->objects, PID, 0, &tagged.object_id));
		test_store_reopen(store);
		if (in_memory)
			CHECK_EQ(tag_in_memory(store->objects), 0);
		set_before(store->objects, revoke_tag, tagged, 5, 0x40000001, 5, 4);
		CHECK_EQ(tag_in_memory(store->objects), 6);
		test_store_reopen(store);
		CHECK_EQ(tag_in_memory(store->objects), 6);
	}
}

/* ---- the mark of ids ------------------------------------------------------------------------- */

static const struct osd_kv_ops *real;
static const struct other *at_mark; /* comes before the first call that is about the mark */

static void meet(enum osd_kv_table table, struct osd_bytes key)
{
	const struct other *other = at_mark;

	if (!other || table != OSD_KV_META || *(const uint8_t *)key.data != OSD_META_ID_MARK)
		return;
	at_mark = NULL;
	run_other(other);
}

static enum osd_status meet_get(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
				struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
				size_t *ret_length)
{
	meet(table, key);
	return real->get(kv, txn, table, key, flags, buffer, capacity, ret_length);
}

static enum osd_status meet_put(struct osd_kv_txn *txn, enum osd_kv_table table,
				struct osd_bytes key, struct osd_bytes value, unsigned flags)
{
	meet(table, key);
	return real->put(txn, table, key, value, flags);
}

static uint64_t last_id;

static void make_and_remove(struct osd_objects *objects)
{
	for (int i = 0; i < 10; i++)
		OK(test_create(objects, PID, 0, &last_id));
	OK(test_remove(objects, (struct osd_object_id){PID, last_id}));
}

static void test_id_mark(struct test_store *store)
{
	struct other other = {store->objects, make_and_remove};
	struct osd_kv_ops ops = *store->objects->kv->ops;
	struct osd_txn *txn = test_begin(store->objects, 0);
	uint64_t first, id;

	/* So many that the first and the last are not on one page, which is what a transaction locks. */
	OK(osd_user_object_create(txn, PID, 0, 1000, &first));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	osd_timers_stop(&store->objects->timers); /* they and the reaper read the operations, too */
	osd_helper_stop(&store->objects->reaper);
	real = store->objects->kv->ops;
	ops.get = meet_get;
	ops.put = meet_put;
	store->objects->kv->ops = &ops;
	at_mark = &other;
	OK(test_remove(store->objects, (struct osd_object_id){PID, first}));
	CHECK(!at_mark);
	store->objects->kv->ops = real;
	test_store_reopen(store);
	OK(test_create(store->objects, PID, 0, &id));
	CHECK(id > last_id);
}

/* ---- partitions of a transaction --------------------------------------------------------------- */

static void test_own_partitions(struct osd_objects *objects)
{
	struct osd_txn *txn = test_begin(objects, 0);
	uint64_t pid, id;

	OK(osd_partition_create(txn, 0, &pid));
	OK(osd_user_object_create(txn, pid, 0, 1, &id));
	OK(osd_partition_remove(txn, pid, true));
	CHECK_EQ(osd_user_object_create(txn, pid, 0, 1, &id), OSD_E_NO_PARTITION);
	osd_txn_abort(txn);
}

int main(void)
{
	struct test_store store;
	uint64_t pid;

	test_store_init(&store, true);
	test_store_open(&store);
	OK(test_partition(store.objects, PID, &pid));
	test_quotas(store.objects);
	test_root(store.objects);
	test_tag(&store);
	test_id_mark(&store);
	test_own_partitions(store.objects);
	test_store_release(&store);
	return 0;
}
