/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unsynced.h -- objects whose data a device did not take.
 *
 * The kernel reports a failed write to one fsync alone, and then takes the data for written.  Among them can be those
 * of another client, whose FLUSH would find no fault.  So every later FLUSH and FUA of the object fails, until all its
 * bytes are replaced, it is removed, or the target is started again.
 *
 * Locking: none; any thread. */
#ifndef OBJECT_UNSYNCED_H
#define OBJECT_UNSYNCED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "object/object.h"

#define OSD_UNSYNCED_MOST 64u

struct osd_unsynced {
	_Atomic bool any;  /* since the unit was opened */
	_Atomic bool many; /* there was no room for one: all objects count */
	_Atomic bool all;  /* a sync of all files failed: nobody knows whose data */
	struct {
		_Atomic uint64_t partition_id, object_id; /* 0: free */
		_Atomic enum osd_status status;
	} objects[OSD_UNSYNCED_MOST];
};

/* Whether a sync that failed so may have lost data.  Some file systems find out only then that they are full. */
static inline bool osd_unsynced_by(enum osd_status status)
{
	return osd_status_is_medium(status) || status == OSD_E_NO_SPACE;
}

/* A sync of the object failed so.  False: it is not the first. */
bool osd_unsynced_add(struct osd_unsynced *unsynced, struct osd_object_id id,
		      enum osd_status status);
/* How the last one failed; OSD_OK: none did. */
enum osd_status osd_unsynced_status(const struct osd_unsynced *unsynced, struct osd_object_id id);
/* A sync of all files failed.  False: it is not the first. */
bool osd_unsynced_add_all(struct osd_unsynced *unsynced);
/* Whether there are any in the partition, or with 0 anywhere: then its FLUSH fails. */
bool osd_unsynced_any(const struct osd_unsynced *unsynced, uint64_t partition_id);
/* The object was removed or has other files, or with object_id 0 the partition was removed. */
void osd_unsynced_forget(struct osd_unsynced *unsynced, struct osd_object_id id);

#endif
