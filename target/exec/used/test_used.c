/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_used.c -- the list of objects that a job has used: ranges are merged, versions that differ are noticed,
 * the bounds hold, and the bytes are those of used.h. */
#include "exec/used/used.h"

#include <string.h>

#include "base/test.h"
#include "base/util.h"

static const struct osd_object_id first = {0x10000, 0x10001};
static const struct osd_data_version v1 = {1, 9}, v2 = {2, 9}, v3 = {3, 9};

static bool has(struct osd_used *used, struct osd_object_id id, uint32_t kinds)
{
	const struct osd_used_entry *entry = osd_used_find(used, id);

	return entry && entry->kinds == kinds;
}

static void check_range(const struct osd_used_entry *entry, uint32_t n, uint64_t start, uint64_t end)
{
	CHECK(n < entry->range_count);
	CHECK_EQ(entry->ranges[n].start, start);
	CHECK_EQ(entry->ranges[n].end, end);
}

static void test_ranges(void)
{
	struct osd_used used = {0};
	const struct osd_used_entry *entry;

	osd_used_read(&used, first, v1, 10, 10);
	osd_used_read(&used, first, v1, 20, 5); /* goes on */
	osd_used_read(&used, first, v1, 100, 1);
	osd_used_read(&used, first, v1, 0, 5);
	osd_used_read(&used, first, v1, 50, 0); /* only the length */
	entry = osd_used_find(&used, first);
	CHECK_EQ(entry->range_count, 3);
	check_range(entry, 0, 0, 5);
	check_range(entry, 1, 10, 25);
	check_range(entry, 2, 100, 101);
	osd_used_read(&used, first, v1, 4, 96); /* joins all */
	entry = osd_used_find(&used, first);
	CHECK_EQ(entry->range_count, 1);
	CHECK_EQ(used.all_ranges, 1);
	check_range(entry, 0, 0, 101);
	CHECK(has(&used, first, OSD_USED_DATA) && osd_same_version(entry->version, v1));
	osd_used_release(&used);
}

static void test_ranges_like_a_map(void)
{
	struct osd_used used = {0};
	bool map[200] = {0};
	uint32_t seed = 1, at = 0;
	const struct osd_used_entry *entry;

	for (int i = 0; i < 60; i++) {
		uint32_t start, length;

		seed = seed * 1103515245 + 12345;
		start = seed >> 16 & 127;
		length = (seed >> 8 & 7) + 1;
		osd_used_read(&used, first, v1, start, length);
		memset(map + start, true, length);
	}
	entry = osd_used_find(&used, first);
	CHECK_EQ(used.all_ranges, entry->range_count);
	for (uint32_t n = 0; n < entry->range_count; n++) {
		for (; at < entry->ranges[n].start; at++)
			CHECK(!map[at]);
		for (; at < entry->ranges[n].end; at++)
			CHECK(map[at]);
	}
	for (; at < sizeof(map); at++)
		CHECK(!map[at]);
	osd_used_release(&used);
}

static void test_too_many_ranges(void)
{
	struct osd_used used = {0};

	for (uint64_t i = 0; i <= OSD_USED_RANGES_MAX; i++)
		osd_used_read(&used, first, v1, 10 * i, 1);
	CHECK(has(&used, first, OSD_USED_DATA | OSD_USED_WHOLE));
	CHECK_EQ(osd_used_find(&used, first)->range_count, 0);
	osd_used_read(&used, first, v1, 0, 1);
	CHECK_EQ(used.all_ranges, 0);
	osd_used_release(&used);
}

static void test_too_many_objects(void)
{
	struct osd_used used = {0};
	struct osd_object_id id = first;
	uint64_t last = first.object_id + OSD_USED_OBJECTS_MAX;

	for (; id.object_id < last; id.object_id++)
		osd_used_read(&used, id, v1, 0, 1);
	CHECK_EQ(used.left_out, 0);
	osd_used_read(&used, id, v1, 0, 1);
	osd_used_note(&used, id, OSD_USED_TYPE);
	osd_used_read(&used, first, v1, 5, 1); /* it has its entry */
	CHECK_EQ(used.left_out, 2);
	CHECK_EQ(used.count, OSD_USED_OBJECTS_MAX);
	CHECK(!osd_used_find(&used, id));
	CHECK_EQ(osd_used_find(&used, first)->range_count, 2);
	osd_used_release(&used);
}

static void test_versions(void)
{
	const uint32_t both = OSD_USED_DATA | OSD_MADE_DATA;
	struct osd_object_id id = first;
	struct osd_used used = {0};

	osd_used_read(&used, id, v1, 0, 1); /* others change it */
	osd_used_read(&used, id, v2, 0, 1);
	CHECK(has(&used, id, OSD_USED_DATA | OSD_USED_VARIED));
	CHECK(osd_same_version(osd_used_find(&used, id)->version, v1));

	id.object_id++; /* it changes it itself */
	osd_used_read(&used, id, v1, 0, 1);
	osd_used_wrote(&used, id, v1, v2);
	osd_used_read(&used, id, v2, 0, 1);
	osd_used_wrote(&used, id, v2, v3);
	osd_used_read(&used, id, v3, 0, 1);
	CHECK(has(&used, id, both));
	CHECK(osd_same_version(osd_used_find(&used, id)->before, v1));
	CHECK(osd_same_version(osd_used_find(&used, id)->after, v3));
	osd_used_read(&used, id, v2, 0, 1); /* an older one */
	CHECK(has(&used, id, both | OSD_USED_VARIED));

	id.object_id++; /* others write between its read and its write */
	osd_used_read(&used, id, v1, 0, 1);
	osd_used_wrote(&used, id, v2, v3);
	CHECK(has(&used, id, both | OSD_USED_VARIED));

	id.object_id++; /* it reads what it has made */
	osd_used_wrote(&used, id, v1, v2);
	osd_used_read(&used, id, v2, 0, 1);
	CHECK(has(&used, id, both));

	id.object_id++;
	osd_used_members(&used, id, v1);
	osd_used_members(&used, id, v1);
	CHECK(has(&used, id, OSD_USED_MEMBERS));
	osd_used_members(&used, id, v2);
	CHECK(has(&used, id, OSD_USED_MEMBERS | OSD_USED_VARIED));
	osd_used_release(&used);
}

static void test_bytes(void)
{
	static const uint8_t wanted[] = {
		0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0,		  /* head */
		0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1,		  /* first */
		0, 0, 0x10, 1, 0, 0, 0, 1,					  /* kinds, ranges */
		0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9,				  /* read */
		0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9,				  /* before */
		0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9,				  /* after */
		0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 6,		  /* range */
		0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, /* partition */
	};
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	struct osd_used used = {0};
	size_t length;

	CHECK(osd_used_encode(&used, &bytes, &length) == OSD_OK && !bytes && !length);
	osd_used_read(&used, first, v1, 4, 2);
	osd_used_wrote(&used, first, v1, v2);
	osd_used_note(&used, (struct osd_object_id){first.partition_id, 0}, OSD_USED_CONTENTS);
	CHECK(osd_used_encode(&used, &bytes, &length) == OSD_OK);
	osd_check_bytes(__FILE__, __LINE__, bytes, length, wanted, sizeof(wanted));
	osd_used_release(&used);
}

static void test_decode(void)
{
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	struct osd_object_id id = first;
	struct osd_used used = {0}, back = {0};
	size_t length;

	osd_used_read(&used, id, v1, 4, 2);
	osd_used_wrote(&used, id, v1, v2);
	id.object_id++;
	osd_used_members(&used, id, v3);
	id.object_id++;
	osd_used_read(&used, id, v1, 0, 1);
	osd_used_read(&used, id, v2, 0, 1);
	id.object_id++;
	osd_used_note(&used, id, OSD_USED_TYPE | OSD_MADE_GONE);
	used.left_out = 7;
	CHECK(osd_used_encode(&used, &bytes, &length) == OSD_OK);
	CHECK(osd_used_decode(bytes, length, &back) == OSD_OK);
	CHECK(back.count == used.count && back.left_out == 7);
	for (uint32_t i = 0; i < used.count; i++) {
		const struct osd_used_entry *a = &used.entries[i], *b = &back.entries[i];

		CHECK(osd_same_id(a->id, b->id) && a->kinds == b->kinds);
		CHECK(osd_same_version(a->version, b->version));
		CHECK(osd_same_version(a->before, b->before) &&
		      osd_same_version(a->after, b->after));
	}
	CHECK(!osd_used_is_versioned(&back));
	osd_used_release(&back);
	for (size_t cut = 0; cut < length; cut++) {
		CHECK(osd_used_decode(bytes, cut, &back) != OSD_OK);
		osd_used_release(&back);
	}
	bytes[1]++; /* another form */
	CHECK(osd_used_decode(bytes, length, &back) != OSD_OK);
	osd_used_release(&back);
	osd_used_release(&used);
}

static void test_versioned(void)
{
	struct osd_used used = {0};
	struct osd_object_id id = first;

	CHECK(osd_used_is_versioned(&used));
	osd_used_read(&used, id, v1, 0, 1);
	osd_used_note(&used, id, OSD_USED_WHOLE);
	id.object_id++;
	osd_used_members(&used, id, v1);
	CHECK(osd_used_is_versioned(&used));
	used.left_out = 1;
	CHECK(!osd_used_is_versioned(&used));
	used.left_out = 0;
	osd_used_read(&used, first, v2, 0, 1);
	CHECK(!osd_used_is_versioned(&used));
	osd_used_release(&used);
}

int main(void)
{
	test_ranges();
	test_ranges_like_a_map();
	test_too_many_ranges();
	test_too_many_objects();
	test_versions();
	test_bytes();
	test_decode();
	test_versioned();
	return 0;
}
