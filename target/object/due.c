/* SPDX-License-Identifier: GPL-2.0-or-later */
/* due.c -- see due.h. */
#include "object/due.h"

#include "base/util.h"
#include "object/internal.h"
#include "wire/cursor.h"

void osd_objects_watch_due(struct osd_objects *objects,
			   void (*fn)(void *arg, struct osd_object_id id), void *arg)
{
	objects->due_watcher.arg = arg;
	objects->due_watcher.fn = fn;
}

/* ---- marks --------------------------------------------------------------------------------------- */

static void run_marked(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (committed)
		osd_due_tell(txn->objects, effect->id, 1);
}

enum osd_status osd_due_mark(struct osd_txn *txn, struct osd_object_id id)
{
	enum osd_status status = osd_txn_take(txn, id, true);

	if (status == OSD_OK && osd_txn_type(txn) != OSD_USER_OBJECT)
		status = OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return status;
	txn->record.flags |= OSD_REC_DUE;
	txn->dirty = true;
	return osd_txn_add_effect(txn, (struct osd_effect){.run = run_marked, .id = id});
}

enum osd_status osd_is_due(struct osd_txn *txn, struct osd_object_id id, bool *ret_due)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status == OSD_OK)
		*ret_due = txn->id.object_id && txn->record.flags & OSD_REC_DUE;
	return status;
}

/* The record still has the flag. */
static void stays_due(void *arg, bool committed)
{
	struct osd_object *object = arg;

	if (!committed)
		atomic_store(&object->due, true);
}

enum osd_status osd_due_done(struct osd_txn *txn, struct osd_object *object,
			     struct osd_data_version version, bool *ret_done)
{
	enum osd_status status = osd_txn_take(txn, object->id, true);

	*ret_done = false;
	if (status != OSD_OK || txn->record.generation != object->generation)
		return status; /* a later object under the same id, or a PUNCH under way */
	status = osd_txn_on_end(txn, stays_due, object);
	if (status != OSD_OK)
		return status;
	osd_lock(&object->mutex);
	if (object->writers == 0 && atomic_load(&object->resizing) == 0 &&
	    osd_same_version(version, osd_version_of(object))) {
		atomic_store(&object->due, false);
		*ret_done = true;
	}
	osd_unlock(&object->mutex);
	if (!*ret_done)
		return OSD_OK;
	txn->record.flags = (uint16_t)(txn->record.flags & ~OSD_REC_DUE);
	txn->dirty = true;
	return OSD_OK;
}

/* ---- all of them --------------------------------------------------------------------------------- */

struct listing {
	struct osd_objects *objects;
	struct osd_object_id after;
	struct osd_object_id *ids;
	size_t count, capacity;
	struct osd_partition *partition; /* reference; of the last record */
};

static bool take(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct listing *listing = arg;
	const uint8_t *bytes = key.data;
	struct osd_object_id id;
	struct osd_record record;

	if (key.length < OSD_KEY_OBJECT_PART ||
	    osd_record_decode(value.data, value.length, &record) != OSD_OK ||
	    !(record.flags & OSD_REC_DUE))
		return true;
	id = (struct osd_object_id){osd_get_be(bytes, 8),
				    osd_get_be(bytes + OSD_KEY_PARTITION_PART, 8)};
	if (osd_same_id(id, listing->after) ||
	    !osd_partition_of_key(listing->objects, bytes, &listing->partition))
		return true;
	listing->ids[listing->count++] = id;
	return listing->count < listing->capacity;
}

enum osd_status osd_due_list(struct osd_objects *objects, struct osd_object_id after,
			     struct osd_object_id *ids, size_t capacity, size_t *ret_count)
{
	struct listing listing = {.objects = objects, .after = after, .ids = ids, .capacity = capacity};
	uint8_t from[OSD_KEY_OBJECT_PART] = {0};
	enum osd_status status;

	osd_put_be(from, after.partition_id, 8);
	if (after.object_id) {
		OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;

		if (osd_partition_get(objects, NULL, after.partition_id, &partition) == OSD_OK)
			osd_put_be(from + 8, partition->incarnation, 4);
		osd_put_be(from + 12, after.object_id, 8);
	}
	status = osd_kv_scan(objects->kv, NULL, OSD_KV_OBJECTS,
			     (struct osd_bytes){from, sizeof(from)}, 0, take, &listing);
	osd_partition_put(listing.partition);
	*ret_count = listing.count;
	return status;
}
