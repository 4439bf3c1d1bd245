/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_list.c -- which partition is a view of which one (view.h), and the sources of their objects. */

#include "base/util.h"
#include "object/internal.h"
#include "object/view_impl.h"
#include "wire/cursor.h"
#include "wire/stage.h"

/* ---- the list of a base --------------------------------------------------------------------------- */

static struct osd_object_id partition_id_of(uint64_t id)
{
	return (struct osd_object_id){id, 0};
}

/* Of the partition at hand; parts: the views of its collections. */
static enum osd_status read_list(struct osd_txn *txn, bool parts, struct osd_view_list *list)
{
	const size_t each = osd_view_entry_bytes(parts);
	uint8_t bytes[OSD_VIEW_LIST_BYTES];
	size_t length;
	enum osd_status status =
		osd_attr_stored_get(txn, osd_stack_page(OSD_PARTITION), osd_view_list_number(parts),
				    bytes, sizeof(bytes), &length);

	list->count = 0;
	if (status == OSD_OK && (length > OSD_VIEWS_MAX * each || length % each))
		status = OSD_E_MEDIUM;
	if (status != OSD_OK)
		return status;
	for (const uint8_t *at = bytes; at < bytes + length; at += each)
		list->entries[list->count++] =
			(struct osd_view_entry){osd_get_be(at, 8), (uint32_t)osd_get_be(at + 8, 4),
						parts ? osd_get_be(at + 12, 8) : 0};
	return OSD_OK;
}

static enum osd_status write_list(struct osd_txn *txn, bool parts, const struct osd_view_list *list)
{
	const size_t each = osd_view_entry_bytes(parts);
	uint8_t bytes[OSD_VIEW_LIST_BYTES];

	for (size_t i = 0; i < list->count; i++) {
		const struct osd_view_entry *entry = &list->entries[i];

		osd_put_be(bytes + i * each, entry->id, 8);
		osd_put_be(bytes + i * each + 8, entry->incarnation, 4);
		if (parts)
			osd_put_be(bytes + i * each + 12, entry->collection, 8);
	}
	return osd_attr_stored_set(txn, osd_stack_page(OSD_PARTITION), osd_view_list_number(parts),
				   bytes, list->count * each);
}

/* Drops the view with this id, or the views of this collection. */
static void drop_entries(struct osd_view_list *list, uint64_t id, uint64_t collection)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (id ? list->entries[i].id != id : list->entries[i].collection != collection)
			list->entries[kept++] = list->entries[i];
	list->count = kept;
}

enum osd_status osd_views_of(struct osd_txn *txn, struct osd_partition *base,
			     struct osd_view_list *ret_list)
{
	enum osd_status status;

	ret_list->count = 0;
	if (!atomic_load(&base->viewed))
		return OSD_OK;
	status = osd_txn_take(txn, partition_id_of(base->id), false);
	return status == OSD_OK ? read_list(txn, false, ret_list) : status;
}

enum osd_status osd_views_of_parts(struct osd_txn *txn, uint64_t base_id,
				   struct osd_view_list *ret_list)
{
	enum osd_status status = osd_txn_take(txn, partition_id_of(base_id), false);

	ret_list->count = 0;
	return status == OSD_OK ? read_list(txn, true, ret_list) : status;
}

enum osd_status osd_views_drop_part(struct osd_txn *txn, uint64_t base_id, uint64_t collection)
{
	struct osd_view_list list;
	size_t before;
	enum osd_status status = osd_txn_take(txn, partition_id_of(base_id), true);

	if (status == OSD_OK)
		status = read_list(txn, true, &list);
	if (status != OSD_OK)
		return status;
	before = list.count;
	drop_entries(&list, 0, collection);
	return list.count == before ? OSD_OK : write_list(txn, true, &list);
}

/* ---- views ---------------------------------------------------------------------------------------- */

enum osd_status osd_view_take(struct osd_txn *txn, const struct osd_view_entry *entry,
			      bool *ret_there)
{
	enum osd_status status = osd_txn_take(txn, partition_id_of(entry->id), false);

	*ret_there = status == OSD_OK && txn->place.incarnation == entry->incarnation;
	return status == OSD_E_NO_PARTITION ? OSD_OK : status;
}

/* Of the partition at hand, which stays there. */
static enum osd_status read_value(struct osd_txn *txn, struct osd_view *ret_view)
{
	uint8_t value[OSD_VIEW_VALUE_MAX];
	size_t length;
	enum osd_status status =
		osd_attr_stored_get(txn, osd_stack_page(OSD_PARTITION), OSD_STACK_SOURCE, value,
				    sizeof(value), &length);

	*ret_view = (struct osd_view){0};
	if (status == OSD_OK && length && !osd_view_value_decode(value, length, ret_view))
		status = OSD_E_MEDIUM;
	return status;
}

enum osd_status osd_view_of(struct osd_txn *txn, uint64_t partition_id, struct osd_view *ret_view)
{
	struct osd_view_list list;
	uint32_t incarnation;
	enum osd_status status;

	*ret_view = (struct osd_view){0};
	if (!osd_stack_may_be_above(txn->objects, partition_id))
		return OSD_OK;
	status = osd_txn_take(txn, partition_id_of(partition_id), false);
	if (status == OSD_OK)
		status = read_value(txn, ret_view);
	if (status != OSD_OK || !ret_view->base)
		return status;
	incarnation = txn->place.incarnation;
	status = osd_txn_take(txn, partition_id_of(ret_view->base), false);
	if (status == OSD_OK)
		status = read_list(txn, ret_view->collection, &list);
	for (size_t i = 0; status == OSD_OK && i < list.count; i++)
		ret_view->live |= list.entries[i].id == partition_id &&
				  list.entries[i].incarnation == incarnation;
	return status == OSD_E_NO_PARTITION ? OSD_OK : status;
}

enum osd_status osd_view_source(struct osd_txn *txn, struct osd_object_id id,
				struct osd_source_value *ret_source)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	*ret_source = (struct osd_source_value){0};
	if (status != OSD_OK || osd_txn_type(txn) != OSD_USER_OBJECT)
		return status;
	status = osd_source_read(txn->objects, txn->kv, &txn->place, ret_source);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* ---- a partition becomes a view, or is none any more ---------------------------------------------- */

static void run_is_view(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	(void)txn;
	if (committed)
		osd_raise_to(&effect->partition->next_object_id, OSD_VIEW_IDS);
}

/* Leaves the list of its base.  The partition is held for a change. */
static enum osd_status leave(struct osd_txn *txn, uint64_t partition_id)
{
	struct osd_view_list list;
	struct osd_view view;
	enum osd_status status = osd_view_of(txn, partition_id, &view);

	if (status != OSD_OK || !view.live)
		return status;
	status = osd_txn_take(txn, partition_id_of(view.base), true);
	if (status == OSD_OK)
		status = read_list(txn, view.collection, &list);
	if (status != OSD_OK)
		return status;
	drop_entries(&list, partition_id, 0);
	return write_list(txn, view.collection, &list);
}

/* The base of a base is read as a record, and locked: its bit in memory does not tell of a transaction that is about to
 * make it a view. */
static enum osd_status go_up(struct osd_txn *txn, struct osd_view *view)
{
	enum osd_status status = osd_txn_take(txn, partition_id_of(view->base), false);

	if (status == OSD_OK)
		return read_value(txn, view);
	view->base = 0;
	return status == OSD_E_NO_PARTITION ? OSD_OK : status;
}

/* The partition has views already, and those may have views: no more than so many, one upon another. */
static enum osd_status check_views(struct osd_txn *txn, uint64_t partition_id, unsigned most)
{
	struct osd_view_list list;
	bool there;
	enum osd_status status = OSD_OK;

	for (unsigned parts = 0; parts < 2 && status == OSD_OK; parts++) {
		status = osd_txn_take(txn, partition_id_of(partition_id), false);
		if (status == OSD_OK)
			status = read_list(txn, parts, &list);
		for (size_t i = 0; status == OSD_OK && i < list.count; i++) {
			status = osd_view_take(txn, &list.entries[i], &there);
			if (status == OSD_OK && there)
				status = most ? check_views(txn, list.entries[i].id, most - 1)
					      : OSD_E_PARAM_FIELD;
		}
	}
	return status;
}

/* A chain of bases has an end. */
static enum osd_status check_chain(struct osd_txn *txn, uint64_t partition_id, uint64_t base)
{
	struct osd_view view = {.base = base};
	enum osd_status status = OSD_OK;
	unsigned bases;

	for (bases = 0; bases < OSD_VIEWS_DEEP && status == OSD_OK && view.base; bases++)
		status = view.base == partition_id || view.base <= OSD_FUNCTION_PARTITION_LAST
				 ? OSD_E_PARAM_FIELD
				 : go_up(txn, &view);
	if (status != OSD_OK || view.base)
		return status == OSD_OK ? OSD_E_PARAM_FIELD : status;
	return check_views(txn, partition_id, OSD_VIEWS_DEEP - bases);
}

/* A directory that the base itself shows is none of its own. */
enum osd_status osd_view_hold_part(struct osd_txn *txn, uint64_t base_id, uint64_t collection)
{
	enum osd_status status =
		osd_txn_take(txn, (struct osd_object_id){base_id, collection}, true);

	if (status == OSD_OK && osd_txn_type(txn) == OSD_COLLECTION)
		return OSD_OK;
	return status == OSD_OK || status == OSD_E_NO_OBJECT || status == OSD_E_CONTRACT
		       ? OSD_E_PARAM_FIELD
		       : status;
}

/* No object is made in the base from here to the end of the transaction, and those that are made later see the bit: it
 * is set before the commit.  If there is none, the bit finds an empty list. */
static enum osd_status join(struct osd_txn *txn, const struct osd_partition *view, uint64_t base_id,
			    uint64_t collection)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *base = NULL;
	struct osd_view_list list;
	enum osd_status status = osd_partition_take(txn, base_id, true, &base);

	if (status != OSD_OK)
		return status == OSD_E_NO_PARTITION ? OSD_E_PARAM_FIELD : status;
	if (collection)
		status = osd_view_hold_part(txn, base_id, collection);
	if (status != OSD_OK)
		return status;
	atomic_store(collection ? &base->parted : &base->viewed, true);
	status = osd_txn_take(txn, partition_id_of(base_id), true);
	if (status == OSD_OK)
		status = read_list(txn, collection, &list);
	if (status != OSD_OK)
		return status;
	drop_entries(&list, view->id, 0);
	if (list.count == OSD_VIEWS_MAX)
		return OSD_E_PARAM_FIELD;
	list.entries[list.count++] =
		(struct osd_view_entry){view->id, view->incarnation, collection};
	return write_list(txn, collection, &list);
}

/* The partition is held for a change, so nothing is made in it. */
static enum osd_status make(struct osd_txn *txn, struct osd_partition *partition,
			    const struct osd_view *view)
{
	enum osd_status status = osd_partition_check_empty(txn, partition, true);

	if (status == OSD_E_NOT_EMPTY)
		status = OSD_E_PARAM_FIELD;
	if (status == OSD_OK)
		status = check_chain(txn, partition->id, view->base);
	if (status == OSD_OK)
		status = join(txn, partition, view->base, view->collection);
	if (status != OSD_OK)
		return status;
	atomic_fetch_or(&partition->stacked, 1);
	atomic_store(&partition->shows, true);
	return osd_txn_add_effect(txn,
				  (struct osd_effect){.run = run_is_view, .partition = partition});
}

enum osd_status osd_view_set(struct osd_txn *txn, uint64_t partition_id, const uint8_t *value,
			     size_t length)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_view view = {0};
	enum osd_status status;

	if (length && !osd_view_value_decode(value, length, &view))
		return OSD_E_PARAM_FIELD;
	status = osd_partition_take(txn, partition_id, true, &partition);
	if (status == OSD_OK)
		status = leave(txn, partition_id);
	if (status == OSD_OK && length)
		status = make(txn, partition, &view);
	return status == OSD_OK ? osd_stack_put(txn, partition_id_of(partition_id),
						OSD_STACK_SOURCE, value, length)
				: status;
}

enum osd_status osd_view_removed(struct osd_txn *txn, const struct osd_partition *partition)
{
	enum osd_status status = leave(txn, partition->id);

	return status == OSD_OK ? osd_txn_let_go(txn) : status;
}

enum osd_status osd_views_load(struct osd_objects *objects, struct osd_partition *partition)
{
	const struct osd_place place = osd_partition_place(partition);
	static const uint32_t numbers[] = {OSD_STACK_SOURCE, OSD_STACK_VIEWS, OSD_STACK_PARTS};
	bool there[OSD_ARRAY_SIZE(numbers)] = {false};
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < OSD_ARRAY_SIZE(numbers) && status == OSD_OK; i++) {
		struct osd_key key =
			osd_key_attribute(&place, osd_stack_page(OSD_PARTITION), numbers[i]);

		status = osd_record_is_there(objects, NULL, OSD_KV_ATTRIBUTES, osd_key_bytes(&key),
					     &there[i]);
	}
	if (there[0])
		osd_raise_to(&partition->next_object_id, OSD_VIEW_IDS);
	atomic_store(&partition->shows, there[0]);
	atomic_store(&partition->viewed, there[1]);
	atomic_store(&partition->parted, there[2]);
	return status;
}
