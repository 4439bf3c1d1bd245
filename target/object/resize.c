/* SPDX-License-Identifier: GPL-2.0-or-later */
/* resize.c -- TRUNCATE (by the logical length attribute), CLEAR and PUNCH.
 *
 * Shrinking commits the new length first, with a mark that it rules over the files; then the files
 * are cut, or, while descriptors are out, only emptied from the new length on, so that no reader of
 * a mapping is killed by SIGBUS (design D19).  Recovery cuts what a crash left long. PUNCH in the
 * middle writes new files of the next generation and switches over in one commit. */
#include "object/internal.h"

#include "base/util.h"

enum osd_status osd_object_fit_files(struct osd_object *object, uint64_t length)
{
	struct osd_data_stat stat;
	enum osd_status status;

	if (!object->has_files)
		return OSD_OK;
	if (atomic_load(&object->shares) == 0)
		return osd_tier_truncate(&object->file, length);
	status = osd_tier_stat(&object->file, &stat);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && stat.size < length)
		return osd_tier_truncate(&object->file, length);
	return status == OSD_OK ? osd_tier_zero(&object->file, length, stat.size - length) : status;
}

/* ---- truncate ---------------------------------------------------------------------------- */

static void change_length(struct osd_record *record, void *arg)
{
	record->length = record->reserved_bytes = *(const uint64_t *)arg;
	record->flags |= OSD_REC_LENGTH_RULES;
}

/* The record says so already: the files follow. */
static void shrunk(struct osd_object *object, uint64_t length)
{
	uint64_t old_length = atomic_load(&object->length);

	object->length_rules = true;
	object->reserved_bytes = length;
	object->untrimmed = osd_object_fit_files(object, length) != OSD_OK;
	osd_object_set_length(object, length);
	osd_uncharge(object->objects, object->partition, old_length - length);
}

static enum osd_status shrink(struct osd_object *object, uint64_t length)
{
	enum osd_status status = osd_object_change_record(object, false, change_length, &length);

	if (status == OSD_OK)
		shrunk(object, length);
	return status;
}

static enum osd_status grow(struct osd_object *object, uint64_t length, unsigned flags)
{
	uint64_t old_length = atomic_load(&object->length);
	enum osd_status status = osd_object_extend(object, length, flags);

	if (status != OSD_OK)
		return status;
	status = osd_tier_truncate(&object->file, length);
	if (status == OSD_OK) {
		osd_object_set_length(object, length);
		osd_cache_count_open(object);
	} else {
		osd_uncharge(object->objects, object->partition, length - old_length);
		object->untrimmed = true;
	}
	return status;
}

static enum osd_status truncate_locked(struct osd_object *object, uint64_t length, unsigned flags)
{
	uint64_t old_length = atomic_load(&object->length);
	enum osd_status status = OSD_OK;

	if (length < old_length)
		status = shrink(object, length);
	else if (length > old_length)
		status = grow(object, length, flags);
	if (status != OSD_OK)
		return status;
	osd_object_touch(object, true, flags);
	return osd_object_finish(object, flags);
}

enum osd_status osd_object_truncate(struct osd_object *object, uint64_t length, unsigned flags)
{
	struct osd_range range;
	enum osd_status status = osd_object_lock(object, &range, length, UINT64_MAX, true);

	if (status != OSD_OK)
		return status;
	status = truncate_locked(object, length, flags);
	osd_object_unlock(object, &range);
	return status;
}

enum osd_status osd_object_truncate_after_commit(struct osd_object *object, uint64_t length)
{
	struct osd_range range;
	uint64_t old_length;
	enum osd_status status = osd_object_lock(object, &range, length, UINT64_MAX, true);

	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	old_length = atomic_load(&object->length);
	if (length <= old_length) {
		shrunk(object, length);
	} else {
		/* The record's reservation is as committed with the length. */
		object->reserved_bytes = length;
		object->length_rules = true;
		status = grow(object, length, 0);
	}
	osd_object_unlock(object, &range);
	return status;
}

/* ---- clear ------------------------------------------------------------------------------- */

static enum osd_status clear_locked(struct osd_object *object, uint64_t offset, uint64_t end,
				    unsigned flags)
{
	uint64_t old_length = atomic_load(&object->length);
	enum osd_status status = OSD_OK;

	if (end > old_length)
		status = grow(object, end, flags);
	if (status == OSD_OK && offset < old_length)
		status = osd_tier_zero(&object->file, offset, OSD_MIN(end, old_length) - offset);
	if (status != OSD_OK)
		return status;
	osd_object_touch(object, true, flags);
	return osd_object_finish(object, flags);
}

enum osd_status osd_object_clear(struct osd_object *object, uint64_t offset, uint64_t length,
				 unsigned flags)
{
	struct osd_range range;
	enum osd_status status;
	uint64_t end;

	if (!osd_add_u64(offset, length, &end))
		return OSD_E_CDB_FIELD;
	if (length == 0)
		return atomic_load(&object->removed) ? OSD_E_NO_OBJECT : OSD_OK;
	status = osd_object_lock(object, &range, offset, end, false);
	if (status != OSD_OK)
		return status;
	status = clear_locked(object, offset, end, flags);
	osd_object_unlock(object, &range);
	return status;
}

/* ---- punch ------------------------------------------------------------------------------- */

static void change_spare(struct osd_record *record, void *arg)
{
	record->spare_generation = *(const uint64_t *)arg;
}

struct switch_over {
	uint64_t generation, spare_generation, length;
};

static void change_generation(struct osd_record *record, void *arg)
{
	const struct switch_over *to = arg;

	record->generation = to->generation;
	record->spare_generation = to->spare_generation;
	record->length = record->reserved_bytes = to->length;
	record->flags = (uint16_t)((record->flags & ~OSD_REC_LENGTH_RULES) | OSD_REC_HAS_FILES);
}

/* The object's bytes without [offset, offset + length), durably in the files of `to`. */
static enum osd_status write_without(struct osd_object *object, uint64_t offset, uint64_t length,
				     struct osd_tier_file *to)
{
	uint64_t tail = offset + length, end = atomic_load(&object->length);
	enum osd_status status = osd_copy_extents(&object->file, 0, offset, to, 0, NULL);

	if (status == OSD_OK)
		status = osd_copy_extents(&object->file, tail, end - tail, to, offset, NULL);
	if (status == OSD_OK)
		status = osd_tier_truncate(to, end - length);
	return status == OSD_OK ? osd_tier_sync(to, true) : status;
}

/* With the whole object locked; offset + length is inside the object. */
static enum osd_status punch_middle(struct osd_object *object, uint64_t offset, uint64_t length)
{
	uint64_t old_length = atomic_load(&object->length), old_generation = object->generation;
	struct switch_over to = {atomic_fetch_add(&object->objects->next_generation, 1),
				 old_generation, old_length - length};
	struct osd_tier_file fresh;
	struct osd_data_name old_name = object->file.name;
	enum osd_status status =
		osd_object_change_record(object, false, change_spare, &to.generation);

	if (status != OSD_OK)
		return status;
	object->spare_generation = to.generation;
	osd_tier_file_init(&fresh, object->file.tier);
	fresh.name = osd_object_data_name(object, to.generation);
	fresh.head_bytes = object->file.head_bytes;
	fresh.head_on = object->file.head_on;
	status = write_without(object, offset, length, &fresh);
	if (status == OSD_OK)
		status = osd_object_change_record(object, true, change_generation, &to);
	if (status != OSD_OK) {
		osd_tier_file_release(&fresh);
		osd_tier_remove(object->file.tier, &fresh.name);
		return status;
	}
	osd_tier_file_adopt(&object->file, &fresh);
	object->generation = to.generation;
	osd_version_generation(object);
	object->spare_generation = old_generation;
	object->reserved_bytes = to.length;
	object->length_rules = object->untrimmed = false;
	osd_object_set_length(object, to.length);
	osd_uncharge(object->objects, object->partition, length);
	osd_tier_remove(object->file.tier, &old_name); /* else at recovery */
	return OSD_OK;
}

static enum osd_status punch_locked(struct osd_object *object, uint64_t offset, uint64_t length,
				    unsigned flags)
{
	uint64_t old_length = atomic_load(&object->length);
	enum osd_status status = OSD_OK;

	if (offset > old_length)
		return OSD_E_BEYOND_END;
	if (length >= old_length - offset)
		status = offset < old_length ? shrink(object, offset) : OSD_OK;
	else if (length > 0)
		status = punch_middle(object, offset, length);
	if (status != OSD_OK)
		return status;
	osd_object_touch(object, true, flags);
	return osd_object_finish(object, flags);
}

enum osd_status osd_object_punch(struct osd_object *object, uint64_t offset, uint64_t length,
				 unsigned flags)
{
	struct osd_range range;
	/* The files change place under every reader: nobody else may be at work. */
	enum osd_status status = osd_object_lock(object, &range, 0, UINT64_MAX, true);

	if (status != OSD_OK)
		return status;
	status = punch_locked(object, offset, length, flags);
	osd_object_unlock(object, &range);
	return status;
}
