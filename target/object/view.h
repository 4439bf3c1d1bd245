/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view.h -- views: partitions whose user objects are those of another partition, or of one of its collections
 * (docs/views.md).
 *
 * Each object of a view is a record of its own, with an attribute that names its source: the object of the base with the
 * same id.  The value OSD_STACK_SOURCE of the view's partition names the base.  The base has a list of its views, so the
 * transaction that makes or removes an object of the base does the same in each of them, and in their views.  No
 * quota or check of a view stands in the way of its base.
 *
 * A view of a collection has the members: the commit that changes them does the same in the view (view_follow.c).  If
 * the collection is a directory, its names are those of the view, without the directories in it.  Nothing is made in
 * such a view, and no name changes.
 *
 * Names are not copied: those in a view are those of its base, and a directory of the base is one of the view by the
 * same id.  It has the times and members that it has in the base, no other attributes, and cannot be changed but by
 * names.
 *
 * Ids that a view gives to its own collections and jobs begin at OSD_VIEW_IDS: the base gives out others. */
#ifndef OSD_OBJECT_VIEW_H
#define OSD_OBJECT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "object/record.h"

#define OSD_VIEWS_MAX  16u /* of one partition */
#define OSD_VIEWS_DEEP 4u  /* views of views */
#define OSD_VIEW_IDS   (UINT64_C(1) << 61)

struct osd_view {
	uint64_t base; /* a partition; 0: it is no view */
	uint64_t collection; /* of the base, whose members it shows; 0: all user objects */
	bool writable;
	bool live; /* the base has it in its list: false once the base or the collection was removed */
};

#define OSD_VIEW_VALUE_MAX 17u

/* The value OSD_STACK_SOURCE of a partition: 0-7 base; perhaps 8 flags: 1 writable; perhaps 9-16 collection.  False: it is
 * not such a value. */
bool osd_view_value_decode(const uint8_t *value, size_t length, struct osd_view *ret_view);
/* The partition that has the names in this one: the base of its base, if it is a view that is live.  With an object id:
 * the directory that has all of its names.  The object at hand stays.  OSD_E_CONTRACT: change, and names cannot be changed through it.  OSD_E_WOULD_BLOCK: with OSD_TXN_NOWAIT only. */
enum osd_status osd_view_tree(struct osd_txn *txn, uint64_t partition_id, bool change,
			      struct osd_place *ret_tree);
/* False: the partition is no view.  Reads memory alone; any thread. */
bool osd_view_may_be(struct osd_objects *objects, uint64_t partition_id);
/* The kind of the partition.  Afterwards another object may be at hand, as after all that follow. */
enum osd_status osd_view_of(struct osd_txn *txn, uint64_t partition_id, struct osd_view *ret_view);
/* Makes a partition without objects a view; length 0: it is none any more, and keeps its objects.  OSD_E_PARAM_FIELD: it
 * has objects, the base or collection cannot be one, or has OSD_VIEWS_MAX views. */
enum osd_status osd_view_set(struct osd_txn *txn, uint64_t partition_id, const uint8_t *value,
			     size_t length);
/* The partition that stores an object which a client makes in this one.  If it is another one, make the object there,
 * and call osd_view_shows.  OSD_E_CONTRACT: nothing can be made here; OSD_E_CHECK: functions check what is made in a
 * base, and nobody has asked them. */
enum osd_status osd_view_place(struct osd_txn *txn, uint64_t partition_id, uint64_t *ret_partition);
/* Whether the view has got the objects that were made in the place of it.  OSD_E_EXISTS: it has others with these ids. */
enum osd_status osd_view_shows(struct osd_txn *txn, uint64_t partition_id, uint64_t first,
			       uint32_t count);
/* Whether the view may have the object: it is in the collection, and stays there to the end of the transaction. */
enum osd_status osd_view_admits(struct osd_txn *txn, const struct osd_view *view,
				uint64_t object_id, bool *ret_admits);

#endif
