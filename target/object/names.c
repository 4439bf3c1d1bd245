/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names.c -- see names.h.  name_walk.c lists the entries of a directory. */
#include "object/names.h"

#include <string.h>

#include "base/util.h"
#include "object/internal.h"
#include "object/named.h"
#include "wire/cursor.h"

#define NAMED_NAME_AT (OSD_KEY_OBJECT_PART + 8u) /* in a key of OSD_KV_NAMED */
#define KEY_MAX	      (NAMED_NAME_AT + OSD_NAME_MAX)
#define ENTRY_BYTES   9u /* type, object id */

struct name_key {
	uint8_t bytes[KEY_MAX];
	size_t length;
};

static struct osd_bytes key_bytes(const struct name_key *key)
{
	return (struct osd_bytes){key->bytes, key->length};
}

static void append(struct name_key *key, const void *bytes, size_t length)
{
	memcpy(key->bytes + key->length, bytes, length);
	key->length += length;
}

static struct name_key entry_key(const struct osd_place *directory, struct osd_name name)
{
	struct osd_key place = osd_key_object(directory);
	struct name_key key = {.length = 0};

	append(&key, place.bytes, place.length);
	if (name.length)
		append(&key, name.bytes, name.length);
	return key;
}

static struct name_key named_key(const struct osd_place *object, uint64_t directory,
				 struct osd_name name)
{
	struct osd_key place = osd_key_object(object);
	struct name_key key = {.length = 0};
	uint8_t id[8];

	osd_put_be(id, directory, sizeof(id));
	append(&key, place.bytes, place.length);
	append(&key, id, sizeof(id));
	append(&key, name.bytes, name.length);
	return key;
}

static struct osd_place other_place(const struct osd_txn *txn, uint64_t object_id)
{
	struct osd_place place = txn->place;

	place.object_id = object_id;
	return place;
}

bool osd_name_is_valid(struct osd_name name)
{
	if (name.length == 0 || name.length > OSD_NAME_MAX || memchr(name.bytes, '/', name.length) ||
	    memchr(name.bytes, '\0', name.length))
		return false;
	return !(name.bytes[0] == '.' &&
		 (name.length == 1 || (name.length == 2 && name.bytes[1] == '.')));
}

/* ---- directories ----------------------------------------------------------------------------- */

static bool changes(const struct osd_txn *txn)
{
	return !(txn->flags & OSD_TXN_READ_ONLY);
}

/* write: the version in its record will change. */
static enum osd_status hold(struct osd_txn *txn, struct osd_object_id id, bool write)
{
	enum osd_status status = osd_txn_lock_store(txn);

	if (status == OSD_OK)
		status = osd_txn_take(txn, id, write);
	if (status != OSD_OK || osd_txn_type(txn) == OSD_PARTITION)
		return status;
	return osd_txn_type(txn) == OSD_COLLECTION && !osd_is_objects_collection(id) &&
			       txn->record.flags & OSD_REC_DIRECTORY
		       ? OSD_OK
		       : OSD_E_NOT_DIRECTORY;
}

enum osd_status osd_directory_hold(struct osd_txn *txn, struct osd_object_id id)
{
	return hold(txn, id, false);
}

enum osd_status osd_directory_make(struct osd_txn *txn, uint64_t partition_id,
				   struct osd_object_id *ret_id)
{
	uint64_t id = 0;
	enum osd_status status =
		osd_collection_create(txn, partition_id, 0, OSD_COLLECTION_LINKED, &id);

	*ret_id = (struct osd_object_id){partition_id, id};
	if (status == OSD_OK)
		status = osd_txn_take(txn, *ret_id, true);
	if (status != OSD_OK)
		return status;
	txn->record.flags |= OSD_REC_DIRECTORY;
	txn->dirty = true;
	return OSD_OK;
}

static bool see_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	(void)key, (void)value;
	*(bool *)arg = true;
	return false;
}

/* Of the directory at hand. */
static enum osd_status check_no_entries(struct osd_txn *txn)
{
	struct name_key key = entry_key(&txn->place, (struct osd_name){NULL, 0});
	bool any = false;
	enum osd_status status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_NAMES,
					     key_bytes(&key), key.length, see_one, &any);

	return status == OSD_OK && any ? OSD_E_NOT_EMPTY : status;
}

enum osd_status osd_directory_check_empty(struct osd_txn *txn, struct osd_object_id id)
{
	enum osd_status status = osd_directory_hold(txn, id);

	return status == OSD_OK ? check_no_entries(txn) : status;
}

/* ---- entries --------------------------------------------------------------------------------- */

enum osd_status osd_name_entry_decode(struct osd_bytes value, uint64_t partition_id,
				    struct osd_named *ret_entry)
{
	struct osd_rd r = osd_rd_init(value.data, value.length);
	uint8_t type = (uint8_t)osd_rd_be(&r, 1);
	uint64_t id = osd_rd_be(&r, 8);

	if (r.bad || osd_rd_left(&r) || (type != OSD_USER_OBJECT && type != OSD_COLLECTION))
		return OSD_E_MEDIUM;
	*ret_entry = (struct osd_named){{partition_id, id}, (enum osd_object_type)type};
	return OSD_OK;
}

/* In the directory at hand.  write: the entry is locked for writing. */
static enum osd_status find(struct osd_txn *txn, struct osd_name name, bool write, bool *ret_exists,
			    struct osd_named *ret_entry)
{
	unsigned flags = write ? OSD_KV_RMW : 0;
	struct name_key key = entry_key(&txn->place, name);
	uint8_t bytes[ENTRY_BYTES];
	size_t length;
	enum osd_status status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_NAMES,
					    key_bytes(&key), flags, bytes, sizeof(bytes), &length);

	*ret_exists = status == OSD_OK;
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && length > sizeof(bytes))
		return OSD_E_MEDIUM;
	return status == OSD_OK ? osd_name_entry_decode((struct osd_bytes){bytes, length},
					       txn->place.partition_id, ret_entry)
				: status;
}

static struct osd_name take_name(struct osd_name *path)
{
	const uint8_t *slash = memchr(path->bytes, '/', path->length);
	struct osd_name name = {path->bytes,
				slash ? (size_t)(slash - path->bytes) : path->length};

	path->bytes += name.length;
	path->length -= name.length;
	return name;
}

enum osd_status osd_name_follow(struct osd_txn *txn, struct osd_object_id from,
				struct osd_name path, struct osd_name_place *ret_place,
				unsigned *ret_component)
{
	struct osd_name_place place = {.directory = from};
	enum osd_status status;

	*ret_component = 0;
	for (;;) {
		bool write = changes(txn) &&
			     (path.length == 0 || !memchr(path.bytes, '/', path.length));

		status = hold(txn, place.directory, write);
		if (status != OSD_OK)
			return status;
		if (path.length == 0) {
			place.exists = true;
			place.found = (struct osd_named){from, osd_txn_type(txn)};
			break;
		}
		place.name = take_name(&path);
		if (!osd_name_is_valid(place.name))
			return OSD_E_PARAM_FIELD;
		status = find(txn, place.name, write, &place.exists, &place.found);
		if (status != OSD_OK)
			return status;
		if (path.length == 0)
			break;
		if (!place.exists)
			return OSD_E_NO_NAME;
		if (place.found.type != OSD_COLLECTION)
			return OSD_E_NOT_DIRECTORY;
		path.bytes++; /* the '/' */
		if (--path.length == 0)
			return OSD_E_PARAM_FIELD;
		place.directory = place.found.id;
		(*ret_component)++;
	}
	*ret_place = place;
	return OSD_OK;
}

/* The members of the directory change, or a directory in it. */
static enum osd_status note_change(struct osd_txn *txn, const struct osd_place *directory)
{
	enum osd_status status;

	if (directory->object_id == 0)
		return OSD_OK;
	status = osd_version_note_members(txn, directory);
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

static enum osd_status check_target(struct osd_txn *txn, struct osd_object_id id)
{
	bool directory = osd_txn_type(txn) == OSD_COLLECTION &&
			 txn->record.flags & OSD_REC_DIRECTORY &&
			 !(txn->record.flags & OSD_REC_NAMED);
	bool object = osd_txn_type(txn) == OSD_USER_OBJECT &&
		      !osd_is_apart(id.object_id, txn->record.flags);

	return directory || object ? OSD_OK : OSD_E_NAME_TARGET;
}

static enum osd_status put_records(struct osd_txn *txn, const struct osd_place *directory,
				   struct osd_name name)
{
	struct name_key entry = entry_key(directory, name);
	struct name_key named = named_key(&txn->place, directory->object_id, name);
	uint8_t value[ENTRY_BYTES];
	struct osd_wr w = osd_wr_init(value, sizeof(value));
	enum osd_status status;

	osd_wr_be(&w, osd_txn_type(txn), 1);
	osd_wr_be(&w, txn->id.object_id, 8);
	status = osd_kv_put(txn->kv, OSD_KV_NAMES, key_bytes(&entry),
			    (struct osd_bytes){value, sizeof(value)}, OSD_KV_NEW);
	if (status == OSD_OK)
		status = osd_kv_put(txn->kv, OSD_KV_NAMED, key_bytes(&named),
				    (struct osd_bytes){"", 0}, 0);
	txn->weight += 2 * OSD_RECORD_WEIGHT;
	return status;
}

enum osd_status osd_name_put(struct osd_txn *txn, struct osd_object_id directory,
			     struct osd_name name, struct osd_object_id id)
{
	struct osd_place place;
	enum osd_status status = hold(txn, directory, true);

	if (!osd_name_is_valid(name))
		return OSD_E_PARAM_FIELD;
	place = txn->place;
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, true);
	if (status == OSD_OK)
		status = check_target(txn, id);
	if (status == OSD_OK)
		status = put_records(txn, &place, name);
	if (status != OSD_OK)
		return status;
	txn->record.flags |= OSD_REC_NAMED;
	txn->dirty = true;
	return osd_txn_type(txn) == OSD_USER_OBJECT ? join(txn, &place) : note_change(txn, &place);
}

/* Whether the object at hand has a name in the directory, or in any (directory 0 and any true). */
static enum osd_status has_name(struct osd_txn *txn, const uint64_t *directory, bool *ret_has)
{
	struct osd_key place = osd_key_object(&txn->place);
	struct name_key key = {.length = 0};
	uint8_t id[8];

	append(&key, place.bytes, place.length);
	if (directory) {
		osd_put_be(id, *directory, sizeof(id));
		append(&key, id, sizeof(id));
	}
	*ret_has = false;
	return osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_NAMED, key_bytes(&key), key.length,
			   see_one, ret_has);
}

/* The user object at hand leaves the directory with its last name there. */
static enum osd_status leave(struct osd_txn *txn, const struct osd_place *directory)
{
	bool stays;
	enum osd_status status;

	if (directory->object_id == 0)
		return OSD_OK;
	status = has_name(txn, &directory->object_id, &stays);
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
	struct name_key entry = entry_key(directory, name);
	struct name_key named = named_key(&txn->place, directory->object_id, name);
	enum osd_status status = osd_kv_remove(txn->kv, OSD_KV_NAMES, key_bytes(&entry));

	if (status == OSD_OK)
		status = osd_kv_remove(txn->kv, OSD_KV_NAMED, key_bytes(&named));
	txn->weight += 2 * OSD_RECORD_WEIGHT;
	if (status == OSD_E_NO_OBJECT) /* one without the other: the store's check repairs that */
		return OSD_E_MEDIUM;
	if (status != OSD_OK)
		return status;
	return osd_txn_type(txn) == OSD_USER_OBJECT ? leave(txn, directory)
						    : note_change(txn, directory);
}

enum osd_status osd_name_drop(struct osd_txn *txn, struct osd_object_id directory,
			      struct osd_name name, struct osd_object_id id)
{
	struct osd_place place;
	bool more;
	enum osd_status status = hold(txn, directory, true);

	place = txn->place;
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, true);
	if (status == OSD_OK)
		status = drop_records(txn, &place, name);
	if (status == OSD_OK)
		status = has_name(txn, NULL, &more);
	if (status != OSD_OK || more)
		return status;
	txn->record.flags = (uint16_t)(txn->record.flags & ~OSD_REC_NAMED);
	txn->dirty = true;
	return OSD_OK;
}

/* Of the object at hand. */
static enum osd_status drop_all(struct osd_txn *txn)
{
	struct osd_key place = osd_key_object(&txn->place);
	struct osd_key_list list;
	struct osd_bytes key;
	size_t at = 0;
	enum osd_status status;

	status = osd_key_list_collect(txn->objects, txn->kv, OSD_KV_NAMED, osd_key_bytes(&place),
				      SIZE_MAX, &list);
	while (status == OSD_OK && osd_key_list_next(&list, &at, &key)) {
		const uint8_t *bytes = key.data;
		struct osd_place directory;

		if (key.length <= NAMED_NAME_AT || key.length > KEY_MAX) {
			status = OSD_E_MEDIUM;
			break;
		}
		directory = other_place(txn, osd_get_be(bytes + OSD_KEY_OBJECT_PART, 8));
		status = drop_records(txn, &directory,
				      (struct osd_name){bytes + NAMED_NAME_AT,
							key.length - NAMED_NAME_AT});
	}
	osd_key_list_release(&list);
	return status;
}

enum osd_status osd_unname(struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;

	if (txn->record.flags & OSD_REC_DIRECTORY)
		status = check_no_entries(txn);
	return status == OSD_OK && txn->record.flags & OSD_REC_NAMED ? drop_all(txn) : status;
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool count_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	(void)key, (void)value;
	return ++*(uint32_t *)arg < UINT32_MAX;
}

enum osd_status osd_name_count(struct osd_txn *txn, struct osd_object_id id, uint32_t *ret_count)
{
	struct osd_key key;
	uint32_t count = 0;
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status != OSD_OK)
		return status;
	if (txn->loaded && id.object_id && txn->record.flags & OSD_REC_NAMED) {
		key = osd_key_object(&txn->place);
		status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_NAMED, osd_key_bytes(&key),
				     key.length, count_one, &count);
	}
	*ret_count = count;
	return status;
}

struct parent {
	uint64_t id;
	bool found;
};

static bool see_parent(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct parent *parent = arg;

	(void)value;
	parent->found = key.length > NAMED_NAME_AT;
	if (parent->found)
		parent->id = osd_get_be((const uint8_t *)key.data + OSD_KEY_OBJECT_PART, 8);
	return false;
}

enum osd_status osd_directory_is_below(struct osd_txn *txn, struct osd_object_id id,
				       struct osd_object_id other, bool *ret_below)
{
	struct osd_place place;
	enum osd_status status = osd_directory_hold(txn, id);

	*ret_below = osd_same_id(id, other);
	place = txn->place;
	while (status == OSD_OK && !*ret_below && place.object_id != 0) {
		struct osd_key key = osd_key_object(&place);
		struct parent parent = {0, false};

		status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_NAMED, osd_key_bytes(&key),
				     key.length, see_parent, &parent);
		if (osd_txn_stopped(txn))
			return OSD_E_TASK_ABORTED;
		if (!parent.found) /* a directory that has no name */
			return status;
		place.object_id = parent.id;
		*ret_below = place.object_id == other.object_id;
	}
	return status;
}
