/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_tracking.c -- the Command Tracking page as the target writes it, and walks that end when they
 * are told to. */
#include "object/test_support.h"
#include "object/tracking.h"

#define PAGE 0x60000004u

static uint64_t pid, collection, objects_made;

static struct osd_object_id tracker(void)
{
	return (struct osd_object_id){pid, collection};
}

static void populate(struct osd_objects *objects)
{
	struct osd_txn *txn = test_begin(objects, 0);
	uint64_t first;

	OK(osd_partition_create(txn, 0, &pid));
	OK(osd_collection_create(txn, pid, 0, OSD_COLLECTION_TRACKING, &collection));
	OK(osd_user_object_create(txn, pid, 0, 5, &first));
	for (uint64_t id = first; id < first + 5; id++)
		OK(osd_collection_add(txn, tracker(), id));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	objects_made = first;
}

static uint16_t active(struct osd_objects *objects)
{
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	uint16_t action = 0xdead;

	OK(osd_tracking_active(txn, tracker(), false, &action));
	osd_txn_abort(txn);
	return action;
}

static void put(struct osd_objects *objects, const struct osd_tracking *tracking)
{
	struct osd_txn *txn = test_begin(objects, 0);

	OK(osd_tracking_put(txn, tracker(), tracking));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

static void test_page(struct osd_objects *objects)
{
	static const uint8_t sense[] = {0x72, 5, 0x24, 0};
	struct osd_tracking tracking = {.percent = 40,
					.active = OSD_SA_QUERY,
					.ended = OSD_TRACKING_RUNNING,
					.processed = 2,
					.missing = 1};
	uint8_t value[16];
	struct osd_txn *txn;
	size_t length;

	CHECK_EQ(active(objects), 0);
	put(objects, &tracking);
	CHECK_EQ(active(objects), OSD_SA_QUERY);
	CHECK_EQ(test_get_number(objects, tracker(), PAGE, 1), 40);
	CHECK_EQ(test_get_number(objects, tracker(), PAGE, 3), 0xffff);
	CHECK_EQ(test_get_number(objects, tracker(), PAGE, 0x10), 5);
	CHECK_EQ(test_get_number(objects, tracker(), PAGE, 0x11), 2);
	CHECK_EQ(test_get_number(objects, tracker(), PAGE, 0x13), 1);
	tracking = (struct osd_tracking){.ended = 2, .sense = sense, .sense_length = sizeof(sense)};
	put(objects, &tracking);
	CHECK_EQ(active(objects), 0);
	txn = test_begin(objects, OSD_TXN_READ_ONLY);
	OK(osd_attr_get(txn, tracker(), PAGE, 4, value, sizeof(value), &length));
	CHECK(length == sizeof(sense) && !memcmp(value, sense, length));
	osd_txn_abort(txn);
	tracking = (struct osd_tracking){.percent = 100};
	put(objects, &tracking);
	txn = test_begin(objects, OSD_TXN_READ_ONLY);
	OK(osd_attr_get(txn, tracker(), PAGE, 4, value, sizeof(value), &length));
	CHECK_EQ(length, 0);
	osd_txn_abort(txn);
}

static void test_not_a_collection(struct osd_objects *objects)
{
	struct osd_object_id object = {pid, objects_made};
	struct osd_tracking tracking = {.percent = 1};
	struct osd_txn *txn = test_begin(objects, 0);
	uint16_t action;

	CHECK_EQ(osd_tracking_active(txn, object, false, &action), OSD_E_NO_OBJECT);
	CHECK_EQ(osd_tracking_put(txn, object, &tracking), OSD_E_NO_OBJECT);
	osd_txn_abort(txn);
}

static void test_uncounted(struct osd_objects *objects)
{
	struct osd_list_request request = {OSD_LIST_MEMBERS, tracker(), 0};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;
	uint64_t ids[3];

	OK(osd_list_uncounted(txn, &request, ids, OSD_ARRAY_SIZE(ids), &result));
	CHECK_EQ(result.count, 3);
	CHECK_EQ(result.next_id, objects_made + 3);
	request.initial_id = result.next_id;
	OK(osd_list_uncounted(txn, &request, ids, OSD_ARRAY_SIZE(ids), &result));
	CHECK_EQ(result.count, 2);
	CHECK_EQ(result.next_id, 0);
	osd_txn_abort(txn);
}

static void test_stop(struct osd_objects *objects)
{
	static const enum osd_list_kind kinds[] = {OSD_LIST_PARTITIONS, OSD_LIST_USER_OBJECTS,
						   OSD_LIST_COLLECTIONS, OSD_LIST_MEMBERS};
	struct osd_list_result result;
	uint64_t ids[8];

	for (size_t i = 0; i < OSD_ARRAY_SIZE(kinds); i++) {
		struct osd_list_request request = {kinds[i], tracker(), 0};
		struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
		bool stop = false;

		osd_txn_watch(txn, &stop);
		OK(osd_list(txn, &request, ids, OSD_ARRAY_SIZE(ids), &result));
		stop = true;
		CHECK_EQ(osd_list(txn, &request, ids, OSD_ARRAY_SIZE(ids), &result),
			 OSD_E_TASK_ABORTED);
		osd_txn_watch(txn, NULL);
		OK(osd_list(txn, &request, ids, OSD_ARRAY_SIZE(ids), &result));
		osd_txn_abort(txn);
	}
}

int main(void)
{
	for (int on_disk = 0; on_disk <= 1; on_disk++) {
		struct test_store store;

		test_store_init(&store, on_disk);
		test_store_open(&store);
		populate(store.objects);
		test_page(store.objects);
		test_not_a_collection(store.objects);
		test_uncounted(store.objects);
		test_stop(store.objects);
		test_store_release(&store);
	}
	return 0;
}
