/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_object.c -- partitions, user objects, data and listing, on both stores; what must be the
 * same after closing and opening again. */
#include "object/internal.h"
#include "object/test_support.h"

static struct osd_object_id id_of(uint64_t partition_id, uint64_t object_id)
{
	return (struct osd_object_id){partition_id, object_id};
}

static void test_ids(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	uint64_t pid, id;

	OK(test_partition(o, 0, &pid));
	CHECK_EQ(pid, 0x10000);
	CHECK_EQ(test_partition(o, 0x10000, &id), OSD_E_EXISTS);
	OK(test_partition(o, 0xffff, &id)); /* of functions */
	OK(test_remove_partition(o, id));
	OK(test_partition(o, OSD_JOBS_PARTITION, &id));
	OK(test_partition(o, 0, &id));
	CHECK_EQ(id, 0x10001);
	CHECK_EQ(test_create(o, 0x5555555, 0, &id), OSD_E_NO_PARTITION);
	OK(test_create(o, pid, 0, &id));
	CHECK_EQ(id, 0x10000);
	CHECK_EQ(test_create(o, pid, 0x10000, &id), OSD_E_EXISTS);
	CHECK_EQ(test_create(o, pid, 0x1001, &id), OSD_E_EXISTS);
	OK(test_create(o, pid, 0x10001, &id));
	OK(test_create(o, pid, 0, &id));
	CHECK_EQ(id, 0x10002);
	/* The greatest id is not given out again, not even after a restart. */
	OK(test_remove(o, id_of(pid, 0x10002)));
	OK(test_create(o, pid, 0, &id));
	CHECK_EQ(id, 0x10003);
	OK(test_remove(o, id_of(pid, 0x10003)));
	CHECK_EQ(test_remove(o, id_of(pid, 0x10003)), OSD_E_NO_OBJECT);
}

static void test_ids_after_restart(struct test_store *store)
{
	uint64_t id;

	test_store_reopen(store);
	OK(test_create(store->objects, 0x10000, 0, &id));
	CHECK_EQ(id, 0x10004);
	OK(test_remove(store->objects, id_of(0x10000, id)));
}

/* An object with the highest id neither uses up the ids of its partition, nor does one with the last
 * id that moves the mark; not after a restart either, nor once it is removed. */
static void test_highest_ids(struct test_store *store)
{
	const uint64_t last = UINT64_MAX - 1, counted = (UINT64_C(1) << 62) - 1;
	uint64_t pid, id, first;
	struct osd_txn *txn;

	OK(test_partition(store->objects, 0, &pid));
	OK(test_create(store->objects, pid, last, &id));
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, 0x10000);
	CHECK_EQ(test_create(store->objects, pid, last, &id), OSD_E_EXISTS);
	test_store_reopen(store);
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, 0x10001);
	OK(test_remove(store->objects, id_of(pid, last)));
	OK(test_remove(store->objects, id_of(pid, 0x10001)));
	test_store_reopen(store);
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, 0x10002);
	/* Behind the last one that counts, ids are free between those asked for. */
	OK(test_create(store->objects, pid, counted, &id));
	OK(test_create(store->objects, pid, counted + 3, &id));
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, counted + 1);
	txn = test_begin(store->objects, 0);
	OK(test_end(txn, osd_user_object_create(txn, pid, 0, 10, &first)));
	CHECK_EQ(first, counted + 4);
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, counted + 14);
	test_store_reopen(store);
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, counted + 2);
	OK(test_remove_partition(store->objects, pid));
}

/* What an earlier version left behind when the highest id was asked for and its object removed. */
static void test_mark_of_an_earlier_version(struct test_store *store)
{
	uint64_t pid, id;
	uint8_t mark[8];
	struct osd_txn *txn;
	struct osd_key key;
	uint32_t incarnation;

	OK(test_partition(store->objects, 0, &pid));
	OK(test_create(store->objects, pid, 0x12345, &id));
	txn = test_begin(store->objects, 0);
	OK(osd_partition_incarnation(txn, pid, &incarnation));
	key = osd_key_meta_partition(OSD_META_ID_MARK, pid, incarnation);
	osd_put_be(mark, UINT64_MAX, sizeof(mark));
	OK(test_end(txn, osd_kv_put(txn->kv, OSD_KV_META, osd_key_bytes(&key),
				    (struct osd_bytes){mark, sizeof(mark)}, 0)));
	test_store_reopen(store);
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, 0x12346);
	OK(test_remove(store->objects, id_of(pid, 0x12346)));
	test_store_reopen(store); /* the new mark has replaced it */
	OK(test_create(store->objects, pid, 0, &id));
	CHECK_EQ(id, 0x12347);
	OK(test_remove_partition(store->objects, pid));
}

/* The same of partitions. */
static void test_highest_partition_ids(struct test_store *store)
{
	uint64_t pid, last, highest;

	OK(test_partition(store->objects, UINT64_MAX, &highest));
	OK(test_partition(store->objects, UINT64_MAX - 1, &last));
	OK(test_partition(store->objects, 0, &pid));
	CHECK(pid < 0x20000);
	OK(test_remove_partition(store->objects, pid));
	OK(test_remove_partition(store->objects, last));
	OK(test_remove_partition(store->objects, highest));
}

static void test_abort(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	struct osd_objects_stats before, after;
	struct osd_txn *txn = test_begin(o, 0);
	enum osd_object_type type;
	uint64_t pid, oid;

	osd_objects_stats(o, &before);
	OK(osd_partition_create(txn, 0, &pid));
	OK(osd_user_object_create(txn, pid, 0, 10, &oid));
	OK(osd_object_type_of(txn, id_of(pid, oid + 9), &type));
	CHECK_EQ(type, OSD_USER_OBJECT);
	osd_txn_abort(txn);
	txn = test_begin(o, OSD_TXN_READ_ONLY);
	CHECK_EQ(osd_object_type_of(txn, id_of(pid, 0), &type), OSD_E_NO_PARTITION);
	osd_txn_abort(txn);
	osd_objects_stats(o, &after);
	CHECK_EQ(after.object_count, before.object_count);
	CHECK_EQ(after.partition_count, before.partition_count);
}

static void check_pattern(const uint8_t *bytes, size_t length, uint64_t from)
{
	for (size_t i = 0; i < length; i++)
		CHECK_EQ(bytes[i], (uint8_t)((from + i) * 7 + (from + i) / 256));
}

static void fill_pattern(uint8_t *bytes, size_t length, uint64_t from)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)((from + i) * 7 + (from + i) / 256);
}

static void test_data(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	static uint8_t data[300000], back[300000];
	struct osd_object *object;
	uint64_t id, offset, length;
	size_t got;

	OK(test_create(o, 0x10000, 0, &id));
	CHECK_EQ(test_read(o, id_of(0x10000, id), 0, back, 10), 0);
	fill_pattern(data, sizeof(data), 0);
	OK(test_write(o, id_of(0x10000, id), 0, data, 100000));
	OK(osd_object_get(o, id_of(0x10000, id), &object));
	OK(test_append(object, data + 100000, 200000, 0, &offset));
	CHECK_EQ(offset, 100000);
	OK(osd_object_read(object, 1000, back, sizeof(back), 0, &got));
	CHECK_EQ(got, 299000);
	check_pattern(back, got, 1000);
	OK(osd_object_read(object, 300000, back, 10, 0, &got));
	CHECK_EQ(got, 0);
	/* Sparse, then clear in the middle and past the end. */
	OK(osd_object_write(object, 400000, data, 10, 0));
	OK(osd_object_read(object, 299990, back, 30, 0, &got));
	CHECK_EQ(got, 30);
	check_pattern(back, 10, 299990);
	for (size_t i = 10; i < 30; i++)
		CHECK_EQ(back[i], 0);
	OK(test_clear(object, 5, 10));
	OK(osd_object_read(object, 0, back, 20, 0, &got));
	check_pattern(back, 5, 0);
	CHECK_EQ(back[5] | back[14], 0);
	check_pattern(back + 15, 5, 15);
	OK(test_clear(object, 400000, 20000));
	OK(osd_object_length(object, &length));
	CHECK_EQ(length, 420000);
	/* Punch: middle, tail, beyond. */
	OK(test_punch(object, 20, 100, NULL));
	OK(osd_object_length(object, &length));
	CHECK_EQ(length, 419900);
	OK(osd_object_read(object, 15, back, 20, 0, &got));
	check_pattern(back, 5, 15);
	check_pattern(back + 5, 15, 120);
	OK(test_punch(object, 1000, UINT64_MAX, NULL));
	OK(osd_object_length(object, &length));
	CHECK_EQ(length, 1000);
	CHECK_EQ(test_punch(object, 1001, 1, NULL), OSD_E_BEYOND_END);
	OK(osd_object_truncate(object, 10, 0));
	OK(osd_object_truncate(object, 2000, 0));
	OK(osd_object_read(object, 0, back, 3000, 0, &got));
	CHECK_EQ(got, 2000);
	CHECK_EQ(back[10] | back[999] | back[1999], 0);
	OK(osd_object_flush(object));
	OK(osd_objects_flush(o, id_of(0, 0)));
	CHECK_EQ(osd_object_write(object, UINT64_MAX - 1, data, 10, 0), OSD_E_CDB_FIELD);
	CHECK_EQ(osd_object_write(object, INT64_MAX, data, 10, 0), OSD_E_NO_SPACE);
	OK(osd_object_length(object, &length));
	CHECK_EQ(length, 2000);
	osd_object_put(object);
	CHECK_EQ(test_get_number(o, id_of(0x10000, id), 1, OSD_INFO_LOGICAL_LENGTH), 2000);
}

struct punching {
	unsigned steps, most, rests;
	uint64_t bytes;
};

static bool punch_on(void *arg, uint64_t bytes)
{
	struct punching *punching = arg;

	punching->bytes += bytes;
	return ++punching->steps <= punching->most;
}

static void punch_rests(void *arg)
{
	((struct punching *)arg)->rests++;
}

/* One that is stopped has changed nothing, wherever that was; one that is not moves what it says. */
static void test_punch_in_steps(struct test_store *store)
{
	enum { LENGTH = 4 << 20 };
	const struct osd_object_id id = {0x10000, 0x7000000};
	struct punching punching = {.most = UINT32_MAX};
	const struct osd_change_steps steps = {punch_on, punch_rests, &punching};
	uint8_t *data = malloc(LENGTH), *back = malloc(LENGTH);
	struct osd_objects_stats before, after;
	struct osd_object *object;
	uint64_t made, length;

	CHECK(data && back);
	fill_pattern(data, LENGTH, 0);
	OK(test_create(store->objects, id.partition_id, id.object_id, &made));
	OK(test_write(store->objects, id, 0, data, LENGTH));
	osd_objects_stats(store->objects, &before);
	OK(osd_object_get(store->objects, id, &object));
	for (unsigned most = 0; most < 4; most++) {
		punching = (struct punching){.most = most};
		CHECK_EQ(test_punch(object, 1000, 10, &steps), OSD_E_TASK_ABORTED);
		CHECK_EQ(punching.steps, most + 1);
		OK(osd_object_length(object, &length));
		CHECK_EQ(length, LENGTH);
		CHECK_EQ(test_read(store->objects, id, 0, back, LENGTH), LENGTH);
		CHECK(memcmp(data, back, LENGTH) == 0);
	}
	osd_objects_stats(store->objects, &after);
	CHECK_EQ(after.used_bytes, before.used_bytes);
	punching = (struct punching){.most = UINT32_MAX};
	OK(test_punch(object, 1000, 10, &steps));
	CHECK(punching.bytes >= LENGTH - 4096 - 10 && punching.bytes <= LENGTH);
	CHECK(punching.steps >= 4 && punching.rests >= 1);
	CHECK_EQ(test_read(store->objects, id, 0, back, LENGTH), LENGTH - 10);
	check_pattern(back, 1000, 0);
	check_pattern(back + 1000, LENGTH - 1010, 1010);
	osd_object_put(object);
	OK(test_remove(store->objects, id));
	free(data);
	free(back);
}

static void test_removed_while_open(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	struct osd_objects_stats before, after;
	struct osd_object *object, *other;
	uint8_t byte = 1;
	uint64_t id;
	size_t got;

	osd_objects_stats(o, &before);
	OK(test_create(o, 0x10000, 0, &id));
	OK(osd_object_get(o, id_of(0x10000, id), &object));
	OK(osd_object_write(object, 100, &byte, 1, 0));
	OK(test_remove(o, id_of(0x10000, id)));
	CHECK_EQ(osd_object_read(object, 0, &byte, 1, 0, &got), OSD_E_NO_OBJECT);
	CHECK_EQ(osd_object_write(object, 0, &byte, 1, 0), OSD_E_NO_OBJECT);
	/* A new object of the same id is another object. */
	OK(test_create(o, 0x10000, id, &id));
	OK(osd_object_get(o, id_of(0x10000, id), &other));
	CHECK(other != object);
	OK(osd_object_read(other, 0, &byte, 1, 0, &got));
	CHECK_EQ(got, 0);
	OK(osd_object_write(other, 0, &byte, 1, 0));
	osd_object_put(other);
	osd_object_put(object);
	OK(test_remove(o, id_of(0x10000, id)));
	osd_objects_stats(o, &after);
	CHECK_EQ(after.used_bytes, before.used_bytes);
	CHECK_EQ(after.object_count, before.object_count);
}

/* The creation of many ends between two of them when it is stopped, and leaves none. */
static void test_creation_is_stopped(struct test_store *store)
{
	struct osd_list_request request = {.kind = OSD_LIST_USER_OBJECTS};
	struct osd_list_result result;
	uint64_t pid, first;
	bool stop = true;
	struct osd_txn *txn = test_begin(store->objects, 0);

	OK(osd_partition_create(txn, 0, &pid));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	txn = test_begin(store->objects, 0);
	osd_txn_watch(txn, &stop);
	CHECK_EQ(osd_user_object_create(txn, pid, 0, OSD_CREATE_MAX, &first), OSD_E_TASK_ABORTED);
	osd_txn_abort(txn);
	txn = test_begin(store->objects, OSD_TXN_READ_ONLY);
	request.in = id_of(pid, 0);
	OK(osd_list(txn, &request, &first, 1, &result));
	osd_txn_abort(txn);
	CHECK_EQ(result.count, 0);
	txn = test_begin(store->objects, 0);
	OK(test_end(txn, osd_partition_remove(txn, pid, true)));
}

static void test_listing(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	struct osd_list_request request = {.kind = OSD_LIST_USER_OBJECTS};
	struct osd_list_result result;
	uint64_t ids[64], pid, first, seen = 0;
	struct osd_txn *txn = test_begin(o, 0);

	OK(osd_partition_create(txn, 0x20000, &pid));
	OK(osd_user_object_create(txn, pid, 0, 1000, &first));
	OK(osd_collection_create(txn, pid, 0, OSD_COLLECTION_LINKED, &ids[0]));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	txn = test_begin(o, OSD_TXN_READ_ONLY);
	request.in = id_of(pid, 0);
	do {
		OK(osd_list(txn, &request, ids, 64, &result));
		CHECK_EQ(result.total_count, 1000 - seen);
		for (size_t i = 0; i < result.count; i++)
			CHECK_EQ(ids[i], first + seen + i);
		seen += result.count;
		request.initial_id = result.next_id;
	} while (result.next_id);
	CHECK_EQ(seen, 1000);
	request.kind = OSD_LIST_COLLECTIONS;
	request.initial_id = 0;
	OK(osd_list(txn, &request, ids, 64, &result));
	CHECK_EQ(result.count, 1);
	CHECK_EQ(ids[0], first + 1000);
	request.kind = OSD_LIST_PARTITIONS;
	OK(osd_list(txn, &request, ids, 2, &result));
	CHECK_EQ(result.count, 2);
	CHECK_EQ(ids[0], 0x10000);
	CHECK_EQ(result.total_count, 4);
	CHECK_EQ(result.next_id, 0x20000);
	osd_txn_abort(txn);
}

static void test_partition_removal(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	struct osd_objects_stats before, after;
	struct osd_object *object;
	struct osd_txn *txn;
	uint64_t pid, id;
	size_t got;
	uint8_t byte = 7;

	osd_objects_stats(o, &before);
	OK(test_partition(o, 0x30000, &pid));
	OK(test_create(o, pid, 0, &id));
	OK(test_write(o, id_of(pid, id), 0, &byte, 1));
	OK(osd_object_get(o, id_of(pid, id), &object));
	txn = test_begin(o, 0);
	CHECK_EQ(test_end(txn, osd_partition_remove(txn, pid, false)), OSD_E_NOT_EMPTY);
	txn = test_begin(o, 0);
	OK(test_end(txn, osd_partition_remove(txn, pid, true)));
	CHECK_EQ(osd_object_read(object, 0, &byte, 1, 0, &got), OSD_E_NO_OBJECT);
	osd_object_put(object);
	CHECK_EQ(osd_object_get(o, id_of(pid, id), &object), OSD_E_NO_PARTITION);
	OK(test_partition(o, 0x30000, &pid));
	CHECK_EQ(osd_object_get(o, id_of(pid, id), &object), OSD_E_NO_OBJECT);
	txn = test_begin(o, 0);
	OK(test_end(txn, osd_partition_remove(txn, pid, false)));
	osd_objects_stats(o, &after);
	CHECK_EQ(after.used_bytes, before.used_bytes);
	CHECK_EQ(after.object_count, before.object_count);
	CHECK_EQ(after.partition_count, before.partition_count);
}

static void test_format(struct test_store *store)
{
	struct osd_objects_stats stats;
	uint64_t id;

	OK(osd_objects_format(store->objects, 0));
	osd_objects_stats(store->objects, &stats);
	CHECK_EQ(stats.partition_count, 0);
	CHECK_EQ(stats.object_count, 0);
	CHECK_EQ(stats.used_bytes, 0);
	OK(test_partition(store->objects, 0, &id));
	CHECK_EQ(id, 0x10000);
	OK(test_create(store->objects, id, 0, &id));
	CHECK_EQ(id, 0x10000);
}

static void check_same_figures(struct test_store *store)
{
	struct osd_objects_stats before, after;

	osd_objects_stats(store->objects, &before);
	test_store_reopen(store);
	osd_objects_stats(store->objects, &after);
	CHECK_EQ(after.used_bytes, before.used_bytes);
	CHECK_EQ(after.object_count, before.object_count);
	CHECK_EQ(after.partition_count, before.partition_count);
}

static void run(bool on_disk)
{
	struct test_store store;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	test_ids(&store);
	if (on_disk) {
		test_ids_after_restart(&store);
		test_highest_ids(&store);
		test_mark_of_an_earlier_version(&store);
	}
	test_highest_partition_ids(&store);
	test_abort(&store);
	test_data(&store);
	test_punch_in_steps(&store);
	test_removed_while_open(&store);
	test_creation_is_stopped(&store);
	test_listing(&store);
	test_partition_removal(&store);
	if (on_disk)
		check_same_figures(&store);
	test_format(&store);
	if (on_disk)
		check_same_figures(&store);
	test_store_release(&store);
}

int main(void)
{
	run(false);
	run(true);
	return 0;
}
