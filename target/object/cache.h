/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cache.h -- objects in memory: what the files of this folder know of each, and finding it.
 * Not here: changing an object's bytes (data.h); what is true of memory and records (internal.h). */
#ifndef OSD_OBJECT_CACHE_H
#define OSD_OBJECT_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "object/object.h"
#include "object/range_lock.h"
#include "object/record.h"
#include "store/tier.h"

struct osd_effect;
struct osd_partition;

/* ---- the cache -------------------------------------------------------------------------------- */

struct osd_version_page; /* share.c */

/* Entries in order of last use, oldest first. */
struct osd_lru {
	struct osd_object *first, *last;
};

struct osd_object {
	struct osd_objects *objects;
	struct osd_partition *partition; /* owned reference */
	struct osd_charge_account *account; /* the partition's that it is charged to */
	struct osd_object_id id;
	uint8_t type;
	bool surrogate; /* OSD_REC_SURROGATE; constant */

	/* under cache_lock */
	struct osd_object *hash_next;
	struct osd_object *lru_previous, *lru_next; /* while references == 0 */
	struct osd_lru *lru;			    /* the one it is in */
	unsigned references;
	bool cached; /* false: removed, freed with its last reference */
	bool counted_open;

	struct osd_lock mutex;
	struct osd_range_lock ranges; /* under mutex */
	uint64_t changes;	      /* under mutex: times it was locked to be changed */
	_Atomic bool removed;	      /* set with the whole range locked */
	_Atomic uint64_t length;      /* changed by who holds [min(old, new), end) exclusively */
	/* The next group is changed by who holds the end of the object exclusively. */
	_Atomic uint64_t reserved_bytes, recorded_length; /* as committed */
	_Atomic uint64_t generation, spare_generation;
	_Atomic bool has_files, length_rules;
	_Atomic bool untrimmed; /* the files may have bytes beyond length; cut before it grows */
	_Atomic bool directories_unsynced;
	_Atomic bool unfinished; /* OSD_REC_UNFINISHED, as committed */
	_Atomic uint64_t max_length;
	_Atomic uint32_t tag;	    /* policy access tag; 0: none, or among the attributes */
	_Atomic uint64_t allocated; /* bytes of blocks, when last looked at */
	struct osd_tier_file file;

	_Atomic uint64_t times[OSD_T_COUNT];
	_Atomic bool times_dirty;
	_Atomic uint64_t write_tick; /* maintenance tick of the last change */

	/* share.c, under mutex */
	struct osd_version_page *version_page; /* mapped; NULL: never shared */
	int version_fd;			       /* owned, read-only; -1 */
	_Atomic unsigned shares;
	unsigned writers;
};

/* ---- cache.c ---------------------------------------------------------------------------------- */

void osd_cache_init(struct osd_objects *objects);
void osd_cache_release(struct osd_objects *objects);
/* At the end of a transaction that changed what entries copy of the record of effect's object: entries
 * just being made are made anew.  The one that is there, with a reference, to be brought up to date;
 * NULL: none is, or nothing was committed. */
struct osd_object *osd_cache_changed(struct osd_txn *txn, const struct osd_effect *effect,
				     bool committed);
/* The entry if it is in memory, with a reference. */
struct osd_object *osd_cache_find(struct osd_objects *objects, struct osd_object_id id);
/* The entry, from the record in the store when needed; any type. */
enum osd_status osd_cache_get(struct osd_objects *objects, struct osd_object_id id,
			      struct osd_object **ret_object);
/* After the record with this generation was removed: takes the entry out and marks it removed;
 * false when there was none. */
bool osd_cache_remove(struct osd_objects *objects, struct osd_object_id id, uint64_t generation);
/* The entry if it is there, else one from the record at hand in txn; with a reference, or NULL. */
struct osd_object *osd_cache_adopt(struct osd_txn *txn);
/* Takes out and marks all of a partition. */
void osd_cache_remove_partition(struct osd_objects *objects, const struct osd_partition *partition);
/* Up to capacity entries that wait to be settled, with references; there may be more while *cursor
 * is below OSD_CACHE_BUCKETS. */
size_t osd_cache_unsettled(struct osd_objects *objects, struct osd_object **ret_objects,
			   size_t capacity, size_t *cursor);
/* After the first open(2) of an entry. */
void osd_cache_count_open(struct osd_object *object);
/* Waits for users of the data to finish, then makes the entry say removed. */
void osd_object_mark_removed(struct osd_object *object);

#endif
