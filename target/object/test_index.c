/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_index.c -- the value index: order of its keys; the page that declares it; that it has an
 * entry for each value and no other, whatever is changed while it is built, wherever the builder
 * fails, and after a release that keeps no index had the store.  test_index_crash.c kills it. */
#include <pthread.h>
#include <stdatomic.h>

#include "object/test_index.h"

/* More than a batch of the builder (index_build.c). */
#ifdef __SANITIZE_THREAD__
#define OBJECTS 300u
#else
#define OBJECTS 600u
#endif
#define CHANGES TEST_ROUNDS(3000u)

/* ---- keys -------------------------------------------------------------------------------- */

static void test_key_order(void)
{
	static const struct {
		const char *bytes;
		size_t length;
	} values[] = {/* ascending */
		      {"\0", 1},     {"\0\0", 2},     {"\0\0\1", 3}, {"\0\1", 2}, {"\0\2", 2},
		      {"\0\xff", 2}, {"\0\xff\0", 3}, {"\1", 1},     {"\1\0", 2}, {"\1\1", 2},
		      {"a", 1},	     {"a\0", 2},      {"aa", 2},     {"\xff", 1}, {"\xff\xff", 2}};
	struct osd_place low = {1, 1, 0x10000}, high = {1, 1, UINT64_MAX};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(values); i++) {
		for (size_t j = 0; j < OSD_ARRAY_SIZE(values); j++) {
			struct osd_index_key a, b;
			int order;

			osd_index_key_entry(&high, 1, 1, (const uint8_t *)values[i].bytes,
					    values[i].length, &a);
			osd_index_key_entry(&low, 1, 1, (const uint8_t *)values[j].bytes,
					    values[j].length, &b);
			order = osd_index_key_compare(&a, &b);
			CHECK(i < j ? order < 0 : order > 0);
		}
	}
}

static void test_long_keys(void)
{
	struct osd_place place = {1, 1, 0x10000};
	struct osd_index_key exact, longer, longest;
	uint8_t zeros[100] = {0};

	osd_index_key_entry(&place, 1, 1, zeros, 64, &exact);
	osd_index_key_entry(&place, 1, 1, zeros, 65, &longer);
	osd_index_key_entry(&place, 1, 1, zeros, 100, &longest);
	CHECK_EQ(exact.length, OSD_INDEX_KEY_MAX);
	CHECK(osd_index_key_compare(&exact, &longer) < 0);
	CHECK(osd_index_key_compare(&longer, &longest) == 0);
	CHECK_EQ(osd_index_entry_object(exact.bytes, exact.length), 0x10000);
}

/* ---- the page ---------------------------------------------------------------------------- */

static enum osd_status count_one(void *arg, uint32_t page, uint32_t number, const uint8_t *value,
				 size_t length)
{
	CHECK(page == OSD_PAGE_INDEX && number && length == 1 && value[0]);
	++*(unsigned *)arg;
	return OSD_OK;
}

static unsigned declared_pages(struct osd_objects *objects, uint64_t pid)
{
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	unsigned count = 0;

	OK(osd_attr_each(txn, (struct osd_object_id){pid, 0}, OSD_PAGE_INDEX, count_one, &count));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	return count;
}

static void test_page(struct osd_objects *objects)
{
	struct osd_object_id id = {0, 0};
	uint64_t pid;

	OK(test_partition(objects, 0, &pid));
	id.partition_id = pid;
	CHECK_EQ(test_index_state(objects, pid, INDEX_PAGE), OSD_INDEX_NONE);
	OK(test_declare(objects, pid, INDEX_PAGE));
	OK(test_declare(objects, pid, INDEX_PAGE));
	test_index_wait(objects, pid, INDEX_PAGE);
	OK(test_declare(objects, pid, INDEX_PAGE));
	CHECK_EQ(test_index_state(objects, pid, INDEX_PAGE), OSD_INDEX_READY);
	OK(test_declare(objects, pid, OSD_REL_INFORMATION));
	CHECK_EQ(declared_pages(objects, pid), 2);
	OK(test_drop(objects, pid, INDEX_PAGE));
	OK(test_drop(objects, pid, INDEX_PAGE));
	CHECK_EQ(test_index_state(objects, pid, INDEX_PAGE), OSD_INDEX_NONE);
	CHECK_EQ(declared_pages(objects, pid), 1);
	/* What has no index. */
	for (uint32_t page = 0; page < 8; page++)
		if (page != OSD_REL_INFORMATION && page < 6)
			CHECK_EQ(test_declare(objects, pid, page), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_declare(objects, pid, 0x80), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_declare(objects, pid, 0x7fff), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_declare(objects, pid, OSD_PAGE_PARTITION_BASE), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(objects, id, OSD_PAGE_INDEX, INDEX_PAGE, "\2", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(objects, id, OSD_PAGE_INDEX, INDEX_PAGE, "\1\1", 2), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(objects, id, OSD_PAGE_INDEX, 0, "\1", 1), OSD_E_PARAM_FIELD);
}

static void test_too_many_pages(struct osd_objects *objects)
{
	uint64_t pid;

	OK(test_partition(objects, 0, &pid));
	for (uint32_t i = 0; i < OSD_INDEX_PAGES; i++)
		OK(test_declare(objects, pid, INDEX_PAGE + i));
	CHECK_EQ(test_declare(objects, pid, INDEX_PAGE + OSD_INDEX_PAGES), OSD_E_QUOTA);
	OK(test_declare(objects, pid, INDEX_PAGE));
	for (uint32_t i = 0; i < OSD_INDEX_PAGES; i++)
		test_index_wait(objects, pid, INDEX_PAGE + i);
}

/* One attribute, several times in a transaction. */
static enum osd_status set_several_times(struct osd_txn *txn, struct osd_object_id id)
{
	static const struct {
		uint32_t number;
		const char *value;
	} sets[] = {{1, "b"}, {1, ""}, {1, "c"}, {2, "c"}, {2, ""}};
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < OSD_ARRAY_SIZE(sets); i++)
		status = osd_attr_set(txn, id, INDEX_PAGE, sets[i].number,
				      (const uint8_t *)sets[i].value, strlen(sets[i].value));
	return status;
}

static void test_keeping(struct osd_objects *objects)
{
	struct osd_object_id id;
	enum osd_status status;
	struct osd_txn *txn;
	uint64_t pid;

	test_fill_indexed(objects, &pid, OBJECTS);
	OK(test_declare(objects, pid, INDEX_PAGE));
	test_index_wait(objects, pid, INDEX_PAGE);
	test_check_entries(objects, pid);
	CHECK_EQ(test_count_entries(objects, pid), OBJECTS + OBJECTS / 3);
	id = (struct osd_object_id){pid, OSD_FIRST_ID};
	do {
		txn = test_begin(objects, 0);
		status = test_end(txn, set_several_times(txn, id));
	} while (status == OSD_E_CONFLICT);
	OK(status);
	test_check_entries(objects, pid);
	/* An aborted one changes nothing. */
	txn = test_begin(objects, 0);
	status = osd_attr_set(txn, id, INDEX_PAGE, 1, (const uint8_t *)"d", 1);
	osd_txn_abort(txn);
	CHECK(status == OSD_OK || status == OSD_E_CONFLICT);
	test_check_entries(objects, pid);
	OK(test_remove(objects, id));
	test_check_entries(objects, pid);
	OK(test_drop(objects, pid, INDEX_PAGE));
	for (int i = 0; i < 20000 && test_count_entries(objects, pid); i++)
		usleep(1000);
	CHECK_EQ(test_count_entries(objects, pid), 0);
}

/* REMOVE PARTITION and FORMAT OSD leave no entry behind. */
static void test_reaping(struct osd_objects *objects)
{
	uint64_t pid, other;

	test_fill_indexed(objects, &pid, 50);
	OK(test_declare(objects, pid, INDEX_PAGE));
	test_index_wait(objects, pid, INDEX_PAGE);
	OK(test_remove_partition(objects, pid));
	test_fill_indexed(objects, &other, 50);
	OK(test_declare(objects, other, INDEX_PAGE));
	OK(osd_objects_format(objects, 0));
	for (int i = 0;
	     i < 20000 && (test_count_entries(objects, pid) || test_count_entries(objects, other));
	     i++)
		usleep(1000);
	CHECK_EQ(test_count_entries(objects, pid) + test_count_entries(objects, other), 0);
}

/* ---- changes while it is built ----------------------------------------------------------- */

struct changer {
	pthread_t thread;
	struct osd_objects *objects;
	uint64_t pid, seed;
};

static enum osd_status change_one(struct osd_txn *txn, const struct changer *changer,
				  uint64_t random)
{
	struct osd_object_id id = {changer->pid, OSD_FIRST_ID + random % OBJECTS};
	uint8_t bytes[70] = {0};
	size_t length = 1 + (random >> 16) % sizeof(bytes);

	bytes[length - 1] = (uint8_t)(random >> 24);
	if (random % 11 == 0)
		return osd_user_object_remove(txn, id);
	return osd_attr_set(txn, id, INDEX_PAGE, 1 + (random >> 32) % 2, bytes,
			    random % 7 ? length : 0);
}

static void *run_changer(void *arg)
{
	struct changer *changer = arg;

	for (unsigned i = 0; i < CHANGES; i++) {
		enum osd_status status;

		changer->seed ^= changer->seed << 13;
		changer->seed ^= changer->seed >> 7;
		changer->seed ^= changer->seed << 17;
		do {
			struct osd_txn *txn = test_begin(changer->objects, 0);

			status = test_end(txn, change_one(txn, changer, changer->seed));
		} while (status == OSD_E_CONFLICT);
		CHECK(status == OSD_OK || status == OSD_E_NO_OBJECT);
	}
	return NULL;
}

/* To and fro in the range that is searched. */
static atomic_bool stop;

static void *run_mover(void *arg)
{
	const struct changer *changer = arg;
	struct osd_object_id id = {changer->pid, OSD_FIRST_ID + OBJECTS + 1};

	for (unsigned i = 0; !atomic_load(&stop); i++) {
		enum osd_status status = test_set(changer->objects, id, INDEX_PAGE, 1,
						  i % 2 ? "x" : "zzz", i % 2 ? 1 : 3);

		CHECK(status == OSD_OK || status == OSD_E_CONFLICT);
	}
	return NULL;
}

/* A value that is always in the range is always found. */
static void check_always_found(struct osd_objects *objects, uint64_t pid)
{
	struct osd_object_id id = {pid, OSD_FIRST_ID + OBJECTS + 1};
	struct osd_criterion criterion = {INDEX_PAGE, 1, (const uint8_t *)"x", NULL, 1, 0};
	struct osd_query query = {.collection = {pid, OSD_OBJECTS_COLLECTION},
				  .criteria = &criterion,
				  .count = 1,
				  .initial_id = id.object_id};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;
	enum osd_status status = osd_query(txn, &query, NULL, 0, &result);

	if (test_end(txn, status) == OSD_OK)
		CHECK_EQ(result.total_count, 1);
	else
		CHECK_EQ(status, OSD_E_CONFLICT);
}

static void test_concurrent(struct osd_objects *objects)
{
	struct changer changers[2];
	struct osd_object_id id;
	pthread_t mover;
	uint64_t pid;

	test_fill_indexed(objects, &pid, OBJECTS);
	id = (struct osd_object_id){pid, OSD_FIRST_ID + OBJECTS + 1};
	OK(test_create(objects, pid, id.object_id, &id.object_id));
	OK(test_set(objects, id, INDEX_PAGE, 1, "x", 1));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(changers); i++) {
		changers[i] = (struct changer){.objects = objects, .pid = pid, .seed = 77 + i};
		CHECK(pthread_create(&changers[i].thread, NULL, run_changer, &changers[i]) == 0);
	}
	atomic_store(&stop, false);
	CHECK(pthread_create(&mover, NULL, run_mover, &changers[0]) == 0);
	for (unsigned i = 0; i < 60; i++) {
		OK(test_declare(objects, pid, INDEX_PAGE));
		for (unsigned j = 0; j < 20; j++) {
			check_always_found(objects, pid);
		}
		if (i % 4 == 0)
			OK(test_drop(objects, pid, INDEX_PAGE));
	}
	for (size_t i = 0; i < OSD_ARRAY_SIZE(changers); i++)
		pthread_join(changers[i].thread, NULL);
	atomic_store(&stop, true);
	pthread_join(mover, NULL);
	OK(test_declare(objects, pid, INDEX_PAGE));
	test_index_wait(objects, pid, INDEX_PAGE);
	test_check_entries(objects, pid);
}

/* ---- the builder fails -------------------------------------------------------------------- */

/* A failing call delays it until the builder looks again. */
static void fail_once(uint64_t n)
{
	struct osd_partition *partition;
	struct osd_fault_plan *plan;
	struct test_store store;
	uint64_t pid;

	test_store_init(&store, false);
	store.faults.fault_at = UINT64_MAX;
	test_store_open(&store);
	plan = store.objects->faults;
	test_fill_indexed(store.objects, &pid, OBJECTS);
	OK(osd_partition_get(store.objects, NULL, pid, &partition));
	OK(test_declare(store.objects, pid, INDEX_PAGE));
	atomic_store(&plan->fail_at, atomic_load(&plan->calls) + n);
	while (atomic_load(&plan->calls) < atomic_load(&plan->fail_at) &&
	       osd_index_stage_of(partition, INDEX_PAGE) != OSD_INDEX_DONE)
		usleep(100);
	while (osd_index_stage_of(partition, INDEX_PAGE) != OSD_INDEX_DONE) {
		osd_kick_indexer(store.objects);
		usleep(100);
	}
	atomic_store(&plan->fail_at, 0);
	test_check_entries(store.objects, pid);
	osd_partition_put(partition);
	test_store_release(&store);
}

static void test_failing(void)
{
	for (uint64_t n = 1; n < 1000; n += n < TEST_ROUNDS(40) ? 1 : 131)
		fail_once(n);
}

/* ---- a release without indexes ----------------------------------------------------------- */

static void test_older_release(void)
{
	struct osd_key boot = osd_key_meta(OSD_META_INDEX_BOOT);
	struct test_store store;
	struct osd_kv_txn *kv;
	uint8_t bytes[4];
	uint64_t pid;

	test_store_init(&store, true);
	test_store_open(&store);
	test_fill_indexed(store.objects, &pid, 20);
	OK(test_declare(store.objects, pid, INDEX_PAGE));
	test_index_wait(store.objects, pid, INDEX_PAGE);
	/* As if it had opened the store, and set an attribute. */
	osd_put_be(bytes, 7777, 4);
	OK(osd_own_begin(store.objects, OSD_KV_CHANGE, &kv));
	OK(osd_kv_put(kv, OSD_KV_META, osd_key_bytes(&boot), (struct osd_bytes){bytes, 4}, 0));
	OK(osd_own_commit(store.objects, kv, false));
	OK(osd_clear_prefix(store.objects, OSD_KV_INDEX, (struct osd_bytes){"", 0}));
	test_store_reopen(&store);
	test_index_wait(store.objects, pid, INDEX_PAGE);
	test_check_entries(store.objects, pid);
	CHECK(test_count_entries(store.objects, pid) > 0);
	test_store_release(&store);
}

/* The store of an earlier release has no index.db. */
static void test_absent_database(void)
{
	struct test_store store;
	char path[128];
	uint64_t pid;

	test_store_init(&store, true);
	test_store_open(&store);
	test_fill_indexed(store.objects, &pid, 20);
	osd_objects_close(store.objects);
	snprintf(path, sizeof(path), "%s/db/index.db", store.directory);
	CHECK(unlink(path) == 0);
	test_store_open(&store);
	OK(test_declare(store.objects, pid, INDEX_PAGE));
	test_index_wait(store.objects, pid, INDEX_PAGE);
	test_check_entries(store.objects, pid);
	test_store_release(&store);
}

static void test(bool on_disk)
{
	struct test_store store;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	test_page(store.objects);
	test_too_many_pages(store.objects);
	test_keeping(store.objects);
	test_concurrent(store.objects);
	test_reaping(store.objects);
	test_store_release(&store);
}

int main(void)
{
	test_key_order();
	test_long_keys();
	test(false);
	test(true);
	test_failing();
	test_older_release();
	test_absent_database();
	return 0;
}
