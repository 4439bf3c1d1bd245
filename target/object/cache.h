/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cache.h -- objects in memory: the struct of an object, and the table of all.  Not here: changes of an
 * object's bytes (data.h); the relation of memory and records (internal.h). */
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
	struct osd_charge_account *account; /* the account of the partition that it is charged to */
	struct osd_object_id id;
	uint8_t type;
	bool surrogate; /* OSD_REC_SURROGATE; constant */

	/* under cache_lock */
	struct osd_object *hash_next;
	struct osd_object *partition_previous, *partition_next; /* in partition->entries */
	struct osd_object *lru_previous, *lru_next; /* while references == 0 */
	struct osd_lru *lru;			    /* the one it is in */
	unsigned references;
	bool cached; /* false: removed, freed with its last reference */
	_Atomic bool counted_open; /* changed under cache_lock */
	bool superseded; /* a later object has its id: only its own removal finds it */

	struct osd_lock mutex;
	struct osd_range_lock ranges; /* under mutex */
	uint64_t changes;	      /* under mutex: times it was locked to be changed */
	_Atomic bool removed;	      /* set with the whole range locked */
	_Atomic uint64_t length;      /* changed with [min(old, new), end) locked for writing */
	/* The next group is changed with the end of the object locked for writing. */
	_Atomic uint64_t reserved_bytes, recorded_length; /* as committed */
	_Atomic uint64_t generation, spare_generation;
	_Atomic bool has_files, length_rules;
	/* Its reservation was open when the store was opened, and its files could not be read: so its length is
	 * not known, and its data cannot be used before the next opening.  Constant after recovery. */
	bool unmeasured;
	/* enum osd_status: why the files do not fit the length.  They may have bytes beyond it, which are
	 * cut before it grows.  OSD_OK: they fit. */
	_Atomic unsigned char untrimmed;
	_Atomic bool spare_left; /* files of spare_generation could not be removed */
	_Atomic bool unfinished; /* OSD_REC_UNFINISHED, as committed */
	_Atomic bool stacked;	 /* OSD_REC_STACKED (stack.h) */
	_Atomic uint64_t hooks;	 /* hook_mask.c */
	_Atomic bool due;	 /* due.h */
	_Atomic uint64_t max_length;
	_Atomic uint32_t tag;	    /* policy access tag; 0: none, or among the attributes */
	_Atomic uint64_t allocated; /* bytes of blocks, when last read */
	struct osd_tier_file file;

	_Atomic uint64_t times[OSD_T_COUNT];
	_Atomic bool times_dirty;
	_Atomic uint64_t write_tick; /* maintenance tick of the last change */

	struct osd_data_version first_version; /* as the entry was made; constant */
	_Atomic uint64_t version;	       /* counter; changed with the changed bytes locked */
	_Atomic unsigned resizing; /* transactions whose new length the entry does not have yet */
	_Atomic bool
		version_stale; /* the record has OSD_VERSION_STALE, and may not be removed from memory */

	/* share.c, under mutex */
	struct osd_version_page *version_page; /* mapped; NULL: never shared */
	int version_fd;			       /* owned, read-only; -1 */
	_Atomic unsigned shares;
	unsigned writers;
};

/* ---- entry.c ---------------------------------------------------------------------------------- */

/* Makes an entry from its record, with one reference, and takes over the caller's reference to partition.
 * NULL: out of memory. */
struct osd_object *osd_entry_new(struct osd_objects *objects, struct osd_partition *partition,
				 struct osd_object_id id, const struct osd_record *record);
/* Takes over the fields of the record that change with it, and that no lock of the object guards. */
void osd_entry_copy(struct osd_object *object, const struct osd_record *record);
/* A file handle of the object of this record, with nothing open. */
void osd_record_file_init(struct osd_tier_file *file, struct osd_tier *tier,
			  const struct osd_place *place, const struct osd_record *record);
struct osd_place osd_object_place(const struct osd_object *object);
/* osd_entry_new from the record in the store, read without a lock. */
enum osd_status osd_entry_load(struct osd_objects *objects, struct osd_object_id id,
			       struct osd_object **ret_object);
/* After a crash, takes the modification time from the object's files if it is later. */
void osd_entry_adopt_times(struct osd_object *object);
/* Frees an entry that has no references and is not in the table. */
void osd_entry_free(struct osd_object *object);
/* Waits until no thread uses the object's data, then marks the entry removed. */
void osd_object_mark_removed(struct osd_object *object);

/* ---- cache.c ---------------------------------------------------------------------------------- */

void osd_cache_init(struct osd_objects *objects);
void osd_cache_release(struct osd_objects *objects);
/* Called at the end of a transaction that has changed fields of a record that the entry copies.  An
 * entry that is just being made is made again.  Returns the existing entry with a reference, to be
 * updated; NULL: there is none, or nothing was committed. */
struct osd_object *osd_cache_changed(struct osd_txn *txn, const struct osd_effect *effect,
				     bool committed);
/* An effect of such a transaction that is enough for max_length, tag and hooks: the entry gets those of the record.  Two
 * transactions may come here in the other order than they were committed in. */
void osd_cache_record_changed(struct osd_txn *txn, struct osd_effect *effect, bool committed);
/* The entry if it is in memory, with a reference. */
struct osd_object *osd_cache_find(struct osd_objects *objects, struct osd_object_id id);
/* The entry of an object of any type, with a reference.  It is read from the store if necessary. */
enum osd_status osd_cache_get(struct osd_objects *objects, struct osd_object_id id,
			      struct osd_object **ret_object);
/* Called after the record with this generation was removed: takes the entry out and marks it removed.
 * False: there was none. */
bool osd_cache_remove(struct osd_objects *objects, struct osd_object_id id, uint64_t generation);
/* Called in the transaction that has put the record of a new object with an id that an earlier one may have had.  The
 * removal of that one is committed, and takes its entry out in a moment; until then nobody else finds it. */
void osd_cache_supersede(struct osd_objects *objects, struct osd_object_id id);
/* The entry, with a reference.  If there is none, it is made from the record at hand in txn.  If txn has changed that
 * record and is aborted, the entry gets the committed one.  NULL: out of memory. */
struct osd_object *osd_cache_adopt(struct osd_txn *txn);
/* Takes out all entries of a partition and marks them removed. */
void osd_cache_remove_partition(struct osd_objects *objects, const struct osd_partition *partition);
/* Up to capacity entries that wait to be settled, with references.  Call it again while *cursor is below
 * OSD_CACHE_BUCKETS. */
size_t osd_cache_unsettled(struct osd_objects *objects, struct osd_object **ret_objects,
			   size_t capacity, size_t *cursor);
/* Counts an entry with open files. */
void osd_cache_count_open(struct osd_object *object);
/* The same after a call that may have opened them. */
static inline void osd_cache_note_open(struct osd_object *object)
{
	if (!atomic_load_explicit(&object->counted_open, memory_order_relaxed))
		osd_cache_count_open(object);
}

#endif
