/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_name_cache.c -- an entry is found as long as nothing changes it, by its whole name and place. */
#include <inttypes.h>

#include "object/internal.h"
#include "object/name_cache.h"
#include "object/test_support.h"

static struct osd_name name_of(const char *text)
{
	return (struct osd_name){(const uint8_t *)text, strlen(text)};
}

static void put(struct osd_name_cache *cache, const struct osd_place *directory, const char *name,
		uint64_t id)
{
	const struct osd_cached_name entry = {
		.id = {directory->partition_id, id},
		.type = OSD_USER_OBJECT,
		.names = 3,
		.marks = {osd_name_mark(cache, directory->partition_id, directory->object_id),
			  osd_name_mark(cache, directory->partition_id, id)},
	};

	osd_name_cache_put(cache, directory, name_of(name), &entry);
}

/* 0: it is not kept, or does not hold. */
static uint64_t find(struct osd_name_cache *cache, const struct osd_place *directory,
		     const char *name)
{
	struct osd_cached_name entry;

	if (!osd_name_cache_find(cache, directory, name_of(name), &entry) ||
	    !osd_name_mark_holds(&entry.marks[0]) || !osd_name_mark_holds(&entry.marks[1]))
		return 0;
	CHECK(entry.type == OSD_USER_OBJECT && entry.names == 3);
	CHECK_EQ(entry.id.partition_id, directory->partition_id);
	return entry.id.object_id;
}

static void test_by_its_whole_name(struct osd_name_cache *cache)
{
	const struct osd_place here = {0x10000, 7, 0x10001};
	const struct osd_place others[] = {
		{0x10001, 7, 0x10001}, {0x10000, 8, 0x10001}, {0x10000, 7, 0x10002}};
	char longest[OSD_CACHED_NAME_MAX + 2];

	memset(longest, 'x', sizeof(longest));
	longest[OSD_CACHED_NAME_MAX] = '\0';
	put(cache, &here, "a", 1);
	put(cache, &here, longest, 2);
	CHECK_EQ(find(cache, &here, "a"), 1);
	CHECK_EQ(find(cache, &here, longest), 2);
	CHECK_EQ(find(cache, &here, "ab"), 0);
	CHECK_EQ(find(cache, &here, ""), 0);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(others); i++)
		CHECK_EQ(find(cache, &others[i], "a"), 0);
	longest[OSD_CACHED_NAME_MAX] = 'x';
	longest[OSD_CACHED_NAME_MAX + 1] = '\0';
	put(cache, &here, longest, 4);
	CHECK_EQ(find(cache, &here, longest), 0);
	put(cache, &here, "a", 5);
	CHECK_EQ(find(cache, &here, "a"), 5);
}

/* However many entries there are, each that is found is the right one. */
static void test_more_than_it_keeps(struct osd_name_cache *cache)
{
	const struct osd_place here = {0x10000, 7, 0x10003};
	uint64_t kept = 0, found;
	char name[16];

	for (uint64_t id = 1; id <= 50000; id++) {
		snprintf(name, sizeof(name), "%" PRIu64, id);
		put(cache, &here, name, id);
	}
	for (uint64_t id = 1; id <= 50000; id++) {
		snprintf(name, sizeof(name), "%" PRIu64, id);
		found = find(cache, &here, name);
		CHECK(found == id || found == 0);
		kept += found != 0;
	}
	CHECK(kept > 1000 && kept < 10000);
}

/* A change hides the entry until the transaction ends, and what was kept of before for good. */
static void test_changes(struct osd_objects *objects, bool commits)
{
	const struct osd_place directory = {0x10000, 7, 0x10004}, object = {0x10000, 7, 0x10005};
	const struct osd_place *changed[] = {&directory, &object};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(changed); i++) {
		struct osd_txn *txn = test_begin(objects, 0);

		put(objects->names, &directory, "a", object.object_id);
		CHECK_EQ(find(objects->names, &directory, "a"), object.object_id);
		OK(osd_name_cache_change(txn, changed[i]));
		CHECK_EQ(find(objects->names, &directory, "a"), 0);
		put(objects->names, &directory, "a", object.object_id);
		CHECK_EQ(find(objects->names, &directory, "a"), 0);
		if (commits)
			OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
		else
			osd_txn_abort(txn);
		CHECK_EQ(find(objects->names, &directory, "a"), 0);
		put(objects->names, &directory, "a", object.object_id);
		CHECK_EQ(find(objects->names, &directory, "a"), object.object_id);
	}
}

int main(void)
{
	struct test_store store;

	test_store_init(&store, false);
	test_store_open(&store);
	test_by_its_whole_name(store.objects->names);
	test_more_than_it_keeps(store.objects->names);
	test_changes(store.objects, true);
	test_changes(store.objects, false);
	test_store_release(&store);
	return 0;
}
