/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_cache.c -- what leaves memory is as its record says. */
#include <sys/resource.h>

#include "object/internal.h"
#include "object/test_support.h"

static void look(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object_facts found;

	OK(osd_objects_facts(objects, id, false, &found));
}

static void open_once(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object;

	OK(osd_object_get(objects, id, &object));
	OK(osd_object_write(object, 0, "x", 1, 0));
	osd_object_put(object);
}

/* Makes more objects than memory keeps, each in it once, and opens more files than stay open. */
static void crowd_out(struct osd_objects *objects, uint64_t pid)
{
	struct osd_object_id id = {pid, 0};

	for (size_t left = OSD_CACHE_ENTRIES + 1, open = objects->open_max + 1; left > 0;) {
		uint32_t count = (uint32_t)OSD_MIN(left, 4096u);
		struct osd_txn *txn = test_begin(objects, 0);

		OK(test_end(txn, osd_user_object_create(txn, pid, 0, count, &id.object_id)));
		for (uint32_t i = 0; i < count; i++, id.object_id++) {
			look(objects, id);
			if (open > 0) {
				open_once(objects, id);
				open--;
			}
		}
		left -= count;
	}
}

/* A write up to the reservation's end, its times settled before it has rested. */
static void test_whole_reservation(bool on_disk)
{
	static uint8_t data[OSD_RESERVE_BYTES];
	struct osd_object_id id;
	struct osd_object *object;
	struct test_store store;
	uint64_t length;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &id.partition_id));
	OK(test_create(store.objects, id.partition_id, 0, &id.object_id));
	OK(osd_object_get(store.objects, id, &object));
	OK(osd_object_write(object, 0, data, sizeof(data), 0));
	OK(osd_object_settle(object, false, false));
	osd_object_put(object);
	crowd_out(store.objects, id.partition_id);
	CHECK(store.objects->open_count <= store.objects->open_max);
	OK(osd_object_get(store.objects, id, &object));
	OK(osd_object_length(object, &length));
	CHECK_EQ(length, sizeof(data));
	osd_object_put(object);
	test_store_release(&store);
}

int main(void)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = OSD_MIN(limit.rlim_max, 1024);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	test_whole_reservation(false);
	test_whole_reservation(true);
	return 0;
}
