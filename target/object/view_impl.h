/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_impl.h -- view.h for this folder. */
#ifndef OSD_OBJECT_VIEW_IMPL_H
#define OSD_OBJECT_VIEW_IMPL_H

#include "object/txn.h"
#include "object/view.h"

struct osd_partition;
struct osd_source_value;

#define OSD_VIEW_ENTRY_BYTES 12u /* of the list of a base: id and incarnation of a view */

struct osd_view_entry {
	uint64_t id;
	uint32_t incarnation;
};
struct osd_view_list {
	size_t count;
	struct osd_view_entry entries[OSD_VIEWS_MAX];
};

/* ---- view_tree.c ------------------------------------------------------------------------------ */

/* The directory of the view at hand, which has no record there: takes up that of the base.  OSD_E_NO_OBJECT: the base
 * has none with this id.  OSD_E_CONTRACT: write. */
enum osd_status osd_view_directory(struct osd_txn *txn, bool write);

/* ---- view_list.c ------------------------------------------------------------------------------ */

/* The views of a partition.  The list may have some that were removed. */
enum osd_status osd_views_of(struct osd_txn *txn, struct osd_partition *base,
			     struct osd_view_list *ret_list);
/* Takes up the view's partition.  *ret_there: it is there, and no later one with its id. */
enum osd_status osd_view_take(struct osd_txn *txn, const struct osd_view_entry *entry,
			      bool *ret_there);
/* The source of the object.  Partition 0: it has none. */
enum osd_status osd_view_source(struct osd_txn *txn, struct osd_object_id id,
				struct osd_source_value *ret_source);
/* In the transaction that removes the partition, which is held for a change. */
enum osd_status osd_view_removed(struct osd_txn *txn, const struct osd_partition *partition);
/* Sets the bits of partitions when the store is opened, before other threads run. */
enum osd_status osd_views_load(struct osd_objects *objects);

/* ---- view_objects.c --------------------------------------------------------------------------- */

/* Objects were made in the partition: its views get them, too. */
enum osd_status osd_views_add(struct osd_txn *txn, struct osd_partition *base, uint64_t first,
			      uint32_t count);

#endif
