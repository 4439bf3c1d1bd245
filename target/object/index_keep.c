/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index_keep.c -- updates value indexes with every change of an attribute.  A transaction notes its
 * changes of the index and applies them at its end, in order of keys.  So all transactions lock entries in
 * the same order, and after the records of objects. */
#include <stdlib.h>
#include <time.h>

#include "base/util.h"
#include "object/value_index.h"

#define GRACE_POLL_NS 1000000 /* how often the builder checks whether transactions have ended */

struct osd_index_change {
	struct osd_index_key key;
	size_t order; /* of noting */
	bool put;
};

bool osd_index_takes(uint32_t page, uint32_t number)
{
	if (number == 0 || page >= OSD_PAGE_PARTITION_BASE)
		return false;
	return page != OSD_REL_INFORMATION || number == OSD_INFO_USERNAME;
}

enum osd_index_stage osd_index_stage_of(const struct osd_partition *partition, uint32_t page)
{
	struct osd_index_slots *slots = atomic_load(&partition->index);

	for (size_t i = 0; slots && i < OSD_INDEX_PAGES; i++) {
		uint64_t word = atomic_load(&slots->words[i]);

		if (word && word >> 8 == page)
			return (enum osd_index_stage)(word & 0xff);
	}
	return OSD_INDEX_UNDECLARED;
}

bool osd_index_keeps(const struct osd_txn *txn, uint32_t page, uint32_t number)
{
	return txn->partition && atomic_load(&txn->partition->index) && txn->place.object_id &&
	       osd_index_takes(page, number) &&
	       osd_index_is_kept(osd_index_stage_of(txn->partition, page));
}

static struct osd_index_change *add_change(struct osd_txn *txn, bool put)
{
	struct osd_index_change *change;

	if (!OSD_MAKE_ROOM(txn->index.list, txn->index.count, txn->index.capacity))
		return NULL;
	change = &txn->index.list[txn->index.count];
	change->order = txn->index.count++;
	change->put = put;
	return change;
}

static enum osd_status add_entry(struct osd_txn *txn, uint32_t page, uint32_t number,
				 const uint8_t *value, size_t length, bool put)
{
	struct osd_index_change *change = add_change(txn, put);

	if (!change)
		return OSD_E_NO_MEMORY;
	osd_index_key_entry(&txn->place, page, number, value, length, &change->key);
	return OSD_OK;
}

enum osd_status osd_index_note(struct osd_txn *txn, uint32_t page, uint32_t number,
			       const uint8_t *value, size_t length)
{
	struct osd_key key = osd_key_attribute(&txn->place, page, number);
	uint8_t old[OSD_INDEX_VALUE_BYTES];
	size_t old_length = 0;
	enum osd_status status =
		osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&key),
			   OSD_KV_RMW, old, sizeof(old), &old_length);

	if (status == OSD_OK)
		status = add_entry(txn, page, number, old, old_length, false);
	else if (status == OSD_E_NO_OBJECT)
		status = OSD_OK;
	if (status == OSD_OK && length)
		status = add_entry(txn, page, number, value, length, true);
	return status;
}

static int by_key(const void *a, const void *b)
{
	const struct osd_index_change *left = a, *right = b;
	int order = osd_index_key_compare(&left->key, &right->key);

	return order ? order : (left->order > right->order) - (left->order < right->order);
}

static enum osd_status apply(struct osd_txn *txn, const struct osd_index_change *change)
{
	enum osd_status status;

	if (change->put)
		return osd_kv_put(txn->kv, OSD_KV_INDEX, osd_index_key_bytes(&change->key),
				  (struct osd_bytes){"", 0}, 0);
	status = osd_kv_remove(txn->kv, OSD_KV_INDEX, osd_index_key_bytes(&change->key));
	/* In the stage FILL some values have no entry yet. */
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* Of changes of one entry the last one counts. */
enum osd_status osd_index_apply(struct osd_txn *txn)
{
	struct osd_index_change *list = txn->index.list;
	size_t count = txn->index.count;
	enum osd_status status = OSD_OK;

	atomic_fetch_add(&txn->objects->index_begun, 1);
	txn->index.applied = true;
	qsort(list, count, sizeof(*list), by_key);
	for (size_t i = 0; status == OSD_OK && i < count; i++)
		if (i + 1 == count || osd_index_key_compare(&list[i].key, &list[i + 1].key) != 0)
			status = apply(txn, &list[i]);
	return status;
}

/* ---- who is under way -------------------------------------------------------------------- */

void osd_index_enter(struct osd_txn *txn)
{
	struct osd_objects *objects = txn->objects;

	for (;;) {
		txn->index.side = atomic_load(&objects->index_side);
		atomic_fetch_add(&objects->index_users[txn->index.side & 1], 1);
		if (atomic_load(&objects->index_side) == txn->index.side)
			break;
		atomic_fetch_sub(&objects->index_users[txn->index.side & 1], 1);
	}
	txn->index.entered = true;
}

void osd_index_leave(struct osd_txn *txn)
{
	if (txn->index.applied)
		atomic_fetch_add(&txn->objects->index_ended, 1);
	if (txn->index.entered)
		atomic_fetch_sub(&txn->objects->index_users[txn->index.side & 1], 1);
	txn->index.applied = txn->index.entered = false;
	free(txn->index.list);
	txn->index.list = NULL;
	txn->index.count = txn->index.capacity = 0;
}

bool osd_index_grace(struct osd_objects *objects)
{
	unsigned side = atomic_fetch_add(&objects->index_side, 1);
	const struct timespec pause = {0, GRACE_POLL_NS};

	while (atomic_load(&objects->index_users[side & 1])) {
		if (osd_should_stop(objects))
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
