/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recovery.c -- the steps after the recovery of the database: read the root and the partitions, count
 * objects and bytes, and settle the objects whose reservation was open when the target stopped.  Only
 * those objects need a check of their files. */
#include "object/internal.h"
#include "object/view_impl.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "object/value_index.h"
#include "wire/cursor.h"

/* ---- root -------------------------------------------------------------------------------- */

static void fresh_root(struct osd_root_record *root)
{
	*root = (struct osd_root_record){
		.epoch = 1, .next_incarnation = 1, .next_partition_id = OSD_FIRST_ID};
	root->common.quotas = (struct osd_quotas){OSD_NO_LIMIT, OSD_NO_LIMIT, OSD_NO_LIMIT,
						  UINT32_MAX, OSD_NO_LIMIT};
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		root->common.times[i] = osd_wall_msec();
}

static enum osd_status get_root(struct osd_objects *objects, struct osd_kv_txn *kv)
{
	struct osd_key key = osd_key_meta(OSD_META_ROOT);
	uint8_t bytes[OSD_ROOT_RECORD_BYTES];
	size_t length;
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_META, osd_key_bytes(&key),
					    OSD_KV_RMW, bytes, sizeof(bytes), &length);

	if (status == OSD_OK)
		return osd_root_record_decode(bytes, OSD_MIN(length, sizeof(bytes)),
					      &objects->root);
	if (status != OSD_E_NO_OBJECT)
		return status;
	fresh_root(&objects->root);
	osd_root_record_encode(&objects->root, bytes);
	status = osd_key_put(kv, OSD_KV_META, &key, bytes, sizeof(bytes));
	return status == OSD_OK ? osd_methods_begin(objects, kv, objects->root.epoch) : status;
}

/* The generations of this run are above all earlier ones. */
static enum osd_status count_boot(struct osd_objects *objects, struct osd_kv_txn *kv)
{
	struct osd_key key = osd_key_meta(OSD_META_BOOT), clean = osd_key_meta(OSD_META_CLEAN);
	uint8_t bytes[4] = {0};
	uint64_t boots;
	size_t length;
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_META, osd_key_bytes(&key),
					    OSD_KV_RMW, bytes, sizeof(bytes), &length);

	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	boots = osd_get_be(bytes, sizeof(bytes)) + 1;
	osd_put_be(bytes, boots, sizeof(bytes));
	atomic_store(&objects->next_generation, boots << 32);
	osd_job_ids_begin(objects, boots);
	status = osd_key_put(kv, OSD_KV_META, &key, bytes, sizeof(bytes));
	if (status == OSD_OK)
		status = osd_kv_remove(kv, OSD_KV_META, osd_key_bytes(&clean));
	objects->unclean = status == OSD_E_NO_OBJECT && boots > 1;
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	status = osd_version_begin_run(objects, kv, boots);
	return status == OSD_OK ? osd_index_begin_run(objects, kv, boots - 1, boots) : status;
}

static enum osd_status begin_in(struct osd_kv_txn *kv, void *arg)
{
	struct osd_objects *objects = arg;
	enum osd_status status = get_root(objects, kv);

	return status == OSD_OK ? count_boot(objects, kv) : status;
}

static enum osd_status begin_run(struct osd_objects *objects)
{
	enum osd_status status = osd_own_run(objects, OSD_COMMIT_DURABLE, begin_in, objects);

	atomic_store(&objects->epoch, objects->root.epoch);
	atomic_store(&objects->isolation, objects->root.isolation);
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		atomic_store(&objects->root_times[i], objects->root.common.times[i]);
	return status;
}

/* ---- partitions -------------------------------------------------------------------------- */

struct partitions_context {
	struct osd_objects *objects;
	enum osd_status status;
};

static bool add_partition(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct partitions_context *context = arg;
	struct osd_partition_record record;
	struct osd_partition *partition;

	context->status = osd_partition_record_decode(value.data, value.length, &record);
	if (context->status != OSD_OK || key.length != 12)
		return false;
	partition = osd_partition_new(osd_get_be((const uint8_t *)key.data + 4, 8), &record);
	if (!partition) {
		context->status = OSD_E_NO_MEMORY;
		return false;
	}
	osd_partitions_add(context->objects, OSD_NO_LIMIT);
	osd_partition_insert(context->objects, partition);
	osd_partition_put(partition);
	return true;
}

static bool add_mark(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	uint64_t mark;

	if (key.length != 13 || value.length != 8 ||
	    !osd_partition_of_key(arg, (const uint8_t *)key.data + 1, &partition))
		return true;
	/* In earlier releases any requested id moved the mark, so the mark may be at the end of all ids.
	 * Then the greatest existing id replaces it. */
	mark = osd_get_be(value.data, 8);
	if (mark <= OSD_IDS_COUNTED) {
		atomic_store(&partition->id_mark, mark);
		osd_object_count_ids(partition, mark - 1, 1);
	}
	return true;
}

static enum osd_status load_partitions(struct osd_objects *objects)
{
	struct partitions_context context = {objects, OSD_OK};
	struct osd_key first = osd_key_partition(atomic_load(&objects->epoch), 0);
	struct osd_key marks = osd_key_meta(OSD_META_ID_MARK);
	enum osd_status status = osd_kv_scan(objects->kv, NULL, OSD_KV_PARTITIONS,
					     osd_key_bytes(&first), 4, add_partition, &context);

	if (status == OSD_OK)
		status = context.status;
	if (status == OSD_OK)
		status = osd_kv_scan(objects->kv, NULL, OSD_KV_META, osd_key_bytes(&marks), 1,
				     add_mark, objects);
	return status;
}

/* What the store keeps of a partition, or of the root (NULL), beside its record. */
static enum osd_status load_container(struct osd_objects *objects, struct osd_partition *partition)
{
	enum osd_status status = osd_attr_charge_container(objects, partition);

	if (status == OSD_OK)
		status = osd_stack_load(objects, partition);
	if (status == OSD_OK && partition)
		status = osd_views_load(objects, partition);
	return status == OSD_OK ? osd_hooks_load(objects, partition) : status;
}

/* No other thread runs yet, so the list of partitions does not change. */
static enum osd_status load_containers(struct osd_objects *objects)
{
	enum osd_status status = load_container(objects, NULL);

	osd_each_partition (objects, partition, status == OSD_OK)
		status = load_container(objects, partition);
	return status;
}

/* ---- objects ----------------------------------------------------------------------------- */

struct id_list {
	struct {
		struct osd_object_id id;
		uint16_t flags; /* of its record */
	} * list;		/* owned */
	size_t count, capacity;
};

struct objects_context {
	struct osd_objects *objects;
	struct osd_partition *partition; /* reference; of the last record */
	struct id_list open;	  /* objects to settle */
	struct id_list uncounted; /* objects whose attributes no release has counted yet */
	enum osd_status status;
};

static bool note(struct objects_context *context, struct id_list *ids, uint64_t object_id,
		 uint16_t flags)
{
	if (!OSD_MAKE_ROOM(ids->list, ids->count, ids->capacity)) {
		context->status = OSD_E_NO_MEMORY;
		return false;
	}
	ids->list[ids->count].id = (struct osd_object_id){context->partition->id, object_id};
	ids->list[ids->count++].flags = flags;
	return true;
}

/* Functions follow the changes of the object, and have followed the last one; but it gets another version now, which
 * the last run did not record.  So they run again. */
static bool has_unfollowed_version(const struct objects_context *context,
				   const struct osd_record *record)
{
	const struct osd_objects *objects = context->objects;

	return !(record->flags & OSD_REC_DUE) &&
	       osd_hooks_of_new(objects, context->partition, record) & OSD_HOOK_AFTER &&
	       objects->version_floor == objects->opening;
}

/* Whether something of the object is still to be settled. */
static bool is_unsettled(const struct objects_context *context, const struct osd_record *record)
{
	return record->reserved_bytes != record->length || record->flags & OSD_REC_LENGTH_RULES ||
	       record->spare_generation || has_unfollowed_version(context, record) ||
	       (record->type == OSD_USER_OBJECT && record->version.counter == OSD_VERSION_STALE);
}

static bool count_object(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct objects_context *context = arg;
	struct osd_partition *partition;
	struct osd_charge_account *account;
	struct osd_record record;
	uint64_t id;

	if (key.length != OSD_KEY_OBJECT_PART ||
	    !osd_partition_of_key(context->objects, key.data, &context->partition))
		return true;
	context->status = osd_record_decode(value.data, value.length, &record);
	if (context->status != OSD_OK)
		return false;
	osd_version_count(context->objects, &record);
	if (record.flags & (OSD_REC_CHECKED | OSD_REC_FOLLOWED))
		atomic_store(&context->objects->hooked, true);
	partition = context->partition;
	id = osd_get_be((const uint8_t *)key.data + OSD_KEY_PARTITION_PART, 8);
	account = osd_account_of(partition, id, record.flags);
	atomic_fetch_add(&account->object_count, 1);
	osd_charge_committed(context->objects, account, record.length);
	osd_heads_count(partition, record.head_on, 0,
			osd_head_part(record.head_bytes, record.length));
	if (record.type == OSD_COLLECTION)
		osd_tally_change(partition, OSD_TALLY_COLLECTIONS, id, 1, true);
	else if (account == &partition->data)
		osd_tally_change(partition, OSD_TALLY_USER_OBJECTS, id, 1, true);
	osd_object_count_ids(partition, id, 1);
	atomic_fetch_add(&context->objects->object_count, 1);
	if (record.attribute_units == OSD_UNITS_UNKNOWN) {
		if (!note(context, &context->uncounted, id, record.flags))
			return false;
	} else if (record.attribute_units) {
		osd_charge_found(context->objects, account, OSD_CHARGE_ATTRIBUTES,
				 (uint64_t)record.attribute_units * OSD_UNIT_BYTES);
	}
	return !is_unsettled(context, &record) || note(context, &context->open, id, record.flags);
}

/* The length of an object whose head is absent.  If there is a tail, the tail gives it.  Otherwise the
 * whole reservation counts, so that no acknowledged byte seems to be missing, and the reservation stays
 * open until the head is back. */
static enum osd_status longest_without_head(struct osd_object *object,
					    struct osd_data_stat *ret_stat)
{
	uint64_t tail;
	enum osd_status status = osd_tier_tail_size(&object->file, &tail);

	if (status != OSD_OK)
		return status;
	*ret_stat = (struct osd_data_stat){
		.size = tail ? object->file.head_bytes + tail
			     : OSD_MIN(object->reserved_bytes, object->file.head_bytes)};
	object->untrimmed = OSD_E_HEAD_ABSENT;
	return OSD_OK;
}

/* What the files say.  If a device fails, the record's length is the right one, except if a reservation was open: then
 * the object stays unmeasured, and the record stays open. */
static enum osd_status measure(struct osd_object *object, struct osd_data_stat *ret_stat)
{
	uint64_t length = atomic_load(&object->length);
	enum osd_status status = osd_tier_stat(&object->file, true, ret_stat);

	if (status == OSD_E_NO_OBJECT) {
		/* Bytes that were stored before are lost with the file, and no READ takes them for zeros. */
		*ret_stat = (struct osd_data_stat){.size = object->length_rules ? 0 : length};
		status = OSD_OK;
	}
	if (status == OSD_E_HEAD_ABSENT)
		status = longest_without_head(object, ret_stat);
	if (osd_status_is_medium(status) && !object->unmeasured) {
		*ret_stat = (struct osd_data_stat){.size = length};
		object->untrimmed = object->length_rules ? status : OSD_OK;
		status = OSD_OK;
	}
	if (status == OSD_OK)
		object->unmeasured = false;
	return status;
}

/* The entry begins with the record's length.  Then the files correct the length, or are cut to it. */
static enum osd_status settle_measured(struct osd_object *object, uint64_t size)
{
	uint64_t before = atomic_load(&object->length);
	enum osd_status status;

	if (!object->length_rules) {
		osd_object_set_length(object, size);
		osd_charge_committed(object->objects, object->account, size - before);
	} else if (size != before) {
		object->untrimmed = OSD_E_MEDIUM; /* until it is settled, which is next */
	}
	status = osd_object_make_due(object); /* its version may be another one than before */
	if (status != OSD_OK)
		return status;
	atomic_store(&object->times_dirty, true);
	return osd_object_settle(object, true, false);
}

/* An object whose files cannot be read or cut is settled at the opening that can. */
static enum osd_status settle_after_crash(struct osd_objects *objects, struct osd_object_id id)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_data_stat stat;
	enum osd_status status = osd_cache_get(objects, id, &object);

	if (status != OSD_OK)
		return status;
	status = measure(object, &stat);
	if (status == OSD_OK)
		status = settle_measured(object, stat.size);
	if (status == OSD_E_HEAD_ABSENT)
		return OSD_OK;
	if (!osd_status_is_medium(status) ||
	    !(object->unmeasured || object->untrimmed || object->spare_left))
		return status;
	osd_error("object 0x%" PRIx64 "/0x%" PRIx64 ": its files fail: %s; repair the device, then "
		  "start the target again",
		  id.partition_id, id.object_id, osd_status_info(status)->meaning);
	return OSD_OK;
}

static enum osd_status load_objects(struct osd_objects *objects)
{
	struct objects_context context = {.objects = objects};
	enum osd_status status = osd_kv_scan(objects->kv, NULL, OSD_KV_OBJECTS,
					     (struct osd_bytes){"", 0}, 0, count_object, &context);

	osd_partition_put(context.partition);
	if (status == OSD_OK)
		status = context.status;
	for (size_t i = 0; status == OSD_OK && i < context.uncounted.count; i++)
		status = osd_attr_charge_object(objects, context.uncounted.list[i].id,
						context.uncounted.list[i].flags);
	for (size_t i = 0; status == OSD_OK && i < context.open.count; i++)
		status = settle_after_crash(objects, context.open.list[i].id);
	free(context.uncounted.list);
	free(context.open.list);
	return status;
}

static void find_capacity(struct osd_objects *objects)
{
	uint64_t total, available, capacity;

	if (osd_tier_capacity(&objects->tier, &total, &available) != OSD_OK)
		total = OSD_NO_LIMIT;
	capacity = objects->root.capacity ? OSD_MIN(total, objects->root.capacity) : total;
	atomic_store(&objects->capacity_bytes, capacity);
}

enum osd_status osd_recover(struct osd_objects *objects, char message[256])
{
	uint64_t start_nsec = osd_monotonic_nsec();
	enum osd_status status = begin_run(objects);

	if (status == OSD_OK)
		status = osd_sums_begin_run(objects);
	if (status == OSD_OK)
		status = osd_heads_load(objects);
	if (status == OSD_OK)
		status = load_partitions(objects);
	if (status == OSD_OK)
		status = load_containers(objects);
	if (status == OSD_OK)
		status = osd_index_load(objects);
	if (status == OSD_OK)
		status = load_objects(objects);
	if (status == OSD_OK)
		status = osd_remove_drafts(objects);
	if (status != OSD_OK)
		return OSD_EXPLAIN(message, status,
				   "recovery of the store failed: %s; 'osd target check' tells",
				   osd_status_info(status)->meaning);
	find_capacity(objects);
	objects->recovery_seconds += (double)(osd_monotonic_nsec() - start_nsec) / 1e9;
	return OSD_OK;
}
