/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_tree.c -- whose names a view has, and the directories in it (view.h).
 *
 * These functions read the values of partitions as records: so the object at hand stays, and txn.c can call them. */
#include "base/util.h"
#include "object/internal.h"
#include "object/stack.h"
#include "object/view_impl.h"
#include "wire/cursor.h"
#include "wire/osd2.h"

bool osd_view_value_decode(const uint8_t *value, size_t length, struct osd_view *ret_view)
{
	*ret_view = (struct osd_view){0};
	if ((length != 8 && length != 9 && length != OSD_VIEW_VALUE_MAX) ||
	    (length > 8 && value[8] > 1))
		return false;
	ret_view->base = osd_get_be(value, 8);
	ret_view->writable = length > 8 && value[8];
	if (length <= 9)
		return true;
	ret_view->collection = osd_get_be(value + 9, 8);
	return ret_view->collection >= OSD_FIRST_ID;
}

/* Length 0: there is no such value. */
static enum osd_status read_value(struct osd_txn *txn, const struct osd_place *partition,
				  uint32_t number, uint8_t *bytes, size_t capacity, size_t *length)
{
	enum osd_status status = osd_attr_load(txn->objects, txn->kv, partition,
					       OSD_PAGE_PARTITION_BASE + OSD_PAGE_STACK, number,
					       bytes, capacity, length);

	return *length > capacity ? OSD_E_MEDIUM : status;
}

/* Whether the base has this view in its list. */
static enum osd_status is_live(struct osd_txn *txn, const struct osd_place *base,
			       const struct osd_place *view, uint64_t collection, bool *ret_live)
{
	const size_t each = osd_view_entry_bytes(collection);
	uint8_t list[OSD_VIEW_LIST_BYTES];
	size_t length;
	enum osd_status status = read_value(txn, base, osd_view_list_number(collection), list,
					    sizeof(list), &length);

	*ret_live = false;
	for (size_t at = 0; at + each <= length; at += each)
		*ret_live |= osd_get_be(list + at, 8) == view->partition_id &&
			     osd_get_be(list + at + 8, 4) == view->incarnation;
	return status;
}

static enum osd_status take_partition(struct osd_txn *txn, uint64_t id, struct osd_place *ret_place,
				      bool *ret_may_be_view)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = osd_partition_get(txn->objects, txn, id, &partition);

	if (status != OSD_OK)
		return status;
	*ret_place = (struct osd_place){id, partition->incarnation, 0};
	*ret_may_be_view = atomic_load(&partition->shows);
	return OSD_OK;
}

static bool is_directory(const struct osd_record *record)
{
	return record->type == OSD_COLLECTION && record->flags & OSD_REC_DIRECTORY;
}

/* From a view to the collection of the base that it shows.  If that is no directory, the view stays at hand, in which
 * there are no names. */
static enum osd_status step_to_part(struct osd_txn *txn, bool change, struct osd_place part,
				    struct osd_place *place)
{
	struct osd_record record;
	enum osd_status status = change ? OSD_E_CONTRACT : osd_record_load(txn->objects, txn->kv, &part, 0, &record);

	if (status == OSD_OK && is_directory(&record))
		*place = part;
	return status;
}

/* From a partition to its base.  *ret_goes_on false: it is no view, or its base was removed. */
static enum osd_status step(struct osd_txn *txn, bool change, struct osd_place *place,
			    bool *may_be_view, bool *ret_goes_on)
{
	struct osd_view view;
	struct osd_place base;
	uint8_t value[OSD_VIEW_VALUE_MAX];
	size_t length;
	enum osd_status status =
		read_value(txn, place, OSD_STACK_SOURCE, value, sizeof(value), &length);

	*ret_goes_on = false;
	if (status != OSD_OK || length == 0)
		return status;
	if (!osd_view_value_decode(value, length, &view))
		return OSD_E_MEDIUM;
	status = take_partition(txn, view.base, &base, may_be_view);
	if (status == OSD_OK)
		status = is_live(txn, &base, place, view.collection, ret_goes_on);
	if (status != OSD_OK || !*ret_goes_on)
		return status == OSD_E_NO_PARTITION ? OSD_OK : status;
	if (view.collection) {
		*ret_goes_on = false;
		base.object_id = view.collection;
		return step_to_part(txn, change, base, place);
	}
	*place = base;
	return change && !view.writable ? OSD_E_CONTRACT : OSD_OK;
}

enum osd_status osd_view_tree(struct osd_txn *txn, uint64_t partition_id, bool change,
			      struct osd_place *ret_tree)
{
	const struct osd_partition *at_hand = txn->partition;
	bool may_be_view = false, goes_on = true;
	enum osd_status status;

	if (at_hand && at_hand->id == partition_id && !atomic_load(&at_hand->shows)) {
		*ret_tree = osd_partition_place(at_hand);
		return OSD_OK;
	}
	*ret_tree = osd_root_place(txn->objects);
	if (partition_id == 0)
		return OSD_OK;
	status = take_partition(txn, partition_id, ret_tree, &may_be_view);
	if (status == OSD_OK && may_be_view && txn->flags & OSD_TXN_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	for (unsigned i = 0; i < OSD_VIEWS_DEEP && status == OSD_OK && may_be_view && goes_on; i++)
		status = step(txn, change, ret_tree, &may_be_view, &goes_on);
	return status;
}

bool osd_view_may_be(struct osd_objects *objects, uint64_t partition_id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;

	return osd_partition_get(objects, NULL, partition_id, &partition) == OSD_OK &&
	       atomic_load(&partition->shows);
}

/* Attributes are those of the view, which has none here: those of the base may have secrets, such as the keys of
 * stages. */
static void show(struct osd_txn *txn, const struct osd_record *record)
{
	txn->record = (struct osd_record){.type = record->type,
					  .collection_type = record->collection_type,
					  .flags = OSD_REC_DIRECTORY | OSD_REC_NAMED,
					  .head_bytes = record->head_bytes,
					  .max_length = record->max_length,
					  .version = record->version,
					  .policy_tag = atomic_load(&txn->partition->user_tag)};
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		txn->record.times[i] = record->times[i];
}

enum osd_status osd_view_directory(struct osd_txn *txn, bool write)
{
	struct osd_place tree;
	struct osd_record record;
	enum osd_status status = osd_view_tree(txn, txn->place.partition_id, false, &tree);

	if (status == OSD_OK && (tree.partition_id == txn->place.partition_id ||
				 (tree.object_id && tree.object_id != txn->place.object_id)))
		return OSD_E_NO_OBJECT;
	tree.object_id = txn->place.object_id;
	if (status == OSD_OK)
		status = osd_record_load(txn->objects, txn->kv, &tree, 0, &record);
	if (status != OSD_OK)
		return status;
	if (!is_directory(&record))
		return OSD_E_NO_OBJECT;
	if (write)
		return OSD_E_CONTRACT;
	show(txn, &record);
	txn->tree = tree;
	txn->shown = true;
	return OSD_OK;
}
