/* SPDX-License-Identifier: GPL-2.0-or-later */
/* collection.c -- collections and their members.  A membership is two records, one below the collection
 * and one below the member.  The member's record has the number of the Collections page attribute that
 * joined it, or 0 if the target did (tracking collections).  Each collection also has a mark of its own
 * among its members.  The marks make a list of all collections without a walk over all objects.
 * membership.c has the member's side. */
#include "object/internal.h"

#include "base/util.h"
#include "object/view_impl.h"
#include "wire/cursor.h"

#define WELL_KNOWN_FIRST 0x1001u /* the collection of all user objects is never created */
#define WELL_KNOWN_LAST	 0x1081u

/* ---- life cycle -------------------------------------------------------------------------- */

static bool id_is_allowed(const struct osd_txn *txn, uint64_t requested_id)
{
	if (requested_id == 0)
		return true;
	if (requested_id >= WELL_KNOWN_FIRST && requested_id <= WELL_KNOWN_LAST)
		return txn->flags & OSD_TXN_INTERNAL;
	return requested_id >= OSD_FIRST_ID && requested_id != UINT64_MAX;
}

enum osd_status osd_collection_create(struct osd_txn *txn, uint64_t partition_id,
				      uint64_t requested_id, enum osd_collection_type type,
				      uint64_t *ret_id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_record record = {.type = OSD_COLLECTION,
				    .collection_type = (uint8_t)type,
				    .head_bytes = OSD_TIER_ONE,
				    .max_length = OSD_NO_LIMIT};
	struct osd_place place;
	struct osd_key mark;
	enum osd_status status;

	if (!id_is_allowed(txn, requested_id))
		return OSD_E_EXISTS;
	status = osd_partition_take(txn, partition_id, false, &partition);
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		record.times[i] = txn->now_ms;
	if (status == OSD_OK)
		status = osd_object_put_new(txn, partition, requested_id, 1, &record,
					    &place.object_id);
	if (status != OSD_OK)
		return status;
	place.partition_id = partition_id;
	place.incarnation = partition->incarnation;
	mark = osd_key_member(&place, 0);
	status = osd_key_put(txn->kv, OSD_KV_MEMBERS, &mark, "", 0);
	if (status == OSD_OK)
		*ret_id = place.object_id;
	return status;
}

/* member 0: the collection is removed. */
static enum osd_status note_for_views(struct osd_txn *txn, const struct osd_place *collection,
				      uint64_t member)
{
	bool missed;
	enum osd_status status = osd_views_note_member(txn, collection, member, &missed);

	return status == OSD_OK ? osd_version_note_members(txn, collection, missed) : status;
}

static enum osd_status note_members(struct osd_txn *txn, const struct osd_place *collection,
				    uint64_t member)
{
	enum osd_status status = note_for_views(txn, collection, member);

	if (status == OSD_OK)
		status = osd_stack_members_changed(txn);
	return status == OSD_OK ? osd_note_members_change(txn, collection) : status;
}

enum osd_status osd_member_pair_remove(struct osd_txn *txn, const struct osd_place *collection,
				       uint64_t member)
{
	struct osd_place member_place = osd_place_beside(collection, member);
	struct osd_key from_collection = osd_key_member(collection, member);
	struct osd_key from_member = osd_key_member(&member_place, collection->object_id);
	enum osd_status status;

	txn->member_count_known = false;
	txn->weight += OSD_RECORD_WEIGHT;
	status = osd_kv_remove(txn->kv, OSD_KV_MEMBERS, osd_key_bytes(&from_collection));
	if (status == OSD_OK)
		status = osd_kv_remove(txn->kv, OSD_KV_MEMBERSHIPS, osd_key_bytes(&from_member));
	if (status == OSD_OK)
		status = osd_tally_note(txn, txn->partition, collection->object_id, member, 1,
					false);
	return status == OSD_OK ? note_members(txn, collection, member) : status;
}

/* Removes all members and the collection's own mark. */
static enum osd_status drop_members(struct osd_txn *txn, bool with_members)
{
	struct osd_key mark = osd_key_member(&txn->place, 0), prefix = osd_key_object(&txn->place);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes key;
	enum osd_status status = osd_kv_remove(txn->kv, OSD_KV_MEMBERS, osd_key_bytes(&mark));

	if (status != OSD_OK)
		return status;
	status = osd_key_list_collect(txn->objects, txn->kv, OSD_KV_MEMBERS, osd_key_bytes(&prefix),
				      with_members ? SIZE_MAX : 1, &list);
	if (status == OSD_OK && list.count > 0 && !with_members)
		status = OSD_E_NOT_EMPTY;
	while (status == OSD_OK && osd_key_list_next(&list, &key))
		status = osd_member_pair_remove(
			txn, &txn->place,
			osd_get_be((const uint8_t *)key.data + OSD_KEY_OBJECT_PART, 8));
	return status;
}

/* Takes up the object inside the store's transaction, so that no other thread removes it. want: its
 * type. */
static enum osd_status hold(struct osd_txn *txn, struct osd_object_id id, enum osd_object_type want,
			    bool write)
{
	enum osd_status status = osd_txn_lock_store(txn);

	return status == OSD_OK ? osd_txn_take_type(txn, id, want, write) : status;
}

/* Takes up a collection with members of its own, which the collection of all user objects has not. */
static enum osd_status hold_members(struct osd_txn *txn, struct osd_object_id id, bool write)
{
	return osd_is_objects_collection(id) ? OSD_E_CDB_FIELD
					     : hold(txn, id, OSD_COLLECTION, write);
}

enum osd_status osd_collection_remove(struct osd_txn *txn, struct osd_object_id id,
				      bool with_members)
{
	enum osd_status status = hold_members(txn, id, true);

	if (status == OSD_OK)
		status = txn->objects->unname(txn);
	if (status == OSD_OK)
		status = drop_members(txn, with_members);
	if (status == OSD_OK)
		status = note_for_views(txn, &txn->place, 0);
	if (status == OSD_OK)
		status = osd_stack_drop_collection(txn);
	if (status == OSD_OK)
		status = hold_members(txn, id, true);
	return status == OSD_OK ? osd_object_remove_record(txn) : status;
}

/* ---- membership by the target ------------------------------------------------------------ */

enum osd_status osd_member_pair_put(struct osd_txn *txn, const struct osd_place *collection,
				    uint64_t member, uint32_t number)
{
	struct osd_place member_place = osd_place_beside(collection, member);
	struct osd_key from_collection = osd_key_member(collection, member);
	struct osd_key from_member = osd_key_member(&member_place, collection->object_id);
	uint8_t bytes[4];
	enum osd_status status;

	txn->member_count_known = false;
	txn->weight += OSD_RECORD_WEIGHT;
	osd_put_be(bytes, number, sizeof(bytes));
	status = osd_kv_put(txn->kv, OSD_KV_MEMBERS, osd_key_bytes(&from_collection),
			    (struct osd_bytes){"", 0}, OSD_KV_NEW);
	if (status == OSD_OK)
		status = osd_key_put(txn->kv, OSD_KV_MEMBERSHIPS, &from_member, bytes,
				     sizeof(bytes));
	if (status == OSD_OK)
		status =
			osd_tally_note(txn, txn->partition, collection->object_id, member, 1, true);
	return status == OSD_OK ? note_members(txn, collection, member) : status;
}

enum osd_status osd_collection_add(struct osd_txn *txn, struct osd_object_id collection,
				   uint64_t member)
{
	struct osd_place place;
	enum osd_status status = hold_members(txn, collection, false);

	place = txn->place;
	if (status == OSD_OK)
		status = hold(txn, (struct osd_object_id){collection.partition_id, member},
			      OSD_USER_OBJECT, false);
	if (status == OSD_OK)
		status = osd_member_pair_put(txn, &place, member, 0);
	return status == OSD_E_EXISTS ? OSD_OK : status;
}

enum osd_status osd_collection_drop(struct osd_txn *txn, struct osd_object_id collection,
				    uint64_t member)
{
	enum osd_status status = hold_members(txn, collection, false);

	return status == OSD_OK ? osd_member_pair_remove(txn, &txn->place, member) : status;
}

static enum osd_status is_user_object(struct osd_txn *txn, uint64_t id, bool *ret_is)
{
	struct osd_place place = osd_place_beside(&txn->place, id);
	struct osd_record record;
	enum osd_status status = osd_record_load(txn->objects, txn->kv, &place, 0, &record);

	*ret_is = false;
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	*ret_is = status == OSD_OK && record.type == OSD_USER_OBJECT &&
		  !osd_is_apart(id, record.flags);
	return status;
}

enum osd_status osd_collection_has(struct osd_txn *txn, struct osd_object_id collection,
				   uint64_t member, bool *ret_has)
{
	enum osd_status status = osd_txn_take_type(txn, collection, OSD_COLLECTION, false);
	struct osd_key key;

	if (status != OSD_OK)
		return status;
	if (osd_is_objects_collection(collection))
		return is_user_object(txn, member, ret_has);
	if (member == 0) {
		*ret_has = false; /* that key is the collection's own mark */
		return OSD_OK;
	}
	key = osd_key_member(osd_txn_members(txn), member);
	return osd_record_is_there(txn->objects, txn->kv, OSD_KV_MEMBERS, osd_key_bytes(&key),
				   ret_has);
}

struct counting {
	const struct osd_txn *txn;
	uint64_t count;
};

static bool count_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct counting *counting = arg;

	(void)key;
	(void)value;
	counting->count++;
	return !osd_txn_stopped(counting->txn);
}

enum osd_status osd_member_count(struct osd_txn *txn, const struct osd_place *collection,
				 uint64_t *ret_count)
{
	struct counting counting = {txn, 0};
	uint64_t of = collection->object_id;
	uint64_t begun = osd_tally_begin(txn->partition);
	struct osd_key first = osd_key_member(collection, 1);
	enum osd_status status;

	if (of == OSD_OBJECTS_COLLECTION)
		of = OSD_TALLY_USER_OBJECTS;
	if (!txn->shown && osd_tally_get(txn->partition, of, 0, ret_count)) {
		*ret_count += osd_tally_noted(txn, of);
		return OSD_OK;
	}
	status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_MEMBERS, osd_key_bytes(&first),
			     OSD_KEY_OBJECT_PART, count_one, &counting);
	if (status == OSD_OK && osd_txn_stopped(txn))
		status = OSD_E_TASK_ABORTED;
	if (status != OSD_OK)
		return status;
	if (!txn->shown) /* the partition's counts are of its own collections */
		osd_tally_end(txn->partition, begun, of, counting.count);
	*ret_count = counting.count;
	return OSD_OK;
}
