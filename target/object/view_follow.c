/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_follow.c -- views of collections follow the members (view.h).
 *
 * A change of members only notes the member, since the object at hand must stay.  The commit looks up who is a member
 * then, with the collection's record locked.  The transaction that makes a view locks it, too, before it sets the bit of
 * the partition: so each change is either before the view, or sees the bit at last when it has the lock. */
#include "object/internal.h"
#include "object/view_impl.h"

enum osd_status osd_view_admits(struct osd_txn *txn, const struct osd_view *view,
				uint64_t object_id, bool *ret_admits)
{
	const struct osd_object_id part = {view->base, view->collection};
	enum osd_status status;

	*ret_admits = !view->collection;
	if (!view->collection)
		return OSD_OK;
	status = osd_view_hold_part(txn, view->base, view->collection);
	return status == OSD_OK ? osd_collection_has(txn, part, object_id, ret_admits) : status;
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
		status = osd_views_of_parts(txn, collection.partition_id, &list);
	for (size_t i = 0; status == OSD_OK && i < list.count; i++) {
		if (list.entries[i].collection != collection.object_id)
			continue;
		status = is ? osd_view_add_to(txn, &list.entries[i], source.partition_id, member, 1)
			    : osd_view_remove_from(txn, &list.entries[i], source);
	}
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

/* An object that is removed from a view may have been a member of a collection there: that is noted behind the
 * others. */
enum osd_status osd_views_follow_members(struct osd_txn *txn)
{
	bool before = txn->for_views;
	enum osd_status status = OSD_OK;

	txn->for_views = true;
	for (size_t i = 0; status == OSD_OK && i < txn->members.count; i++) {
		struct osd_member_change change = txn->members.list[i];

		status = osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED : apply(txn, &change);
	}
	txn->for_views = before;
	return status == OSD_OK ? osd_txn_let_go(txn) : status;
}
