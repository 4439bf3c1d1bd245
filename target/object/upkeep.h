/* SPDX-License-Identifier: GPL-2.0-or-later */
/* upkeep.h -- what goes on beside the requests: recovery at open, and the threads that settle records,
 * remove files, build indexes; and the key lists with which they walk tables.
 * Not here: the mover of heads (heads.h). */
#ifndef OSD_OBJECT_UPKEEP_H
#define OSD_OBJECT_UPKEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"
#include "object/record.h"
#include "store/store.h"

/* At open, before any thread: reads root and partitions, counts what is only counted in memory, and
 * settles with the files what the last run left open.  message: what is wrong with the store. */
enum osd_status osd_recover(struct osd_objects *objects, char message[256]);
/* Removes files that records of META name, in a thread that a kick starts (base/helper.h). */
void osd_reaper_work(void *objects);
/* A thread: settles what is in memory, every second and when kicked, until osd_should_stop. */
void *osd_maintenance_main(void *objects);
/* index_build.c: makes and clears value indexes, in a thread that a kick starts. */
void osd_indexer_work(void *objects);
/* upkeep.c: starts a thread or wakes it up; its wait lasts until then, until the store is being closed (then
 * false), or a second. */
void osd_kick_reaper(struct osd_objects *objects);
void osd_kick_settle(struct osd_objects *objects);
void osd_kick_indexer(struct osd_objects *objects);
bool osd_settle_wait(struct osd_objects *objects);
bool osd_indexer_wait(struct osd_objects *objects);
/* upkeep.c: the store is being closed. */
bool osd_should_stop(struct osd_objects *objects);
/* Puts META's N record: recovery removes these files; or takes it away.  draft.c */
enum osd_status osd_files_note(struct osd_objects *objects, const struct osd_place *place,
			       uint64_t generation, bool there);
/* At open: removes the files of drafts that came to nothing. */
enum osd_status osd_remove_drafts(struct osd_objects *objects);
/* Removes all records of the table whose key begins so, in transactions of their own. */
enum osd_status osd_clear_prefix(struct osd_objects *objects, enum osd_kv_table table,
				 struct osd_bytes prefix);
/* Keys copied out of a scan, because a scan must not call the store. */
struct osd_key_list {
	uint8_t *bytes; /* owned: for each key 2 bytes of length in the machine's order, key */
	size_t used, capacity, count;
};
/* Up to limit keys that begin so; inside txn or NULL.  The list needs osd_key_list_release. */
enum osd_status osd_key_list_collect(struct osd_objects *objects, struct osd_kv_txn *kv,
				     enum osd_kv_table table, struct osd_bytes prefix, size_t limit,
				     struct osd_key_list *list);
/* Walks the list: *at 0 at first; false at its end. */
bool osd_key_list_next(const struct osd_key_list *list, size_t *at, struct osd_bytes *ret_key);
void osd_key_list_release(struct osd_key_list *list);

#endif
