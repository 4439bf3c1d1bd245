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

/* A walk over the extents from offset to the length: holes and data alternate. */
struct map_walk {
	uint64_t at, end;
	osd_map_fn *fn;
	void *arg;
	struct osd_extent lost[2]; /* a hole in these is lost data; length 0: none */
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
	bool more = true;
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
	osd_cache_note_open(object);
	return status;
}

/* ---- damage ------------------------------------------------------------------------------ */

/* Finds the lost ranges of an object whose data is known to be damaged: those beyond the ends of its
 * files.  They are in ascending order.  The object is locked. */
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
