/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack.c -- see stack.h. */
#include "object/stack.h"

#include "base/util.h"
#include "object/internal.h"
#include "wire/cursor.h"

uint32_t osd_stack_page(enum osd_object_type type)
{
	return osd_page_base(type) + OSD_PAGE_STACK;
}

static bool is_above(const struct osd_objects *objects, const struct osd_partition *partition)
{
	return osd_hook_mask(&partition->stacked) | osd_hook_mask(&objects->stacked);
}

bool osd_object_is_stacked(const struct osd_object *object)
{
	return (atomic_load_explicit(&object->stacked, memory_order_acquire) ||
		is_above(object->objects, object->partition)) &&
	       osd_may_have_hooks(object->id.partition_id, object->surrogate);
}

static bool is_there(const struct osd_txn *txn)
{
	return osd_txn_type(txn) == OSD_USER_OBJECT &&
	       osd_may_have_hooks(txn->id.partition_id, txn->record.flags & OSD_REC_SURROGATE) &&
	       (txn->record.flags & OSD_REC_STACKED || is_above(txn->objects, txn->partition));
}

enum osd_status osd_stack_is_there(struct osd_txn *txn, struct osd_object_id id, bool *ret_there)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status == OSD_OK)
		*ret_there = is_there(txn);
	return status;
}

/* ---- change -------------------------------------------------------------------------------- */

static void run_stacked(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_object *object;

	if (!committed)
		return;
	atomic_fetch_add(&txn->objects->stack_changes, 1);
	if (effect->id.object_id) {
		object = osd_cache_changed(txn, effect, committed);
		if (object)
			atomic_store(&object->stacked, true);
		osd_object_put(object);
	} else if (effect->partition) {
		osd_hook_mask_keep(&effect->partition->stacked, effect->value);
	} else {
		osd_hook_mask_keep(&txn->objects->stacked, effect->value);
	}
}

static void run_changed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	(void)effect;
	if (committed)
		atomic_fetch_add(&txn->objects->stack_changes, 1);
}

enum osd_status osd_stack_removed(struct osd_txn *txn, bool partition)
{
	if (!partition && !(txn->record.flags & OSD_REC_STACKED))
		return OSD_OK;
	return osd_txn_add_effect(txn, (struct osd_effect){.run = run_changed});
}

/* Stages that another transaction has just committed may concern the members, too: so the partition is read after
 * the commit. */
static void run_members(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (committed && osd_hook_mask(&effect->partition->stacked))
		atomic_fetch_add(&txn->objects->stack_changes, 1);
}

enum osd_status osd_stack_members_changed(struct osd_txn *txn)
{
	return osd_txn_add_effect(
		txn, (struct osd_effect){.run = run_members, .partition = txn->partition});
}

uint64_t osd_stacks_changes(const struct osd_objects *objects)
{
	return atomic_load(&objects->stack_changes);
}

/* The views of a partition do not concern its own data. */
static bool found_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	uint64_t number =
		key.length == OSD_KEY_OBJECT_PART + 8
			? osd_get_be((const uint8_t *)key.data + OSD_KEY_OBJECT_PART + 4, 4)
			: 0;

	(void)value;
	*(bool *)arg = number != OSD_STACK_VIEWS && number != OSD_STACK_PARTS;
	return !*(bool *)arg;
}

static enum osd_status has_values(struct osd_objects *objects, struct osd_kv_txn *kv,
				  const struct osd_place *place, uint32_t page, bool *ret_any)
{
	struct osd_key from = osd_key_attribute(place, page, 0);

	*ret_any = false;
	return osd_kv_scan(objects->kv, kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&from),
			   OSD_KEY_OBJECT_PART + 4, found_one, ret_any);
}

/* A partition or the root, whose values are locked: so the later change has the higher number. */
static enum osd_status note_above(struct osd_txn *txn)
{
	struct osd_effect effect = {.run = run_stacked, .partition = txn->partition};
	const struct osd_place root = osd_root_place(txn->objects);
	bool any;
	enum osd_status status =
		has_values(txn->objects, txn->kv, txn->partition ? &txn->place : &root,
			   osd_stack_page(osd_txn_type(txn)), &any);

	if (status != OSD_OK)
		return status;
	effect.value = (atomic_fetch_add(&txn->objects->stack_numbers, 1) + 1) << 8 | any;
	return osd_txn_add_effect(txn, effect);
}

static enum osd_status note_there(struct osd_txn *txn)
{
	enum osd_status status = osd_txn_add_effect(
		txn, (struct osd_effect){
			     .run = run_stacked, .id = txn->id, .partition = txn->partition});

	if (status != OSD_OK)
		return status;
	txn->record.flags |= OSD_REC_STACKED;
	txn->dirty = true;
	return OSD_OK;
}

/* The object at hand may have no value any more. */
static enum osd_status note_removed(struct osd_txn *txn)
{
	bool any;
	enum osd_status status = osd_txn_add_effect(txn, (struct osd_effect){.run = run_changed});

	if (status == OSD_OK)
		status = has_values(txn->objects, txn->kv, &txn->place,
				    osd_stack_page(osd_txn_type(txn)), &any);
	if (status != OSD_OK || any)
		return status;
	txn->record.flags = (uint16_t)(txn->record.flags & ~OSD_REC_STACKED);
	txn->dirty = true;
	return OSD_OK;
}

/* A value of the object at hand. */
static enum osd_status put(struct osd_txn *txn, uint32_t number, const uint8_t *value,
			   size_t length)
{
	const uint32_t page = osd_stack_page(osd_txn_type(txn));
	enum osd_status status = osd_attr_stored_set(txn, page, number, value, length);

	if (status == OSD_OK && number <= OSD_STACK_STAGES)
		status = osd_attr_definer_set(txn, page, number + OSD_STACK_DEFINERS, length > 0);
	if (status != OSD_OK)
		return status;
	if (txn->id.object_id == 0)
		return note_above(txn);
	return length ? note_there(txn) : note_removed(txn);
}

static enum osd_status count_collections(struct osd_txn *txn, const struct osd_place *partition,
					 uint64_t *ret_count)
{
	uint8_t bytes[8];
	size_t length;
	enum osd_status status =
		osd_attr_load(txn->objects, txn->kv, partition, osd_stack_page(OSD_PARTITION),
			      OSD_STACK_COLLECTIONS, bytes, sizeof(bytes), &length);

	*ret_count = length == sizeof(bytes) ? osd_get_be(bytes, 8) : 0;
	return status;
}

/* One more collection of the partition has values, or one less. */
static enum osd_status note_collection(struct osd_txn *txn, uint64_t partition_id, bool has)
{
	uint8_t bytes[8];
	uint64_t count = 0;
	enum osd_status status = osd_txn_take(txn, (struct osd_object_id){partition_id, 0}, true);

	if (status == OSD_OK)
		status = count_collections(txn, &txn->place, &count);
	if (status != OSD_OK)
		return status;
	count = has ? count + 1 : count - (count > 0);
	osd_put_be(bytes, count, sizeof(bytes));
	return put(txn, OSD_STACK_COLLECTIONS, bytes, count ? sizeof(bytes) : 0);
}

enum osd_status osd_stack_put(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
			      const uint8_t *value, size_t length)
{
	enum osd_status status = osd_txn_take(txn, id, true);
	bool had, has;

	if (status != OSD_OK)
		return status;
	had = txn->record.flags & OSD_REC_STACKED;
	status = put(txn, number, value, length);
	has = txn->record.flags & OSD_REC_STACKED;
	if (status != OSD_OK || had == has || osd_txn_type(txn) != OSD_COLLECTION)
		return status;
	return note_collection(txn, id.partition_id, has);
}

enum osd_status osd_stack_drop_collection(struct osd_txn *txn)
{
	return txn->record.flags & OSD_REC_STACKED
		       ? note_collection(txn, txn->id.partition_id, false)
		       : OSD_OK;
}

/* ---- read ---------------------------------------------------------------------------------- */

static bool pass(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct osd_values_read *read = arg;
	uint32_t number;

	read->damaged = key.length != OSD_KEY_OBJECT_PART + 8 || value.length == 0 ||
			value.length > OSD_STACK_VALUE_MAX;
	if (read->damaged)
		return false;
	number = (uint32_t)osd_get_be((const uint8_t *)key.data + OSD_KEY_OBJECT_PART + 4, 4);
	read->counts |= read->fn(read->arg, read->level, number, value.data, value.length);
	return true;
}

enum osd_status osd_values_read(struct osd_objects *objects, struct osd_kv_txn *kv,
				struct osd_values_read *read, const struct osd_place *place,
				uint32_t page)
{
	struct osd_key from = osd_key_attribute(place, page, 0);
	enum osd_status status =
		osd_kv_scan(objects->kv, kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&from),
			    OSD_KEY_OBJECT_PART + 4, pass, read);

	return status == OSD_OK && read->damaged ? OSD_E_MEDIUM : status;
}

static enum osd_status each_of(struct osd_txn *txn, struct osd_values_read *each,
			       const struct osd_place *place, enum osd_object_type type)
{
	return osd_values_read(txn->objects, txn->kv, each, place, osd_stack_page(type));
}

static enum osd_status each_of_collections(struct osd_txn *txn, struct osd_values_read *each,
					   const uint64_t *ids, size_t count)
{
	struct osd_place place = txn->place;
	enum osd_status status = OSD_OK;

	each->level = OSD_STACK_COLLECTION;
	for (size_t i = 0; i < count && status == OSD_OK && !each->counts; i++) {
		place.object_id = ids[i];
		status = each_of(txn, each, &place, OSD_COLLECTION);
	}
	return status;
}

#define PIECE 64 /* collections looked up at a time */

/* Of the collections of the object at hand, from the least id on. */
static enum osd_status each_joined(struct osd_txn *txn, struct osd_values_read *each)
{
	uint64_t ids[PIECE], next = 0;
	size_t count = PIECE;
	enum osd_status status = OSD_OK;

	while (status == OSD_OK && count == PIECE && !each->counts) {
		struct osd_key from = osd_key_member(&txn->place, next);

		status = osd_key_ids(txn->objects, txn->kv, OSD_KV_MEMBERSHIPS, &from,
				     OSD_KEY_OBJECT_PART, ids, PIECE, &count);
		if (status == OSD_OK)
			status = each_of_collections(txn, each, ids, count);
		next = count ? ids[count - 1] + 1 : 0;
	}
	return status;
}

/* Of collections and the partition.  made: of the object that is being made, NULL: of the one at hand. */
static enum osd_status each_in_partition(struct osd_txn *txn, struct osd_values_read *each,
					 const struct osd_stack_made *made)
{
	struct osd_place place = osd_place_beside(&txn->place, 0);
	uint64_t collections;
	enum osd_status status = count_collections(txn, &place, &collections);

	if (status == OSD_OK && collections)
		status = made ? each_of_collections(txn, each, made->collections, made->count)
			      : each_joined(txn, each);
	if (status != OSD_OK || each->counts)
		return status;
	each->level = OSD_STACK_PARTITION;
	return each_of(txn, each, &place, OSD_PARTITION);
}

/* Walks the values above the object at hand, or (made) above one that is being made in the partition at hand. */
static enum osd_status each_above(struct osd_txn *txn, struct osd_values_read *each,
				  const struct osd_stack_made *made)
{
	const struct osd_place root = osd_root_place(txn->objects);
	enum osd_status status = OSD_OK;

	if (!each->counts && osd_hook_mask(&txn->partition->stacked))
		status = each_in_partition(txn, each, made);
	if (status != OSD_OK || each->counts || !osd_hook_mask(&txn->objects->stacked))
		return status;
	each->level = OSD_STACK_ROOT;
	return each_of(txn, each, &root, OSD_ROOT);
}

enum osd_status osd_stack_each(struct osd_txn *txn, struct osd_object_id id, osd_stack_fn *fn,
			       void *arg)
{
	struct osd_values_read each = {.fn = fn, .arg = arg, .level = OSD_STACK_OWN};
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status != OSD_OK || !is_there(txn))
		return status;
	if (txn->record.flags & OSD_REC_STACKED)
		status = each_of(txn, &each, &txn->place, OSD_USER_OBJECT);
	return status == OSD_OK ? each_above(txn, &each, NULL) : status;
}

enum osd_status osd_stack_each_above(struct osd_txn *txn, const struct osd_stack_made *made,
				     osd_stack_fn *fn, void *arg)
{
	struct osd_values_read each = {.fn = fn, .arg = arg};
	enum osd_status status =
		osd_txn_take(txn, (struct osd_object_id){made->partition_id, 0}, false);

	if (status != OSD_OK || !osd_may_have_hooks(made->partition_id, false))
		return status;
	return each_above(txn, &each, made);
}

bool osd_stack_may_be_above(struct osd_objects *objects, uint64_t partition_id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;

	return osd_may_have_hooks(partition_id, false) &&
	       osd_partition_get(objects, NULL, partition_id, &partition) == OSD_OK &&
	       is_above(objects, partition);
}

enum osd_status osd_stack_load(struct osd_objects *objects, struct osd_partition *partition)
{
	struct osd_place place =
		partition ? osd_partition_place(partition) : osd_root_place(objects);
	bool any = false;
	enum osd_status status = has_values(
		objects, NULL, &place, osd_stack_page(partition ? OSD_PARTITION : OSD_ROOT), &any);

	atomic_store(partition ? &partition->stacked : &objects->stacked, any);
	return status;
}

/* ---- what function/ knows ------------------------------------------------------------------- */

void osd_objects_set_stack_ops(struct osd_objects *objects, const struct osd_stack_ops *ops)
{
	objects->stack_ops = *ops;
}

enum osd_status osd_stack_length(struct osd_txn *txn, uint64_t stored, uint64_t *ret_length,
				 bool *ret_known)
{
	const struct osd_stack_ops *ops = &txn->objects->stack_ops;
	const struct osd_object_id id = txn->id;
	enum osd_status status, back;

	*ret_length = stored;
	*ret_known = true;
	if (!is_there(txn) || !ops->length)
		return OSD_OK;
	/* A list may name the attribute many times, and the object may be in many collections. */
	if (txn->read_length.there && osd_same_id(txn->read_length.id, id) &&
	    txn->read_length.stored == stored) {
		*ret_length = txn->read_length.length;
		*ret_known = txn->read_length.known;
		return OSD_OK;
	}
	status = ops->length(ops->arg, txn, id, stored, ret_length, ret_known);
	back = osd_txn_take(txn, id, false);
	txn->read_length.there = status == OSD_OK && back == OSD_OK;
	txn->read_length.known = *ret_known;
	txn->read_length.id = id;
	txn->read_length.stored = stored;
	txn->read_length.length = *ret_length;
	return status == OSD_OK ? back : status;
}

enum osd_status osd_stack_concerns(struct osd_txn *txn, bool *ret_concerns)
{
	const struct osd_stack_ops *ops = &txn->objects->stack_ops;

	*ret_concerns = false;
	return is_there(txn) && ops->concerns ? ops->concerns(ops->arg, txn, txn->id, ret_concerns)
					      : OSD_OK;
}

enum osd_status osd_stack_emptied(struct osd_txn *txn, struct osd_object_id *ret_id)
{
	const struct osd_stack_ops *ops = &txn->objects->stack_ops;

	*ret_id = txn->id;
	return is_there(txn) && ops->emptied ? ops->emptied(ops->arg, txn, txn->id, ret_id)
					     : OSD_OK;
}
