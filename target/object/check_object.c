/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check_object.c -- what is wrong with one object (OBJECT STRUCTURE CHECK): its record, its files,
 * the records of its attributes, memberships in both directions, its entries in value indexes.
 *
 * Others go on meanwhile.  Records that belong together are read in one transaction, and files are compared with the
 * length while nobody writes. Only then a difference is damage. */
#include "object/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "object/txn_run.h"
#include "object/value_index.h"
#include "wire/cursor.h"

/* of osd_txn_run(): the check of a big object reads for long and is aborted more often */
#define ROUNDS	      9
#define MEMBERS_BATCH 256u

/* ---- files ------------------------------------------------------------------------------- */

static enum osd_status compare_files(struct osd_tier_file *file, uint64_t length,
				     uint8_t *ret_damage)
{
	uint64_t head, tail, size;
	enum osd_status status = osd_tier_part_sizes(file, &head, &tail);

	if (status != OSD_OK)
		return status;
	size = tail ? file->head_bytes + tail : head;
	*ret_damage = 0;
	if (size < length || (tail && head < file->head_bytes))
		*ret_damage = OSD_DAMAGED_DATA;
	else if (size > length || head > file->head_bytes)
		*ret_damage = OSD_DAMAGED_ATTRIBUTES; /* the length is in doubt */
	return OSD_OK;
}

/* For an object that is not in memory: its record is up to date. */
static enum osd_status check_unused(struct osd_objects *objects, const struct osd_place *place,
				    const struct osd_record *record, uint8_t *ret_damage)
{
	struct osd_tier_file file;
	enum osd_status status;

	osd_record_file_init(&file, &objects->tier, place, record);
	status = compare_files(&file, record->length, ret_damage);
	osd_tier_file_release(&file);
	return status;
}

static enum osd_status check_used(struct osd_object *object, uint8_t *ret_damage)
{
	struct osd_range range;
	enum osd_status status = osd_object_lock_read(object, &range, 0, UINT64_MAX, false);

	if (status != OSD_OK)
		return status;
	*ret_damage = 0;
	/* Record and files may differ while the length rules, or while the files wait to be cut. */
	if (object->has_files && !object->length_rules && !object->untrimmed)
		status = compare_files(&object->file, atomic_load(&object->length), ret_damage);
	if (object->reserved_bytes < atomic_load(&object->length))
		*ret_damage |= OSD_DAMAGED_ATTRIBUTES;
	osd_object_unlock_read(object, &range);
	osd_cache_note_open(object);
	return status;
}

static enum osd_status check_files(struct osd_objects *objects, const struct osd_place *place,
				   const struct osd_record *record, uint8_t *ret_damage)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_object_id id = {place->partition_id, place->object_id};
	enum osd_status status;

	*ret_damage = 0;
	if (record->type != OSD_USER_OBJECT)
		return OSD_OK;
	object = osd_cache_find(objects, id);
	if (!object) {
		if (record->length == 0 && !(record->flags & OSD_REC_HAS_FILES))
			return OSD_OK;
		status = check_unused(objects, place, record, ret_damage);
		if (status == OSD_OK && *ret_damage == 0)
			return OSD_OK;
		status = osd_cache_get(objects, id, &object); /* look again with a lock */
		if (status != OSD_OK)
			return status;
	}
	return check_used(object, ret_damage);
}

/* ---- records ----------------------------------------------------------------------------- */

struct indexed {
	uint32_t page, number;
	uint8_t value[OSD_INDEX_VALUE_BYTES];
	size_t length;
};

/* The results of the scans of the object's records. */
struct found {
	const struct osd_txn *txn;
	const struct osd_partition *partition;
	uint32_t attributes, units;
	uint64_t *collections; /* owned */
	size_t collection_count, collection_capacity;
	struct indexed *indexed; /* owned: attributes that must have entries */
	size_t indexed_count, indexed_capacity;
	bool malformed, no_memory;
};

static void found_release(struct found *found)
{
	free(found->collections);
	free(found->indexed);
}

static bool add_attribute(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct found *found = arg;
	const uint8_t *bytes = key.data;
	struct indexed entry = {.length = value.length};

	if (key.length != OSD_KEY_OBJECT_PART + 8) {
		found->malformed = true;
		return true;
	}
	found->attributes++;
	entry.page = (uint32_t)osd_get_be(bytes + OSD_KEY_OBJECT_PART, 4);
	entry.number = (uint32_t)osd_get_be(bytes + OSD_KEY_OBJECT_PART + 4, 4);
	found->units += osd_attr_units(entry.page, value.length);
	if (!osd_attr_page_fits(found->txn, entry.page) || entry.number == OSD_NUMBER_ALL)
		found->malformed = true;
	if (osd_index_stage_of(found->partition, entry.page) != OSD_INDEX_DONE ||
	    !osd_index_takes(entry.page, entry.number))
		return true;
	if (!OSD_MAKE_ROOM(found->indexed, found->indexed_count, found->indexed_capacity)) {
		found->no_memory = true;
		return false;
	}
	memcpy(entry.value, value.data, OSD_MIN(value.length, sizeof(entry.value)));
	found->indexed[found->indexed_count++] = entry;
	return true;
}

static bool add_collection(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct found *found = arg;

	if (key.length != OSD_KEY_OBJECT_PART + 8 || value.length != 4) {
		found->malformed = true;
		return true;
	}
	if (!OSD_MAKE_ROOM(found->collections, found->collection_count,
			   found->collection_capacity)) {
		found->no_memory = true;
		return false;
	}
	found->collections[found->collection_count++] =
		osd_get_be((const uint8_t *)key.data + OSD_KEY_OBJECT_PART, 8);
	return true;
}

static enum osd_status is_there(struct osd_txn *txn, enum osd_kv_table table, struct osd_bytes key,
				bool *ret_there)
{
	return osd_record_is_there(txn->objects, txn->kv, table, key, ret_there);
}

/* The second byte of a record is the type, in whatever state the others are. */
static enum osd_status is_object(struct osd_txn *txn, const struct osd_place *place,
				 enum osd_object_type type, bool *ret_is)
{
	uint8_t bytes[OSD_RECORD_BYTES] = {0};
	struct osd_key key = osd_key_object(place);
	size_t length;
	enum osd_status status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_OBJECTS,
					    osd_key_bytes(&key), 0, bytes, sizeof(bytes), &length);

	*ret_is = status == OSD_OK && bytes[1] == type;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* Each membership of a user object must have its other record, and a collection. */
static enum osd_status check_memberships(struct osd_txn *txn, const struct found *found,
					 bool *ret_damaged)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < found->collection_count; i++) {
		struct osd_place place = osd_place_beside(&txn->place, found->collections[i]);
		struct osd_key key = osd_key_member(&place, txn->place.object_id);
		bool listed = false, exists = false;

		status = is_there(txn, OSD_KV_MEMBERS, osd_key_bytes(&key), &listed);
		if (status == OSD_OK)
			status = is_object(txn, &place, OSD_COLLECTION, &exists);
		*ret_damaged |= !listed || !exists;
	}
	return status;
}

static enum osd_status check_entries(struct osd_txn *txn, const struct found *found,
				     bool *ret_damaged)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < found->indexed_count; i++) {
		const struct indexed *entry = &found->indexed[i];
		struct osd_index_key key;
		bool there = true;

		osd_index_key_entry(&txn->place, entry->page, entry->number, entry->value,
				    entry->length, &key);
		status = is_there(txn, OSD_KV_INDEX, osd_index_key_bytes(&key), &there);
		/* A page that was dropped meanwhile loses its entries. */
		if (!there && osd_index_stage_of(found->partition, entry->page) == OSD_INDEX_DONE)
			*ret_damaged = true;
	}
	return status;
}

static bool record_is_sound(const struct osd_record *record)
{
	bool user = record->type == OSD_USER_OBJECT;

	return (user || record->type == OSD_COLLECTION) &&
	       record->reserved_bytes >= record->length &&
	       record->spare_generation != record->generation &&
	       (!user || record->length == 0 || (record->flags & OSD_REC_HAS_FILES));
}

/* Called in one read transaction, with the object at hand. */
static enum osd_status check_at_hand(struct osd_txn *txn, struct found *found,
				     struct osd_checked *checked)
{
	struct osd_key prefix = osd_key_object(&txn->place);
	uint32_t page = osd_page_base(osd_txn_type(txn)) + OSD_REL_RECOVERY;
	bool damaged = !record_is_sound(&txn->record);
	size_t length = 0;
	enum osd_status status = osd_attr_stored_get(txn, page, OSD_DAMAGE_SUMMARY, &checked->known,
						     sizeof(checked->known), &length);

	if (length == 0)
		checked->known = 0;
	if (status == OSD_OK)
		status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_ATTRIBUTES,
				     osd_key_bytes(&prefix), prefix.length, add_attribute, found);
	if (status == OSD_OK)
		status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_MEMBERSHIPS,
				     osd_key_bytes(&prefix), prefix.length, add_collection, found);
	if (status == OSD_OK && found->no_memory)
		status = OSD_E_NO_MEMORY;
	if (status == OSD_OK)
		status = check_memberships(txn, found, &damaged);
	if (status == OSD_OK)
		status = check_entries(txn, found, &damaged);
	damaged |= found->malformed || found->attributes != txn->record.attribute_count;
	damaged |= txn->record.attribute_units != OSD_UNITS_UNKNOWN &&
		   found->units != txn->record.attribute_units;
	if (damaged)
		checked->damage |= OSD_DAMAGED_ATTRIBUTES;
	return status;
}

struct check {
	struct osd_object_id id;
	struct osd_place place;
	struct osd_record record;
	struct osd_checked checked;
};

static enum osd_status check_once(struct osd_txn *txn, void *arg)
{
	struct check *check = arg;
	struct found found = {.txn = txn};
	enum osd_status status = osd_txn_take(txn, check->id, false);

	check->checked = (struct osd_checked){0};
	if (status != OSD_OK)
		return status;
	found.partition = txn->partition;
	check->place = txn->place;
	check->record = txn->record;
	status = check_at_hand(txn, &found, &check->checked);
	found_release(&found);
	return status;
}

/* ---- members of a collection ------------------------------------------------------------- */

struct member_check {
	const struct osd_place *collection;
	uint64_t id;
	bool damaged;
};

/* Reads the three records in one transaction: they must agree. */
static enum osd_status check_member(struct osd_txn *txn, void *arg)
{
	struct member_check *check = arg;
	const struct osd_place *collection = check->collection;
	struct osd_place member = osd_place_beside(collection, check->id);
	struct osd_key listed = osd_key_member(collection, check->id);
	struct osd_key joined = osd_key_member(&member, collection->object_id);
	bool is_listed = false, is_joined = false, exists = false;
	enum osd_status status = osd_txn_lock_store(txn);

	if (status == OSD_OK)
		status = is_there(txn, OSD_KV_MEMBERS, osd_key_bytes(&listed), &is_listed);
	if (status == OSD_OK)
		status = is_there(txn, OSD_KV_MEMBERSHIPS, osd_key_bytes(&joined), &is_joined);
	if (status == OSD_OK)
		status = is_object(txn, &member, OSD_USER_OBJECT, &exists);
	check->damaged = status == OSD_OK && is_listed && (!is_joined || !exists);
	return status;
}

static enum osd_status check_members(struct osd_objects *objects,
				     const struct osd_place *collection, bool *ret_damaged)
{
	uint64_t ids[MEMBERS_BATCH], next = 1; /* 0 is the collection's own mark */
	size_t count;
	enum osd_status status;

	do {
		struct osd_key from = osd_key_member(collection, next);

		status = osd_key_ids(objects, NULL, OSD_KV_MEMBERS, &from, OSD_KEY_OBJECT_PART, ids,
				     MEMBERS_BATCH, &count);
		for (size_t i = 0; status == OSD_OK && !*ret_damaged && i < count; i++) {
			struct member_check check = {collection, ids[i], false};

			status = osd_txn_run(objects, OSD_TXN_READ_ONLY | OSD_TXN_INTERNAL,
					     check_member, &check);
			*ret_damaged = check.damaged;
		}
		if (count)
			next = ids[count - 1] + 1;
	} while (status == OSD_OK && !*ret_damaged && count == MEMBERS_BATCH);
	return status;
}

/* ---- all of it --------------------------------------------------------------------------- */

enum osd_status osd_check_object(struct osd_objects *objects, struct osd_object_id id,
				 struct osd_checked *ret_checked)
{
	struct check check = {.id = id};
	bool members_damaged = false;
	uint8_t damage = 0;
	enum osd_status status = OSD_E_BUSY;

	for (int i = 0; status == OSD_E_BUSY && i < ROUNDS; i++)
		status = osd_txn_run(objects, OSD_TXN_READ_ONLY | OSD_TXN_INTERNAL, check_once,
				     &check);
	if (status == OSD_E_MEDIUM) { /* a record nobody can read */
		*ret_checked = (struct osd_checked){.damage = OSD_DAMAGED_ATTRIBUTES};
		return OSD_OK;
	}
	if (status == OSD_OK)
		status = check_files(objects, &check.place, &check.record, &damage);
	if (osd_status_is_medium(status)) { /* the device cannot read the files */
		damage = OSD_DAMAGED_DATA;
		status = OSD_OK;
	}
	if (status == OSD_OK && check.record.type == OSD_COLLECTION)
		status = check_members(objects, &check.place, &members_damaged);
	if (status != OSD_OK)
		return status == OSD_E_CONFLICT ? OSD_E_BUSY : status;
	check.checked.damage |= damage;
	if (members_damaged)
		check.checked.damage |= OSD_DAMAGED_DATA; /* a collection's list */
	*ret_checked = check.checked;
	return OSD_OK;
}
