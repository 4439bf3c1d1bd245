/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_objects.c -- objects of views: where they are stored, and how they come with those of the base (view.h).
 * object_removal.c has how they go. */
#include "base/util.h"
#include "object/internal.h"
#include "object/view_impl.h"
#include "wire/stage.h"

/* ---- what comes into the base ---------------------------------------------------------------------- */

static enum osd_status put_source(struct osd_txn *txn, struct osd_object_id id,
				  struct osd_object_id source, bool writable)
{
	struct osd_source_value value = {.partition_id = source.partition_id,
					 .object_id = source.object_id,
					 .writable = writable};
	uint8_t bytes[OSD_SOURCE_BYTES];
	enum osd_status status = osd_txn_take(txn, source, false);

	if (status != OSD_OK)
		return status;
	value.created_msec = osd_txn_time(txn, OSD_T_CREATED);
	osd_source_value_encode(&value, bytes);
	return osd_stack_put(txn, id, OSD_STACK_SOURCE, bytes, sizeof(bytes));
}

/* If the view has another object with this id, it stays as it is. */
static enum osd_status add_one(struct osd_txn *txn, struct osd_partition *partition, bool writable,
			       struct osd_object_id source)
{
	struct osd_record record;
	uint64_t id;
	enum osd_status status = osd_txn_let_go(txn);

	osd_fresh_record(txn->objects, partition, txn->now_ms, &record);
	if (status == OSD_OK)
		status = osd_object_put_new(txn, partition, source.object_id, 1, &record, &id);
	if (status != OSD_OK)
		return status == OSD_E_EXISTS ? OSD_OK : status;
	status = put_source(txn, (struct osd_object_id){partition->id, id}, source, writable);
	return status == OSD_OK ? osd_views_add(txn, partition, id, 1) : status;
}

enum osd_status osd_view_add_to(struct osd_txn *txn, const struct osd_view_entry *entry,
				uint64_t base_id, uint64_t first, uint32_t count)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_view view;
	bool there = false;
	enum osd_status status = osd_view_take(txn, entry, &there);

	if (status != OSD_OK || !there)
		return status;
	status = osd_view_of(txn, entry->id, &view);
	if (status == OSD_OK)
		status = osd_partition_get(txn->objects, txn, entry->id, &partition);
	if (status == OSD_OK)
		status = osd_partition_hold(txn, partition, false, NULL);
	for (uint32_t i = 0; i < count && status == OSD_OK; i++)
		status = osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED
					      : add_one(txn, partition, view.writable,
							(struct osd_object_id){base_id, first + i});
	return status;
}

/* Views of views call each other in here, as deep as osd_view_set permits. */
enum osd_status osd_views_add(struct osd_txn *txn, struct osd_partition *base, uint64_t first,
			      uint32_t count)
{
	struct osd_view_list list;
	bool before = txn->for_views;
	enum osd_status status = osd_views_of(txn, base, &list);

	txn->for_views = true;
	for (size_t i = 0; i < list.count && status == OSD_OK; i++)
		status = osd_view_add_to(txn, &list.entries[i], base->id, first, count);
	txn->for_views = before;
	return status;
}

/* ---- what a client makes in a view ----------------------------------------------------------------- */

/* The functions that check the base were not asked. */
static enum osd_status check_base(struct osd_txn *txn, uint64_t partition_id)
{
	return osd_hooks_above(txn->objects, partition_id) & OSD_HOOK_CREATE ? OSD_E_CHECK : OSD_OK;
}

enum osd_status osd_view_place(struct osd_txn *txn, uint64_t partition_id, uint64_t *ret_partition)
{
	struct osd_view view;
	unsigned hooks = osd_hooks_above(txn->objects, partition_id);
	enum osd_status status = osd_view_of(txn, partition_id, &view);

	*ret_partition = partition_id;
	if (status == OSD_OK && view.base)
		status = osd_txn_permitted(txn, hooks, OSD_HOOK_CREATE);
	while (status == OSD_OK && view.base) {
		if (!view.live || !view.writable || view.collection)
			return OSD_E_CONTRACT;
		*ret_partition = view.base;
		status = check_base(txn, view.base);
		if (status == OSD_OK)
			status = osd_view_of(txn, view.base, &view);
	}
	return status;
}

enum osd_status osd_view_shows(struct osd_txn *txn, uint64_t partition_id, uint64_t first,
			       uint32_t count)
{
	struct osd_source_value source;
	struct osd_view view;
	enum osd_status status = osd_view_of(txn, partition_id, &view);

	for (uint32_t i = 0; i < count && status == OSD_OK; i++) {
		status = osd_view_source(txn, (struct osd_object_id){partition_id, first + i},
					 &source);
		if (status == OSD_OK &&
		    (source.partition_id != view.base || source.object_id != first + i))
			status = OSD_E_EXISTS;
	}
	return status;
}
