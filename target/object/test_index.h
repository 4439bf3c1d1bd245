/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_index.h -- for tests of the value index: objects with attributes on an indexed page, and the
 * check that there is an entry for each value and no other. */
#ifndef OSD_OBJECT_TEST_INDEX_H
#define OSD_OBJECT_TEST_INDEX_H

#include "object/test_support.h"
#include "object/value_index.h"

#define INDEX_PAGE  0x10001u
#define INDEX_OTHER 0x10002u /* not indexed */

/* ---- every value has its entry ----------------------------------------------------------- */

struct entries {
	struct osd_objects *objects;
	uint64_t pid;
	uint32_t incarnation;
	uint64_t count;
	struct osd_index_key last;
};

static inline bool count_entry(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct entries *entries = arg;
	struct osd_index_key now = {.length = key.length};

	(void)value;
	memcpy(now.bytes, key.data, key.length);
	if (entries->count++)
		CHECK(osd_index_key_compare(&entries->last, &now) < 0);
	entries->last = now;
	return true;
}

static inline uint64_t test_count_entries(struct osd_objects *objects, uint64_t pid)
{
	struct entries entries = {.objects = objects};
	uint8_t prefix[8];

	osd_put_be(prefix, pid, 8);
	OK(osd_kv_scan(objects->kv, NULL, OSD_KV_INDEX, (struct osd_bytes){prefix, 8}, 8,
		       count_entry, &entries));
	return entries.count;
}

struct values {
	struct osd_objects *objects;
	struct osd_index_key *keys;
	size_t count, room;
};

/* Entries that the attributes of the page ask for. */
static inline bool add_value(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct values *values = arg;
	const uint8_t *bytes = key.data;
	struct osd_place place = {osd_get_be(bytes, 8), (uint32_t)osd_get_be(bytes + 8, 4),
				  osd_get_be(bytes + 12, 8)};

	if (osd_get_be(bytes + 20, 4) != INDEX_PAGE)
		return true;
	if (values->count == values->room) { /* realloc moves everything with a sanitizer */
		values->room = 2 * values->room + 64;
		values->keys = realloc(values->keys, values->room * sizeof(*values->keys));
		CHECK(values->keys);
	}
	osd_index_key_entry(&place, INDEX_PAGE, (uint32_t)osd_get_be(bytes + 24, 4), value.data,
			    value.length, &values->keys[values->count++]);
	return true;
}

/* Of a partition with an index of INDEX_PAGE that is ready; nobody changes anything. */
static inline void test_check_entries(struct osd_objects *objects, uint64_t pid)
{
	struct values values = {.objects = objects};
	uint8_t prefix[8];

	osd_put_be(prefix, pid, 8);
	OK(osd_kv_scan(objects->kv, NULL, OSD_KV_ATTRIBUTES, (struct osd_bytes){prefix, 8}, 8,
		       add_value, &values));
	CHECK_EQ(test_count_entries(objects, pid), values.count);
	for (size_t i = 0; i < values.count; i++) {
		size_t length;

		OK(osd_kv_get(objects->kv, NULL, OSD_KV_INDEX, osd_index_key_bytes(&values.keys[i]),
			      0, NULL, 0, &length));
	}
	free(values.keys);
}

static inline enum osd_status test_fill_one(struct osd_txn *txn, struct osd_object_id id,
					    unsigned i)
{
	uint8_t bytes[8];
	enum osd_status status;

	osd_put_be(bytes, i % 17, 8);
	status = osd_attr_set(txn, id, INDEX_PAGE - 1, 1, bytes, 8);
	if (status == OSD_OK)
		status = osd_attr_set(txn, id, INDEX_PAGE, 1, bytes, 8);
	if (status == OSD_OK && i % 3 == 0)
		status = osd_attr_set(txn, id, INDEX_PAGE, 0x80000000, bytes, 8);
	return status == OSD_OK ? osd_attr_set(txn, id, INDEX_OTHER, 1, bytes, 8) : status;
}

/* A partition with objects that have one or two values each. */
static inline void test_fill_indexed(struct osd_objects *objects, uint64_t *ret_pid, unsigned count)
{
	enum osd_status status;

	OK(test_partition(objects, 0, ret_pid));
	do {
		struct osd_txn *txn = test_begin(objects, 0);
		uint64_t first;

		status = OSD_OK;
		for (unsigned i = 0; status == OSD_OK && i < count; i++) {
			struct osd_object_id id = {*ret_pid, OSD_FIRST_ID + i};

			status = osd_user_object_create(txn, *ret_pid, id.object_id, 1, &first);
			if (status == OSD_OK)
				status = test_fill_one(txn, id, i);
		}
		status = test_end(txn, status);
	} while (status == OSD_E_CONFLICT);
	OK(status);
}

#endif
