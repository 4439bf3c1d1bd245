/* SPDX-License-Identifier: GPL-2.0-or-later */
/* allocated.c -- the space that the files of an object occupy. */
#include "object/internal.h"

#include "base/util.h"

/* A thread that has the object locked may replace or cut its files.  Then the last known figure is the
 * answer. */
static enum osd_status entry_allocated(struct osd_object *object, bool nowait, bool locked,
				       uint64_t *ret_bytes)
{
	struct osd_data_stat stat = {0};
	struct osd_range range;
	enum osd_status status;

	if (!locked && osd_object_lock_read(object, &range, 0, UINT64_MAX, true) != OSD_OK) {
		*ret_bytes = atomic_load(&object->allocated);
		return OSD_OK;
	}
	status = nowait && !osd_tier_file_is_open(&object->file, 0, atomic_load(&object->length))
			 ? OSD_E_WOULD_BLOCK
			 : osd_tier_stat(&object->file, false, &stat);
	if (!locked)
		osd_object_unlock_read(object, &range);
	osd_cache_note_open(object);
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	atomic_store(&object->allocated, stat.allocated);
	*ret_bytes = stat.allocated;
	return OSD_OK;
}

/* For an object that is not in memory, or that this transaction has made. */
static enum osd_status record_allocated(struct osd_txn *txn, uint64_t *ret_bytes)
{
	struct osd_data_stat stat = {0};
	struct osd_tier_file file;
	enum osd_status status;

	osd_record_file_init(&file, &txn->objects->tier, &txn->place, &txn->record);
	status = osd_tier_stat(&file, false, &stat);
	osd_tier_file_release(&file);
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	*ret_bytes = stat.allocated;
	return OSD_OK;
}

enum osd_status osd_txn_allocated(struct osd_txn *txn, uint64_t *ret_bytes)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	bool nowait = txn->flags & OSD_TXN_NOWAIT;

	*ret_bytes = 0;
	if (!(txn->record.flags & OSD_REC_HAS_FILES))
		return OSD_OK;
	object = osd_cache_find(txn->objects, txn->id);
	if (object)
		return entry_allocated(object, nowait, object == txn->changing, ret_bytes);
	return nowait ? OSD_E_WOULD_BLOCK : record_allocated(txn, ret_bytes);
}
