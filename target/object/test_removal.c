/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_removal.c -- a higher layer's records go in the transaction that removes their object
 * (osd_objects_watch_removals). */
#include "object/object.h"
#include "object/test_support.h"

struct watcher {
	struct osd_object_id last;
	unsigned calls;
	enum osd_status status; /* what it returns */
};

static void key_of(struct osd_object_id id, uint8_t key[16])
{
	memcpy(key, &id.partition_id, 8);
	memcpy(key + 8, &id.object_id, 8);
}

static enum osd_status removed(void *arg, struct osd_txn *txn, struct osd_object_id id)
{
	struct watcher *watcher = arg;
	uint8_t key[16];
	enum osd_status status;

	watcher->calls++;
	watcher->last = id;
	if (watcher->status != OSD_OK)
		return watcher->status;
	key_of(id, key);
	status = osd_txn_record_delete(txn, OSD_TABLE_JOBS, key, sizeof(key));
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static void put_record(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_txn *txn = test_begin(objects, 0);
	uint8_t key[16];

	key_of(id, key);
	OK(test_end(txn, osd_txn_record_put(txn, OSD_TABLE_JOBS, key, sizeof(key), "x", 1)));
}

static bool has_record(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	uint8_t key[16], byte;
	size_t length;
	enum osd_status status;

	key_of(id, key);
	status = osd_txn_record_get(txn, OSD_TABLE_JOBS, key, sizeof(key), &byte, 1, &length);
	osd_txn_abort(txn);
	CHECK(status == OSD_OK || status == OSD_E_NO_OBJECT);
	return status == OSD_OK;
}

static enum osd_status remove_object(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_txn *txn = test_begin(objects, 0);

	return test_end(txn, osd_user_object_remove(txn, id));
}

static void test_object(struct osd_objects *objects, struct osd_object_id id)
{
	struct watcher watcher = {.status = OSD_E_JOB_IN_WAY};

	put_record(objects, id);
	osd_objects_watch_removals(objects, removed, &watcher);
	CHECK_EQ(remove_object(objects, id), OSD_E_JOB_IN_WAY);
	CHECK(has_record(objects, id));
	watcher.status = OSD_OK;
	OK(remove_object(objects, id));
	CHECK_EQ(watcher.calls, 2);
	CHECK_EQ(watcher.last.object_id, id.object_id);
	CHECK(!has_record(objects, id));
	CHECK_EQ(remove_object(objects, id), OSD_E_NO_OBJECT);
	CHECK_EQ(watcher.calls, 2);
	osd_objects_unwatch_removals(objects, &watcher);
}

/* Once, for all that is in it. */
static void test_partition_removal(struct osd_objects *objects, uint64_t pid)
{
	struct watcher watcher = {.status = OSD_E_JOB_IN_WAY};

	osd_objects_watch_removals(objects, removed, &watcher);
	CHECK_EQ(test_remove_partition(objects, pid), OSD_E_JOB_IN_WAY);
	watcher.status = OSD_OK;
	OK(test_remove_partition(objects, pid));
	CHECK_EQ(watcher.calls, 2);
	CHECK(watcher.last.partition_id == pid && watcher.last.object_id == 0);
	osd_objects_unwatch_removals(objects, &watcher);
}

int main(void)
{
	struct osd_object_id id;
	struct test_store store;

	test_store_init(&store, false);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &id.partition_id));
	OK(test_create(store.objects, id.partition_id, 0, &id.object_id));
	test_object(store.objects, id);
	OK(test_create(store.objects, id.partition_id, 0, &id.object_id));
	test_partition_removal(store.objects, id.partition_id);
	test_store_release(&store);
	return 0;
}
