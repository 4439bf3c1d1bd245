/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_attributes.c -- attributes, quotas, collections, page forms and providers, on both stores.
 */
#include "object/due.h"
#include "object/page_provider.h"
#include "object/test_support.h"

#define PID UINT64_C(0x10000)

static struct osd_object_id id_of(uint64_t partition_id, uint64_t object_id)
{
	return (struct osd_object_id){partition_id, object_id};
}

static const struct osd_object_id root;

static void check_text(struct osd_objects *o, struct osd_object_id id, uint32_t page,
		       uint32_t number, const char *wanted, size_t length)
{
	uint8_t value[256];
	size_t got = test_get(o, id, page, number, value, sizeof(value));

	CHECK_BYTES(value, got, wanted, length);
}

/* ---- application pages ------------------------------------------------------------------- */

static void test_own_pages(struct test_store *store, struct osd_object_id id)
{
	struct osd_objects *o = store->objects;
	static uint8_t large[OSD_ATTRIBUTE_MAX + 1], back[OSD_ATTRIBUTE_MAX];

	OK(test_set(o, id, 0x10003, 1, "inode", 5));
	check_text(o, id, 0x10003, 1, "inode", 5);
	check_text(o, id, 0x10003, 0, "        unidentified attributes page\0\0\0\0", 40);
	OK(test_set(o, id, 0x10003, 0, "V       name", 13));
	check_text(o, id, 0x10003, 0,
		   "V       name\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 40);
	CHECK_EQ(test_set(o, id, 0x10003, 0, "no end of text", 14), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_get(o, id, 0x10003, 7, back, sizeof(back)), 0);
	memset(large, 'x', sizeof(large));
	CHECK_EQ(test_set(o, id, 0x10003, 2, large, sizeof(large)), OSD_E_PARAM_FIELD);
	OK(test_set(o, id, 0x10003, 2, large, OSD_ATTRIBUTE_MAX));
	CHECK_EQ(test_get(o, id, 0x10003, 2, back, sizeof(back)), OSD_ATTRIBUTE_MAX);
	/* The true length comes back also when the buffer is small. */
	CHECK_EQ(test_get(o, id, 0x10003, 2, back, 10), OSD_ATTRIBUTE_MAX);
	OK(test_set(o, id, 0x10003, 2, "", 0));
	CHECK_EQ(test_get(o, id, 0x10003, 2, back, sizeof(back)), 0);
	OK(test_set(o, id, 0xa, 1, "listing 1", 9)); /* an unassigned page: the application's */
	OK(test_set(o, id, 0xf0000001, 1, "any", 3));
	CHECK_EQ(test_set(o, id, 0x80, 1, "x", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(o, id, 0x8000, 1, "x", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(o, id, 0x20000009, 1, "x", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(o, id, 0x30010000, 1, "x", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(o, id, 0xc0000000, 1, "x", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(o, id, 0xfffffffe, 1, "x", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(o, id, 0x10003, OSD_NUMBER_ALL, "x", 1), OSD_E_PARAM_FIELD);
}

struct seen {
	uint32_t pages[256], numbers[256];
	size_t count;
};

static enum osd_status see(void *arg, uint32_t page, uint32_t number, const uint8_t *value,
			   size_t length)
{
	struct seen *seen = arg;

	(void)value;
	CHECK(length > 0);
	CHECK(seen->count == 0 || page > seen->pages[seen->count - 1] ||
	      (page == seen->pages[seen->count - 1] && number > seen->numbers[seen->count - 1]));
	CHECK(seen->count < 256);
	seen->pages[seen->count] = page;
	seen->numbers[seen->count++] = number;
	return OSD_OK;
}

static bool has_seen(const struct seen *seen, uint32_t page, uint32_t number)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->pages[i] == page && seen->numbers[i] == number)
			return true;
	return false;
}

static void test_walk(struct test_store *store, struct osd_object_id id)
{
	struct osd_txn *txn = test_begin(store->objects, OSD_TXN_READ_ONLY);
	struct seen seen = {.count = 0};

	OK(osd_attr_each(txn, id, OSD_PAGE_ALL, see, &seen));
	CHECK(has_seen(&seen, 0, 0x10003));
	CHECK(has_seen(&seen, 1, 0x82));
	CHECK(has_seen(&seen, 2, 1));
	CHECK(has_seen(&seen, 3, 5));
	CHECK(has_seen(&seen, 5, 0x40000001));
	CHECK(has_seen(&seen, 0xa, 1));
	CHECK(has_seen(&seen, 0x10003, 0));
	CHECK(has_seen(&seen, 0xf0000001, 1));
	seen.count = 0;
	OK(osd_attr_each(txn, id, 0x10003, see, &seen));
	CHECK_EQ(seen.count, 2);
	seen.count = 0;
	OK(osd_attr_each(txn, root, OSD_PAGE_ALL, see, &seen));
	CHECK(has_seen(&seen, 0x90000001, 0xc0));
	osd_txn_abort(txn);
}

/* ---- standard pages ---------------------------------------------------------------------- */

static void test_information(struct test_store *store, struct osd_object_id id)
{
	struct osd_objects *o = store->objects;
	struct osd_object_id partition = id_of(PID, 0);
	static const uint32_t linux_reads[] = {4, 5, 6, 7, 9, 0x80, 0x81, 0xc0, 0x100, 3};
	static const size_t lengths[] = {8, 16, 32, 4, 4, 8, 8, 8, 6, 20};
	uint8_t value[64];

	OK(test_set(o, root, 0x90000001, 9, "name", 4));
	for (size_t i = 0; i < 10; i++)
		CHECK_EQ(test_get(o, root, 0x90000001, linux_reads[i], value, sizeof(value)),
			 lengths[i]);
	CHECK(test_get(o, root, 0x90000001, 8, value, sizeof(value)) <= 64);
	CHECK_EQ(test_set(o, root, 0x90000001, 4, "x", 1), OSD_E_PARAM_FIELD);
	check_text(o, root, 0x90000001, 0, "INCITS  T10 Root Information\0\0\0\0\0\0\0\0\0\0\0\0",
		   40);
	check_text(o, id, 0, 1, "INCITS  T10 User Object Information\0\0\0\0\0", 40);
	CHECK_EQ(test_get_number(o, partition, 0x30000001, 1), PID);
	CHECK_EQ(test_get_number(o, id, 1, 1), PID);
	CHECK_EQ(test_get_number(o, id, 1, 2), id.object_id);
	CHECK_EQ(test_get(o, id, 1, 0x777, value, sizeof(value)), 0);
	OK(test_set(o, id, 1, 9, "user name", 9));
	check_text(o, id, 1, 9, "user name", 9);
}

static void test_logical_length(struct test_store *store, struct osd_object_id id)
{
	struct osd_objects *o = store->objects;
	struct osd_txn *txn;
	uint8_t data[64] = "0123456789", value[8];
	size_t length;

	OK(test_write(o, id, 0, data, 10));
	OK(test_set_number(o, id, 1, 0x82, 4, 8));
	CHECK_EQ(test_read(o, id, 0, data, 64), 4);
	txn = test_begin(o, 0);
	osd_put_be(value, 20, 8);
	OK(osd_attr_set(txn, id, 1, 0x82, value, 8));
	OK(osd_attr_get(txn, id, 1, 0x82, value, 8, &length));
	CHECK_EQ(osd_get_be(value, 8), 20);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	CHECK_EQ(test_read(o, id, 0, data, 64), 20);
	CHECK_BYTES(data, 6, "0123\0\0", 6);
	CHECK_EQ(test_get_number(o, id, 1, 0x81), 20);
	CHECK_EQ(test_set_number(o, id, 1, 0x82, 4, 4), OSD_E_PARAM_FIELD);
}

static void test_times(struct test_store *store, struct osd_object_id id)
{
	struct osd_objects *o = store->objects;
	uint64_t created = test_get_number(o, id, 3, OSD_TIME_CREATED);
	uint8_t form[64], byte = 0;
	struct osd_txn *txn;
	size_t length;

	CHECK(created > UINT64_C(1600000000000));
	OK(test_write(o, id, 0, &byte, 1));
	CHECK(test_get_number(o, id, 3, OSD_TIME_DATA_MODIFIED) >= created);
	CHECK(test_get_number(o, id, 3, OSD_TIME_ATTR_ACCESSED) >= created);
	CHECK_EQ(test_set_number(o, id, 3, OSD_TIME_CREATED, 1, 6), OSD_E_PARAM_FIELD);
	txn = test_begin(o, OSD_TXN_READ_ONLY);
	OK(osd_attr_page_form(txn, id, 3, form, sizeof(form), &length));
	CHECK_EQ(length, 8 + 0x1e);
	CHECK_EQ(osd_get_be(form, 8), UINT64_C(0x000000030000001e));
	CHECK_EQ(osd_get_be(form + 8, 6), created);
	OK(osd_attr_page_form(txn, id_of(PID, 0), 0x30000003, form, sizeof(form), &length));
	CHECK_EQ(length, 8 + 0x1f);
	OK(osd_attr_page_form(txn, root, 0x90000002, form, sizeof(form), &length));
	CHECK_EQ(length, 8 + 0x24);
	OK(osd_attr_page_form(txn, id, 0x10003, form, sizeof(form), &length));
	CHECK_EQ(length, 8);
	OK(osd_attr_page_form(txn, id_of(PID, 0), 0x30000005, form, sizeof(form), &length));
	CHECK_EQ(length, 8 + 0x96);
	OK(osd_attr_page_form(txn, root, 0x90000005, form, sizeof(form), &length));
	CHECK_EQ(length, 8 + 0x42);
	osd_txn_abort(txn);
}

/* ---- quotas ------------------------------------------------------------------------------ */

static void test_quotas(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	static uint8_t data[8192];
	struct osd_object_id partition, object, other;
	struct osd_object *open;
	uint64_t pid, id;

	OK(test_partition(o, 0, &pid));
	partition = id_of(pid, 0);
	OK(test_create(o, pid, 0, &id));
	object = id_of(pid, id);
	OK(test_create(o, pid, 0, &id));
	other = id_of(pid, id);
	OK(test_set_number(o, partition, 0x30000002, 0x10001, 8192, 8));
	OK(test_write(o, object, 0, data, 4096));
	OK(test_write(o, other, 0, data, 4096));
	CHECK_EQ(test_write(o, object, 4096, data, 1), OSD_E_QUOTA);
	CHECK_EQ(test_set_number(o, object, 1, 0x82, 4097, 8), OSD_E_QUOTA);
	OK(osd_object_get(o, object, &open));
	OK(test_append(open, data, 1, OSD_DATA_RESERVE, &id));
	CHECK_EQ(osd_object_write(open, OSD_JOB_RESERVE_BYTES, data, 1, OSD_DATA_RESERVE),
		 OSD_E_QUOTA);
	osd_object_put(open);
	OK(test_set_number(o, object, 1, 0x82, 0, 8));
	CHECK_EQ(test_get_number(o, partition, 0x30000001, 0x81), 4096);
	OK(test_write(o, other, 4096, data, 4096));
	OK(test_remove(o, other));
	CHECK_EQ(test_get_number(o, partition, 0x30000001, 0x81), 0);
	OK(test_set_number(o, object, 2, 1, 100, 8));
	OK(test_write(o, object, 0, data, 100));
	CHECK_EQ(test_write(o, object, 1, data, 100), OSD_E_QUOTA);
	OK(test_set_number(o, partition, 0x30000002, 0x10002, 1, 8));
	CHECK_EQ(test_create(o, pid, 0, &id), OSD_E_QUOTA);
	OK(test_set_number(o, partition, 0x30000002, 0x10002, 2, 8));
	OK(test_create(o, pid, 0, &id));
	CHECK_EQ(test_get_number(o, partition, 0x30000001, 0xc1), 2);
	OK(test_set_number(o, root, 0x90000002, 0x20002, 2, 8));
	CHECK_EQ(test_partition(o, 0, &id), OSD_E_QUOTA);
	OK(test_set_number(o, root, 0x90000002, 0x20002, UINT64_MAX, 8));
}

/* ---- collections ------------------------------------------------------------------------- */

static enum osd_status make_collection(struct osd_objects *o, enum osd_collection_type type,
				       uint64_t *ret_id)
{
	struct osd_txn *txn = test_begin(o, 0);

	return test_end(txn, osd_collection_create(txn, PID, 0, type, ret_id));
}

static bool is_member(struct osd_objects *o, uint64_t collection, uint64_t member)
{
	struct osd_txn *txn = test_begin(o, OSD_TXN_READ_ONLY);
	bool has;

	OK(osd_collection_has(txn, id_of(PID, collection), member, &has));
	osd_txn_abort(txn);
	return has;
}

static void test_collections(struct test_store *store, struct osd_object_id id)
{
	struct osd_objects *o = store->objects;
	uint64_t a, b, tracking, jobs;
	uint8_t form[64];
	struct osd_txn *txn;
	size_t length;

	OK(make_collection(o, OSD_COLLECTION_LINKED, &a));
	OK(make_collection(o, OSD_COLLECTION_LINKED, &b));
	OK(make_collection(o, OSD_COLLECTION_TRACKING, &tracking));
	OK(test_set_number(o, id, 4, 1, a, 8));
	CHECK(is_member(o, a, id.object_id));
	CHECK_EQ(test_set_number(o, id, 4, 2, a, 8), OSD_E_PARAM_FIELD);
	OK(test_set_number(o, id, 4, 1, b, 8));
	CHECK(!is_member(o, a, id.object_id));
	CHECK(is_member(o, b, id.object_id));
	OK(test_set_number(o, id, 4, 7, a, 8));
	CHECK_EQ(test_set_number(o, id, 4, 3, tracking, 8), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set_number(o, id, 4, 3, 0x999999, 8), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set_number(o, id, 4, 3, a, 4), OSD_E_PARAM_FIELD);
	txn = test_begin(o, OSD_TXN_READ_ONLY);
	OK(osd_attr_page_form(txn, id, 4, form, sizeof(form), &length));
	CHECK_EQ(length, 24);
	CHECK_EQ(osd_get_be(form + 8, 8), b);
	CHECK_EQ(osd_get_be(form + 16, 8), a);
	osd_txn_abort(txn);
	OK(test_set(o, id, 4, 7, "", 0));
	CHECK(!is_member(o, a, id.object_id));
	txn = test_begin(o, 0);
	CHECK_EQ(test_end(txn, osd_collection_remove(txn, id_of(PID, b), false)), OSD_E_NOT_EMPTY);
	txn = test_begin(o, 0);
	OK(test_end(txn, osd_collection_remove(txn, id_of(PID, b), true)));
	CHECK_EQ(test_get(o, id, 4, 1, form, sizeof(form)), 0);
	OK(test_set_number(o, id_of(PID, 0), 0x30000002, 0x10081, 0, 4));
	CHECK_EQ(test_set_number(o, id, 4, 1, a, 8), OSD_E_QUOTA);
	OK(test_set_number(o, id_of(PID, 0), 0x30000002, 0x10081, UINT32_MAX, 4));

	txn = test_begin(o, OSD_TXN_INTERNAL);
	OK(osd_collection_create(txn, PID, OSD_JOBS_COLLECTION, OSD_COLLECTION_TRACKING, &jobs));
	CHECK_EQ(osd_collection_create(txn, PID, OSD_JOBS_COLLECTION, OSD_COLLECTION_TRACKING,
				       &jobs),
		 OSD_E_EXISTS);
	OK(osd_collection_add(txn, id_of(PID, jobs), id.object_id));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	CHECK_EQ(test_get_number(o, id_of(PID, jobs), 0x60000004, 0x10), 1);
	CHECK_EQ(test_get_number(o, id_of(PID, jobs), 0x60000001, 0xa), OSD_COLLECTION_TRACKING);
	txn = test_begin(o, OSD_TXN_INTERNAL);
	OK(osd_surrogate_mark(txn, id, true));
	OK(osd_collection_drop(txn, id_of(PID, jobs), id.object_id));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	CHECK(!is_member(o, jobs, id.object_id));
}

/* ---- providers and records --------------------------------------------------------------- */

static unsigned views;

static enum osd_status provider_status;
static unsigned provider_calls;

static enum osd_status provider_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				    uint32_t page, uint32_t number, uint8_t *buffer,
				    size_t capacity, size_t *ret_length)
{
	(void)context, (void)id, (void)page;
	provider_calls++;
	if (!osd_txn_kept(txn)) {
		osd_txn_keep(txn, malloc(1));
		views++;
	}
	*ret_length = number == 1 && capacity ? 1 : 0;
	if (*ret_length)
		buffer[0] = 42;
	return provider_status;
}

static const struct osd_page_provider provider = {.page = OSD_PAGE_JOB_STATUS,
						  .page_name = "job status",
						  .get = provider_get,
						  .last = 1,
						  .vouches = true};

static void test_provider(struct test_store *store, struct osd_object_id id)
{
	struct osd_objects *o = store->objects;

	CHECK_EQ(test_get_number(o, id, OSD_PAGE_JOB_STATUS, 1), 42);
	CHECK_EQ(test_set(o, id, OSD_PAGE_JOB_STATUS, 1, "x", 1), OSD_E_PARAM_FIELD);
	check_text(o, id, OSD_PAGE_JOB_STATUS, 0,
		   "IOSD    job status\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 40);
}

/* All that one command reads of it is of one moment, whichever attributes are not there. */
static void test_one_view(struct test_store *store, struct osd_object_id id)
{
	struct osd_txn *txn = test_begin(store->objects, OSD_TXN_READ_ONLY);
	unsigned before = views;
	uint8_t value[8];
	size_t length;

	for (uint32_t number = 1; number <= 3; number++) {
		OK(osd_attr_get(txn, id, OSD_PAGE_JOB_STATUS, number, value, 8, &length));
		CHECK_EQ(length, number == 1);
	}
	osd_txn_abort(txn);
	CHECK_EQ(views - before, 1);
}

/* It is not that of an object without values, which would be asked for anew. */
static void test_failure_of_a_provider(struct test_store *store, struct osd_object_id id)
{
	struct osd_txn *txn = test_begin(store->objects, OSD_TXN_READ_ONLY);
	uint8_t value[8];
	size_t length;

	provider_status = OSD_E_CONFLICT;
	provider_calls = 0;
	CHECK_EQ(osd_attr_get(txn, id, OSD_PAGE_JOB_STATUS, 2, value, 8, &length), OSD_E_CONFLICT);
	CHECK_EQ(provider_calls, 1);
	provider_status = OSD_OK;
	osd_txn_abort(txn);
}

static bool count_record(void *arg, const uint8_t *key, size_t key_length, const uint8_t *value,
			 size_t length)
{
	(void)key, (void)key_length, (void)value, (void)length;
	++*(unsigned *)arg;
	return true;
}

static void test_records(struct test_store *store)
{
	struct osd_txn *txn = test_begin(store->objects, 0);
	static char large[100000];
	char back[8];
	unsigned count = 0;
	size_t length;

	CHECK_EQ(osd_txn_record_get(txn, OSD_TABLE_JOBS, "a", 1, back, 8, &length),
		 OSD_E_NO_OBJECT);
	OK(osd_txn_record_put(txn, OSD_TABLE_JOBS, "a", 1, "one", 3));
	OK(osd_txn_record_put(txn, OSD_TABLE_JOBS, "b", 1, large, sizeof(large)));
	OK(osd_txn_record_get(txn, OSD_TABLE_JOBS, "b", 1, back, 8, &length));
	CHECK_EQ(length, sizeof(large));
	OK(osd_txn_record_each(txn, OSD_TABLE_JOBS, "", 0, count_record, &count));
	CHECK_EQ(count, 2);
	OK(osd_txn_record_each(txn, OSD_TABLE_JOBS, "b", 1, count_record, &count));
	CHECK_EQ(count, 3);
	OK(osd_txn_record_delete(txn, OSD_TABLE_JOBS, "b", 1));
	OK(osd_txn_commit(txn, OSD_COMMIT_DURABLE));
	txn = test_begin(store->objects, OSD_TXN_READ_ONLY);
	CHECK_EQ(osd_txn_record_get(txn, OSD_TABLE_JOB_KEYS, "a", 1, back, 8, &length),
		 OSD_E_NO_OBJECT);
	OK(osd_txn_record_get(txn, OSD_TABLE_JOBS, "a", 1, back, 8, &length));
	CHECK_BYTES(back, length, "one", 3);
	osd_txn_abort(txn);
}

/* A created object's attributes can be set and read before it is committed, and go with it. */
static void test_create_and_set(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	struct osd_txn *txn = test_begin(o, 0);
	struct osd_object *object;
	uint8_t value[8] = {0};
	uint64_t id;
	size_t length;

	OK(osd_user_object_create(txn, PID, 0, 1, &id));
	OK(osd_attr_set(txn, id_of(PID, id), 0x10000, 1, (const uint8_t *)"v", 1));
	OK(osd_attr_get(txn, id_of(PID, id), 0x10000, 1, value, 8, &length));
	value[0] = 0, value[7] = 100;
	OK(osd_attr_set(txn, id_of(PID, id), 1, 0x82, value, 8));
	osd_txn_abort(txn);
	CHECK_EQ(osd_object_get(o, id_of(PID, id), &object), OSD_E_NO_OBJECT);
	txn = test_begin(o, 0);
	OK(osd_user_object_create(txn, PID, id, 1, &id));
	OK(osd_attr_set(txn, id_of(PID, id), 1, 0x82, value, 8));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	CHECK_EQ(test_get_number(o, id_of(PID, id), 1, 0x82), 100);
	CHECK_EQ(test_get(o, id_of(PID, id), 0x10000, 1, value, 8), 0);
}

static struct osd_txn *begin_and_set(struct osd_objects *o, struct osd_object_id id, uint32_t page,
				     uint32_t number, uint64_t value, size_t width)
{
	struct osd_txn *txn = test_begin(o, 0);
	uint8_t bytes[8];

	osd_put_be(bytes, value, width);
	OK(osd_attr_set(txn, id, page, number, bytes, width));
	osd_put_be(bytes, 3, 8);
	OK(osd_attr_set(txn, id, 1, 0x82, bytes, 8));
	return txn;
}

/* The length makes an entry in memory from the record, which the transaction has changed. */
static void test_nothing_stays_of_an_abort(struct test_store *store, struct osd_object_id id)
{
	struct osd_txn *txn = begin_and_set(store->objects, id, 2, 1, 5, 8);
	struct osd_object_facts facts;
	struct osd_object *object;

	osd_txn_abort(txn);
	OK(test_write(store->objects, id, 0, "0123456789", 10));
	test_store_reopen(store);
	txn = begin_and_set(store->objects, id, 5, 0x40000001, 77, 4);
	OK(osd_object_get(store->objects, id, &object)); /* it may be in use meanwhile */
	osd_txn_abort(txn);
	osd_object_facts(object, &facts);
	CHECK_EQ(facts.tag, 0);
	osd_object_put(object);
	test_store_reopen(store);
	txn = begin_and_set(store->objects, id, 2, 1, 5, 8);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	CHECK_EQ(test_write(store->objects, id, 0, "0123456789", 10), OSD_E_QUOTA);
	OK(test_set_number(store->objects, id, 2, 1, UINT64_MAX, 8));
}

/* It was never there. */
static void test_due_mark_of_an_aborted_object(struct osd_objects *o, uint64_t pid)
{
	struct osd_txn *txn = test_begin(o, 0);
	struct osd_object *object;
	uint64_t id;

	OK(osd_user_object_create(txn, pid, 0, 1, &id));
	OK(osd_due_mark(txn, id_of(pid, id)));
	osd_txn_abort(txn);
	CHECK_EQ(osd_object_get(o, id_of(pid, id), &object), OSD_E_NO_OBJECT);
}

static void run(bool on_disk)
{
	struct osd_objects_stats before, after;
	struct test_store store;
	uint64_t pid, id;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	osd_objects_add_page(store.objects, &provider);
	OK(test_partition(store.objects, 0, &pid));
	OK(test_create(store.objects, pid, 0, &id));
	test_own_pages(&store, id_of(pid, id));
	test_information(&store, id_of(pid, id));
	test_logical_length(&store, id_of(pid, id));
	test_times(&store, id_of(pid, id));
	test_provider(&store, id_of(pid, id));
	test_one_view(&store, id_of(pid, id));
	test_failure_of_a_provider(&store, id_of(pid, id));
	test_walk(&store, id_of(pid, id));
	test_quotas(&store);
	test_collections(&store, id_of(pid, id));
	test_records(&store);
	test_create_and_set(&store);
	test_due_mark_of_an_aborted_object(store.objects, pid);
	if (on_disk) {
		osd_objects_stats(store.objects, &before);
		test_store_reopen(&store);
		osd_objects_stats(store.objects, &after);
		CHECK_EQ(after.used_bytes, before.used_bytes);
		CHECK_EQ(after.object_count, before.object_count);
		check_text(store.objects, id_of(pid, id), 0x10003, 1, "inode", 5);
		test_store_reopen(&store);
		test_nothing_stays_of_an_abort(&store, id_of(pid, id));
	}
	OK(test_remove(store.objects, id_of(pid, id)));
	test_store_release(&store);
}

int main(void)
{
	run(false);
	run(true);
	return 0;
}
