/* SPDX-License-Identifier: GPL-2.0-or-later */
/* data.h -- the bytes of an object in memory: locking ranges of them, changing them together with
 * the record, settling the record, sharing the files with a sandbox.
 * Not here: the entry itself (cache.h), which device has its first bytes (heads.h). */
#ifndef OSD_OBJECT_DATA_H
#define OSD_OBJECT_DATA_H

#include "object/cache.h"
#include "object/record.h"
#include "store/store.h"

struct osd_key;

/* Exclusive lock on what a change of [offset, end) touches, up to the end of the object when it
 * grows or is cut; the object's version is odd until osd_object_unlock.  OSD_E_NO_OBJECT: it was
 * removed. */
enum osd_status osd_object_lock(struct osd_object *object, struct osd_range *range, uint64_t offset,
				uint64_t end, bool to_end);
void osd_object_unlock(struct osd_object *object, struct osd_range *range);
/* Shared lock on [offset, end).  OSD_E_WOULD_BLOCK: only with nowait. */
enum osd_status osd_object_lock_read(struct osd_object *object, struct osd_range *range,
				     uint64_t offset, uint64_t end, bool nowait);
void osd_object_unlock_read(struct osd_object *object, struct osd_range *range);
/* With [from, to) locked: osd_tier_miss of an object that has length bytes. */
enum osd_status osd_object_miss(struct osd_object *object, uint64_t length, uint64_t from,
				uint64_t to);
/* With the end locked: charges and reserves so that bytes up to new_length may be written. */
enum osd_status osd_object_extend(struct osd_object *object, uint64_t new_length, unsigned flags);
/* Changes the object's record in a transaction of its own, which also removes a record of META if
 * one is named. */
enum osd_status osd_object_change_record(struct osd_object *object, bool durable,
					 void (*change)(struct osd_record *record, void *arg),
					 void *arg, const struct osd_key *done);
/* The same in a transaction of the caller's. */
enum osd_status osd_object_change_record_in(struct osd_kv_txn *kv, struct osd_object *object,
					    void (*change)(struct osd_record *record, void *arg),
					    void *arg);
/* With the end locked: the object now has this length. */
void osd_object_set_length(struct osd_object *object, uint64_t length);
/* The data were read, or modified: access or modification time, of the partition too, unless flags or
 * the partition bypass them.  In memory; the record follows when it is settled. */
void osd_object_touch(struct osd_object *object, bool modified, unsigned flags);
/* After a change: durable when flags or configuration ask for it. */
enum osd_status osd_object_finish(struct osd_object *object, unsigned flags);
/* With the whole object locked: files are made to have length bytes (fewer only while unshared). */
enum osd_status osd_object_fit_files(struct osd_object *object, uint64_t length);
/* The committed record already has length (with OSD_REC_LENGTH_RULES) and where the head goes: do the rest,
 * of which none may fail.  locked: the caller has all of the object locked.  A longer object is charged
 * for. */
struct osd_committed_length {
	uint64_t length, head_bytes;
	uint8_t head_on;
};
void osd_object_truncate_after_commit(struct osd_object *object,
				      const struct osd_committed_length *to, bool locked,
				      unsigned flags);
/* Cutting the end off, with the end locked: what the record says, and what follows its commit. */
void osd_shrink_record(struct osd_record *record, uint64_t length);
void osd_shrink_done(struct osd_object *object, uint64_t old_length, uint64_t length);
/* Taking a range out of the middle, with the whole object locked: new files, the record, then done
 * or undo. */
struct osd_punch {
	uint64_t generation, length;
	bool is_open;
	struct osd_tier_file fresh; /* while is_open */
};
/* Makes the files without [offset, offset + length).  OSD_OK: done or undo must follow.  steps may be
 * NULL. */
enum osd_status osd_punch_prepare(struct osd_object *object, uint64_t offset, uint64_t length,
				  const struct osd_change_steps *steps, struct osd_punch *punch);
void osd_punch_record(const struct osd_object *object, const struct osd_punch *punch,
		      struct osd_record *record);
void osd_punch_done(struct osd_object *object, struct osd_punch *punch, uint64_t old_length);
void osd_punch_undo(struct osd_object *object, struct osd_punch *punch); /* after done: nothing */
/* Brings the record up to what is in memory; with close, ends the open reservation. */
enum osd_status osd_object_settle(struct osd_object *object, bool close, bool durable);
bool osd_object_is_settled(struct osd_object *object);
/* The same, whatever its times are. */
bool osd_object_is_settled_but_times(struct osd_object *object);
/* Times of a partition, or the root, as they are in memory, into its record. */
enum osd_status osd_partition_settle(struct osd_objects *objects, struct osd_partition *partition);
enum osd_status osd_root_settle(struct osd_objects *objects);
/* Everything, at close; else times, and what was not written to since the last tick. */
void osd_settle_all(struct osd_objects *objects, bool everything);
/* Copies data and leaves holes, in pieces; to need not be as long afterwards.  how may be NULL. */
struct osd_copy_how {
	unsigned flags;		 /* enum osd_data_copy_flags */
	bool (*stop)(void *arg); /* asked between pieces: then OSD_E_TASK_ABORTED; may be NULL */
	void *arg;
	const struct osd_change_steps *steps; /* as stop, with smaller pieces; may be NULL */
};
enum osd_status osd_copy_extents(struct osd_tier_file *from, uint64_t from_offset, uint64_t length,
				 struct osd_tier_file *to, uint64_t to_offset,
				 const struct osd_copy_how *how);
/* Bytes of blocks the object at hand has: less than its length where it has holes, which quotas
 * count (docs/format.md).  Last known where somebody changes it just now. */
enum osd_status osd_txn_allocated(struct osd_txn *txn, uint64_t *ret_bytes);
void osd_version_begin(struct osd_object *object); /* under mutex */
void osd_version_end(struct osd_object *object);   /* under mutex */
void osd_version_length(struct osd_object *object, uint64_t length);
void osd_version_generation(struct osd_object *object); /* with the whole object locked */
void osd_version_removed(struct osd_object *object);	/* under mutex */
void osd_version_release(struct osd_object *object);
struct osd_data_name osd_object_data_name(const struct osd_object *object, uint64_t generation);

#endif
