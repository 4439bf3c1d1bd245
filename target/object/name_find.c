/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_find.c -- names and paths: what may be a name, the keys of records, what a path leads to (names.h). */
#include "object/internal.h"
#include "object/name_cache.h"
#include "object/named.h"
#include "object/names.h"
#include "object/view.h"
#include "wire/cursor.h"

#define PEEKED_MAX 16u /* names of a path that is looked up in memory */

bool osd_name_is_valid(struct osd_name name)
{
	if (name.length == 0 || name.length > OSD_NAME_MAX || memchr(name.bytes, '/', name.length) ||
	    memchr(name.bytes, '\0', name.length))
		return false;
	return !(name.bytes[0] == '.' &&
		 (name.length == 1 || (name.length == 2 && name.bytes[1] == '.')));
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* It fits. */
static void append(struct osd_name_key *key, const void *bytes, size_t length)
{
	memcpy(key->bytes + key->length, bytes, length);
	key->length += length;
}

static void begin_key(const struct osd_place *place, struct osd_name_key *key)
{
	struct osd_key begin = osd_key_object(place);

	key->length = 0;
	append(key, begin.bytes, begin.length);
}

void osd_name_entry_key(const struct osd_place *directory, struct osd_name name,
			struct osd_name_key *ret_key)
{
	begin_key(directory, ret_key);
	if (name.length)
		append(ret_key, name.bytes, name.length);
}

void osd_named_key(const struct osd_place *object, uint64_t directory, struct osd_name name,
		   struct osd_name_key *ret_key)
{
	uint8_t id[8];

	osd_put_be(id, directory, sizeof(id));
	begin_key(object, ret_key);
	append(ret_key, id, sizeof(id));
	if (name.length)
		append(ret_key, name.bytes, name.length);
}

/* ---- directories ----------------------------------------------------------------------------- */

enum osd_status osd_name_in_tree(struct osd_txn *txn, bool change, struct osd_object_id *id)
{
	struct osd_place tree;
	enum osd_status status;

	if (id->object_id == 0) /* partitions have their names on the root */
		return OSD_OK;
	status = osd_view_tree(txn, id->partition_id, change, &tree);
	if (status == OSD_OK)
		id->partition_id = tree.partition_id;
	return status;
}

static bool changes(const struct osd_txn *txn)
{
	return !(txn->flags & OSD_TXN_READ_ONLY);
}

/* A view may have a collection of its own under the id. */
static enum osd_status check_shown(struct osd_txn *txn, struct osd_object_id id,
				   const struct osd_place *tree)
{
	enum osd_status status = OSD_OK;

	if (id.object_id == 0 || id.partition_id == tree->partition_id)
		return OSD_OK;
	status = osd_txn_take(txn, id, false);
	return status == OSD_OK && !txn->shown ? OSD_E_NOT_DIRECTORY : status;
}

/* The base of a view may be removed, and another one made, before it is taken up.  write: the version in the directory's
 * record will change. */
static enum osd_status hold_directory(struct osd_txn *txn, struct osd_object_id id, bool write)
{
	struct osd_place tree;
	enum osd_status status = changes(txn) ? osd_txn_lock_store(txn) : OSD_OK;

	if (status == OSD_OK)
		status = osd_view_tree(txn, id.partition_id, false, &tree);
	if (status == OSD_OK)
		status = check_shown(txn, id, &tree);
	if (status != OSD_OK)
		return status;
	id.partition_id = tree.partition_id;
	if (tree.object_id)
		id.object_id = tree.object_id;
	status = osd_txn_take(txn, id, write);
	if (status == OSD_OK && txn->place.incarnation != tree.incarnation)
		status = OSD_E_CONFLICT;
	if (status == OSD_OK)
		status = osd_txn_lock_store(txn);
	if (status == OSD_OK)
		txn->flat = tree.object_id;
	if (status != OSD_OK || id.object_id == 0)
		return status;
	return osd_txn_type(txn) == OSD_COLLECTION && !osd_is_objects_collection(id) &&
			       txn->record.flags & OSD_REC_DIRECTORY
		       ? OSD_OK
		       : OSD_E_NOT_DIRECTORY;
}

enum osd_status osd_directory_hold(struct osd_txn *txn, struct osd_object_id id)
{
	return hold_directory(txn, id, false);
}

/* ---- how many ---------------------------------------------------------------------------------- */

static bool count_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	(void)key, (void)value;
	return ++*(uint32_t *)arg < UINT32_MAX;
}

enum osd_status osd_names_of(struct osd_txn *txn, const struct osd_place *object,
			     uint32_t *ret_count)
{
	struct osd_key key = osd_key_object(object);

	*ret_count = 0;
	return osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_NAMED, osd_key_bytes(&key), key.length,
			   count_one, ret_count);
}

enum osd_status osd_name_count(struct osd_txn *txn, struct osd_object_id id, uint32_t *ret_count)
{
	enum osd_status status = osd_name_in_tree(txn, false, &id);

	*ret_count = 0;
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, false);
	if (status != OSD_OK || id.partition_id == 0 ||
	    (id.object_id && !(txn->record.flags & OSD_REC_NAMED)))
		return status;
	return osd_names_of(txn, &txn->place, ret_count);
}

/* ---- paths ----------------------------------------------------------------------------------- */

enum osd_status osd_name_entry_decode(struct osd_bytes value, uint64_t partition_id,
				    struct osd_named *ret_entry)
{
	struct osd_rd r = osd_rd_init(value.data, value.length);
	uint8_t type = (uint8_t)osd_rd_be(&r, 1);
	uint64_t id = osd_rd_be(&r, 8);

	if (r.bad || osd_rd_left(&r) || (type == OSD_PARTITION) != (partition_id == 0) ||
	    (type != OSD_USER_OBJECT && type != OSD_COLLECTION && type != OSD_PARTITION))
		return OSD_E_MEDIUM;
	*ret_entry = (struct osd_named){.type = (enum osd_object_type)type};
	ret_entry->id = partition_id ? (struct osd_object_id){partition_id, id}
				     : (struct osd_object_id){id, 0};
	return OSD_OK;
}

/* An entry of the directory.  write: it is locked for writing. */
static enum osd_status find(struct osd_txn *txn, const struct osd_place *directory,
			    struct osd_name name, bool write, bool *ret_exists,
			    struct osd_named *ret_entry)
{
	unsigned flags = write ? OSD_KV_RMW : 0;
	struct osd_name_key key;
	uint8_t bytes[OSD_NAME_ENTRY_BYTES];
	size_t length;
	enum osd_status status;

	osd_name_entry_key(directory, name, &key);
	status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_NAMES, osd_name_key_bytes(&key),
			    flags, bytes, sizeof(bytes), &length);
	*ret_exists = status == OSD_OK;
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && length > sizeof(bytes))
		return OSD_E_MEDIUM;
	return status == OSD_OK ? osd_name_entry_decode((struct osd_bytes){bytes, length},
							directory->partition_id, ret_entry)
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

/* Takes the next name off the path and the '/' behind it. */
static enum osd_status next_name(struct osd_name *path, struct osd_name *ret_name)
{
	*ret_name = take_name(path);
	if (!osd_name_is_valid(*ret_name))
		return OSD_E_PARAM_FIELD;
	if (path->length == 0)
		return OSD_OK;
	path->bytes++;
	return --path->length == 0 ? OSD_E_PARAM_FIELD : OSD_OK;
}

/* The entry of place.directory under place.name.  A read is kept in memory unless it is a user object's: the
 * number of its names is then always 1. */
static enum osd_status find_next(struct osd_txn *txn, const struct osd_place *directory, bool write,
				 struct osd_name_place *place)
{
	struct osd_name_cache *cache = txn->objects->names;
	struct osd_cached_name kept;
	enum osd_status status;

	place->mark = osd_name_mark(cache, directory->partition_id, directory->object_id);
	status = find(txn, directory, place->name, write, &place->exists, &place->found);
	if (status != OSD_OK || changes(txn) || !place->exists ||
	    place->found.type == OSD_USER_OBJECT)
		return status;
	kept = (struct osd_cached_name){place->found.id, place->found.type, 1,
					{place->mark, place->mark}};
	osd_name_cache_put(cache, directory, place->name, &kept);
	return OSD_OK;
}

/* Converts a place in the base of a view to the place in the view. */
static void show_in(struct osd_object_id from, struct osd_name_place *place)
{
	if (from.partition_id == 0)
		return;
	place->directory.partition_id = from.partition_id;
	if (place->exists)
		place->found.id.partition_id = from.partition_id;
	if (!place->flat)
		return;
	place->directory = from;
	if (place->exists && place->found.type == OSD_COLLECTION) /* the directory itself */
		place->found =
			(struct osd_named){from, from.object_id ? OSD_COLLECTION : OSD_PARTITION};
}

/* A walk that changes nothing holds the locks of all that it reads to its end, so it has seen one state of
 * the tree.  It need not read the records of directories: an entry that is a collection is a directory. */
static enum osd_status walk(struct osd_txn *txn, struct osd_object_id from, struct osd_name path,
			    bool find_last, struct osd_name_place *ret_place,
			    unsigned *ret_component)
{
	struct osd_name_place place = {.directory = from};
	struct osd_place directory;
	enum osd_status status;
	bool write = changes(txn) && !memchr(path.bytes, '/', path.length);

	*ret_component = 0;
	status = hold_directory(txn, from, write);
	from = txn->id;
	place.directory = from;
	place.flat = txn->flat;
	if (status == OSD_OK && path.length == 0) {
		place.exists = true;
		place.found = (struct osd_named){from, osd_txn_type(txn)};
	}
	while (status == OSD_OK && path.length > 0) {
		directory = osd_place_beside(&txn->place, place.directory.object_id);
		status = next_name(&path, &place.name);
		place.exists = false;
		if (status == OSD_OK && (find_last || path.length > 0))
			status = find_next(txn, &directory, write, &place);
		place.exists &= !(place.flat && place.found.type == OSD_COLLECTION);
		if (status != OSD_OK || path.length == 0)
			break;
		if (!place.exists)
			return OSD_E_NO_NAME;
		if (place.found.type != OSD_COLLECTION) /* nor a partition: the walk is in one */
			return OSD_E_NOT_DIRECTORY;
		if (osd_txn_stopped(txn))
			return OSD_E_TASK_ABORTED;
		place.directory = place.found.id;
		(*ret_component)++;
		write = changes(txn) && !memchr(path.bytes, '/', path.length);
		if (changes(txn))
			status = hold_directory(txn, place.directory, write);
	}
	*ret_place = place;
	return status;
}

enum osd_status osd_name_follow(struct osd_txn *txn, struct osd_object_id from,
				struct osd_name path, bool find_last,
				struct osd_name_place *ret_place, unsigned *ret_component)
{
	enum osd_status status = walk(txn, from, path, find_last, ret_place, ret_component);

	if (status == OSD_OK)
		show_in(from, ret_place);
	return status;
}

/* As osd_name_follow(), among the entries in memory alone, from the directory at hand on. */
static bool peek(struct osd_txn *txn, struct osd_name path, struct osd_name_place *ret_place,
		 uint32_t *ret_names)
{
	struct osd_name_mark marks[PEEKED_MAX + 1];
	struct osd_name_place place = {.directory = txn->id, .exists = true, .flat = txn->flat};
	struct osd_place directory = txn->place;
	struct osd_cached_name found;
	size_t count = 0;

	for (;;) {
		if (next_name(&path, &place.name) != OSD_OK || count == PEEKED_MAX ||
		    !osd_name_cache_find(txn->objects->names, &directory, place.name, &found))
			return false;
		place.mark = marks[count++] = found.marks[0];
		place.found = (struct osd_named){found.id, found.type};
		if (place.flat && found.type == OSD_COLLECTION)
			return false;
		if (path.length == 0)
			break;
		if (found.type != OSD_COLLECTION)
			return false;
		place.directory = place.found.id;
		directory.object_id = found.id.object_id;
	}
	marks[count++] = found.marks[1];
	while (count > 0)
		if (!osd_name_mark_holds(&marks[--count]))
			return false;
	*ret_place = place;
	*ret_names = found.names;
	return true;
}

/* Of the user object that the walk has found; the walk's locks are held. */
static enum osd_status count_and_keep(struct osd_txn *txn, const struct osd_name_place *place,
				      uint32_t *ret_names)
{
	struct osd_name_cache *cache = txn->objects->names;
	struct osd_place object = osd_place_beside(&txn->place, place->found.id.object_id);
	struct osd_place directory = osd_place_beside(&txn->place, place->directory.object_id);
	struct osd_name_mark mark = osd_name_mark(cache, object.partition_id, object.object_id);
	enum osd_status status = osd_names_of(txn, &object, ret_names);
	const struct osd_cached_name kept = {
		place->found.id, OSD_USER_OBJECT, *ret_names, {place->mark, mark}};

	if (status == OSD_OK)
		osd_name_cache_put(cache, &directory, place->name, &kept);
	return status;
}

static enum osd_status look_up(struct osd_txn *txn, struct osd_object_id from, struct osd_name path,
			       struct osd_name_place *ret_place, unsigned *ret_component,
			       uint32_t *ret_names)
{
	enum osd_status status = osd_directory_hold(txn, from);

	if (status == OSD_OK && path.length > 0 && !changes(txn) &&
	    peek(txn, path, ret_place, ret_names))
		return OSD_OK;
	if (status == OSD_OK && txn->flags & OSD_TXN_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	if (status == OSD_OK)
		status = walk(txn, from, path, true, ret_place, ret_component);
	if (status != OSD_OK || !ret_place->exists)
		return status;
	if (!changes(txn) && ret_place->found.type == OSD_USER_OBJECT)
		return count_and_keep(txn, ret_place, ret_names);
	return osd_name_count(txn, ret_place->found.id, ret_names);
}

enum osd_status osd_name_lookup(struct osd_txn *txn, struct osd_object_id from,
				struct osd_name path, struct osd_name_place *ret_place,
				unsigned *ret_component, uint32_t *ret_names)
{
	enum osd_status status;

	*ret_component = 0;
	status = look_up(txn, from, path, ret_place, ret_component, ret_names);
	if (status == OSD_OK)
		show_in(from, ret_place);
	return status;
}
