/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack.h -- stacks of functions as the store keeps them (docs/views.md): the values of one page of the root, of a
 * partition, of a collection or of a user object.  function/stack.h knows what a value means.
 *
 * A READ must find out at once that no function concerns it.  So a bit says that there may be values: in the record
 * and the entry of a user object, in the partition and in the root.  A partition with a collection that has values has
 * one itself, their number, and so its bit: only then are the collections of an object looked up.  The bits of
 * partitions and of the root are masks with a number (hook_mask.c): of two changes at the same time, the later one
 * counts.  In memory an object's own bit only ever becomes true.  An object whose bit is left over is read as one
 * without functions, a little later. */
#ifndef OSD_OBJECT_STACK_H
#define OSD_OBJECT_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"

#define OSD_STACK_STAGES    16u	 /* values 1 to 16 of a page: functions */
#define OSD_STACK_SOURCE    17u	 /* of a user object: another one, whose data it shows; of a partition: another one */
#define OSD_STACK_WHY	    18u	 /* of a user object: how its data came about; not stored, and in no list of values */
#define OSD_STACK_COLLECTIONS 18u /* of a partition: how many of its collections have values, 8 bytes; never set directly */
#define OSD_STACK_VIEWS	    19u	 /* of a partition: its views (view_list.c); the same */
#define OSD_STACK_PARTS	    20u	 /* of a partition: the views of its collections; the same */
#define OSD_STACK_DEFINERS  64u	 /* + that of a stage: the principal that has set it, never set directly */
#define OSD_STACK_VALUE_MAX 1280u /* bytes of a value */

/* The level of a value, the nearest first. */
enum osd_stack_level {
	OSD_STACK_OWN,
	OSD_STACK_COLLECTION,
	OSD_STACK_PARTITION,
	OSD_STACK_ROOT,
	OSD_STACK_LEVELS
};

/* The page of objects of this type. */
uint32_t osd_stack_page(enum osd_object_type type);
/* Whether the object, its partition or the root may have values.  False for objects of jobs and for functions.  Any
 * thread; reads memory alone. */
bool osd_object_is_stacked(const struct osd_object *object);
/* The same for the object of a transaction, which it takes up. */
enum osd_status osd_stack_is_there(struct osd_txn *txn, struct osd_object_id id, bool *ret_there);
/* Stores a value of the object's page; length 0 removes it.  Afterwards another object may be at hand. */
enum osd_status osd_stack_put(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
			      const uint8_t *value, size_t length);
/* The collection at hand is removed, so its values do not count any more.  Then another object is at hand. */
enum osd_status osd_stack_drop_collection(struct osd_txn *txn);
/* Calls fn for the values that may concern the user object, in ascending order: its own, then those of its collections
 * from the least id on, those of its partition and those of the root.  fn returns whether a value counts: then it is
 * called for the others of the same object, and for no later one.  length is at most OSD_STACK_VALUE_MAX; a longer one
 * is damaged: OSD_E_MEDIUM. */
typedef bool osd_stack_fn(void *arg, enum osd_stack_level level, uint32_t number,
			  const uint8_t *value, size_t length);
enum osd_status osd_stack_each(struct osd_txn *txn, struct osd_object_id id, osd_stack_fn *fn,
			       void *arg);
/* The same for an object that is being made: it has no own values yet. */
struct osd_stack_made {
	uint64_t partition_id;
	const uint64_t *collections; /* that it joins, in ascending order */
	size_t count;
};
enum osd_status osd_stack_each_above(struct osd_txn *txn, const struct osd_stack_made *made,
				     osd_stack_fn *fn, void *arg);
/* Whether osd_stack_each_above may find values; reads memory alone, any thread. */
bool osd_stack_may_be_above(struct osd_objects *objects, uint64_t partition_id);
/* In a transaction that removes the object at hand or, with partition, everything in a partition. */
enum osd_status osd_stack_removed(struct osd_txn *txn, bool partition);
/* In a transaction that changes the members of a collection of the partition at hand. */
enum osd_status osd_stack_members_changed(struct osd_txn *txn);
/* How often the stack of some object may have changed since the store was opened.  It is counted after the commit and
 * before the command ends. */
uint64_t osd_stacks_changes(const struct osd_objects *objects);
/* The object that stores the data which this one shows: the last of its sources, with a reference.  *ret_source NULL: it
 * has none.  OSD_E_NO_PARTITION, OSD_E_NO_OBJECT: a source is gone.  Outside of transactions. */
enum osd_status osd_object_get_source(struct osd_object *object, struct osd_object **ret_source);

/* Facts from function/ about the user object at hand in a transaction, whose bit is set. */
struct osd_stack_ops {
	/* The length that readers find, of so many stored bytes, or of the bytes of its source.  *ret_known: it is known.
	 * Afterwards another object may be at hand. */
	enum osd_status (*length)(void *arg, struct osd_txn *txn, struct osd_object_id id,
				  uint64_t stored, uint64_t *ret_length, bool *ret_known);
	/* Whether its data pass through functions. */
	enum osd_status (*concerns)(void *arg, struct osd_txn *txn, struct osd_object_id id,
				    bool *ret_concerns);
	/* The object that has no bytes any more when this one's length is set to 0.  OSD_E_PARAM_FIELD: it may not
	 * be set. */
	enum osd_status (*emptied)(void *arg, struct osd_txn *txn, struct osd_object_id id,
				   struct osd_object_id *ret_id);
	void *arg;
};
/* Set before other threads use objects.  Without them, no data pass through functions. */
void osd_objects_set_stack_ops(struct osd_objects *objects, const struct osd_stack_ops *ops);
/* The same for any object at hand. */
enum osd_status osd_stack_length(struct osd_txn *txn, uint64_t stored, uint64_t *ret_length,
				 bool *ret_known);
enum osd_status osd_stack_concerns(struct osd_txn *txn, bool *ret_concerns);
enum osd_status osd_stack_emptied(struct osd_txn *txn, struct osd_object_id *ret_id);

#endif
