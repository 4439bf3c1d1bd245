/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_impl.h -- view.h for this folder. */
#ifndef OSD_OBJECT_VIEW_IMPL_H
#define OSD_OBJECT_VIEW_IMPL_H

#include "object/txn.h"
#include "object/view.h"

struct osd_partition;
struct osd_source_value;

/* Bytes of the list of a base: id and incarnation of a view; in OSD_STACK_PARTS, the collection, too. */
#define OSD_VIEW_ENTRY_BYTES 12u
#define OSD_VIEW_PART_BYTES  20u
#define OSD_VIEW_LIST_BYTES  (OSD_VIEWS_MAX * OSD_VIEW_PART_BYTES)

struct osd_view_entry {
	uint64_t id;
	uint32_t incarnation;
	uint64_t collection; /* 0: all user objects */
};
struct osd_view_list {
	size_t count;
	struct osd_view_entry entries[OSD_VIEWS_MAX];
};

/* ---- view_tree.c ------------------------------------------------------------------------------ */

/* The directory of the view at hand, which has no record there: takes up that of the base.  OSD_E_NO_OBJECT: the base
 * has none with this id.  OSD_E_CONTRACT: write. */
enum osd_status osd_view_directory(struct osd_txn *txn, bool write);

struct osd_member_change {
	struct osd_place collection;
	uint64_t member; /* 0: the collection is removed */
};

/* The list of a base that has, or would have, such a view: its number, and the bytes of each entry. */
static inline uint32_t osd_view_list_number(uint64_t collection)
{
	return collection ? OSD_STACK_PARTS : OSD_STACK_VIEWS;
}

static inline size_t osd_view_entry_bytes(uint64_t collection)
{
	return collection ? OSD_VIEW_PART_BYTES : OSD_VIEW_ENTRY_BYTES;
}

/* ---- view_list.c ------------------------------------------------------------------------------ */

/* The views of a partition.  The list may have some that were removed. */
enum osd_status osd_views_of(struct osd_txn *txn, struct osd_partition *base,
			     struct osd_view_list *ret_list);
/* Those of its collections. */
enum osd_status osd_views_of_parts(struct osd_txn *txn, uint64_t base_id,
				   struct osd_view_list *ret_list);
/* The collection keeps its members to the end of the transaction.  OSD_E_PARAM_FIELD: the partition has none with this id. */
enum osd_status osd_view_hold_part(struct osd_txn *txn, uint64_t base_id, uint64_t collection);
/* The collection was removed: it has no views any more. */
enum osd_status osd_views_drop_part(struct osd_txn *txn, uint64_t base_id, uint64_t collection);
/* Takes up the view's partition.  *ret_there: it is there, and no later one with its id. */
enum osd_status osd_view_take(struct osd_txn *txn, const struct osd_view_entry *entry,
			      bool *ret_there);
/* The source of the object.  Partition 0: it has none. */
enum osd_status osd_view_source(struct osd_txn *txn, struct osd_object_id id,
				struct osd_source_value *ret_source);
/* In the transaction that removes the partition, which is held for a change. */
enum osd_status osd_view_removed(struct osd_txn *txn, const struct osd_partition *partition);
/* Sets the bits of a partition when the store is opened, before other threads run. */
enum osd_status osd_views_load(struct osd_objects *objects, struct osd_partition *partition);

/* ---- view_objects.c --------------------------------------------------------------------------- */

/* Objects were made in the partition: its views get them, too. */
enum osd_status osd_views_add(struct osd_txn *txn, struct osd_partition *base, uint64_t first,
			      uint32_t count);
/* One view gets them. */
enum osd_status osd_view_add_to(struct osd_txn *txn, const struct osd_view_entry *entry,
				uint64_t base_id, uint64_t first, uint32_t count);

/* ---- object_removal.c ------------------------------------------------------------------------- */

/* One view, and its views, lose the object that shows this one. */
enum osd_status osd_view_remove_from(struct osd_txn *txn, const struct osd_view_entry *entry,
				     struct osd_object_id source);

/* ---- view_follow.c ----------------------------------------------------------------------------- */

/* Before the commit: the views of these collections follow.  Their records become locked, as in the transaction that makes
 * a view of one. */
enum osd_status osd_views_follow_members(struct osd_txn *txn);

/* ---- view_members.c --------------------------------------------------------------------------- */

/* The member joins the collection, or leaves it; 0: the collection is removed, after its members have left.
 * *ret_missed: the partition has no view of a collection, so nothing is noted (osd_version_note_members). */
enum osd_status osd_views_note_member(struct osd_txn *txn, const struct osd_place *collection,
				      uint64_t member, bool *ret_missed);
/* The records of the collections are locked.  OSD_E_CONFLICT: one with a change that was missed may have got a view. */
enum osd_status osd_views_check_noted(struct osd_txn *txn);

#endif
