/* SPDX-License-Identifier: GPL-2.0-or-later */
/* list.c -- ids in ascending order: partitions, user objects, collections, members.
 *
 * A listing returns one page of ids and the number of all ids from its first one on.  The number comes
 * from the partition's counts (tally.c), or from a count of the records.  A listing that begins in the
 * middle of a long list, where no page ended, gets "very many" instead. */
#include "object/internal.h"

#include "base/util.h"
#include "wire/cursor.h"

#define COUNT_MAX 4096u /* the rest of a list up to this length is counted, ... */
#define COUNT_FEW 64u	/* ... else no more than so many beyond those returned */

struct listing {
	uint64_t *ids;
	size_t capacity, count;
	uint64_t next_id, total;
	bool uncounted;	      /* the total is not needed */
	uint64_t known_total; /* UINT64_MAX: not known, ... */
	uint64_t count_max;   /* ... then counted so far */
	size_t id_at;	      /* offset of the id in the key */
	uint8_t type;	      /* of the wanted records, without those that stand apart; 0: all */
	struct osd_txn *txn;
};

/* After the page is full. */
static bool wants_more(const struct listing *listing)
{
	return listing->known_total == UINT64_MAX && listing->total < listing->count_max;
}

static bool add_id(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct listing *listing = arg;
	const uint8_t *record = value.data;
	uint64_t id;

	if (osd_txn_stopped(listing->txn))
		return false;
	if (key.length < listing->id_at + 8)
		return true;
	if (listing->type && (value.length < 2 || record[1] != listing->type))
		return true;
	id = osd_get_be((const uint8_t *)key.data + listing->id_at, 8);
	if (listing->type && id >= OSD_JOB_IDS_FIRST && osd_record_is_apart(key, value))
		return true;
	listing->total++;
	if (listing->count < listing->capacity) {
		listing->ids[listing->count++] = id;
		return true;
	}
	if (listing->next_id == 0)
		listing->next_id = id;
	return wants_more(listing);
}

static enum osd_status scan(struct osd_txn *txn, enum osd_kv_table table,
			    const struct osd_key *from, size_t prefix_length,
			    struct listing *listing)
{
	enum osd_status status;

	listing->count = 0;
	listing->total = listing->next_id = 0;
	status = osd_kv_scan(txn->objects->kv, txn->kv, table, osd_key_bytes(from), prefix_length,
			     add_id, listing);
	return status == OSD_OK && osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED : status;
}

static enum osd_status list_partitions(struct osd_txn *txn, uint64_t initial_id,
				       struct listing *listing)
{
	struct osd_key from = osd_key_partition(atomic_load(&txn->objects->epoch), initial_id);

	listing->id_at = 4;
	return scan(txn, OSD_KV_PARTITIONS, &from, 4, listing);
}

/* ---- what is left ------------------------------------------------------------------------ */

/* Begins the count: it covers all ids, whatever the first wanted id is. */
static uint64_t tally_from(uint64_t initial_id, uint64_t first_id)
{
	return initial_id <= first_id ? 0 : initial_id;
}

static void recall(struct osd_txn *txn, uint64_t of, uint64_t from, struct listing *listing)
{
	uint64_t whole;

	if (listing->uncounted)
		return;
	if (!osd_tally_get(txn->partition, of, from, &listing->known_total))
		listing->known_total = UINT64_MAX;
	if (!osd_tally_get(txn->partition, of, 0, &whole))
		whole = 0;
	listing->count_max = UINT64_MAX;
	if (from)
		listing->count_max =
			listing->capacity + (whole > COUNT_MAX ? COUNT_FEW : COUNT_MAX);
}

/* Sets the number to return, and keeps the count that the next page will need. */
static void settle_total(struct osd_txn *txn, uint64_t of, struct listing *listing)
{
	if (listing->uncounted)
		return;
	if (listing->next_id == 0) {
		listing->total = listing->count;
		return;
	}
	if (listing->known_total != UINT64_MAX)
		listing->total = OSD_MAX(listing->known_total, listing->count + 1);
	else if (listing->total >= listing->count_max)
		listing->total = UINT64_MAX;
	if (listing->total != UINT64_MAX)
		osd_tally_put(txn->partition, of, listing->next_id,
			      listing->total - listing->count);
}

static enum osd_status list_user_objects(struct osd_txn *txn, uint64_t initial_id,
					 struct listing *listing)
{
	struct osd_place first = osd_place_beside(&txn->place, OSD_MAX(initial_id, 1));
	struct osd_key from = osd_key_object(&first);
	enum osd_status status;

	listing->id_at = OSD_KEY_PARTITION_PART;
	listing->type = OSD_USER_OBJECT;
	recall(txn, OSD_TALLY_USER_OBJECTS, tally_from(initial_id, OSD_FIRST_ID), listing);
	status = scan(txn, OSD_KV_OBJECTS, &from, OSD_KEY_PARTITION_PART, listing);
	if (status == OSD_OK)
		settle_total(txn, OSD_TALLY_USER_OBJECTS, listing);
	return status;
}

/* ---- collections and members ------------------------------------------------------------- */

/* Goes from mark to mark and skips the members between them. */
static enum osd_status list_collections(struct osd_txn *txn, uint64_t initial_id,
					struct listing *listing)
{
	struct osd_place place = osd_place_beside(&txn->place, initial_id);
	enum osd_status status;
	uint64_t id;
	size_t found;

	recall(txn, OSD_TALLY_COLLECTIONS, tally_from(initial_id, 1), listing);
	do {
		struct osd_key from = osd_key_member(&place, 0);

		status = osd_key_ids(txn->objects, txn->kv, OSD_KV_MEMBERS, &from,
				     OSD_KEY_PARTITION_PART, &id, 1, &found);
		if (status != OSD_OK || !found)
			break;
		listing->total++;
		if (listing->count < listing->capacity)
			listing->ids[listing->count++] = id;
		else if (listing->next_id == 0)
			listing->next_id = id;
		if (listing->next_id && !wants_more(listing))
			break;
		place.object_id = id + 1;
		if (osd_txn_stopped(txn))
			status = OSD_E_TASK_ABORTED;
	} while (status == OSD_OK && id != UINT64_MAX);
	if (status == OSD_OK)
		settle_total(txn, OSD_TALLY_COLLECTIONS, listing);
	return status;
}

enum osd_status osd_list_members(struct osd_txn *txn, const struct osd_place *collection,
				 uint64_t initial_id, uint64_t *ids, size_t capacity,
				 size_t *ret_count, uint64_t *ret_next)
{
	struct listing listing = {.ids = ids, .capacity = capacity, .known_total = 0, .txn = txn};
	bool all = collection->object_id == OSD_OBJECTS_COLLECTION;
	struct osd_place first = osd_place_beside(collection, OSD_MAX(initial_id, 1));
	struct osd_key from =
		all ? osd_key_object(&first) : osd_key_member(collection, first.object_id);
	enum osd_status status;

	listing.id_at = all ? OSD_KEY_PARTITION_PART : OSD_KEY_OBJECT_PART;
	listing.type = all ? OSD_USER_OBJECT : 0;
	status = scan(txn, all ? OSD_KV_OBJECTS : OSD_KV_MEMBERS, &from, listing.id_at, &listing);
	*ret_count = listing.count;
	*ret_next = listing.next_id;
	return status;
}

static enum osd_status list_members(struct osd_txn *txn, uint64_t initial_id,
				    struct listing *listing)
{
	struct osd_key from = osd_key_member(osd_txn_members(txn), OSD_MAX(initial_id, 1));
	uint64_t begun = osd_tally_begin(txn->partition);
	enum osd_status status;

	if (osd_txn_type(txn) != OSD_COLLECTION)
		return OSD_E_NO_OBJECT;
	if (osd_is_objects_collection(txn->id))
		return list_user_objects(txn, initial_id, listing);
	listing->id_at = OSD_KEY_OBJECT_PART;
	if (txn->shown) /* the partition's counts are of its own collections */
		return scan(txn, OSD_KV_MEMBERS, &from, OSD_KEY_OBJECT_PART, listing);
	recall(txn, txn->id.object_id, tally_from(initial_id, OSD_FIRST_ID), listing);
	status = scan(txn, OSD_KV_MEMBERS, &from, OSD_KEY_OBJECT_PART, listing);
	if (status != OSD_OK)
		return status;
	if (initial_id <= OSD_FIRST_ID && listing->known_total == UINT64_MAX)
		osd_tally_end(txn->partition, begun, txn->id.object_id, listing->total);
	settle_total(txn, txn->id.object_id, listing);
	return OSD_OK;
}

static enum osd_status (*const walks[])(struct osd_txn *txn, uint64_t initial_id,
					struct listing *listing) = {
	[OSD_LIST_PARTITIONS] = list_partitions,
	[OSD_LIST_USER_OBJECTS] = list_user_objects,
	[OSD_LIST_COLLECTIONS] = list_collections,
	[OSD_LIST_MEMBERS] = list_members,
};

static enum osd_status list(struct osd_txn *txn, const struct osd_list_request *request,
			    uint64_t *ids, size_t capacity, bool counted,
			    struct osd_list_result *ret_result)
{
	struct listing listing = {.ids = ids,
				  .capacity = capacity,
				  .uncounted = !counted,
				  .known_total = counted ? UINT64_MAX : 0,
				  .count_max = UINT64_MAX,
				  .txn = txn};
	struct osd_object_id in = request->in;
	enum osd_status status = OSD_OK;

	if (request->kind == OSD_LIST_USER_OBJECTS || request->kind == OSD_LIST_COLLECTIONS)
		in.object_id = 0;
	if (request->kind != OSD_LIST_PARTITIONS && in.partition_id == 0)
		return OSD_E_NO_PARTITION;
	if (request->kind != OSD_LIST_PARTITIONS)
		status = osd_txn_take(txn, in, false);
	if (status != OSD_OK)
		return status;
	if (request->kind != OSD_LIST_PARTITIONS && osd_txn_type(txn) != OSD_USER_OBJECT)
		osd_note_list_access(txn);
	osd_txn_release_reads(txn); /* a long walk holds no locks */
	status = walks[request->kind](txn, request->initial_id, &listing);
	if (status == OSD_OK)
		*ret_result =
			(struct osd_list_result){listing.count, listing.next_id, listing.total};
	return status;
}

enum osd_status osd_list(struct osd_txn *txn, const struct osd_list_request *request, uint64_t *ids,
			 size_t capacity, struct osd_list_result *ret_result)
{
	return list(txn, request, ids, capacity, true, ret_result);
}

enum osd_status osd_list_uncounted(struct osd_txn *txn, const struct osd_list_request *request,
				   uint64_t *ids, size_t capacity,
				   struct osd_list_result *ret_result)
{
	return list(txn, request, ids, capacity, false, ret_result);
}
