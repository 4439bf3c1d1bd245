/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hooks.c -- see hooks.h.  Here: the values.  hook_mask.c has the masks. */
#include "object/hooks.h"

#include "object/internal.h"
#include "wire/cursor.h"
#include "wire/hook.h"

_Static_assert(OSD_HOOK_VALUE_MAX == OSD_STACK_VALUE_MAX, "osd_values_read checks both");

uint32_t osd_hook_page(enum osd_object_type type)
{
	return osd_page_base(type) + OSD_PAGE_HOOKS;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct each {
	osd_hook_fn *fn;
	void *arg;
};

/* None ends the walk. */
static bool pass(void *arg, enum osd_stack_level level, uint32_t number, const uint8_t *value,
		 size_t length)
{
	const struct each *each = arg;

	each->fn(each->arg, level, number, value, length);
	return false;
}

enum osd_status osd_hooks_each(struct osd_txn *txn, struct osd_object_id id, osd_hook_fn *fn,
			       void *arg)
{
	struct each each = {fn, arg};
	struct osd_values_read read = {.fn = pass, .arg = &each, .level = OSD_STACK_ROOT};
	struct osd_place place;
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status != OSD_OK || !osd_may_have_hooks(id.partition_id, id.object_id &&
						txn->record.flags & OSD_REC_SURROGATE))
		return status;
	place = osd_root_place(txn->objects);
	if (osd_hook_mask(&txn->objects->hooks))
		status = osd_values_read(txn->objects, txn->kv, &read, &place,
					 osd_hook_page(OSD_ROOT));
	place = osd_place_beside(&txn->place, 0);
	read.level = OSD_STACK_PARTITION;
	if (status == OSD_OK && osd_hook_mask(&txn->partition->hooks))
		status = osd_values_read(txn->objects, txn->kv, &read, &place,
					 osd_hook_page(OSD_PARTITION));
	read.level = OSD_STACK_OWN;
	if (status == OSD_OK && id.object_id && osd_record_hooks(&txn->record))
		status = osd_values_read(txn->objects, txn->kv, &read, &txn->place,
					 osd_hook_page(OSD_USER_OBJECT));
	return status;
}

/* Of a partition and the root, hooks of the object itself do not concern others. */
static bool add_events(void *arg, enum osd_stack_level level, uint32_t number, const uint8_t *value,
		       size_t length)
{
	struct osd_hook_value hook;

	(void)number;
	if (osd_hook_value_decode(value, length, &hook))
		*(unsigned *)arg |= level == OSD_STACK_OWN ? hook.events & ~OSD_HOOK_CREATE
							   : hook.events;
	return false;
}

static enum osd_status find_mask(struct osd_objects *objects, struct osd_kv_txn *kv,
				 enum osd_object_type type, const struct osd_place *place,
				 unsigned *ret_mask)
{
	struct osd_values_read read = {
		.fn = add_events,
		.arg = ret_mask,
		.level = type == OSD_USER_OBJECT ? OSD_STACK_OWN : OSD_STACK_PARTITION,
	};

	*ret_mask = 0;
	return osd_values_read(objects, kv, &read, place, osd_hook_page(type));
}

/* ---- change ---------------------------------------------------------------------------------- */

/* effect: value the new number. */
static void run_hooks(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (!committed)
		return;
	atomic_store(&txn->objects->hooked, true);
	if (effect->id.object_id)
		osd_cache_record_changed(txn, effect, committed);
	else
		osd_hook_mask_keep(effect->partition ? &effect->partition->hooks
						     : &txn->objects->hooks,
				   effect->value);
}

static enum osd_status note_change(struct osd_txn *txn)
{
	const struct osd_place place = txn->partition ? txn->place : osd_root_place(txn->objects);
	struct osd_effect effect = {.run = run_hooks, .id = txn->id, .partition = txn->partition};
	unsigned mask;
	enum osd_status status = find_mask(txn->objects, txn->kv, osd_txn_type(txn), &place, &mask);

	if (status != OSD_OK)
		return status;
	effect.value = (atomic_fetch_add(&txn->objects->hook_changes, 1) + 1) << 8 | mask;
	status = osd_txn_add_effect(txn, effect);
	if (status != OSD_OK || txn->id.object_id == 0)
		return status;
	txn->record.flags = (uint16_t)((txn->record.flags & ~(OSD_REC_CHECKED | OSD_REC_FOLLOWED)) |
				       mask << OSD_REC_HOOKS_SHIFT);
	txn->dirty = true;
	return OSD_OK;
}

enum osd_status osd_hook_put(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
			     const uint8_t *value, size_t length)
{
	enum osd_status status = osd_txn_take(txn, id, true);

	if (status == OSD_OK)
		status = osd_attr_stored_set(txn, osd_hook_page(osd_txn_type(txn)), number, value,
					     length);
	if (status == OSD_OK)
		status = osd_attr_definer_set(txn, osd_hook_page(osd_txn_type(txn)),
					      number + OSD_HOOK_DEFINERS, length > 0);
	return status == OSD_OK ? note_change(txn) : status;
}

/* ---- open and format ------------------------------------------------------------------------- */

enum osd_status osd_hooks_load(struct osd_objects *objects, struct osd_partition *partition)
{
	struct osd_place place =
		partition ? osd_partition_place(partition) : osd_root_place(objects);
	unsigned mask;
	enum osd_status status =
		find_mask(objects, NULL, partition ? OSD_PARTITION : OSD_ROOT, &place, &mask);

	if (status != OSD_OK)
		return status;
	atomic_store(partition ? &partition->hooks : &objects->hooks, mask);
	if (mask)
		atomic_store(&objects->hooked, true);
	return OSD_OK;
}

void osd_hooks_forget(struct osd_objects *objects)
{
	atomic_store(&objects->hooked, false);
	atomic_store(&objects->hooks, 0);
}
