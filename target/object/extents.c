/* SPDX-License-Identifier: GPL-2.0-or-later */
/* extents.c -- where an object has bytes and where holes: READ MAP, the space it really takes, and
 * what of its data is lost.
 *
 * An extent is what the data files say, whole blocks of the file system cut at the object's end; it
 * runs across the border of head and tail.  Bytes between the end of the files and the object's
 * length are a hole like any other. */
#include "object/internal.h"

#include "base/util.h"
#include "object/txn_run.h"

/* One after the other, from offset to the length; holes and data in turn. */
struct map_walk {
	uint64_t at, end;
	osd_map_fn *fn;
	void *arg;
	struct osd_extent lost[2]; /* in them a hole is no hole; length 0: there is none */
};

/* False: enough. */
static bool tell(struct map_walk *walk, enum osd_map_type type, uint64_t end)
{
	struct osd_extent extent = {type, walk->at, end - walk->at};

	if (end == walk->at)
		return true;
	walk->at = end;
	return walk->fn(walk->arg, &extent);
}

static bool tell_hole(struct map_walk *walk, uint64_t end)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(walk->lost); i++) {
		uint64_t from = walk->lost[i].offset, to = from + walk->lost[i].length;

		if (walk->at >= to || from >= end)
			continue;
		if (!tell(walk, OSD_MAP_HOLE, OSD_MAX(from, walk->at)) ||
		    !tell(walk, OSD_MAP_DAMAGED_DATA, OSD_MIN(to, end)))
			return false;
	}
	return tell(walk, OSD_MAP_HOLE, end);
}

static enum osd_status walk_locked(struct osd_object *object, struct map_walk *walk)
{
	bool was_open = osd_tier_file_is_open(&object->file), more = true;
	enum osd_status status = OSD_OK;

	while (more && walk->at < walk->end) {
		uint64_t start = walk->end, end = walk->end;

		if (object->has_files)
			status = osd_tier_next_extent(&object->file, walk->at, &start, &end);
		else
			status = OSD_E_BEYOND_END;
		if (status == OSD_E_BEYOND_END) {
			start = end = walk->end;
			status = OSD_OK;
		}
		if (status != OSD_OK)
			break;
		start = OSD_MIN(start, walk->end);
		more = tell_hole(walk, start) && tell(walk, OSD_MAP_DATA, OSD_MIN(end, walk->end));
	}
	if (!was_open && osd_tier_file_is_open(&object->file))
		osd_cache_count_open(object);
	return status;
}

/* ---- damage ------------------------------------------------------------------------------ */

/* Of an object whose data is known to be damaged: what lies behind the ends of its files, and was
 * there once.  Ranges in ascending order; with the object locked. */
static enum osd_status find_lost(struct osd_object *object, struct map_walk *walk)
{
	uint64_t border = OSD_MIN(object->file.head_bytes, walk->end), head, tail;
	enum osd_status status = osd_tier_part_sizes(&object->file, &head, &tail);

	if (status != OSD_OK)
		return status;
	walk->lost[0] = (struct osd_extent){OSD_MAP_DAMAGED_DATA, OSD_MIN(head, border), 0};
	walk->lost[0].length = border - walk->lost[0].offset;
	walk->lost[1] = (struct osd_extent){OSD_MAP_DAMAGED_DATA,
					    border + OSD_MIN(tail, walk->end - border), 0};
	walk->lost[1].length = walk->end - walk->lost[1].offset;
	return OSD_OK;
}

struct damage {
	struct osd_object_id id;
	uint8_t summary;
};

static enum osd_status read_damage(struct osd_txn *txn, void *arg)
{
	struct damage *damage = arg;
	size_t length;

	damage->summary = 0;
	return osd_attr_get(txn, damage->id, OSD_REL_RECOVERY, OSD_DAMAGE_SUMMARY, &damage->summary,
			    sizeof(damage->summary), &length);
}

/* ---- what others see --------------------------------------------------------------------- */

enum osd_status osd_object_map(struct osd_object *object, uint64_t offset, osd_map_fn *fn,
			       void *arg)
{
	struct osd_extent attributes = {OSD_MAP_DAMAGED_ATTRIBUTES, 0, 0};
	struct map_walk walk = {.at = offset, .fn = fn, .arg = arg};
	struct osd_range range;
	struct damage damage = {.id = object->id};
	enum osd_status status = osd_txn_run(object->objects, OSD_TXN_READ_ONLY | OSD_TXN_INTERNAL,
					     read_damage, &damage);

	if (status == OSD_OK)
		status = osd_object_lock_read(object, &range, offset, UINT64_MAX, false);
	if (status != OSD_OK)
		return status;
	walk.end = atomic_load(&object->length);
	if (offset > walk.end)
		status = OSD_E_BEYOND_END;
	else if (damage.summary & OSD_DAMAGED_DATA)
		status = find_lost(object, &walk);
	if (status == OSD_OK &&
	    (!(damage.summary & OSD_DAMAGED_ATTRIBUTES) || fn(arg, &attributes)))
		status = walk_locked(object, &walk);
	osd_object_unlock_read(object, &range);
	return status;
}

/* ---- space ------------------------------------------------------------------------------- */

/* The files may be replaced or cut by who has the object locked: then the last figure must do. */
static enum osd_status entry_allocated(struct osd_object *object, bool nowait, bool locked,
				       uint64_t *ret_bytes)
{
	bool was_open = osd_tier_file_is_open(&object->file);
	struct osd_data_stat stat = {0};
	struct osd_range range;
	enum osd_status status;

	if (nowait && !was_open)
		return OSD_E_WOULD_BLOCK;
	if (!locked && osd_object_lock_read(object, &range, 0, UINT64_MAX, true) != OSD_OK) {
		*ret_bytes = atomic_load(&object->allocated);
		return OSD_OK;
	}
	status = osd_tier_stat(&object->file, &stat);
	if (!locked)
		osd_object_unlock_read(object, &range);
	if (status == OSD_OK && !was_open)
		osd_cache_count_open(object);
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	atomic_store(&object->allocated, stat.allocated);
	*ret_bytes = stat.allocated;
	return OSD_OK;
}

/* Of an object that is not in memory, or is not there for others yet. */
static enum osd_status record_allocated(struct osd_txn *txn, uint64_t *ret_bytes)
{
	struct osd_data_stat stat = {0};
	struct osd_tier_file file;
	enum osd_status status;

	osd_tier_file_init(&file, &txn->objects->tier);
	file.name = (struct osd_data_name){.partition_id = txn->place.partition_id,
					   .incarnation = txn->place.incarnation,
					   .object_id = txn->place.object_id,
					   .generation = txn->record.generation};
	file.head_bytes = txn->record.head_bytes;
	file.head_on = txn->record.head_on;
	status = osd_tier_stat(&file, &stat);
	osd_tier_file_release(&file);
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	*ret_bytes = stat.allocated;
	return OSD_OK;
}

enum osd_status osd_txn_allocated(struct osd_txn *txn, uint64_t *ret_bytes)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	bool nowait = txn->flags & OSD_TXN_NOWAIT;

	*ret_bytes = 0;
	if (!(txn->record.flags & OSD_REC_HAS_FILES))
		return OSD_OK;
	object = osd_cache_find(txn->objects, txn->id);
	if (object)
		return entry_allocated(object, nowait, object == txn->changing, ret_bytes);
	return nowait ? OSD_E_WOULD_BLOCK : record_allocated(txn, ret_bytes);
}
