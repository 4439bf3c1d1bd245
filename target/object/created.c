/* SPDX-License-Identifier: GPL-2.0-or-later */
/* created.c -- created times tell objects with one id apart.  Capabilities and the sources of views name an
 * object by its id and its created time, so an object is always created later than every removed one that
 * had its id: in the next millisecond, if the clock still shows the same.
 *
 * A table keeps, for many ids in each place, the earliest time that is late enough for all of them.  It is
 * in memory: after a restart the clock has gone on. */
#include "object/internal.h"

#include "base/util.h"

static _Atomic uint64_t *place_of(struct osd_objects *objects, struct osd_object_id id)
{
	uint64_t hash = (id.partition_id * 31 + id.object_id) * UINT64_C(0x9e3779b97f4a7c15);

	return &objects->created_next[hash >> 32 & (OSD_CREATED_PLACES - 1)];
}

uint64_t osd_created_time(struct osd_objects *objects, struct osd_object_id id, uint64_t now_ms)
{
	return OSD_MAX(now_ms, atomic_load(place_of(objects, id)));
}

void osd_created_gone(struct osd_objects *objects, struct osd_object_id id, uint64_t created_ms)
{
	osd_raise_to(place_of(objects, id), created_ms + 1);
}

void osd_created_all_gone(struct osd_objects *objects, uint64_t now_ms)
{
	for (size_t i = 0; i < OSD_CREATED_PLACES; i++) {
		_Atomic uint64_t *place = &objects->created_next[i];

		osd_raise_to(place, OSD_MAX(now_ms, atomic_load(place)) + 1);
	}
}
