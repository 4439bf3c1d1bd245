/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_mask.c -- which events have hooks, in memory (hooks.h).  A mask in memory is one number: the mask in its low
 * byte, and above it the number of the change that made it.  A change takes its number while it has the values locked,
 * so of two that end at the same time the later one stays.  An object's mask is that of its record, without a number
 * (osd_cache_record_changed). */
#include "object/internal.h"

#include "base/util.h"

_Static_assert(OSD_REC_CHECKED == (OSD_HOOK_CHECKS & ~OSD_HOOK_CREATE) << OSD_REC_HOOKS_SHIFT &&
		       OSD_REC_FOLLOWED == OSD_HOOK_AFTER << OSD_REC_HOOKS_SHIFT,
	       "the flags of a record are a mask of events");

bool osd_may_have_hooks(uint64_t partition_id, bool surrogate)
{
	return partition_id > OSD_FUNCTION_PARTITION_LAST && !surrogate;
}

static unsigned above(const struct osd_objects *objects, const struct osd_partition *partition)
{
	return osd_hook_mask(&partition->hooks) | osd_hook_mask(&objects->hooks);
}

bool osd_hooks_any(const struct osd_objects *objects)
{
	return atomic_load_explicit(&objects->hooked, memory_order_acquire);
}

unsigned osd_object_hooks(const struct osd_object *object)
{
	unsigned mask = osd_hook_mask(&object->hooks) | above(object->objects, object->partition);

	return mask && osd_may_have_hooks(object->id.partition_id, object->surrogate) ? mask : 0;
}

unsigned osd_hooks_of_new(const struct osd_objects *objects, const struct osd_partition *partition,
			  const struct osd_record *record)
{
	return record->type == OSD_USER_OBJECT &&
			       osd_may_have_hooks(partition->id, record->flags & OSD_REC_SURROGATE)
		       ? osd_record_hooks(record) | above(objects, partition)
		       : 0;
}

unsigned osd_txn_hooks(const struct osd_txn *txn)
{
	return txn->id.object_id ? osd_hooks_of_new(txn->objects, txn->partition, &txn->record) : 0;
}

unsigned osd_hooks_of_partition(const struct osd_objects *objects,
				const struct osd_partition *partition)
{
	return osd_may_have_hooks(partition->id, false) ? above(objects, partition) : 0;
}

unsigned osd_hooks_above(struct osd_objects *objects, uint64_t partition_id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;

	return osd_partition_get(objects, NULL, partition_id, &partition) == OSD_OK
		       ? osd_hooks_of_partition(objects, partition)
		       : 0;
}

bool osd_data_change_permitted(const struct osd_object *object, unsigned flags)
{
	return flags & OSD_DATA_CHECKED || !(osd_object_hooks(object) & OSD_HOOK_WRITE);
}

enum osd_status osd_txn_permitted(const struct osd_txn *txn, unsigned hooks, unsigned events)
{
	return hooks & events && !txn->for_views &&
			       !(txn->flags & (OSD_TXN_CHECKED | OSD_TXN_INTERNAL))
		       ? OSD_E_CHECK
		       : OSD_OK;
}

bool osd_object_lacks_due(const struct osd_object *object)
{
	return osd_object_hooks(object) & OSD_HOOK_AFTER && !atomic_load(&object->due);
}

void osd_due_tell(struct osd_objects *objects, struct osd_object_id first, uint64_t count)
{
	for (; count && objects->due_watcher.fn; count--, first.object_id++)
		objects->due_watcher.fn(objects->due_watcher.arg, first);
}

void osd_hook_mask_keep(_Atomic uint64_t *hooks, uint64_t value)
{
	uint64_t old = atomic_load(hooks);

	while (old >> 8 < value >> 8 && !atomic_compare_exchange_weak(hooks, &old, value))
		;
}
