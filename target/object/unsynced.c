/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unsynced.c -- see unsynced.h. */
#include "object/unsynced.h"

#include <stddef.h>

static bool is(const struct osd_unsynced *unsynced, size_t i, struct osd_object_id id)
{
	return atomic_load(&unsynced->objects[i].object_id) == id.object_id &&
	       atomic_load(&unsynced->objects[i].partition_id) == id.partition_id;
}

bool osd_unsynced_add(struct osd_unsynced *unsynced, struct osd_object_id id,
		      enum osd_status status)
{
	atomic_store(&unsynced->any, true);
	for (size_t i = 0; i < OSD_UNSYNCED_MOST; i++) {
		bool known = is(unsynced, i, id);
		uint64_t none = 0;

		if (!known && !atomic_compare_exchange_strong(&unsynced->objects[i].object_id,
							      &none, id.object_id))
			continue;
		atomic_store(&unsynced->objects[i].status, status);
		atomic_store(&unsynced->objects[i].partition_id, id.partition_id);
		return !known;
	}
	return !atomic_exchange(&unsynced->many, true);
}

enum osd_status osd_unsynced_status(const struct osd_unsynced *unsynced, struct osd_object_id id)
{
	if (!atomic_load(&unsynced->any))
		return OSD_OK;
	for (size_t i = 0; i < OSD_UNSYNCED_MOST; i++)
		if (is(unsynced, i, id))
			return atomic_load(&unsynced->objects[i].status);
	return atomic_load(&unsynced->many) ? OSD_E_MEDIUM : OSD_OK;
}

bool osd_unsynced_add_all(struct osd_unsynced *unsynced)
{
	atomic_store(&unsynced->any, true);
	return !atomic_exchange(&unsynced->all, true);
}

bool osd_unsynced_any(const struct osd_unsynced *unsynced, uint64_t partition_id)
{
	if (!atomic_load(&unsynced->any))
		return false;
	for (size_t i = 0; i < OSD_UNSYNCED_MOST; i++) {
		uint64_t found = atomic_load(&unsynced->objects[i].partition_id);

		if (found && (!partition_id || found == partition_id))
			return true;
	}
	return atomic_load(&unsynced->many) || atomic_load(&unsynced->all);
}

void osd_unsynced_forget(struct osd_unsynced *unsynced, struct osd_object_id id)
{
	if (!atomic_load(&unsynced->any))
		return;
	for (size_t i = 0; i < OSD_UNSYNCED_MOST; i++)
		if (atomic_load(&unsynced->objects[i].partition_id) == id.partition_id &&
		    (!id.object_id ||
		     atomic_load(&unsynced->objects[i].object_id) == id.object_id)) {
			atomic_store(&unsynced->objects[i].partition_id, 0);
			atomic_store(&unsynced->objects[i].object_id, 0);
		}
}
