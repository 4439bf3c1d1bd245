/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cache.c -- objects in memory: one entry per object in use or used lately.  A warm entry serves
 * reads and writes without the database.  Entries nobody refers to stay in order of last use; the
 * oldest settled ones go when there are too many, and the oldest descriptors close when too many
 * are open.
 *
 * An entry is made from a record read without lock; objects->removals, compared before it is
 * entered, tells whether the record may have been removed meanwhile. */
#include "object/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/lock.h"
#include "base/util.h"

#define FILES_SHARE 4u	 /* of the descriptors this process may have: an object has up to four */
#define CLOSED_MAX  4u	 /* objects whose files are closed by one who puts another back */
#define WALKED_MAX  512u /* buckets looked at before others get the lock */

void osd_cache_init(struct osd_objects *objects)
{
	struct rlimit limit;

	osd_lock_init(&objects->cache_lock, OSD_RANK_CACHE);
	objects->open_max = OSD_CACHE_FILES;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		objects->open_max = (size_t)OSD_MIN(limit.rlim_cur / FILES_SHARE, OSD_CACHE_FILES);
}

/* ---- one entry --------------------------------------------------------------------------- */

struct osd_data_name osd_object_data_name(const struct osd_object *object, uint64_t generation)
{
	return (struct osd_data_name){.partition_id = object->id.partition_id,
				      .incarnation = object->partition->incarnation,
				      .object_id = object->id.object_id,
				      .generation = generation};
}

static void entry_free(struct osd_object *object)
{
	assert(object->references == 0);
	osd_version_release(object);
	osd_tier_file_release(&object->file);
	osd_range_lock_release(&object->ranges);
	osd_lock_destroy(&object->mutex);
	osd_partition_put(object->partition);
	free(object);
}

/* Takes the reference to partition over. */
static struct osd_object *entry_new(struct osd_objects *objects, struct osd_partition *partition,
				    struct osd_object_id id, const struct osd_record *record)
{
	struct osd_object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->objects = objects;
	object->partition = partition;
	object->account = osd_account_of(partition, id.object_id, record->flags);
	object->id = id;
	object->type = record->type;
	object->references = 1;
	object->version_fd = -1;
	osd_lock_init(&object->mutex, OSD_RANK_OBJECT);
	osd_range_lock_init(&object->ranges, &object->mutex);
	atomic_store(&object->length, record->length);
	object->reserved_bytes = record->reserved_bytes;
	object->recorded_length = record->length;
	object->generation = record->generation;
	object->spare_generation = record->spare_generation;
	object->has_files = record->flags & OSD_REC_HAS_FILES;
	object->directories_unsynced = object->has_files; /* who knows what a draft has synced */
	object->length_rules = record->flags & OSD_REC_LENGTH_RULES;
	atomic_store(&object->unfinished, record->flags & OSD_REC_UNFINISHED);
	object->surrogate = record->flags & OSD_REC_SURROGATE;
	atomic_store(&object->max_length, record->max_length);
	atomic_store(&object->tag, record->policy_tag);
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		atomic_store(&object->times[i], record->times[i]);
	osd_tier_file_init(&object->file, &objects->tier);
	object->file.name = osd_object_data_name(object, record->generation);
	object->file.head_bytes = record->head_bytes;
	object->file.head_on = record->head_on;
	return object;
}

/* After a crash a file may have been written later than its record says. */
static void adopt_file_times(struct osd_object *object)
{
	struct osd_data_stat stat;

	if (!object->objects->unclean || !object->has_files)
		return;
	if (osd_tier_stat(&object->file, &stat) == OSD_OK &&
	    stat.modified_ms > atomic_load(&object->times[OSD_T_DATA_MODIFIED]))
		atomic_store(&object->times[OSD_T_DATA_MODIFIED], stat.modified_ms);
	osd_tier_shut(&object->file);
}

static enum osd_status entry_load(struct osd_objects *objects, struct osd_object_id id,
				  struct osd_object **ret_object)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	uint8_t bytes[OSD_RECORD_BYTES];
	struct osd_record record;
	struct osd_place place;
	struct osd_key key;
	size_t length;
	enum osd_status status = osd_partition_get(objects, NULL, id.partition_id, &partition);

	if (status != OSD_OK)
		return status;
	place = (struct osd_place){id.partition_id, partition->incarnation, id.object_id};
	key = osd_key_object(&place);
	status = osd_kv_get(objects->kv, NULL, OSD_KV_OBJECTS, osd_key_bytes(&key), 0, bytes,
			    sizeof(bytes), &length);
	if (status == OSD_OK)
		status = osd_record_decode(bytes, OSD_MIN(length, sizeof(bytes)), &record);
	if (status != OSD_OK)
		return status;
	*ret_object = entry_new(objects, partition, id, &record);
	if (!*ret_object)
		return OSD_E_NO_MEMORY;
	OSD_STEAL(partition);
	adopt_file_times(*ret_object);
	return OSD_OK;
}

/* ---- the table; all under cache_lock ----------------------------------------------------- */

/* Without the range lock an answer may be out of date; then the next tick sees it. */
bool osd_object_is_settled_but_times(struct osd_object *object)
{
	return atomic_load(&object->reserved_bytes) == atomic_load(&object->length) &&
	       atomic_load(&object->recorded_length) == atomic_load(&object->length) &&
	       !(atomic_load(&object->length_rules) && atomic_load(&object->shares) == 0) &&
	       !atomic_load(&object->untrimmed) && atomic_load(&object->spare_generation) == 0;
}

bool osd_object_is_settled(struct osd_object *object)
{
	return atomic_load(&object->removed) ||
	       (!atomic_load(&object->times_dirty) && osd_object_is_settled_but_times(object));
}

void osd_object_mark_removed(struct osd_object *object)
{
	struct osd_range range;

	osd_lock(&object->mutex);
	osd_range_acquire(&object->ranges, &range, 0, UINT64_MAX, true);
	atomic_store(&object->removed, true);
	osd_version_removed(object);
	osd_heads_count_length(object, atomic_load(&object->length), 0);
	osd_range_drop(&object->ranges, &range);
	osd_unlock(&object->mutex);
	osd_uncharge(object->objects, object->account, atomic_load(&object->length));
}

static struct osd_object **bucket_of(struct osd_objects *objects, struct osd_object_id id)
{
	uint64_t hash = (id.object_id + 31 * id.partition_id) * UINT64_C(0x9e3779b97f4a7c15);

	return &objects->cache[(hash >> 40) % OSD_CACHE_BUCKETS];
}

static struct osd_object *lookup(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object = *bucket_of(objects, id);

	osd_assert_held(&objects->cache_lock);
	while (object &&
	       (object->id.object_id != id.object_id || object->id.partition_id != id.partition_id))
		object = object->hash_next;
	return object;
}

static void lru_remove(struct osd_object *object)
{
	struct osd_lru *lru = object->lru;

	*(object->lru_previous ? &object->lru_previous->lru_next : &lru->first) = object->lru_next;
	*(object->lru_next ? &object->lru_next->lru_previous : &lru->last) = object->lru_previous;
	object->lru_previous = object->lru_next = NULL;
	object->lru = NULL;
}

static void lru_append(struct osd_lru *lru, struct osd_object *object)
{
	object->lru = lru;
	object->lru_previous = lru->last;
	object->lru_next = NULL;
	*(lru->last ? &lru->last->lru_next : &lru->first) = object;
	lru->last = object;
}

static struct osd_object *refer(struct osd_object *object)
{
	if (object->references++ == 0)
		lru_remove(object);
	return object;
}

static void enter(struct osd_objects *objects, struct osd_object *object)
{
	struct osd_object **bucket = bucket_of(objects, object->id);

	osd_assert_held(&objects->cache_lock);
	object->hash_next = *bucket;
	*bucket = object;
	object->cached = true;
	objects->cache_count++;
}

static void take_out(struct osd_objects *objects, struct osd_object *object)
{
	struct osd_object **link = bucket_of(objects, object->id);

	osd_assert_held(&objects->cache_lock);
	while (*link != object)
		link = &(*link)->hash_next;
	*link = object->hash_next;
	object->cached = false;
	objects->cache_count--;
	if (object->counted_open)
		objects->open_count--;
	object->counted_open = false;
}

/* What is freed and closed once the lock is gone. */
struct leavers {
	struct osd_object *free_list; /* by hash_next */
	struct osd_tier_handles handles[CLOSED_MAX];
	size_t handle_count;
};

static void shrink(struct osd_objects *objects, struct leavers *leavers)
{
	struct osd_object *object;

	while (objects->open_count > objects->open_max && leavers->handle_count < CLOSED_MAX &&
	       (object = objects->lru_open.first)) {
		lru_remove(object);
		leavers->handles[leavers->handle_count++] = osd_tier_detach(&object->file);
		object->counted_open = false;
		objects->open_count--;
		lru_append(&objects->lru_shut, object);
	}
	while (objects->cache_count > OSD_CACHE_ENTRIES && (object = objects->lru_shut.first) &&
	       osd_object_is_settled(object)) {
		lru_remove(object);
		take_out(objects, object);
		object->hash_next = leavers->free_list;
		leavers->free_list = object;
	}
}

static void let_go(struct leavers *leavers)
{
	for (size_t i = 0; i < leavers->handle_count; i++)
		osd_tier_close_handles(&leavers->handles[i]);
	while (leavers->free_list) {
		struct osd_object *next = leavers->free_list->hash_next;

		entry_free(leavers->free_list);
		leavers->free_list = next;
	}
}

/* ---- references -------------------------------------------------------------------------- */

struct osd_object *osd_cache_find(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object;

	osd_lock(&objects->cache_lock);
	object = lookup(objects, id);
	if (object)
		refer(object);
	osd_unlock(&objects->cache_lock);
	return object;
}

struct osd_object *osd_cache_changed(struct osd_txn *txn, const struct osd_effect *effect,
				     bool committed)
{
	if (!committed)
		return NULL;
	atomic_fetch_add(&txn->objects->removals, 1);
	return osd_cache_find(txn->objects, effect->id);
}

enum osd_status osd_cache_get(struct osd_objects *objects, struct osd_object_id id,
			      struct osd_object **ret_object)
{
	for (;;) {
		struct osd_object *object, *loaded = NULL;
		enum osd_status status;
		uint64_t removals;
		bool stale;

		osd_lock(&objects->cache_lock);
		object = lookup(objects, id);
		if (object)
			refer(object);
		removals = atomic_load(&objects->removals);
		osd_unlock(&objects->cache_lock);
		if (object) {
			*ret_object = object;
			return OSD_OK;
		}
		status = entry_load(objects, id, &loaded);
		if (status != OSD_OK)
			return status;
		osd_lock(&objects->cache_lock);
		stale = lookup(objects, id) || atomic_load(&objects->removals) != removals;
		if (!stale)
			enter(objects, loaded);
		osd_unlock(&objects->cache_lock);
		if (!stale) {
			*ret_object = loaded;
			return OSD_OK;
		}
		loaded->references = 0;
		entry_free(loaded);
	}
}

struct osd_object *osd_cache_adopt(struct osd_txn *txn)
{
	struct osd_objects *objects = txn->objects;
	struct osd_object *object = osd_cache_find(objects, txn->id), *fresh;

	if (object)
		return object;
	atomic_fetch_add(&txn->partition->references, 1);
	fresh = entry_new(objects, txn->partition, txn->id, &txn->record);
	if (!fresh) {
		osd_partition_put(txn->partition);
		return NULL;
	}
	adopt_file_times(fresh);
	osd_lock(&objects->cache_lock);
	object = lookup(objects, txn->id);
	if (object) {
		refer(object);
	} else if (txn->locked || atomic_load(&objects->removals) == txn->removals) {
		enter(objects, fresh);
		object = OSD_STEAL(fresh);
	}
	osd_unlock(&objects->cache_lock);
	if (fresh) {
		fresh->references = 0;
		entry_free(fresh);
	}
	return object;
}

void osd_object_put(struct osd_object *object)
{
	struct leavers leavers = {.free_list = NULL};
	struct osd_objects *objects;
	bool settle = false;

	if (!object)
		return;
	objects = object->objects;
	osd_lock(&objects->cache_lock);
	if (--object->references == 0) {
		if (object->cached) {
			lru_append(object->counted_open ? &objects->lru_open : &objects->lru_shut,
				   object);
			shrink(objects, &leavers);
			settle = objects->cache_count > 2 * OSD_CACHE_ENTRIES;
		} else {
			object->hash_next = NULL;
			leavers.free_list = object;
		}
	}
	osd_unlock(&objects->cache_lock);
	let_go(&leavers);
	if (settle)
		osd_kick_settle(objects);
}

void osd_cache_count_open(struct osd_object *object)
{
	struct osd_objects *objects = object->objects;

	osd_lock(&objects->cache_lock);
	if (!object->counted_open && object->cached) {
		object->counted_open = true;
		objects->open_count++;
	}
	osd_unlock(&objects->cache_lock);
}

enum osd_status osd_object_get(struct osd_objects *objects, struct osd_object_id id,
			       struct osd_object **ret_object)
{
	struct osd_object *object;
	enum osd_status status;

	if (id.partition_id == 0)
		return OSD_E_NO_PARTITION;
	status = osd_cache_get(objects, id, &object);
	if (status != OSD_OK)
		return status;
	if (object->type != OSD_USER_OBJECT) {
		osd_object_put(object);
		return OSD_E_NO_OBJECT;
	}
	*ret_object = object;
	return OSD_OK;
}

/* The collection of all user objects is there when its partition is. */
static enum osd_status look_at_partition(struct osd_objects *objects, uint64_t partition_id,
					 struct osd_look *ret_look)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = osd_partition_get(objects, NULL, partition_id, &partition);

	if (status == OSD_OK)
		*ret_look = (struct osd_look){OSD_COLLECTION, false};
	return status;
}

enum osd_status osd_object_look(struct osd_objects *objects, struct osd_object_id id,
				struct osd_look *ret_look)
{
	struct osd_object *object;
	enum osd_status status;

	if (id.partition_id == 0)
		return OSD_E_NO_PARTITION;
	if (osd_is_objects_collection(id))
		return look_at_partition(objects, id.partition_id, ret_look);
	status = osd_cache_get(objects, id, &object);
	if (status != OSD_OK)
		return status;
	*ret_look = (struct osd_look){(enum osd_object_type)object->type,
				      atomic_load(&object->unfinished)};
	osd_object_put(object);
	return OSD_OK;
}

enum osd_status osd_object_get_cached(struct osd_objects *objects, struct osd_object_id id,
				      struct osd_object **ret_object)
{
	struct osd_object *object = osd_cache_find(objects, id);

	if (object && object->type == OSD_USER_OBJECT) {
		*ret_object = object;
		return OSD_OK;
	}
	osd_object_put(object);
	return OSD_E_WOULD_BLOCK;
}

/* ---- removal ----------------------------------------------------------------------------- */

bool osd_cache_remove(struct osd_objects *objects, struct osd_object_id id, uint64_t generation)
{
	struct osd_object *object;

	osd_lock(&objects->cache_lock);
	atomic_fetch_add(&objects->removals, 1);
	object = lookup(objects, id);
	/* While its files are being replaced the next generation is the spare one. */
	if (object && object->generation != generation && object->spare_generation != generation)
		object = NULL; /* a later object under the same id */
	if (object) {
		refer(object);
		take_out(objects, object);
	}
	osd_unlock(&objects->cache_lock);
	if (!object)
		return false;
	osd_object_mark_removed(object);
	osd_object_put(object);
	return true;
}

/* Takes out the first of the partition's from the bucket *cursor on, with a reference; NULL: none
 * there, or others want the lock. */
static struct osd_object *take_out_next(struct osd_objects *objects,
					const struct osd_partition *partition, size_t *cursor)
{
	size_t end = OSD_MIN(*cursor + WALKED_MAX, OSD_CACHE_BUCKETS);
	struct osd_object *found = NULL;

	osd_lock(&objects->cache_lock);
	atomic_fetch_add(&objects->removals, 1);
	while (!found && *cursor < end) {
		for (found = objects->cache[*cursor]; found && found->partition != partition;)
			found = found->hash_next;
		if (!found)
			++*cursor;
	}
	if (found) {
		refer(found);
		take_out(objects, found);
	}
	osd_unlock(&objects->cache_lock);
	return found;
}

/* Once round: what would still be entered was read before removals changed, or finds no partition. */
void osd_cache_remove_partition(struct osd_objects *objects, const struct osd_partition *partition)
{
	for (size_t cursor = 0; cursor < OSD_CACHE_BUCKETS;) {
		struct osd_object *found = take_out_next(objects, partition, &cursor);

		if (found)
			osd_object_mark_removed(found);
		osd_object_put(found);
	}
}

size_t osd_cache_unsettled(struct osd_objects *objects, struct osd_object **ret_objects,
			   size_t capacity, size_t *cursor)
{
	size_t end = OSD_MIN(*cursor + WALKED_MAX, OSD_CACHE_BUCKETS), count = 0;

	osd_lock(&objects->cache_lock);
	for (; *cursor < end && count < capacity / 2; ++*cursor)
		for (struct osd_object *object = objects->cache[*cursor];
		     object && count < capacity; object = object->hash_next)
			if (!osd_object_is_settled(object))
				ret_objects[count++] = refer(object);
	osd_unlock(&objects->cache_lock);
	return count;
}

/* At close: nobody else is left. */
void osd_cache_release(struct osd_objects *objects)
{
	for (size_t i = 0; i < OSD_CACHE_BUCKETS; i++) {
		while (objects->cache[i]) {
			struct osd_object *object = objects->cache[i];

			assert(object->references == 0);
			take_out(objects, object);
			entry_free(object);
		}
	}
	osd_lock_destroy(&objects->cache_lock);
}
