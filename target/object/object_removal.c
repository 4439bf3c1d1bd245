/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object_removal.c -- removing user objects, with those that show them in views (view.h). */
#include "base/util.h"
#include "object/internal.h"
#include "object/view_impl.h"
#include "wire/stage.h"

/* The object at hand, which is locked. */
static enum osd_status remove_one(struct osd_txn *txn)
{
	struct osd_object_id id = txn->id;
	enum osd_status status = txn->objects->unname(txn);

	if (status == OSD_OK)
		status = osd_memberships_drop_all(txn);
	if (status == OSD_OK)
		status = osd_stack_removed(txn, false);
	if (status == OSD_OK)
		status = osd_object_remove_record(txn);
	return status == OSD_OK ? osd_note_removal(txn, id) : status;
}

/* ---- from views ------------------------------------------------------------------------------------ */

static enum osd_status remove_from_views(struct osd_txn *txn, struct osd_partition *base,
					 uint64_t object_id);

/* If the view shows another object there, or none, nothing is removed. */
enum osd_status osd_view_remove_from(struct osd_txn *txn, const struct osd_view_entry *entry,
				     struct osd_object_id source)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_object_id id = {entry->id, source.object_id};
	struct osd_source_value shown;
	bool there = false;
	enum osd_status status = osd_view_take(txn, entry, &there);

	if (status != OSD_OK || !there)
		return status;
	status = osd_view_source(txn, id, &shown);
	if (status != OSD_OK || shown.partition_id != source.partition_id ||
	    shown.object_id != source.object_id)
		return osd_status_is_gone(status) ? OSD_OK : status;
	status = osd_partition_get(txn->objects, txn, entry->id, &partition);
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, true);
	if (status == OSD_OK)
		status = remove_one(txn);
	return status == OSD_OK ? remove_from_views(txn, partition, id.object_id) : status;
}

static enum osd_status remove_from_views(struct osd_txn *txn, struct osd_partition *base,
					 uint64_t object_id)
{
	struct osd_view_list list;
	enum osd_status status = osd_views_of(txn, base, &list);

	for (size_t i = 0; i < list.count && status == OSD_OK; i++)
		status = osd_view_remove_from(txn, &list.entries[i],
					      (struct osd_object_id){base->id, object_id});
	return status;
}

/* ---- the object that a client names ---------------------------------------------------------------- */

/* The source of an object of a view that is there.  *ret_source partition 0: there is none, and the object is one as
 * others. */
static enum osd_status source_in_base(struct osd_txn *txn, struct osd_object_id id,
				      struct osd_view *view, struct osd_object_id *ret_source)
{
	struct osd_source_value source = {0};
	enum osd_status status = osd_view_of(txn, id.partition_id, view);

	*ret_source = (struct osd_object_id){0};
	if (status == OSD_OK && view->live)
		status = osd_view_source(txn, id, &source);
	if (status != OSD_OK || source.partition_id == 0 || source.partition_id != view->base)
		return status;
	*ret_source = (struct osd_object_id){source.partition_id, source.object_id};
	status = osd_txn_take(txn, *ret_source, false);
	if (status == OSD_OK && osd_txn_time(txn, OSD_T_CREATED) != source.created_msec)
		status = OSD_E_NO_OBJECT;
	if (osd_status_is_gone(status)) {
		*ret_source = (struct osd_object_id){0};
		status = OSD_OK;
	}
	return status;
}

/* An object of a writable view goes with its source.  The functions that check the source were not asked. */
static enum osd_status find_stored(struct osd_txn *txn, struct osd_object_id *id)
{
	struct osd_object_id source;
	struct osd_view view;
	enum osd_status status = source_in_base(txn, *id, &view, &source);

	while (status == OSD_OK && source.partition_id) {
		if (!view.writable)
			return OSD_E_CONTRACT;
		*id = source;
		status = osd_txn_take(txn, source, false);
		if (status == OSD_OK && osd_txn_hooks(txn) & OSD_HOOK_REMOVE)
			status = OSD_E_CHECK;
		if (status == OSD_OK)
			status = source_in_base(txn, *id, &view, &source);
	}
	return status;
}

enum osd_status osd_user_object_remove(struct osd_txn *txn, struct osd_object_id id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = osd_txn_take_type(txn, id, OSD_USER_OBJECT, true);

	if (status == OSD_OK)
		status = osd_txn_permitted(txn, osd_txn_hooks(txn), OSD_HOOK_REMOVE);
	if (status == OSD_OK && txn->record.flags & OSD_REC_STACKED)
		status = find_stored(txn, &id);
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, true);
	if (status != OSD_OK)
		return status;
	partition = osd_partition_ref(txn->partition);
	status = remove_one(txn);
	return status == OSD_OK ? remove_from_views(txn, partition, id.object_id) : status;
}
