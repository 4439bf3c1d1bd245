/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names.c -- see names.h.  Not here: paths (name_find.c), LIST (name_walk.c). */
#include "object/names.h"

#include "base/util.h"
#include "object/internal.h"
#include "object/name_cache.h"
#include "object/named.h"
#include "object/view.h"
#include "wire/cursor.h"

/* ---- directories ----------------------------------------------------------------------------- */

enum osd_status osd_directory_make(struct osd_txn *txn, uint64_t partition_id,
				   struct osd_object_id *ret_id)
{
	uint64_t id = 0;
	struct osd_place tree;
	enum osd_status status = osd_view_tree(txn, partition_id, true, &tree);

	if (status == OSD_OK)
		status = osd_collection_create(txn, tree.partition_id, 0, OSD_COLLECTION_LINKED,
					       &id);
	*ret_id = (struct osd_object_id){partition_id, id};
	if (status == OSD_OK)
		status = osd_txn_take(txn, (struct osd_object_id){tree.partition_id, id}, true);
	if (status != OSD_OK)
		return status;
	txn->record.flags |= OSD_REC_DIRECTORY;
	txn->dirty = true;
	return OSD_OK;
}

/* Of the directory at hand. */
static enum osd_status check_no_entries(struct osd_txn *txn)
{
	struct osd_name_key key;
	bool any;
	enum osd_status status;

	osd_name_entry_key(&txn->place, (struct osd_name){NULL, 0}, &key);
	status = osd_key_any(txn->objects, txn->kv, OSD_KV_NAMES, osd_name_key_bytes(&key), &any);
	return status == OSD_OK && any ? OSD_E_NOT_EMPTY : status;
}

enum osd_status osd_directory_check_empty(struct osd_txn *txn, struct osd_object_id id)
{
	enum osd_status status = osd_directory_hold(txn, id);

	return status == OSD_OK ? check_no_entries(txn) : status;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The members of the directory change, or a directory in it. */
static enum osd_status note_change(struct osd_txn *txn, const struct osd_place *directory)
{
	enum osd_status status;

	if (directory->object_id == 0)
		return OSD_OK;
	status = osd_version_note_members(txn, directory, false);
	return status == OSD_OK ? osd_note_members_change(txn, directory) : status;
}

/* The user object at hand becomes a member of the directory, unless another name has made it one. */
static enum osd_status join(struct osd_txn *txn, const struct osd_place *directory)
{
	enum osd_status status;

	if (directory->object_id == 0)
		return OSD_OK;
	status = osd_member_pair_put(txn, directory, txn->id.object_id, 0);
	osd_memberships_forget(txn);
	return status == OSD_E_EXISTS ? note_change(txn, directory) : status;
}

/* The object at hand can have a name in the directory. */
static enum osd_status check_target(struct osd_txn *txn, const struct osd_place *place,
				    struct osd_object_id id)
{
	bool directory, object;
	uint32_t names = 0;
	enum osd_status status;

	if (place->partition_id == 0 || osd_txn_type(txn) == OSD_PARTITION) {
		if (place->partition_id != 0 || osd_txn_type(txn) != OSD_PARTITION)
			return OSD_E_NAME_TARGET;
		status = osd_names_of(txn, &txn->place, &names);
		return status == OSD_OK && names ? OSD_E_NAME_TARGET : status;
	}
	directory = osd_txn_type(txn) == OSD_COLLECTION && txn->record.flags & OSD_REC_DIRECTORY &&
		    !(txn->record.flags & OSD_REC_NAMED);
	object = osd_txn_type(txn) == OSD_USER_OBJECT &&
		 !osd_is_apart(id.object_id, txn->record.flags);

	return directory || object ? OSD_OK : OSD_E_NAME_TARGET;
}

/* The name of the object at hand changes: what is in memory about both does not hold. */
static enum osd_status mark(struct osd_txn *txn, const struct osd_place *directory)
{
	enum osd_status status = osd_name_cache_change(txn, directory);

	return status == OSD_OK ? osd_name_cache_change(txn, &txn->place) : status;
}

static enum osd_status put_records(struct osd_txn *txn, const struct osd_place *directory,
				   struct osd_name name)
{
	struct osd_name_key entry, named;
	uint8_t value[OSD_NAME_ENTRY_BYTES];
	struct osd_wr w = osd_wr_init(value, sizeof(value));
	enum osd_status status = mark(txn, directory);

	osd_name_entry_key(directory, name, &entry);
	osd_named_key(&txn->place, directory->object_id, name, &named);
	osd_wr_be(&w, osd_txn_type(txn), 1);
	osd_wr_be(&w, txn->id.object_id ? txn->id.object_id : txn->id.partition_id, 8);
	if (status == OSD_OK)
		status = osd_kv_put(txn->kv, OSD_KV_NAMES, osd_name_key_bytes(&entry),
				    (struct osd_bytes){value, sizeof(value)}, OSD_KV_NEW);
	if (status == OSD_OK && txn->unborn) /* it is to have one attribute: the name */
		status = osd_txn_store_new(txn, 1);
	if (status == OSD_OK)
		status = osd_kv_put(txn->kv, OSD_KV_NAMED, osd_name_key_bytes(&named),
				    (struct osd_bytes){"", 0}, 0);
	txn->weight += 2 * OSD_RECORD_WEIGHT;
	return status;
}

/* In the record of the object at hand.  A partition's has none. */
static void set_mark(struct osd_txn *txn, bool named)
{
	if (txn->id.object_id == 0)
		return;
	txn->record.flags =
		(uint16_t)(named ? txn->record.flags | OSD_REC_NAMED
				 : txn->record.flags & ~OSD_REC_NAMED);
	txn->dirty = true;
}

/* Takes up the object, in the base of a view.  The directory is not taken up, so the record of an object that gets or
 * loses several names, or is new, is read and written once. */
static enum osd_status take(struct osd_txn *txn, struct osd_object_id directory,
			    struct osd_object_id id, struct osd_place *ret_place)
{
	enum osd_status status = OSD_OK;

	if (directory.partition_id)
		status = osd_name_in_tree(txn, true, &id);
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, true);
	*ret_place = directory.partition_id ? osd_place_beside(&txn->place, directory.object_id)
					    : osd_root_place(txn->objects);
	return status;
}

enum osd_status osd_name_put(struct osd_txn *txn, struct osd_object_id directory,
			     struct osd_name name, struct osd_object_id id)
{
	struct osd_place place;
	enum osd_status status = take(txn, directory, id, &place);

	if (!osd_name_is_valid(name))
		return OSD_E_PARAM_FIELD;
	if (status == OSD_E_NO_OBJECT && osd_view_may_be(txn->objects, id.partition_id))
		return OSD_E_NAME_TARGET; /* an object of the view's own */
	if (status == OSD_OK)
		status = check_target(txn, &place, id);
	if (status == OSD_OK)
		status = put_records(txn, &place, name);
	if (status != OSD_OK)
		return status;
	set_mark(txn, true);
	return osd_txn_type(txn) == OSD_USER_OBJECT ? join(txn, &place) : note_change(txn, &place);
}

/* Whether the object at hand has a name in the directory. */
static enum osd_status has_name(struct osd_txn *txn, uint64_t directory, bool *ret_has)
{
	struct osd_name_key key;

	osd_named_key(&txn->place, directory, (struct osd_name){NULL, 0}, &key);
	return osd_key_any(txn->objects, txn->kv, OSD_KV_NAMED, osd_name_key_bytes(&key), ret_has);
}

/* The user object at hand leaves the directory with its last name there. */
static enum osd_status leave(struct osd_txn *txn, const struct osd_place *directory)
{
	bool stays;
	enum osd_status status;

	if (directory->object_id == 0)
		return OSD_OK;
	status = has_name(txn, directory->object_id, &stays);
	if (status != OSD_OK)
		return status;
	if (stays)
		return note_change(txn, directory);
	osd_memberships_forget(txn);
	return osd_member_pair_remove(txn, directory, txn->id.object_id);
}

/* Of the object at hand. */
static enum osd_status drop_records(struct osd_txn *txn, const struct osd_place *directory,
				    struct osd_name name)
{
	struct osd_name_key entry, named;
	enum osd_status status = mark(txn, directory);

	osd_name_entry_key(directory, name, &entry);
	osd_named_key(&txn->place, directory->object_id, name, &named);
	if (status == OSD_OK)
		status = osd_kv_remove(txn->kv, OSD_KV_NAMES, osd_name_key_bytes(&entry));
	if (status == OSD_OK)
		status = osd_kv_remove(txn->kv, OSD_KV_NAMED, osd_name_key_bytes(&named));
	txn->weight += 2 * OSD_RECORD_WEIGHT;
	if (status == OSD_E_NO_OBJECT) /* one without the other: the store's check repairs that */
		return OSD_E_MEDIUM;
	if (status != OSD_OK)
		return status;
	return osd_txn_type(txn) == OSD_USER_OBJECT ? leave(txn, directory)
						    : note_change(txn, directory);
}

enum osd_status osd_name_drop(struct osd_txn *txn, struct osd_object_id directory,
			      struct osd_name name, struct osd_object_id id, uint32_t *ret_left)
{
	struct osd_place place;
	enum osd_status status = take(txn, directory, id, &place);

	if (status == OSD_OK)
		status = drop_records(txn, &place, name);
	if (status == OSD_OK)
		status = osd_names_of(txn, &txn->place, ret_left);
	if (status != OSD_OK || *ret_left)
		return status;
	set_mark(txn, false);
	return OSD_OK;
}

/* Of the object at hand. */
static enum osd_status drop_all(struct osd_txn *txn)
{
	struct osd_key place = osd_key_object(&txn->place);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes key;
	enum osd_status status;

	status = osd_key_list_collect(txn->objects, txn->kv, OSD_KV_NAMED, osd_key_bytes(&place),
				      SIZE_MAX, &list);
	while (status == OSD_OK && osd_key_list_next(&list, &key)) {
		const uint8_t *bytes = key.data;
		struct osd_place directory;

		if (key.length <= OSD_NAMED_NAME_AT || key.length > OSD_NAME_KEY_MAX) {
			status = OSD_E_MEDIUM;
			break;
		}
		directory = txn->id.object_id
				    ? osd_place_beside(&txn->place,
						       osd_get_be(bytes + OSD_KEY_OBJECT_PART, 8))
				    : osd_root_place(txn->objects);
		status = drop_records(txn, &directory,
				      (struct osd_name){bytes + OSD_NAMED_NAME_AT,
							key.length - OSD_NAMED_NAME_AT});
	}
	return status;
}

enum osd_status osd_unname(struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;

	if (txn->id.object_id == 0)
		return drop_all(txn);
	if (txn->record.flags & OSD_REC_DIRECTORY)
		status = check_no_entries(txn);
	return status == OSD_OK && txn->record.flags & OSD_REC_NAMED ? drop_all(txn) : status;
}

/* ---- questions ------------------------------------------------------------------------------- */

enum osd_status osd_directory_above(struct osd_txn *txn, const struct osd_place *place,
				    uint64_t *ret_above, bool *ret_found)
{
	struct osd_key key = osd_key_object(place);
	uint64_t above = 0;
	size_t count;
	enum osd_status status = osd_key_ids(txn->objects, txn->kv, OSD_KV_NAMED, &key,
					     OSD_KEY_OBJECT_PART, &above, 1, &count);

	*ret_above = above;
	*ret_found = count > 0;
	return osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED : status;
}

/* A damaged store may have a circle of directories.  A walk upward remembers one directory, a later one after 1, 2, 4,
 * 8, ... steps, and meets it again if it goes round. */
struct circle {
	uint64_t remembered;
	uint32_t steps;
};

static bool is_circle(struct circle *circle, uint64_t directory)
{
	if (directory == circle->remembered)
		return true;
	if ((circle->steps & (circle->steps - 1)) == 0)
		circle->remembered = directory;
	circle->steps++;
	return false;
}

enum osd_status osd_directory_is_below(struct osd_txn *txn, struct osd_object_id id,
				       struct osd_object_id other, bool *ret_below)
{
	struct osd_place place;
	struct circle circle = {0};
	bool found = true;
	enum osd_status status = osd_directory_hold(txn, id);

	*ret_below = osd_same_id(id, other);
	place = txn->place;
	while (status == OSD_OK && found && !*ret_below && place.object_id != 0) {
		if (is_circle(&circle, place.object_id))
			return OSD_E_MEDIUM;
		status = osd_directory_above(txn, &place, &place.object_id, &found);
		*ret_below = found && place.object_id == other.object_id;
	}
	return status;
}
