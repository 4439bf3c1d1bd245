/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cache.c -- objects in memory: one entry for each object in use or used recently.  An entry serves
 * reads and writes without the database.  Entries without references stay in order of last use.  When
 * there are too many, the oldest settled ones are freed; when too many descriptors are open, the oldest
 * are closed.
 *
 * An entry is made from a record that was read without a lock.  A change of objects->removals since then
 * means that the record may be stale, and the entry is made again. */
#include "object/internal.h"

#include <assert.h>
#include <sys/resource.h>

#include "base/lock.h"
#include "base/util.h"

#define FILES_SHARE 4u	 /* of the descriptors this process may have: an object has up to four */
#define CLOSED_MAX  4u	 /* objects whose files one put of a reference closes */
#define WALKED_MAX  512u /* buckets visited before the lock is released */

void osd_cache_init(struct osd_objects *objects)
{
	struct rlimit limit;

	osd_lock_init(&objects->cache_lock, OSD_RANK_CACHE);
	objects->open_max = OSD_CACHE_FILES;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		objects->open_max = (size_t)OSD_MIN(limit.rlim_cur / FILES_SHARE, OSD_CACHE_FILES);
}

/* ---- the table; all under cache_lock ----------------------------------------------------- */

static struct osd_object **bucket_of(struct osd_objects *objects, struct osd_object_id id)
{
	uint64_t hash = (id.object_id + 31 * id.partition_id) * UINT64_C(0x9e3779b97f4a7c15);

	return &objects->cache[(hash >> 40) % OSD_CACHE_BUCKETS];
}

static struct osd_object *lookup(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object = *bucket_of(objects, id);

	osd_assert_held(&objects->cache_lock);
	while (object && (object->superseded || !osd_same_id(object->id, id)))
		object = object->hash_next;
	return object;
}

/* While an object's files are being replaced, the generation of its record may be the spare one here. */
static bool has_generation(const struct osd_object *object, uint64_t generation)
{
	return object->generation == generation || object->spare_generation == generation;
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
	object->partition_previous = NULL;
	object->partition_next = object->partition->entries;
	if (object->partition_next)
		object->partition_next->partition_previous = object;
	object->partition->entries = object;
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
	*(object->partition_previous ? &object->partition_previous->partition_next
				     : &object->partition->entries) = object->partition_next;
	if (object->partition_next)
		object->partition_next->partition_previous = object->partition_previous;
	objects->cache_count--;
	if (object->counted_open)
		objects->open_count--;
	object->counted_open = false;
}

/* Entries to free and files to close, once the lock is released. */
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
	/* An unsettled entry in front ends this, so that no put walks the list.  The timer settles
	 * it soon (maintenance.c). */
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

		osd_entry_free(leavers->free_list);
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
		status = osd_entry_load(objects, id, &loaded);
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
		osd_entry_free(loaded);
	}
}

/* Gives the entry the fields of the committed record.  A commit meanwhile is counted in removals before it changes the
 * entry, so the last one stays. */
static void refresh(struct osd_object *object)
{
	_Atomic uint64_t *counter = &object->objects->removals;
	const struct osd_place place = osd_object_place(object);
	struct osd_record record;
	uint64_t removals;

	do {
		removals = atomic_load(counter);
		if (osd_record_load(object->objects, NULL, &place, 0, &record) == OSD_OK &&
		    has_generation(object, record.generation))
			osd_entry_copy(object, &record);
	} while (atomic_load(counter) != removals);
}

void osd_cache_record_changed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_object *object = osd_cache_changed(txn, effect, committed);

	if (object)
		refresh(object);
	osd_object_put(object);
}

/* effect: arg is the entry (owned reference), made from a record that the transaction may have changed. */
static void run_adopted(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_object *object = effect->arg;

	(void)txn;
	if (object && !committed) {
		atomic_store(&object->due, false); /* at worst the record is marked again */
		refresh(object);
	}
	osd_object_put(object);
}

struct osd_object *osd_cache_adopt(struct osd_txn *txn)
{
	struct osd_objects *objects = txn->objects;
	struct osd_object *object = osd_cache_find(objects, txn->id), *fresh;
	bool changes = txn->kv && !(txn->flags & OSD_TXN_READ_ONLY);
	struct osd_effect *effect = NULL;

	if (object)
		return object;
	if (changes && !(effect = osd_txn_effect(txn, run_adopted)))
		return NULL;
	fresh = osd_entry_new(objects, osd_partition_ref(txn->partition), txn->id, &txn->record);
	if (!fresh) {
		osd_partition_put(txn->partition);
		return NULL;
	}
	osd_entry_adopt_times(fresh);
	osd_lock(&objects->cache_lock);
	object = lookup(objects, txn->id);
	if (object) {
		refer(object);
	} else if (txn->locked || atomic_load(&objects->removals) == txn->removals) {
		/* The record is still the present one.  One that is locked cannot change. */
		enter(objects, fresh);
		object = OSD_STEAL(fresh);
		if (effect)
			effect->arg = refer(object);
	}
	osd_unlock(&objects->cache_lock);
	if (fresh) {
		fresh->references = 0;
		osd_entry_free(fresh);
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
			/* Unsettled entries cannot be freed, so settling must not wait. */
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

	if (!atomic_load(&object->file.head) && !atomic_load(&object->file.tail))
		return;
	osd_lock(&objects->cache_lock);
	/* An entry outside of the table closes its files with its last reference. */
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

bool osd_object_is_unfinished(struct osd_object *object)
{
	return atomic_load(&object->unfinished);
}

enum osd_status osd_object_get_cached(struct osd_objects *objects, struct osd_object_id id,
				      struct osd_object **ret_object)
{
	struct osd_object *object = osd_cache_find(objects, id);

	/* Another type gets the same answer: the call that may wait finds the right error. */
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

	osd_unsynced_forget(&objects->unsynced, id);
	osd_lock(&objects->cache_lock);
	atomic_fetch_add(&objects->removals, 1);
	object = *bucket_of(objects, id);
	while (object && !(osd_same_id(object->id, id) && has_generation(object, generation)))
		object = object->hash_next;
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

void osd_cache_supersede(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object;

	osd_lock(&objects->cache_lock);
	atomic_fetch_add(&objects->removals, 1);
	object = lookup(objects, id);
	if (object)
		object->superseded = true;
	osd_unlock(&objects->cache_lock);
}

/* Takes out an entry of the partition, and returns it with a reference.  NULL: there is none. */
static struct osd_object *take_out_next(struct osd_objects *objects,
					const struct osd_partition *partition)
{
	struct osd_object *found;

	osd_lock(&objects->cache_lock);
	atomic_fetch_add(&objects->removals, 1);
	found = partition->entries;
	if (found) {
		refer(found);
		take_out(objects, found);
	}
	osd_unlock(&objects->cache_lock);
	return found;
}

/* None is entered afterwards: a thread that has yet to do so either read its record before removals
 * changed, or finds no partition. */
void osd_cache_remove_partition(struct osd_objects *objects, const struct osd_partition *partition)
{
	struct osd_object *found;

	osd_unsynced_forget(&objects->unsynced, (struct osd_object_id){partition->id, 0});
	while ((found = take_out_next(objects, partition))) {
		osd_object_mark_removed(found);
		osd_object_put(found);
	}
}

size_t osd_cache_unsettled(struct osd_objects *objects, struct osd_object **ret_objects,
			   size_t capacity, size_t *cursor)
{
	size_t end = OSD_MIN(*cursor + WALKED_MAX, OSD_CACHE_BUCKETS), count = 0;

	osd_lock(&objects->cache_lock);
	if (objects->cache_count == 0)
		*cursor = OSD_CACHE_BUCKETS;
	/* Half of the array is left for the last bucket.  Entries that still do not fit are found
	 * by the next round over the table. */
	for (; *cursor < end && count < capacity / 2; ++*cursor)
		for (struct osd_object *object = objects->cache[*cursor];
		     object && count < capacity; object = object->hash_next)
			if (!osd_object_is_settled(object))
				ret_objects[count++] = refer(object);
	osd_unlock(&objects->cache_lock);
	return count;
}

/* Called at close, when no other thread is left. */
void osd_cache_release(struct osd_objects *objects)
{
	for (size_t i = 0; objects->cache_count > 0; i++) {
		while (objects->cache[i]) {
			struct osd_object *object = objects->cache[i];

			assert(object->references == 0);
			take_out(objects, object);
			osd_entry_free(object);
		}
	}
	osd_lock_destroy(&objects->cache_lock);
}
