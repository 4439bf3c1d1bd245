/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_members.c -- views of collections follow the members (view.h).
 *
 * A change of members only notes the member, since the object at hand must stay.  The commit looks up who is a member
 * then, with the collection's record locked.  The transaction that makes a view locks it, too, before it sets the bit of
 * the partition: so each change is either before the view, or sees the bit at last when it has the lock. */
#include <stdlib.h>

#include "base/util.h"
#include "object/internal.h"
#include "object/view_impl.h"
#include "wire/osd2.h"

struct osd_member_change {
	struct osd_place collection;
	uint64_t member; /* 0: the collection is removed */
	bool missed; /* no collection of the partition had a view then; stands for all members */
};

/* Whether the last change noted is such a one. */
static bool is_missed(const struct osd_txn *txn, const struct osd_place *collection)
{
	const struct osd_member_change *last = txn->members.list + txn->members.count;

	return txn->members.count && (--last)->missed &&
	       last->collection.partition_id == collection->partition_id &&
	       last->collection.object_id == collection->object_id;
}

enum osd_status osd_views_note_member(struct osd_txn *txn, const struct osd_place *collection,
				      uint64_t member)
{
	const struct osd_member_change change = {*collection, member,
						 !atomic_load(&txn->partition->parted)};
	size_t count = txn->members.count;

	if (collection->object_id < OSD_FIRST_ID || (change.missed && is_missed(txn, collection)))
		return OSD_OK;
	if (count == txn->members.capacity) {
		size_t capacity = OSD_MAX(8, count * 2);
		struct osd_member_change *list =
			realloc(txn->members.list, capacity * sizeof(*list));

		if (!list)
			return OSD_E_NO_MEMORY;
		txn->members.list = list;
		txn->members.capacity = capacity;
	}
	txn->members.list[txn->members.count++] = change;
	return OSD_OK;
}

static enum osd_status check_one(struct osd_txn *txn, const struct osd_place *collection)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status =
		osd_partition_get(txn->objects, txn, collection->partition_id, &partition);

	if (status != OSD_OK)
		return status == OSD_E_NO_PARTITION ? OSD_OK : status;
	return atomic_load(&partition->parted) ? OSD_E_CONFLICT : OSD_OK;
}

enum osd_status osd_views_check_noted(struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < txn->members.count; i++)
		if (txn->members.list[i].missed)
			status = check_one(txn, &txn->members.list[i].collection);
	return status;
}

/* Locks the collection, which may be removed. */
static enum osd_status is_member(struct osd_txn *txn, struct osd_object_id collection,
				 uint64_t member, bool *ret_is)
{
	enum osd_status status = osd_txn_take(txn, collection, true);

	*ret_is = false;
	if (status == OSD_OK)
		status = osd_collection_has(txn, collection, member, ret_is);
	/* CONTRACT: the partition shows a directory with the id of its own collection that is removed. */
	return status == OSD_E_NO_OBJECT || status == OSD_E_CONTRACT ? OSD_OK : status;
}

static enum osd_status follow(struct osd_txn *txn, struct osd_object_id collection, uint64_t member)
{
	const struct osd_object_id source = {collection.partition_id, member};
	struct osd_view_list list;
	bool is = false;
	enum osd_status status = is_member(txn, collection, member, &is);

	if (status == OSD_OK)
		status = osd_views_of_part(txn, collection.partition_id, collection.object_id,
					   &list);
	for (size_t i = 0; status == OSD_OK && i < list.count; i++)
		status = is ? osd_view_add_to(txn, &list.entries[i], source.partition_id, member, 1)
			    : osd_view_remove_from(txn, &list.entries[i], source);
	return status;
}

static enum osd_status apply(struct osd_txn *txn, const struct osd_member_change *change)
{
	const struct osd_object_id collection = {change->collection.partition_id,
						 change->collection.object_id};

	return change->member
		       ? follow(txn, collection, change->member)
		       : osd_views_drop_part(txn, collection.partition_id, collection.object_id);
}

/* What is removed from a view may have been a member of a collection there: that is noted behind the others. */
enum osd_status osd_views_apply_members(struct osd_txn *txn)
{
	bool before = txn->for_views;
	enum osd_status status = OSD_OK;

	txn->for_views = true;
	for (size_t i = 0; status == OSD_OK && i < txn->members.count; i++) {
		struct osd_member_change change = txn->members.list[i];

		if (!change.missed)
			status = osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED : apply(txn, &change);
	}
	txn->for_views = before;
	return status == OSD_OK ? osd_txn_let_go(txn) : status;
}
