/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_support.h -- for the object layer's test_*.c: a store in a directory of its own, or in
 * memory, and the shortest ways to do one thing in one transaction. */
#ifndef OSD_OBJECT_TEST_SUPPORT_H
#define OSD_OBJECT_TEST_SUPPORT_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "object/object.h"
#include "object/query.h"
#include "testing/stores.h"
#include "wire/cursor.h"

struct test_store {
	struct osd_objects *objects;
	struct osd_objects_config config;
	struct osd_test_stores faults; /* of the next opening */
	char directory[64];
};

static inline void test_store_open(struct test_store *store)
{
	char message[256];
	enum osd_status status = osd_objects_open(&store->config, message, &store->objects);

	if (status != OSD_OK)
		fprintf(stderr, "%s\n", message);
	OK(status);
}

static inline void test_store_init(struct test_store *store, bool on_disk)
{
	memset(store, 0, sizeof(*store));
	store->config.cache_bytes = 8u << 20;
	store->config.test = &store->faults;
	if (on_disk) {
		test_folder(store->directory, sizeof(store->directory));
		store->config.directory = store->directory;
	}
}

static inline void test_store_reopen(struct test_store *store)
{
	osd_objects_close(store->objects);
	test_store_open(store);
}

static inline void test_store_release(struct test_store *store)
{
	osd_objects_close(store->objects);
	if (store->directory[0])
		test_folder_remove(store->directory);
}

/* ---- one change of data ---------------------------------------------------------------------- */

static inline enum osd_status test_append(struct osd_object *object, const void *data,
					  size_t length, unsigned flags, uint64_t *ret_offset)
{
	struct osd_change change = {
		.kind = OSD_CHANGE_APPEND, .flags = flags, .length = length, .data = data};
	enum osd_status status = osd_object_change(object, &change);

	if (status == OSD_OK)
		*ret_offset = change.start;
	return status;
}

static inline enum osd_status test_clear(struct osd_object *object, uint64_t offset,
					 uint64_t length)
{
	struct osd_change change = {.kind = OSD_CHANGE_CLEAR, .offset = offset, .length = length};

	return osd_object_change(object, &change);
}

/* steps may be NULL. */
static inline enum osd_status test_punch(struct osd_object *object, uint64_t offset,
					 uint64_t length, const struct osd_change_steps *steps)
{
	struct osd_change change = {
		.kind = OSD_CHANGE_PUNCH, .offset = offset, .length = length, .steps = steps};

	return osd_object_change(object, &change);
}

/* ---- one thing in one transaction, again after a deadlock ---------------------------------- */

static inline struct osd_txn *test_begin(struct osd_objects *objects, unsigned flags)
{
	struct osd_txn *txn;

	OK(osd_txn_begin(objects, flags, &txn));
	return txn;
}

static inline enum osd_status test_end(struct osd_txn *txn, enum osd_status status)
{
	if (status == OSD_OK)
		return osd_txn_commit(txn, OSD_COMMIT_PROCESS);
	osd_txn_abort(txn);
	return status;
}

static inline enum osd_status test_partition(struct osd_objects *objects, uint64_t requested,
					     uint64_t *ret_id)
{
	enum osd_status status;

	do {
		struct osd_txn *txn = test_begin(objects, 0);

		status = test_end(txn, osd_partition_create(txn, requested, ret_id));
	} while (status == OSD_E_CONFLICT);
	return status;
}

static inline enum osd_status test_remove_partition(struct osd_objects *objects, uint64_t pid)
{
	enum osd_status status;

	do {
		struct osd_txn *txn = test_begin(objects, 0);

		status = test_end(txn, osd_partition_remove(txn, pid, true));
	} while (status == OSD_E_CONFLICT);
	return status;
}

static inline enum osd_status test_create(struct osd_objects *objects, uint64_t partition_id,
					  uint64_t requested, uint64_t *ret_id)
{
	enum osd_status status;

	do {
		struct osd_txn *txn = test_begin(objects, 0);

		status = test_end(txn,
				  osd_user_object_create(txn, partition_id, requested, 1, ret_id));
	} while (status == OSD_E_CONFLICT);
	return status;
}

static inline enum osd_status test_remove(struct osd_objects *objects, struct osd_object_id id)
{
	enum osd_status status;

	do {
		struct osd_txn *txn = test_begin(objects, 0);

		status = test_end(txn, osd_user_object_remove(txn, id));
	} while (status == OSD_E_CONFLICT);
	return status;
}

static inline enum osd_status test_set(struct osd_objects *objects, struct osd_object_id id,
				       uint32_t page, uint32_t number, const void *value,
				       size_t length)
{
	enum osd_status status;

	do {
		struct osd_txn *txn = test_begin(objects, 0);

		status = test_end(txn, osd_attr_set(txn, id, page, number, value, length));
	} while (status == OSD_E_CONFLICT);
	return status;
}

static inline enum osd_status test_set_number(struct osd_objects *objects, struct osd_object_id id,
					      uint32_t page, uint32_t number, uint64_t value,
					      size_t width)
{
	uint8_t bytes[8];

	osd_put_be(bytes, value, width);
	return test_set(objects, id, page, number, bytes, width);
}

static inline size_t test_get(struct osd_objects *objects, struct osd_object_id id, uint32_t page,
			      uint32_t number, uint8_t *buffer, size_t capacity)
{
	enum osd_status status;
	size_t length = 0;

	do {
		struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);

		status = test_end(txn,
				  osd_attr_get(txn, id, page, number, buffer, capacity, &length));
	} while (status == OSD_E_CONFLICT);
	OK(status);
	return length;
}

static inline uint64_t test_get_number(struct osd_objects *objects, struct osd_object_id id,
				       uint32_t page, uint32_t number)
{
	uint8_t bytes[8];
	size_t length = test_get(objects, id, page, number, bytes, sizeof(bytes));

	CHECK(length <= sizeof(bytes));
	return osd_get_be(bytes, length);
}

static inline enum osd_status test_write(struct osd_objects *objects, struct osd_object_id id,
					 uint64_t offset, const void *data, size_t length)
{
	struct osd_object *object;
	enum osd_status status = osd_object_get(objects, id, &object);

	if (status != OSD_OK)
		return status;
	status = osd_object_write(object, offset, data, length, 0);
	osd_object_put(object);
	return status;
}

static inline size_t test_read(struct osd_objects *objects, struct osd_object_id id,
			       uint64_t offset, void *buffer, size_t length)
{
	struct osd_object *object;
	size_t got = 0;

	OK(osd_object_get(objects, id, &object));
	OK(osd_object_read(object, offset, buffer, length, 0, &got));
	osd_object_put(object);
	return got;
}

/* ---- all tests of a file ---------------------------------------------------------------- */

typedef void test_fn(struct test_store *store);

/* Runs them in memory, then in a directory, in a store with a partition of this id. */
static inline void test_both_stores(uint64_t pid, test_fn *const *tests, size_t count)
{
	for (int on_disk = 0; on_disk <= 1; on_disk++) {
		struct test_store store;
		uint64_t made;

		test_store_init(&store, on_disk);
		test_store_open(&store);
		OK(test_partition(store.objects, pid, &made));
		for (size_t i = 0; i < count; i++)
			tests[i](&store);
		test_store_release(&store);
	}
}

/* ---- value indexes ----------------------------------------------------------------------- */

static inline enum osd_status test_declare(struct osd_objects *objects, uint64_t pid, uint32_t page)
{
	return test_set(objects, (struct osd_object_id){pid, 0}, OSD_PAGE_INDEX, page, "\1", 1);
}

static inline enum osd_status test_drop(struct osd_objects *objects, uint64_t pid, uint32_t page)
{
	return test_set(objects, (struct osd_object_id){pid, 0}, OSD_PAGE_INDEX, page, "", 0);
}

static inline uint64_t test_index_state(struct osd_objects *objects, uint64_t pid, uint32_t page)
{
	return test_get_number(objects, (struct osd_object_id){pid, 0}, OSD_PAGE_INDEX, page);
}

static inline void test_index_wait(struct osd_objects *objects, uint64_t pid, uint32_t page)
{
	for (int i = 0; i < 20000; i++) {
		if (test_index_state(objects, pid, page) == OSD_INDEX_READY)
			return;
		usleep(1000);
	}
	CHECK(!"the index becomes ready");
}

#endif
