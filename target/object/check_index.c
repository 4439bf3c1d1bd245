/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check_index.c -- finds entries of value indexes whose attribute is absent or has another value
 * (OBJECT STRUCTURE CHECK). check_object.c finds attributes without an entry. */
#include "object/check.h"

#include <string.h>

#include "object/value_index.h"
#include "wire/cursor.h"

#define BATCH 64u

struct entries {
	struct osd_index_key keys[BATCH];
	size_t count;
};

static bool add_entry(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct entries *entries = arg;
	struct osd_index_key *to = &entries->keys[entries->count];

	(void)value;
	if (key.length > sizeof(to->bytes))
		return true;
	memcpy(to->bytes, key.data, key.length);
	to->length = key.length;
	return ++entries->count < BATCH;
}

struct look {
	struct osd_objects *objects;
	const struct osd_place *partition;
	uint32_t page;
	const struct osd_index_key *entry;
	bool wrong;
};

/* Reads the entry and its attribute in one transaction. */
static enum osd_status compare(struct osd_kv_txn *kv, void *arg)
{
	struct look *look = arg;
	struct osd_kv *store = look->objects->kv;
	const struct osd_index_key *entry = look->entry;
	uint32_t number;
	struct osd_place place = *look->partition;
	uint8_t value[OSD_INDEX_VALUE_BYTES];
	struct osd_index_key wanted;
	struct osd_key key;
	size_t length;
	enum osd_status status = osd_kv_get(store, kv, OSD_KV_INDEX, osd_index_key_bytes(entry), 0,
					    NULL, 0, &length);

	look->wrong = false;
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status; /* it went meanwhile */
	place.object_id = osd_index_entry_object(entry->bytes, entry->length);
	if (place.object_id == 0) {
		look->wrong = true; /* this is no entry */
		return OSD_OK;
	}
	number = (uint32_t)osd_get_be(entry->bytes + OSD_INDEX_PAGE_PART, 4);
	key = osd_key_attribute(&place, look->page, number);
	status = osd_kv_get(store, kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&key), 0, value,
			    sizeof(value), &length);
	if (status == OSD_OK) {
		osd_index_key_entry(&place, look->page, number, value, length, &wanted);
		look->wrong = osd_index_key_compare(entry, &wanted) != 0;
	} else if (status == OSD_E_NO_OBJECT) {
		look->wrong = true;
		status = OSD_OK;
	}
	return status;
}

static enum osd_status check_page(struct osd_objects *objects, struct osd_partition *partition,
				  uint32_t page, bool *ret_damaged)
{
	struct osd_place place = {partition->id, partition->incarnation, 0};
	struct entries entries;
	struct osd_index_key from;
	enum osd_status status;

	osd_index_key_begin(&place, page, 0, &from);
	do {
		entries.count = 0;
		status = osd_kv_scan(objects->kv, NULL, OSD_KV_INDEX, osd_index_key_bytes(&from),
				     OSD_INDEX_PAGE_PART, add_entry, &entries);
		for (size_t i = 0; status == OSD_OK && i < entries.count; i++) {
			struct look look = {objects, &place, page, &entries.keys[i], false};

			status = osd_own_run(objects, OSD_TXN_READ_ONLY, compare, &look);
			/* Entries of a page that was dropped meanwhile do not count. */
			if (status == OSD_OK && look.wrong &&
			    osd_index_stage_of(partition, page) == OSD_INDEX_DONE)
				*ret_damaged = true;
		}
		if (entries.count)
			from = entries.keys[entries.count - 1]; /* seen once more */
	} while (status == OSD_OK && !*ret_damaged && entries.count == BATCH);
	return status;
}

enum osd_status osd_check_index(struct osd_objects *objects, struct osd_partition *partition,
				bool *ret_damaged)
{
	struct osd_index_slots *slots = atomic_load(&partition->index);
	enum osd_status status = OSD_OK;

	*ret_damaged = false;
	for (size_t i = 0; slots && status == OSD_OK && i < OSD_INDEX_PAGES; i++) {
		uint32_t page = (uint32_t)(atomic_load(&slots->words[i]) >> 8);

		if (osd_index_stage_of(partition, page) == OSD_INDEX_DONE)
			status = check_page(objects, partition, page, ret_damaged);
	}
	return status;
}
