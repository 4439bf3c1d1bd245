/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hooks_impl.h -- hooks.h for this folder. */
#ifndef OSD_OBJECT_HOOKS_IMPL_H
#define OSD_OBJECT_HOOKS_IMPL_H

#include <stdatomic.h>

#include "object/hooks.h"
#include "object/record.h"

struct osd_object;
struct osd_partition;

#define OSD_REC_HOOKS_SHIFT 6 /* of enum osd_hook_event, in the flags of a record */

/* Reads the values of a page, of hooks or of stages, of one object. */
struct osd_values_read {
	osd_stack_fn *fn;
	void *arg;
	enum osd_stack_level level;
	bool counts; /* fn has returned true */
	bool damaged;
};
enum osd_status osd_values_read(struct osd_objects *objects, struct osd_kv_txn *kv,
				struct osd_values_read *read, const struct osd_place *place,
				uint32_t page);
/* The events that have hooks of the object's own. */
static inline unsigned osd_record_hooks(const struct osd_record *record)
{
	return record->flags >> OSD_REC_HOOKS_SHIFT &
	       (OSD_HOOK_WRITE | OSD_HOOK_REMOVE | OSD_HOOK_SET | OSD_HOOK_AFTER);
}
/* The events of the user object at hand that have hooks. */
unsigned osd_txn_hooks(const struct osd_txn *txn);
/* Of the user objects in the partition. */
unsigned osd_hooks_of_partition(const struct osd_objects *objects,
				const struct osd_partition *partition);
/* Of a record that is about to be made. */
unsigned osd_hooks_of_new(const struct osd_objects *objects, const struct osd_partition *partition,
			  const struct osd_record *record);
/* Whether a change of data with these flags needs no check any more. */
bool osd_data_change_permitted(const struct osd_object *object, unsigned flags);
/* OSD_E_CHECK: of these hooks some concern the events, and the transaction has not asked them. */
enum osd_status osd_txn_permitted(const struct osd_txn *txn, unsigned hooks, unsigned events);
/* Called with bytes locked for a change that is about to begin: the record says that the object is due, if functions
 * follow it. */
enum osd_status osd_object_make_due(struct osd_object *object);
bool osd_object_lacks_due(const struct osd_object *object);
/* Called after a change of data, and after count objects were made. */
void osd_due_tell(struct osd_objects *objects, struct osd_object_id first, uint64_t count);
/* Hooks, or a stack: functions and objects of jobs are what they are. */
bool osd_may_have_hooks(uint64_t partition_id, bool surrogate);
/* hooks: a mask in memory. keep: the later one of it and value. */
static inline unsigned osd_hook_mask(const _Atomic uint64_t *hooks)
{
	return (uint8_t)atomic_load_explicit(hooks, memory_order_acquire);
}
void osd_hook_mask_keep(_Atomic uint64_t *hooks, uint64_t value);
/* Set the mask, and the bit of stages, of a partition (NULL: of the root) when the store is opened. */
enum osd_status osd_hooks_load(struct osd_objects *objects, struct osd_partition *partition);
enum osd_status osd_stack_load(struct osd_objects *objects, struct osd_partition *partition);
/* FORMAT OSD has removed everything. */
void osd_hooks_forget(struct osd_objects *objects);

#endif
