/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_apart.c -- objects of jobs that stand apart: their ids, and that no list, count or quota of the
 * partition's data has them; on both stores, and after closing and opening again. */
#include "object/internal.h"
#include "object/test_support.h"

#define PID	 UINT64_C(0x10000)
#define MANY	 100u
#define CAPACITY 0x10001u /* of the quotas page */
#define COUNT	 0x10002u

static struct osd_object_id id_of(uint64_t object_id)
{
	return (struct osd_object_id){PID, object_id};
}

static uint64_t surrogates(struct osd_objects *objects, uint32_t count)
{
	struct osd_txn *txn = test_begin(objects, OSD_TXN_INTERNAL);
	uint64_t first;

	OK(test_end(txn, osd_surrogates_create(txn, PID, OSD_JOB_APART, 0, count, &first)));
	return first;
}

static uint64_t companion(struct osd_objects *objects, uint64_t job)
{
	struct osd_txn *txn = test_begin(objects, OSD_TXN_INTERNAL);
	uint64_t id;

	OK(test_end(txn, osd_companion_create(txn, id_of(job), &id)));
	return id;
}

static uint64_t charged(struct osd_objects *objects, uint32_t number)
{
	return test_get_number(objects, id_of(0), OSD_PAGE_CHARGED, number);
}

static uint64_t counted(struct osd_objects *objects)
{
	return test_get_number(objects, id_of(0), OSD_PAGE_PARTITION_BASE | OSD_REL_INFORMATION,
			       0xc1);
}

static void set_quota(struct osd_objects *objects, uint32_t number, uint64_t limit)
{
	OK(test_set_number(objects, id_of(0), OSD_PAGE_PARTITION_BASE | OSD_REL_QUOTAS, number,
			   limit, 8));
}

static bool is_job_id(uint64_t id)
{
	return id >= OSD_JOB_IDS_FIRST && id <= OSD_JOB_IDS_LAST;
}

/* Both by the partition and by the collection of all its user objects. */
static void check_listed(struct osd_objects *objects, const uint64_t *wanted, size_t count)
{
	const struct osd_list_request requests[] = {
		{OSD_LIST_USER_OBJECTS, id_of(0), 0},
		{OSD_LIST_MEMBERS, id_of(OSD_OBJECTS_COLLECTION), 0},
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(requests); i++) {
		struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
		struct osd_list_result result;
		uint64_t ids[8];

		OK(osd_list(txn, &requests[i], ids, OSD_ARRAY_SIZE(ids), &result));
		CHECK_EQ(result.count, count);
		CHECK_EQ(result.total_count, count);
		CHECK_EQ(result.next_id, 0);
		CHECK(memcmp(ids, wanted, count * sizeof(ids[0])) == 0);
		/* A page that ends with the last object of the data is the last page. */
		OK(osd_list(txn, &requests[i], ids, count, &result));
		CHECK_EQ(result.next_id, 0);
		osd_txn_abort(txn);
	}
}

static void check_found(struct osd_objects *objects, const uint64_t *wanted, size_t count)
{
	const struct osd_criterion seen = {
		.page = 0x10000, .number = 1, .min = (const uint8_t *)"v", .min_length = 1};
	struct osd_query query = {
		.collection = id_of(OSD_OBJECTS_COLLECTION), .criteria = &seen, .count = 1};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;
	uint64_t ids[8];

	OK(osd_query(txn, &query, ids, OSD_ARRAY_SIZE(ids), &result));
	osd_txn_abort(txn);
	CHECK_EQ(result.count, count);
	CHECK(memcmp(ids, wanted, count * sizeof(ids[0])) == 0);
}

static void check_all(struct osd_objects *objects, const uint64_t *data, size_t count, uint64_t apart)
{
	struct osd_check_result result;

	check_listed(objects, data, count);
	check_found(objects, data, count);
	CHECK_EQ(counted(objects), count);
	CHECK_EQ(charged(objects, 5), apart);
	OK(osd_objects_check(objects, PID, NULL, NULL, &result));
	CHECK_EQ(result.objects + result.containers, 0);
}

/* A client may have asked for ids between those of jobs: they are data. */
static void test_lists_and_counts(struct test_store *store, uint64_t job)
{
	struct osd_objects *o = store->objects;
	uint64_t data[4], long_result = companion(o, job);

	CHECK(is_job_id(job) && is_job_id(long_result));
	OK(test_create(o, PID, 0, &data[0]));
	CHECK_EQ(data[0], 0x10000);
	OK(test_create(o, PID, OSD_JOB_IDS_FIRST, &data[1]));
	OK(test_create(o, PID, long_result + 1, &data[2]));
	OK(test_create(o, PID, OSD_JOB_IDS_LAST + 1, &data[3]));
	CHECK_EQ(companion(o, job), long_result + 2);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(data); i++)
		OK(test_set(o, id_of(data[i]), 0x10000, 1, "v", 1));
	OK(test_set(o, id_of(long_result), 0x10000, 1, "v", 1));
	check_all(o, data, 4, MANY + 2);
	OK(test_declare(o, PID, 0x10000));
	test_index_wait(o, PID, 0x10000);
	check_all(o, data, 4, MANY + 2);
	if (store->directory[0])
		test_store_reopen(store);
	check_all(store->objects, data, 4, MANY + 2);
	OK(test_remove(store->objects, id_of(long_result)));
	check_all(store->objects, data, 4, MANY + 1);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(data); i++)
		OK(test_remove(store->objects, id_of(data[i])));
	check_all(store->objects, data, 0, MANY + 1);
}

/* The data's quotas are the data's; jobs have as much space again, or 256 MiB if that is more. */
static void test_quotas(struct osd_objects *o, uint64_t job)
{
	const uint64_t most = UINT64_C(256) << 20;
	uint64_t data, before = charged(o, 4);

	set_quota(o, COUNT, 1);
	set_quota(o, CAPACITY, 1000);
	CHECK(is_job_id(surrogates(o, 10)));
	OK(test_create(o, PID, 0, &data));
	CHECK_EQ(test_create(o, PID, 0, &data), OSD_E_QUOTA);
	OK(test_write(o, id_of(job), most - before - 1, "x", 1));
	CHECK_EQ(test_write(o, id_of(job), most - before, "x", 1), OSD_E_QUOTA);
	CHECK_EQ(charged(o, 4), most);
	CHECK_EQ(charged(o, 1), 0);
	CHECK_EQ(test_get_number(o, id_of(0), OSD_PAGE_PARTITION_BASE | OSD_REL_INFORMATION, 0x81), 0);
	OK(test_write(o, id_of(data), 999, "x", 1));
	CHECK_EQ(test_write(o, id_of(data), 1000, "x", 1), OSD_E_QUOTA);
	set_quota(o, CAPACITY, most + 2);
	OK(test_write(o, id_of(job), most - before + 1, "x", 1));
	CHECK_EQ(test_write(o, id_of(job), most - before + 2, "x", 1), OSD_E_QUOTA);
	OK(test_remove(o, id_of(data)));
}

/* No id comes twice, not even that of the last job before the store was opened again. */
static void test_ids(struct test_store *store, uint64_t last)
{
	uint64_t next;

	OK(test_remove(store->objects, id_of(last)));
	test_store_reopen(store);
	next = surrogates(store->objects, 1);
	CHECK(next > last && is_job_id(next));
}

/* To a client it is empty. */
static void test_removal(struct osd_objects *o)
{
	struct osd_txn *txn = test_begin(o, 0);
	struct osd_objects_stats stats;

	OK(test_end(txn, osd_partition_remove(txn, PID, false)));
	osd_objects_stats(o, &stats);
	CHECK_EQ(stats.object_count, 0);
	CHECK_EQ(stats.used_bytes, 0);
}

static void test_all(bool on_disk)
{
	struct test_store store;
	uint64_t pid, first;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	CHECK_EQ(pid, PID);
	first = surrogates(store.objects, MANY);
	test_lists_and_counts(&store, first);
	test_quotas(store.objects, first);
	if (on_disk)
		test_ids(&store, surrogates(store.objects, 1));
	test_removal(store.objects);
	test_store_release(&store);
}

int main(void)
{
	test_all(false);
	test_all(true);
	return 0;
}
