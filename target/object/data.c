/* SPDX-License-Identifier: GPL-2.0-or-later */
/* data.c -- locking and reading an open object, and making its files durable.  Elsewhere: changes of its
 * bytes (change.c), its growth (grow.c), cutting it (resize.c). */
#include "object/internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "wire/osd2.h"

/* ---- locking ----------------------------------------------------------------------------- */

enum osd_status osd_object_lock(struct osd_object *object, struct osd_range *range, uint64_t offset,
				uint64_t end, bool to_end)
{
	if (object->unmeasured)
		return OSD_E_MEDIUM;
	osd_lock(&object->mutex);
	for (;;) {
		uint64_t length = atomic_load(&object->length);
		bool grows = to_end || end > length;
		/* A write beyond the end also turns the bytes between into zeros. */
		uint64_t start = grows ? OSD_MIN(offset, length) : offset;

		osd_range_acquire(&object->ranges, range, start, grows ? UINT64_MAX : end, true);
		length = atomic_load(&object->length);
		if (atomic_load(&object->removed))
			break;
		if (grows ? OSD_MIN(offset, length) >= start : end <= length) {
			osd_version_begin(object);
			object->changes++;
			osd_unlock(&object->mutex);
			return OSD_OK;
		}
		osd_range_drop(&object->ranges, range); /* the length changed while we waited */
	}
	osd_range_drop(&object->ranges, range);
	osd_unlock(&object->mutex);
	return OSD_E_NO_OBJECT;
}

void osd_object_unlock(struct osd_object *object, struct osd_range *range)
{
	osd_lock(&object->mutex);
	osd_version_end(object);
	osd_range_drop(&object->ranges, range);
	osd_unlock(&object->mutex);
}

enum osd_status osd_object_lock_read(struct osd_object *object, struct osd_range *range,
				     uint64_t offset, uint64_t end, bool nowait)
{
	enum osd_status status = OSD_OK;

	if (object->unmeasured)
		return OSD_E_MEDIUM;
	if (nowait && !osd_trylock(&object->mutex))
		return OSD_E_WOULD_BLOCK;
	if (!nowait)
		osd_lock(&object->mutex);
	if (!nowait)
		osd_range_acquire(&object->ranges, range, offset, end, false);
	else if (!osd_range_try(&object->ranges, range, offset, end, false))
		status = OSD_E_WOULD_BLOCK;
	if (status == OSD_OK && atomic_load(&object->removed)) {
		osd_range_drop(&object->ranges, range);
		status = OSD_E_NO_OBJECT;
	}
	osd_unlock(&object->mutex);
	return status;
}

void osd_object_lock_still(struct osd_object *object, struct osd_range *range)
{
	osd_lock(&object->mutex);
	osd_range_acquire(&object->ranges, range, 0, UINT64_MAX, true);
	osd_unlock(&object->mutex);
}

bool osd_object_try_lock_still(struct osd_object *object, struct osd_range *range)
{
	bool locked;

	osd_lock(&object->mutex);
	locked = osd_range_try(&object->ranges, range, 0, UINT64_MAX, true);
	osd_unlock(&object->mutex);
	return locked;
}

void osd_object_unlock_read(struct osd_object *object, struct osd_range *range)
{
	osd_lock(&object->mutex);
	osd_range_drop(&object->ranges, range);
	osd_unlock(&object->mutex);
}

/* ---- times ------------------------------------------------------------------------------- */

void osd_object_touch(struct osd_object *object, bool modified, unsigned flags)
{
	uint64_t now;

	if (modified)
		atomic_store(&object->write_tick, atomic_load(&object->objects->tick));
	if (modified && osd_object_hooks(object) & OSD_HOOK_AFTER)
		osd_due_tell(object->objects, object->id, 1);
	if ((flags & OSD_DATA_NO_TIMESTAMPS) ||
	    atomic_load(&object->partition->bypass) == OSD_TIMESTAMPS_BYPASS) {
		if (modified) /* the file's own time moved, and may count after a crash */
			osd_tier_set_modified(&object->file,
					      atomic_load(&object->times[OSD_T_DATA_MODIFIED]));
		return;
	}
	now = osd_wall_msec();
	atomic_store(&object->times[modified ? OSD_T_DATA_MODIFIED : OSD_T_DATA_ACCESSED], now);
	atomic_store(&object->times_dirty, true);
	atomic_store(
		&object->partition->times[modified ? OSD_T_DATA_MODIFIED : OSD_T_DATA_ACCESSED],
		now);
	atomic_store(&object->partition->times_dirty, true);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* If the length rules over the files, one of them may not exist yet. */
static bool may_lack_files(const struct osd_object *object)
{
	return object->length_rules || object->untrimmed;
}

static enum osd_status read_locked(struct osd_object *object, uint64_t offset, void *buffer,
				   size_t length, unsigned flags, size_t *ret_read)
{
	uint64_t end = atomic_load(&object->length);
	size_t wanted = offset >= end ? 0 : (size_t)OSD_MIN(length, end - offset);
	bool nowait = flags & OSD_DATA_NOWAIT;
	enum osd_status status;
	size_t got = 0;

	if (wanted && nowait && !osd_tier_file_is_open(&object->file, offset, offset + wanted))
		return OSD_E_WOULD_BLOCK;
	if (wanted) {
		status = osd_tier_read(&object->file, offset, buffer, wanted,
				       (nowait ? OSD_DATA_READ_NOWAIT : 0) |
					       (may_lack_files(object) ? OSD_TIER_HOLES : 0),
				       &got);
		/* A lost file must not read as zeros: a copy would make them data. */
		if (status == OSD_E_NO_OBJECT)
			status = may_lack_files(object) ? OSD_OK : OSD_E_MEDIUM;
		if (status != OSD_OK)
			return status;
		osd_cache_note_open(object);
	}
	if (got < wanted)
		memset((uint8_t *)buffer + got, 0, wanted - got);
	*ret_read = wanted;
	return OSD_OK;
}

/* With bytes locked. */
static enum osd_status check_version(const struct osd_object *object,
				     struct osd_version_check *check)
{
	if (!check)
		return OSD_OK;
	check->found = osd_version_of(object);
	check->length = atomic_load(&object->length);
	return check->wanted && !osd_same_version(*check->wanted, check->found) ? OSD_E_VERSION
										: OSD_OK;
}

enum osd_status osd_object_read(struct osd_object *object, uint64_t offset, void *buffer,
				size_t length, unsigned flags, size_t *ret_read)
{
	return osd_object_read_with(object, offset, buffer, length, flags, NULL, ret_read);
}

enum osd_status osd_object_read_with(struct osd_object *object, uint64_t offset, void *buffer,
				     size_t length, unsigned flags, struct osd_version_check *check,
				     size_t *ret_read)
{
	struct osd_range range;
	enum osd_status status;
	uint64_t end;

	if (!osd_add_u64(offset, length, &end))
		return OSD_E_CDB_FIELD;
	status = osd_object_lock_read(object, &range, offset, end, flags & OSD_DATA_NOWAIT);
	if (status != OSD_OK)
		return status;
	status = check_version(object, check);
	if (status == OSD_OK)
		status = read_locked(object, offset, buffer, length, flags, ret_read);
	/* To find the damaged blocks is to read them again. */
	if (status == OSD_E_SUM && flags & OSD_DATA_NOWAIT)
		status = OSD_E_WOULD_BLOCK;
	if (status == OSD_E_SUM)
		osd_sums_note_read(object, offset, length);
	osd_object_unlock_read(object, &range);
	if (status == OSD_OK)
		osd_object_touch(object, false, flags);
	return status;
}

/* Each piece has its slot of the buffer, as far as that reaches; what the object has not is zero. */
static enum osd_status read_slots(struct osd_object *object, const struct osd_piece *pieces,
				  size_t count, uint8_t *buffer, size_t capacity,
				  uint64_t *ret_available)
{
	uint64_t length = atomic_load(&object->length), at = 0;
	enum osd_status status = OSD_OK;

	*ret_available = 0;
	for (size_t i = 0; status == OSD_OK && i < count; i++) {
		uint64_t left = pieces[i].offset < length ? length - pieces[i].offset : 0;
		size_t room = at < capacity ? capacity - (size_t)at : 0;
		size_t slot = (size_t)OSD_MIN(pieces[i].length, (uint64_t)room), got = 0;

		if (slot)
			status = read_locked(object, pieces[i].offset, buffer + at, slot, 0, &got);
		if (got < slot)
			memset(buffer + at + got, 0, slot - got);
		*ret_available += OSD_MIN(pieces[i].length, left);
		at += pieces[i].length;
	}
	return status;
}

enum osd_status osd_object_read_pieces(struct osd_object *object, const struct osd_piece *pieces,
				       size_t count, void *buffer, size_t capacity, unsigned flags,
				       struct osd_version_check *check, uint64_t *ret_available)
{
	uint64_t start = UINT64_MAX, end = 0, piece_end;
	struct osd_range range;
	enum osd_status status;

	for (size_t i = 0; i < count; i++) {
		if (!osd_add_u64(pieces[i].offset, pieces[i].length, &piece_end))
			return OSD_E_CDB_FIELD;
		start = OSD_MIN(start, pieces[i].offset);
		end = OSD_MAX(end, piece_end);
	}
	status = osd_object_lock_read(object, &range, OSD_MIN(start, end), end, false);
	if (status != OSD_OK)
		return status;
	status = check_version(object, check);
	if (status == OSD_OK)
		status = read_slots(object, pieces, count, buffer, capacity, ret_available);
	if (status == OSD_E_SUM)
		osd_sums_note_read(object, start, end - start);
	osd_object_unlock_read(object, &range);
	if (status == OSD_OK)
		osd_object_touch(object, false, flags);
	return status;
}

uint64_t osd_object_head_bytes(struct osd_object *object)
{
	uint64_t bytes;

	/* The caller has no bytes locked, so other files may be adopted meanwhile. */
	osd_read_lock(&object->file.replaced);
	bytes = object->file.head_bytes;
	osd_rw_unlock(&object->file.replaced);
	return bytes;
}

enum osd_status osd_object_length(struct osd_object *object, uint64_t *ret_length)
{
	if (atomic_load(&object->removed))
		return OSD_E_NO_OBJECT;
	*ret_length = atomic_load(&object->length);
	return OSD_OK;
}

/* ---- files ------------------------------------------------------------------------------- */

enum osd_status osd_object_miss(struct osd_object *object, uint64_t length, uint64_t from,
				uint64_t to)
{
	enum osd_status status = OSD_OK;

	/* An open file is there, so a change in an open head costs no lookup. */
	if (to <= object->file.head_bytes && osd_tier_file_is_open(&object->file, 0, to))
		return OSD_OK;
	if (length > 0 && from < to && !may_lack_files(object))
		status = osd_tier_miss(&object->file, length, from, to);
	osd_cache_note_open(object);
	return status;
}

enum osd_status osd_object_lost(struct osd_object *object, uint64_t bytes)
{
	return may_lack_files(object) ? OSD_OK : osd_tier_lost(&object->file, bytes);
}

enum osd_status osd_object_fit_files(struct osd_object *object, uint64_t length)
{
	struct osd_data_stat stat;
	enum osd_status status;

	if (!object->has_files)
		return OSD_OK;
	if (atomic_load(&object->shares) == 0)
		return osd_tier_truncate(&object->file, length);
	status = osd_tier_stat(&object->file, false, &stat);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && stat.size < length)
		return osd_tier_truncate(&object->file, length);
	if (status != OSD_OK || stat.size == length)
		return status;
	object->length_rules = true;
	return osd_tier_zero(&object->file, length, stat.size - length);
}

enum osd_status osd_object_remove_spare(struct osd_object *object)
{
	struct osd_data_name name = osd_object_data_name(object, object->spare_generation);
	enum osd_status status = osd_tier_remove(object->file.tier, &name);

	object->spare_left = status != OSD_OK;
	return status;
}

static enum osd_status sync_files(struct osd_object *object)
{
	enum osd_status status = osd_tier_sync(&object->file);

	if (status != OSD_E_NO_OBJECT)
		return status;
	/* Its files are made with the first byte. */
	return atomic_load(&object->length) == 0 || may_lack_files(object) ? OSD_OK : OSD_E_MEDIUM;
}

static void note_unsynced(struct osd_object *object, enum osd_status status)
{
	if (!osd_unsynced_add(&object->objects->unsynced, object->id, status))
		return;
	osd_error("object 0x%" PRIx64 "/0x%" PRIx64
		  ": its data may be lost: %s; each FLUSH of it fails "
		  "until it is removed or the target is started again",
		  object->id.partition_id, object->id.object_id, osd_status_info(status)->meaning);
}

enum osd_status osd_object_finish(struct osd_object *object, unsigned flags)
{
	enum osd_status status = OSD_OK;

	if (!(flags & OSD_DATA_FUA) && !object->objects->sync_data)
		return OSD_OK;
	if (object->has_files)
		status = sync_files(object);
	if (osd_unsynced_by(status))
		note_unsynced(object, status);
	/* A sync that succeeds proves nothing about bytes lost before (unsynced.h). */
	if (status == OSD_OK)
		status = osd_unsynced_status(&object->objects->unsynced, object->id);
	return status == OSD_OK ? osd_kv_flush(object->objects->kv) : status;
}
