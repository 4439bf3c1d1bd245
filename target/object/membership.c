/* SPDX-License-Identifier: GPL-2.0-or-later */
/* membership.c -- the Collections page of a user object (osd2-wire 5.14): which collections it is in,
 * by attribute number.  The list is read once while the object is at hand, and follows its changes.
 * Without that, a command with thousands of numbers would read it thousands of times. */
#include "object/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

/* ---- the list at hand -------------------------------------------------------------------- */

/* Makes room for one more at index. */
static bool insert_at(struct osd_txn *txn, size_t index, struct osd_membership membership)
{
	if (!OSD_MAKE_ROOM(txn->memberships, txn->membership_count, txn->membership_capacity))
		return false;
	memmove(txn->memberships + index + 1, txn->memberships + index,
		(txn->membership_count - index) * sizeof(*txn->memberships));
	txn->memberships[index] = membership;
	txn->membership_count++;
	return true;
}

struct loading {
	struct osd_txn *txn;
	bool no_memory;
};

static bool add_membership(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct loading *loading = arg;

	if (key.length == OSD_KEY_OBJECT_PART + 8 && value.length == 4)
		loading->no_memory = !insert_at(
			loading->txn, loading->txn->membership_count,
			(struct osd_membership){
				.number = (uint32_t)osd_get_be(value.data, 4),
				.collection = osd_get_be(
					(const uint8_t *)key.data + OSD_KEY_OBJECT_PART, 8)});
	return !loading->no_memory;
}

static int by_number(const void *a, const void *b)
{
	const struct osd_membership *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static enum osd_status load(struct osd_txn *txn)
{
	struct osd_key prefix = osd_key_object(&txn->place);
	struct loading loading = {txn, false};
	enum osd_status status;

	if (txn->memberships_known)
		return OSD_OK;
	osd_memberships_forget(txn);
	status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_MEMBERSHIPS, osd_key_bytes(&prefix),
			     prefix.length, add_membership, &loading);
	if (status == OSD_OK && loading.no_memory)
		status = OSD_E_NO_MEMORY;
	if (status != OSD_OK) {
		osd_memberships_forget(txn);
		return status;
	}
	/* The store has them in order of collections. */
	if (txn->membership_count)
		qsort(txn->memberships, txn->membership_count, sizeof(*txn->memberships),
		      by_number);
	txn->memberships_known = true;
	return OSD_OK;
}

/* The index of the first one with that number, or where it would be inserted. */
static size_t index_of(const struct osd_txn *txn, uint32_t number)
{
	size_t low = 0, high = txn->membership_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (txn->memberships[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct osd_membership *find(const struct osd_txn *txn, uint32_t number)
{
	size_t index = index_of(txn, number);

	return index < txn->membership_count && txn->memberships[index].number == number
		       ? &txn->memberships[index]
		       : NULL;
}

enum osd_status osd_memberships(struct osd_txn *txn, const struct osd_membership **ret_list,
				size_t *ret_count)
{
	enum osd_status status = load(txn);

	*ret_list = txn->memberships;
	*ret_count = txn->membership_count;
	return status;
}

/* ---- the object at hand leaves ----------------------------------------------------------- */

static enum osd_status leave(struct osd_txn *txn, uint64_t collection)
{
	struct osd_place place = osd_place_beside(&txn->place, collection);

	return osd_member_pair_remove(txn, &place, txn->id.object_id);
}

enum osd_status osd_memberships_drop_all(struct osd_txn *txn)
{
	enum osd_status status = load(txn);

	for (size_t i = 0; status == OSD_OK && i < txn->membership_count; i++)
		status = leave(txn, txn->memberships[i].collection);
	osd_memberships_forget(txn);
	return status;
}

enum osd_status osd_membership_clear(struct osd_txn *txn, uint32_t number)
{
	enum osd_status status = load(txn);
	struct osd_membership *membership = status == OSD_OK ? find(txn, number) : NULL;

	/* Length 0 makes an attribute undefined (osd2-wire 5.2), and this one is already. */
	if (!membership)
		return status;
	status = leave(txn, membership->collection);
	txn->membership_count--;
	memmove(membership, membership + 1,
		(size_t)(txn->memberships + txn->membership_count - membership) *
			sizeof(*membership));
	return status;
}

/* ---- and joins --------------------------------------------------------------------------- */

enum osd_status osd_membership_get(struct osd_txn *txn, uint32_t number, uint64_t *ret_collection)
{
	enum osd_status status = load(txn);
	const struct osd_membership *membership;

	if (status != OSD_OK)
		return status;
	membership = find(txn, number);
	if (!membership)
		return OSD_E_NO_OBJECT;
	*ret_collection = membership->collection;
	return OSD_OK;
}

/* Clients may join linked collections of the same partition. */
static enum osd_status check_joinable(struct osd_txn *txn, const struct osd_place *collection)
{
	struct osd_record record;
	enum osd_status status = osd_record_load(txn->objects, txn->kv, collection, 0, &record);

	if (status == OSD_E_NO_OBJECT)
		return OSD_E_PARAM_FIELD;
	if (status == OSD_OK &&
	    (record.type != OSD_COLLECTION || record.collection_type != OSD_COLLECTION_LINKED ||
	     record.flags & OSD_REC_DIRECTORY))
		status = OSD_E_PARAM_FIELD;
	return status;
}

/* Whether the object is in it already: another number for one collection is an error (osd2-wire
 * 5.14). */
static enum osd_status is_in(struct osd_txn *txn, uint64_t collection, bool *ret_in)
{
	struct osd_key key = osd_key_member(&txn->place, collection);

	return osd_record_is_there(txn->objects, txn->kv, OSD_KV_MEMBERSHIPS, osd_key_bytes(&key),
				   ret_in);
}

static enum osd_status check_room(const struct osd_txn *txn)
{
	/* The quota is for what clients join.  The target joins with number 0. */
	size_t joined = txn->membership_count - index_of(txn, 1);

	if (joined >= atomic_load(&txn->partition->collections_limit) ||
	    txn->membership_count >= OSD_MEMBERSHIPS_MAX)
		return OSD_E_QUOTA;
	return OSD_OK;
}

enum osd_status osd_membership_set(struct osd_txn *txn, uint32_t number, uint64_t collection)
{
	struct osd_place place = osd_place_beside(&txn->place, collection);
	struct osd_membership *replaced = NULL;
	bool in = false;
	enum osd_status status = load(txn);

	if (status == OSD_OK)
		replaced = find(txn, number);
	if (replaced && replaced->collection == collection)
		return OSD_OK;
	if (status == OSD_OK)
		status = check_joinable(txn, &place);
	if (status == OSD_OK)
		status = is_in(txn, collection, &in);
	if (in)
		return OSD_E_PARAM_FIELD;
	if (status == OSD_OK && !replaced)
		status = check_room(txn);
	if (status == OSD_OK && replaced)
		status = leave(txn, replaced->collection);
	if (status == OSD_OK)
		status = osd_member_pair_put(txn, &place, txn->id.object_id, number);
	if (status != OSD_OK)
		return status;
	if (replaced)
		replaced->collection = collection;
	else if (!insert_at(txn, index_of(txn, number),
			    (struct osd_membership){number, collection}))
		return OSD_E_NO_MEMORY;
	return OSD_OK;
}
