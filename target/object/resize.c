/* SPDX-License-Identifier: GPL-2.0-or-later */
/* resize.c -- the logical length attribute, and the parts of a PUNCH (change.c puts them together).
 *
 * Shrinking first commits the new length, with the mark that it rules over the files.  Then the files
 * are cut.  While sandboxes have descriptors, the files are only emptied from the new length on, so that
 * no reader of a mapping is killed by SIGBUS.  Recovery cuts files that a crash left too
 * long.  PUNCH in the middle, and the replacement of all bytes, write new files of the next generation and switches to them in one commit. */
#include "object/internal.h"

#include "base/util.h"

/* ---- truncate ---------------------------------------------------------------------------- */

void osd_shrink_record(struct osd_record *record, uint64_t length)
{
	record->length = record->reserved_bytes = length;
	record->flags |= OSD_REC_LENGTH_RULES;
	record->version.counter = OSD_VERSION_STALE;
}

static void change_length(struct osd_record *record, void *arg)
{
	osd_shrink_record(record, *(const uint64_t *)arg);
}

void osd_shrink_done(struct osd_object *object, uint64_t old_length, uint64_t length)
{
	object->length_rules = true;
	atomic_store(&object->version_stale, true);
	object->reserved_bytes = object->recorded_length = length;
	object->untrimmed = osd_object_fit_files(object, length);
	osd_object_set_length(object, length);
	osd_uncharge(object->objects, object->account, old_length - length);
}

static enum osd_status shrink(struct osd_object *object, uint64_t length)
{
	enum osd_status status =
		osd_object_change_record(object, false, change_length, &length, NULL);

	if (status == OSD_OK)
		osd_shrink_done(object, atomic_load(&object->length), length);
	return status;
}

void osd_growth_undo(struct osd_object *object, uint64_t longer, uint64_t length)
{
	/* Files that sandboxes share stay too long, so the record must say at once which length rules. */
	if (atomic_load(&object->shares) > 0 &&
	    osd_object_change_record(object, false, change_length, &length, NULL) == OSD_OK) {
		osd_shrink_done(object, longer, length);
		return;
	}
	object->untrimmed = osd_object_fit_files(object, length);
	osd_uncharge(object->objects, object->account, longer - length);
}

/* *full: a device was. */
static enum osd_status grow(struct osd_object *object, uint64_t length, unsigned flags, bool *full)
{
	uint64_t old_length = atomic_load(&object->length);
	enum osd_status status = osd_object_extend(object, length, flags);

	if (status == OSD_OK) {
		status = osd_object_make_stale(object);
		if (status != OSD_OK)
			osd_uncharge(object->objects, object->account, length - old_length);
	}
	if (status != OSD_OK)
		return status;
	status = osd_tier_truncate(&object->file, length);
	*full = status == OSD_E_NO_SPACE;
	if (status == OSD_OK) {
		osd_object_set_length(object, length);
		osd_cache_note_open(object);
	} else {
		osd_uncharge(object->objects, object->account, length - old_length);
		object->untrimmed = status;
	}
	return status;
}

static enum osd_status truncate_locked(struct osd_object *object, struct osd_change *change,
				       bool *full)
{
	uint64_t old_length = atomic_load(&object->length), length = change->length;
	enum osd_status status = osd_object_miss(object, old_length, OSD_MIN(length, old_length),
						 OSD_MAX(length, old_length));

	if (status == OSD_OK && length < old_length)
		status = osd_object_make_due(object);
	if (status == OSD_OK && length < old_length)
		status = shrink(object, length);
	else if (status == OSD_OK && length > old_length)
		status = grow(object, length, change->flags, full);
	if (status != OSD_OK)
		return status;
	change->changed = length != old_length;
	if (change->changed) {
		change->version = osd_version_new(object->objects);
		change->before = osd_version_change(object, change->version);
	}
	osd_object_touch(object, true, change->flags);
	return osd_object_finish(object, change->flags);
}

static enum osd_status truncate_once(struct osd_object *object, struct osd_change *change,
				     bool *full)
{
	struct osd_range range;
	enum osd_status status =
		osd_object_lock(object, &range, change->length, UINT64_MAX, true);

	if (status != OSD_OK)
		return status;
	status = truncate_locked(object, change, full);
	osd_object_unlock(object, &range);
	return status;
}

enum osd_status osd_object_truncate_with(struct osd_object *object, struct osd_change *change)
{
	bool full = false;
	enum osd_status status = OSD_E_CHECK;

	if (osd_data_change_permitted(object, change->flags))
		status = truncate_once(object, change, &full);

	return full && object->objects->heads.escape(object)
		       ? truncate_once(object, change, &full)
		       : status;
}

enum osd_status osd_object_truncate(struct osd_object *object, uint64_t length, unsigned flags)
{
	return osd_object_truncate_with(object,
					&(struct osd_change){.length = length, .flags = flags});
}

/* Makes the files, or makes them longer. */
static enum osd_status grow_files(struct osd_object *object, const struct osd_committed_length *to)
{
	enum osd_status status = OSD_OK;

	if (object->untrimmed) /* bytes that should have been cut off must not reappear */
		status = osd_object_fit_files(object, atomic_load(&object->length));
	if (status != OSD_OK)
		return status;
	object->untrimmed = OSD_OK;
	if (!object->has_files) {
		object->file.head_bytes = to->head_bytes;
		object->file.head_on = to->head_on;
		osd_head_placed(object->objects, &(struct osd_record){.head_on = to->head_on});
		object->has_files = true;
	}
	status = osd_tier_truncate(&object->file, to->length);
	if (status == OSD_OK)
		osd_cache_note_open(object);
	return status;
}

/* Sets the new length in memory.  If the files did not follow now (status), they do when the object is
 * settled; until then the length in the record rules over them. */
static void be_longer(struct osd_object *object, uint64_t length, enum osd_status status)
{
	osd_charge_committed(object->objects, object->account,
			     length - atomic_load(&object->length));
	object->length_rules = true;
	atomic_store(&object->version_stale, true);
	object->untrimmed = status;
	object->reserved_bytes = object->recorded_length = length;
	osd_object_set_length(object, length);
}

/* Called with the end locked.  False: a device is full, and nothing has changed.  The second attempt
 * (again) never fails; it writes the record anew, because the move of the head may have settled the old
 * one. */
static bool truncate_committed(struct osd_object *object, const struct osd_committed_length *to,
			       unsigned flags, bool again)
{
	uint64_t old_length = atomic_load(&object->length), length = to->length;
	enum osd_status status;

	if (length <= old_length) {
		osd_shrink_done(object, old_length, length);
	} else {
		status = grow_files(object, to);
		if (status == OSD_E_NO_SPACE && !again)
			return false;
		be_longer(object, length, status);
		if (again &&
		    osd_object_change_record(object, false, change_length, &length, NULL) != OSD_OK)
			object->recorded_length = old_length; /* to be written when settled */
	}
	osd_version_change(object, to->version);
	osd_object_touch(object, true, flags);
	return true;
}

void osd_object_truncate_after_commit(struct osd_object *object,
				      const struct osd_committed_length *to, bool locked,
				      unsigned flags)
{
	struct osd_range range;
	bool done = locked && truncate_committed(object, to, flags, true);

	for (int i = 0; !done && i < 2; i++) {
		if (i > 0)
			object->objects->heads.escape(object);
		if (osd_object_lock(object, &range, to->length, UINT64_MAX, true) != OSD_OK)
			return; /* removed */
		done = truncate_committed(object, to, flags, i > 0);
		osd_object_unlock(object, &range);
	}
}

/* ---- punch ------------------------------------------------------------------------------- */

static void change_spare(struct osd_record *record, void *arg)
{
	record->spare_generation = *(const uint64_t *)arg;
}

#define SYNC_BYTES (UINT64_C(16) << 20) /* bytes moved, at most, between two waits for the disk */

/* Bytes being moved to new files.  They are synced every SYNC_BYTES. So each wait for the disk is short,
 * the change can be stopped soon, and a commit of another thread does not wait for all of them. */
struct moving {
	struct osd_tier_file *to;
	const struct osd_change_steps *steps; /* NULL: it runs through */
	uint64_t unsynced;
	enum osd_status synced;
};

static enum osd_status sync_moved(struct moving *moving)
{
	if (moving->steps && moving->steps->rest)
		moving->steps->rest(moving->steps->arg);
	moving->unsynced = 0;
	return osd_tier_sync(moving->to);
}

static bool move_next(void *arg, uint64_t bytes)
{
	struct moving *moving = arg;

	if (moving->unsynced >= SYNC_BYTES)
		moving->synced = sync_moved(moving);
	moving->unsynced += bytes;
	return moving->synced == OSD_OK &&
	       (!moving->steps || moving->steps->go_on(moving->steps->arg, bytes));
}

/* Writes the object's bytes without [offset, offset + length) to the files of `to`, durably. */
static enum osd_status write_without(struct osd_object *object, uint64_t offset, uint64_t length,
				     const struct osd_change_steps *steps, struct osd_tier_file *to)
{
	struct moving moving = {.to = to, .steps = steps};
	const struct osd_change_steps each = {.go_on = move_next, .arg = &moving};
	const struct osd_copy_how how = {.steps = &each};
	uint64_t tail = offset + length, end = atomic_load(&object->length);
	enum osd_status status = osd_copy_extents(&object->file, 0, offset, to, 0, &how);

	if (status == OSD_OK)
		status = osd_copy_extents(&object->file, tail, end - tail, to, offset, &how);
	if (status == OSD_OK)
		status = osd_tier_truncate(to, end - length);
	if (status == OSD_E_TASK_ABORTED && moving.synced != OSD_OK)
		status = moving.synced;
	return status == OSD_OK ? sync_moved(&moving) : status;
}

/* The record names the files before they are there, so that recovery removes them.  It names one generation alone. */
static enum osd_status open_fresh(struct osd_object *object, uint64_t length,
				  struct osd_punch *punch)
{
	enum osd_status status = object->spare_left ? osd_object_remove_spare(object) : OSD_OK;

	*punch = (struct osd_punch){.length = length};
	punch->generation = atomic_fetch_add(&object->objects->next_generation, 1);
	if (status == OSD_OK)
		status = osd_object_change_record(object, false, change_spare, &punch->generation,
						  NULL);
	if (status != OSD_OK)
		return status;
	object->spare_generation = punch->generation;
	punch->is_open = true;
	osd_tier_file_init(&punch->fresh, object->file.tier);
	punch->fresh.name = osd_object_data_name(object, punch->generation);
	punch->fresh.head_bytes = object->file.head_bytes;
	punch->fresh.head_on = object->file.head_on;
	return OSD_OK;
}

enum osd_status osd_punch_prepare(struct osd_object *object, uint64_t offset, uint64_t length,
				  const struct osd_change_steps *steps, struct osd_punch *punch)
{
	uint64_t before = atomic_load(&object->length);
	enum osd_status status = osd_object_lost(object, before);

	if (status == OSD_OK)
		status = open_fresh(object, before - length, punch);
	if (status == OSD_OK)
		status = write_without(object, offset, length, steps, &punch->fresh);
	if (status != OSD_OK)
		osd_punch_undo(object, punch);
	return status;
}

enum osd_status osd_replace_prepare(struct osd_object *object, const void *data, uint64_t length,
				    struct osd_punch *punch)
{
	enum osd_status status = open_fresh(object, length, punch);

	if (status == OSD_OK && length)
		status = osd_tier_write(&punch->fresh, 0, data, (size_t)length);
	if (status == OSD_OK)
		status = osd_tier_truncate(&punch->fresh, length);
	if (status == OSD_OK && length) /* without a byte there is no file */
		status = osd_tier_sync(&punch->fresh);
	if (status != OSD_OK)
		osd_punch_undo(object, punch);
	return status;
}

void osd_punch_record(const struct osd_object *object, const struct osd_punch *punch,
		      struct osd_record *record)
{
	record->generation = punch->generation;
	record->spare_generation = object->generation;
	record->length = record->reserved_bytes = punch->length;
	record->flags = (uint16_t)((record->flags & ~OSD_REC_LENGTH_RULES) | OSD_REC_HAS_FILES);
	record->version.counter = OSD_VERSION_STALE;
}

void osd_punch_done(struct osd_object *object, struct osd_punch *punch, uint64_t old_length)
{
	struct osd_data_name old_name = object->file.name;
	bool tail = old_length > object->file.head_bytes || object->untrimmed;

	osd_tier_file_adopt(&object->file, &punch->fresh);
	punch->is_open = false;
	object->generation = punch->generation; /* first: see osd_cache_remove */
	object->spare_generation = old_name.generation;
	osd_version_generation(object);
	object->reserved_bytes = object->recorded_length = punch->length;
	object->length_rules = false;
	object->untrimmed = OSD_OK;
	atomic_store(&object->version_stale, true);
	osd_object_set_length(object, punch->length);
	if (old_length > punch->length)
		osd_uncharge(object->objects, object->account, old_length - punch->length);
	/* If this fails, settling, the next change or recovery removes them. */
	object->spare_left = osd_tier_remove_parts(&object->file, &old_name, tail) != OSD_OK;
}

void osd_punch_undo(struct osd_object *object, struct osd_punch *punch)
{
	if (!punch->is_open)
		return;
	osd_tier_file_release(&punch->fresh);
	object->spare_left = osd_tier_remove(object->file.tier, &punch->fresh.name) != OSD_OK;
	punch->is_open = false;
}
