/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_time.c -- timestamps (osd2-wire 5.13): which of them a command changes, unless the command or a
 * timestamp bypass attribute says otherwise.
 *
 *   what happens                        whose time                     which
 *   attributes read                     the object's                   attributes accessed
 *   attributes set                      the object's                   attributes modified
 *   user object read                    its own and its partition's    data accessed
 *   user object written, cut, extended  its own and its partition's    data modified
 *   objects listed                      the partition's                data accessed
 *   object made or removed              the partition's                data modified
 *   members listed, queried             the collection's               data accessed
 *   member joins, leaves, is removed    the collection's               data modified
 *
 * The times of the collection of all user objects are its partition's.  A partition's bypass holds for
 * everything in it, the root's for the root.  Access times in records may lag: they are kept
 * in memory and written later.  Reading and writing note theirs in data.c, making and removing in
 * object.c. */
#include "object/internal.h"

#include "base/util.h"
#include "wire/osd2.h"

uint8_t osd_root_bypass(struct osd_objects *objects)
{
	uint8_t bypass;

	osd_read_lock(&objects->partitions_lock);
	bypass = objects->root.common.bypass;
	osd_rw_unlock(&objects->partitions_lock);
	return bypass;
}

/* Of the object at hand. */
static bool times_stand_still(struct osd_txn *txn)
{
	if (txn->flags & OSD_TXN_NO_TIMESTAMPS)
		return true;
	return (txn->partition ? atomic_load(&txn->partition->bypass)
			       : osd_root_bypass(txn->objects)) == OSD_TIMESTAMPS_BYPASS;
}

uint64_t osd_txn_time(struct osd_txn *txn, enum osd_time which)
{
	const struct osd_place *at = osd_txn_members(txn);
	struct osd_object *object;
	uint64_t value;

	if (txn->id.partition_id == 0)
		return atomic_load(&txn->objects->root_times[which]);
	if (txn->id.object_id == 0)
		return atomic_load(&txn->partition->times[which]);
	object = osd_cache_find(txn->objects,
				(struct osd_object_id){at->partition_id, at->object_id});
	value = object ? OSD_MAX(txn->record.times[which], atomic_load(&object->times[which]))
		       : txn->record.times[which];
	osd_object_put(object);
	return value;
}

/* In memory, of the root or the partition at hand. */
static void note_container(struct osd_txn *txn, enum osd_time which)
{
	if (txn->partition) {
		atomic_store(&txn->partition->times[which], txn->now_ms);
		atomic_store(&txn->partition->times_dirty, true);
	} else {
		atomic_store(&txn->objects->root_times[which], txn->now_ms);
		atomic_store(&txn->objects->root_times_dirty, true);
	}
}

static void note_accessed(struct osd_txn *txn, enum osd_time which)
{
	struct osd_object *object;

	if (txn->shown)
		return;
	if (txn->id.object_id == 0 || osd_is_objects_collection(txn->id)) {
		note_container(txn, which);
		return;
	}
	/* Memory must not show this transaction's changes before it commits. */
	object = txn->kv && !(txn->flags & OSD_TXN_READ_ONLY)
			 ? osd_cache_find(txn->objects, txn->id)
			 : osd_cache_adopt(txn);
	if (object) {
		atomic_store(&object->times[which], txn->now_ms);
		atomic_store(&object->times_dirty, true);
	}
	osd_object_put(object);
}

void osd_note_attr_access(struct osd_txn *txn)
{
	if (txn->accessed || (txn->flags & OSD_TXN_INTERNAL) || times_stand_still(txn))
		return;
	txn->accessed = true;
	note_accessed(txn, OSD_T_ATTR_ACCESSED);
}

void osd_note_list_access(struct osd_txn *txn)
{
	/* The root has no times of data. */
	if (!txn->partition || (txn->flags & OSD_TXN_INTERNAL) || times_stand_still(txn))
		return;
	note_accessed(txn, OSD_T_DATA_ACCESSED);
}

void osd_note_attr_change(struct osd_txn *txn)
{
	if (times_stand_still(txn))
		return;
	if (txn->id.object_id == 0 || osd_is_objects_collection(txn->id))
		note_container(txn, OSD_T_ATTR_MODIFIED);
	else
		txn->record.times[OSD_T_ATTR_MODIFIED] = txn->now_ms;
}

void osd_note_data_change(struct osd_txn *txn)
{
	if (!times_stand_still(txn))
		txn->record.times[OSD_T_DATA_MODIFIED] = txn->now_ms;
}

/* ---- members ----------------------------------------------------------------------------- */

static void run_members_changed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_object *collection;

	/* A collection that was removed has no times. */
	if (!committed || osd_cache_get(txn->objects, effect->id, &collection) != OSD_OK)
		return;
	atomic_store(&collection->times[OSD_T_DATA_MODIFIED], effect->value);
	atomic_store(&collection->times_dirty, true);
	osd_object_put(collection);
}

enum osd_status osd_note_members_change(struct osd_txn *txn, const struct osd_place *collection)
{
	struct osd_object_id id = {collection->partition_id, collection->object_id};
	const struct osd_effect *last = txn->last_changed_members;
	struct osd_effect *effect;

	if (times_stand_still(txn) || (last && osd_same_id(last->id, id)))
		return OSD_OK;
	effect = osd_txn_effect(txn, run_members_changed);
	if (!effect)
		return OSD_E_NO_MEMORY;
	effect->id = id;
	effect->value = txn->now_ms;
	txn->last_changed_members = effect;
	return OSD_OK;
}
