/* SPDX-License-Identifier: GPL-2.0-or-later */
/* entry.c -- one object in memory: made from its record, compared with it, marked as removed.  cache.c has
 * the table of all. */
#include "object/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/util.h"

struct osd_place osd_object_place(const struct osd_object *object)
{
	return (struct osd_place){object->id.partition_id, object->partition->incarnation,
				  object->id.object_id};
}

struct osd_data_name osd_object_data_name(const struct osd_object *object, uint64_t generation)
{
	const struct osd_place place = osd_object_place(object);

	return osd_place_data_name(&place, generation);
}

void osd_record_file_init(struct osd_tier_file *file, struct osd_tier *tier,
			  const struct osd_place *place, const struct osd_record *record)
{
	osd_tier_file_init(file, tier);
	file->name = osd_place_data_name(place, record->generation);
	file->head_bytes = record->head_bytes;
	file->head_on = record->head_on;
}

void osd_entry_free(struct osd_object *object)
{
	assert(object->references == 0);
	osd_version_release(object);
	osd_tier_file_release(&object->file);
	osd_range_lock_release(&object->ranges);
	osd_lock_destroy(&object->mutex);
	osd_partition_put(object->partition);
	free(object);
}

void osd_entry_copy(struct osd_object *object, const struct osd_record *record)
{
	atomic_store(&object->unfinished, record->flags & OSD_REC_UNFINISHED);
	atomic_store(&object->stacked, record->flags & OSD_REC_STACKED);
	atomic_store(&object->hooks, osd_record_hooks(record));
	atomic_store(&object->max_length, record->max_length);
	atomic_store(&object->tag, record->policy_tag);
}

struct osd_object *osd_entry_new(struct osd_objects *objects, struct osd_partition *partition,
				 struct osd_object_id id, const struct osd_record *record)
{
	struct osd_object *object = calloc(1, sizeof(*object));
	const struct osd_place place = {id.partition_id, partition->incarnation, id.object_id};

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
	object->length_rules = record->flags & OSD_REC_LENGTH_RULES;
	object->unmeasured = record->reserved_bytes != record->length && !object->length_rules;
	object->surrogate = record->flags & OSD_REC_SURROGATE;
	atomic_store(&object->due, record->flags & OSD_REC_DUE);
	osd_entry_copy(object, record);
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		atomic_store(&object->times[i], record->times[i]);
	osd_version_enter(object, record);
	osd_record_file_init(&object->file, &objects->tier, &place, record);
	return object;
}

void osd_entry_adopt_times(struct osd_object *object)
{
	struct osd_data_stat stat;

	if (!object->objects->unclean || !object->has_files)
		return;
	if (osd_tier_stat(&object->file, false, &stat) == OSD_OK &&
	    stat.modified_ms > atomic_load(&object->times[OSD_T_DATA_MODIFIED]))
		atomic_store(&object->times[OSD_T_DATA_MODIFIED], stat.modified_ms);
	osd_tier_shut(&object->file);
}

enum osd_status osd_entry_load(struct osd_objects *objects, struct osd_object_id id,
			       struct osd_object **ret_object)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_record record;
	struct osd_place place;
	enum osd_status status = osd_partition_get(objects, NULL, id.partition_id, &partition);

	if (status != OSD_OK)
		return status;
	place = (struct osd_place){id.partition_id, partition->incarnation, id.object_id};
	status = osd_record_load(objects, NULL, &place, 0, &record);
	if (status != OSD_OK)
		return status;
	*ret_object = osd_entry_new(objects, partition, id, &record);
	if (!*ret_object)
		return OSD_E_NO_MEMORY;
	OSD_STEAL(partition);
	osd_entry_adopt_times(*ret_object);
	return OSD_OK;
}

/* Without the range lock the answer may be out of date.  The next tick then gets the right one. */
bool osd_object_is_settled_but_times(struct osd_object *object)
{
	return atomic_load(&object->reserved_bytes) == atomic_load(&object->length) &&
	       atomic_load(&object->recorded_length) == atomic_load(&object->length) &&
	       !(atomic_load(&object->length_rules) && atomic_load(&object->shares) == 0) &&
	       !atomic_load(&object->untrimmed) && atomic_load(&object->spare_generation) == 0;
}

bool osd_object_is_settled(struct osd_object *object)
{
	return atomic_load(&object->removed) || object->unmeasured ||
	       (!atomic_load(&object->times_dirty) && !atomic_load(&object->version_stale) &&
		osd_object_is_settled_but_times(object));
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
