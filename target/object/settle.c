/* SPDX-License-Identifier: GPL-2.0-or-later */
/* settle.c -- writes lengths, times and the ends of reservations from memory to records; and flushes.
 * Settled entries may leave the cache, and recovery has nothing to do for them. */
#include "object/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "object/txn_run.h"

#define TOGETHER 16u /* records of one transaction, few so that others do not wait long for it */

static void put_times(const struct osd_object *object, struct osd_record *record)
{
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		record->times[i] = OSD_MAX(record->times[i], atomic_load(&object->times[i]));
}

/* The times of an object, and its version, if nobody changes it now and it has rested.  Called in the
 * transaction that has locked the record.  So who begins to change the object afterwards waits with
 * osd_object_make_stale for the end of the transaction. */
struct rest {
	struct osd_object *object;
	bool idle;     /* the version, too */
	bool restored; /* the record has the version */
};

static void change_times(struct osd_record *record, void *arg)
{
	struct rest *rest = arg;
	struct osd_object *object = rest->object;

	put_times(object, record);
	rest->restored = false;
	if (!rest->idle || record->version.counter != OSD_VERSION_STALE ||
	    object->type != OSD_USER_OBJECT)
		return;
	osd_lock(&object->mutex);
	if (object->writers == 0 && atomic_load(&object->resizing) == 0) {
		record->version = osd_version_of(object);
		atomic_store(&object->version_stale, false);
		rest->restored = true;
	}
	osd_unlock(&object->mutex);
}

/* The transaction was aborted. */
static void stays_stale(const struct rest *rest)
{
	if (rest->restored)
		atomic_store(&rest->object->version_stale, true);
}

/* While the length of a committed transaction is not in memory, the record is right. */
static void change_all(struct osd_record *record, void *arg)
{
	struct rest *rest = arg;
	const struct osd_object *object = rest->object;

	put_times(object, record);
	rest->restored = atomic_load(&object->resizing) == 0;
	if (!rest->restored)
		return;
	record->length = record->reserved_bytes = atomic_load(&object->length);
	if (atomic_load(&object->shares) == 0)
		record->flags &= (uint16_t)~OSD_REC_LENGTH_RULES;
	else if (object->length_rules)
		record->flags |= OSD_REC_LENGTH_RULES;
	record->spare_generation = 0;
	record->version = osd_version_of(object);
}

static enum osd_status settle_times(struct osd_object *object, bool idle, bool durable)
{
	struct rest rest = {object, idle, false};
	enum osd_status status;

	atomic_store(&object->times_dirty, false);
	status = osd_object_change_record(object, durable, change_times, &rest, NULL);
	if (status != OSD_OK)
		stays_stale(&rest);
	/* No lock is held, so the object may be getting files of another generation. */
	if (status != OSD_OK && !atomic_load(&object->removed))
		atomic_store(&object->times_dirty, true);
	return status;
}

/* Called with the end locked: makes the files fit the length.  If that fails, the length continues to
 * rule. */
static enum osd_status settle_all(struct osd_object *object, bool durable)
{
	struct rest rest = {object, true, false};
	enum osd_status status = OSD_OK;

	if (object->untrimmed) {
		status = osd_object_fit_files(object, atomic_load(&object->length));
		object->untrimmed = status;
	}
	if (status == OSD_OK && object->spare_generation)
		status = osd_object_remove_spare(object);
	if (status != OSD_OK)
		return status;
	atomic_store(&object->times_dirty, false);
	status = osd_object_change_record(object, durable, change_all, &rest, NULL);
	if (status == OSD_OK && rest.restored) {
		object->reserved_bytes = object->recorded_length = atomic_load(&object->length);
		object->spare_generation = 0;
		atomic_store(&object->version_stale, false);
		if (atomic_load(&object->shares) == 0)
			object->length_rules = false;
	} else if (status != OSD_OK && status != OSD_E_NO_OBJECT) {
		atomic_store(&object->times_dirty, true);
	}
	return status;
}

static enum osd_status settle_still(struct osd_object *object, bool durable,
				    struct osd_range *range)
{
	enum osd_status status =
		atomic_load(&object->removed) ? OSD_E_NO_OBJECT : settle_all(object, durable);

	osd_object_unlock_read(object, range);
	return status;
}

enum osd_status osd_object_settle(struct osd_object *object, bool close, bool durable)
{
	struct osd_range range;

	if (osd_object_is_settled(object))
		return OSD_OK;
	if (object->type != OSD_USER_OBJECT || !close)
		return settle_times(object, false, durable);
	osd_object_lock_still(object, &range);
	return settle_still(object, durable, &range);
}

/* A copy or a PUNCH may use the object for minutes.  Upkeep has other work, and READs would wait behind
 * its lock.  So it writes only the times then, and the next tick tries again. */
static void settle_unless_used(struct osd_object *object)
{
	struct osd_range range;

	if (osd_object_is_settled(object))
		return;
	if (osd_object_try_lock_still(object, &range))
		settle_still(object, false, &range);
	else if (atomic_load(&object->times_dirty))
		settle_times(object, false, false);
}

static int compare_ids(const void *a, const void *b)
{
	const struct osd_object *const *one = a, *const *other = b;
	const struct osd_object_id *x = &(*one)->id, *y = &(*other)->id;

	if (x->partition_id != y->partition_id)
		return x->partition_id < y->partition_id ? -1 : 1;
	return (x->object_id > y->object_id) - (x->object_id < y->object_id);
}

static bool is_idle(const struct osd_object *object, bool everything)
{
	return everything ||
	       atomic_load(&object->write_tick) != atomic_load(&object->objects->tick);
}

/* count is TOGETHER at most. */
static enum osd_status times_in_one(struct osd_objects *objects, struct osd_object **batch,
				    size_t count, bool everything)
{
	struct rest rests[TOGETHER];
	size_t done = 0;
	struct osd_kv_txn *kv;
	enum osd_status status = osd_own_begin(objects, OSD_KV_CHANGE, &kv);

	if (status != OSD_OK)
		return status;
	for (; status == OSD_OK && done < count; done++) {
		struct osd_object *object = batch[done];
		bool idle = is_idle(object, everything);

		rests[done] = (struct rest){object, idle, false};
		if (atomic_exchange(&object->times_dirty, false) ||
		    (idle && atomic_load(&object->version_stale)))
			status =
				osd_object_change_record_in(kv, object, change_times, &rests[done]);
	}
	if (status == OSD_OK)
		status = osd_own_commit(objects, kv, false);
	else
		osd_own_abort(kv);
	for (size_t i = 0; status != OSD_OK && i < done; i++)
		stays_stale(&rests[i]);
	return status;
}

/* A transaction for the times of one object costs twice as much as the change itself, so several
 * objects share one.  They are sorted by id, the order in which all transactions lock several records.
 * If the shared transaction fails, each object is tried alone. */
static void settle_times_together(struct osd_objects *objects, struct osd_object **batch,
				  size_t count, bool everything)
{
	qsort(batch, count, sizeof(struct osd_object *), compare_ids);
	for (size_t done = 0, part; done < count; done += part) {
		part = OSD_MIN(count - done, TOGETHER);
		if (times_in_one(objects, batch + done, part, everything) == OSD_OK)
			continue;
		for (size_t i = done; i < done + part; i++)
			settle_times(batch[i], is_idle(batch[i], everything), false);
	}
}

/* Sorts the objects that need only a change of times to the front, and returns their number. */
static size_t times_first(struct osd_object **batch, size_t count, bool everything)
{
	size_t times = 0;

	for (size_t i = 0; i < count; i++) {
		struct osd_object *object = batch[i];

		if (object->type == OSD_USER_OBJECT && is_idle(object, everything) &&
		    !osd_object_is_settled_but_times(object))
			continue;
		batch[i] = batch[times];
		batch[times++] = object;
	}
	return times;
}

void osd_settle_all(struct osd_objects *objects, bool everything)
{
	struct osd_object *batch[64];

	for (size_t cursor = 0; cursor < OSD_CACHE_BUCKETS;) {
		size_t count = osd_cache_unsettled(objects, batch, OSD_ARRAY_SIZE(batch), &cursor);
		size_t times = times_first(batch, count, everything);

		settle_times_together(objects, batch, times, everything);
		for (size_t i = times; i < count; i++)
			if (everything)
				osd_object_settle(batch[i], true, false);
			else
				settle_unless_used(batch[i]);
		for (size_t i = 0; i < count; i++)
			osd_object_put(batch[i]);
	}
}

/* ---- partitions and root ----------------------------------------------------------------- */

static void raise_times(uint64_t times[OSD_T_COUNT], _Atomic uint64_t *in_memory)
{
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		times[i] = OSD_MAX(times[i], atomic_load(&in_memory[i]));
}

static enum osd_status put_partition_times(struct osd_txn *txn, void *arg)
{
	struct osd_partition *partition = arg;
	struct osd_partition_record record;
	enum osd_status status = osd_partition_hold(txn, partition, true, &record);

	if (status != OSD_OK)
		return status;
	raise_times(record.times, partition->times);
	return osd_partition_store(txn, partition, &record);
}

void osd_partition_settle(struct osd_objects *objects, struct osd_partition *partition)
{
	enum osd_status status;

	atomic_store(&partition->times_dirty, false);
	status = osd_txn_run(objects, OSD_TXN_INTERNAL, put_partition_times, partition);
	if (status != OSD_OK && status != OSD_E_NO_PARTITION)
		atomic_store(&partition->times_dirty, true);
}

static enum osd_status put_root_times(struct osd_txn *txn, void *arg)
{
	struct osd_objects *objects = arg;
	struct osd_root_record root;
	enum osd_status status = osd_root_hold(txn, &root);

	if (status != OSD_OK)
		return status;
	raise_times(root.common.times, objects->root_times);
	return osd_root_store(txn, &root);
}

void osd_root_settle(struct osd_objects *objects)
{
	if (atomic_exchange(&objects->root_times_dirty, false) &&
	    osd_txn_run(objects, OSD_TXN_INTERNAL, put_root_times, objects) != OSD_OK)
		atomic_store(&objects->root_times_dirty, true);
}

/* ---- flush ------------------------------------------------------------------------------- */

static enum osd_status flush_one(struct osd_object *object)
{
	enum osd_status status = osd_object_finish(object, OSD_DATA_FUA);

	if (status == OSD_OK)
		status = osd_object_settle(object, true, true);
	return status;
}

enum osd_status osd_object_flush(struct osd_object *object)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	enum osd_status status = osd_object_get_source(object, &source);

	if (status == OSD_OK && source)
		status = flush_one(source);
	/* Without its source it has no data. */
	return status == OSD_OK || osd_status_is_gone(status) ? flush_one(object) : status;
}

static enum osd_status sync_all(struct osd_objects *objects)
{
	enum osd_status status = osd_tier_sync_all(&objects->tier);

	if (osd_unsynced_by(status) && osd_unsynced_add_all(&objects->unsynced))
		osd_error("data may be lost: %s; each FLUSH of a partition or of the root fails "
			  "until the target is started again",
			  osd_status_info(status)->meaning);
	return status;
}

enum osd_status osd_objects_flush(struct osd_objects *objects, struct osd_object_id id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = OSD_OK;

	if (id.partition_id != 0)
		status = osd_partition_get(objects, NULL, id.partition_id, &partition);
	/* One call syncs all files and directories: many of them are no longer in memory. */
	if (status == OSD_OK)
		status = sync_all(objects);
	if (status == OSD_OK && osd_unsynced_any(&objects->unsynced, id.partition_id))
		status = OSD_E_MEDIUM;
	if (status == OSD_OK)
		status = osd_kv_flush(objects->kv);
	return status;
}
