/* SPDX-License-Identifier: GPL-2.0-or-later */
/* upkeep.h -- what goes on beside the requests: recovery at open; the threads that settle records,
 * remove files and build indexes; the key lists with which they walk tables.
 * Elsewhere: the mover of heads (heads.h), the scrub (sums.h). */
#ifndef OSD_OBJECT_UPKEEP_H
#define OSD_OBJECT_UPKEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "object/object.h"
#include "object/record.h"
#include "store/store.h"

/* Called when the store is opened, before any thread starts: reads root and partitions, counts objects
 * and bytes, and settles the objects that the last run left open. message: the defect of the store. */
enum osd_status osd_recover(struct osd_objects *objects, char message[256]);
/* Removes the files that records of META name.  Runs in a thread that a kick starts (base/helper.h). */
void osd_reaper_work(void *objects);
/* Settles what is in memory: a timer, each second and when kicked. */
#define OSD_UPKEEP_USEC UINT64_C(1000000)
uint64_t osd_maintain_check(void *objects);
/* The same; everything: when the store is closed, and no other thread runs any more. */
void osd_maintain(struct osd_objects *objects, bool everything);
/* index_build.c: makes and clears value indexes, in a thread that a kick starts. */
void osd_indexer_work(void *objects);
/* upkeep.c: starts a thread, or wakes it up. */
void osd_kick_reaper(struct osd_objects *objects);
void osd_kick_settle(struct osd_objects *objects);
void osd_kick_indexer(struct osd_objects *objects);
/* Waits for a second, for the next kick, or until the store is being closed (then false). */
bool osd_indexer_wait(struct osd_objects *objects);
/* Waits so long, or until the store is being closed. */
void osd_upkeep_pause(struct osd_objects *objects, uint64_t usec);
/* upkeep.c: the store is being closed. */
bool osd_should_stop(struct osd_objects *objects);
/* Commands have priority: waits as long as the rate, in bytes a second, demands after so many bytes, and
 * while commands wait for a worker.  False: must_end. */
bool osd_upkeep_keep_pace(struct osd_objects *objects, uint64_t bytes, uint64_t rate,
			  bool (*must_end)(struct osd_objects *objects));
/* draft.c: puts META's N record, by which recovery removes these files (there true), or removes the
 * record. */
enum osd_status osd_files_note(struct osd_objects *objects, const struct osd_place *place,
			       uint64_t generation, bool there);
/* Called when the store is opened: removes the files of drafts that were never put. */
enum osd_status osd_remove_drafts(struct osd_objects *objects);
/* Removes all records of the table whose key begins so, in transactions of their own. */
enum osd_status osd_clear_prefix(struct osd_objects *objects, enum osd_kv_table table,
				 struct osd_bytes prefix);

#endif
