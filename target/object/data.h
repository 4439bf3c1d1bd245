/* SPDX-License-Identifier: GPL-2.0-or-later */
/* data.h -- the bytes of an object: range locks, changes of bytes together with the record, writing the
 * record from memory, sharing the files with a sandbox.  Not here: the entry itself (cache.h), which
 * device has its first bytes (heads.h). */
#ifndef OSD_OBJECT_DATA_H
#define OSD_OBJECT_DATA_H

#include "object/cache.h"
#include "object/record.h"
#include "store/store.h"

struct osd_key;

/* Locks the bytes that a change of [offset, end) touches for writing.  The lock extends to the end of
 * the object when it grows or is cut.  The object's version is odd until osd_object_unlock.
 * OSD_E_NO_OBJECT: the object was removed. */
enum osd_status osd_object_lock(struct osd_object *object, struct osd_range *range, uint64_t offset,
				uint64_t end, bool to_end);
void osd_object_unlock(struct osd_object *object, struct osd_range *range);
/* Locks [offset, end) for reading.  OSD_E_WOULD_BLOCK: only with nowait. */
enum osd_status osd_object_lock_read(struct osd_object *object, struct osd_range *range,
				     uint64_t offset, uint64_t end, bool nowait);
/* Locks the whole object for writing, removed or not.  Its bytes stay as they are, and so does its version. */
void osd_object_lock_still(struct osd_object *object, struct osd_range *range);
/* The same without a wait.  False: somebody uses the object. */
bool osd_object_try_lock_still(struct osd_object *object, struct osd_range *range);
/* After any of these three. */
void osd_object_unlock_read(struct osd_object *object, struct osd_range *range);
/* With [from, to) locked: osd_tier_miss of an object that has length bytes. */
enum osd_status osd_object_miss(struct osd_object *object, uint64_t length, uint64_t from,
				uint64_t to);
/* Charges and reserves space, so that bytes up to new_length may be written.  The end must be locked. */
enum osd_status osd_object_extend(struct osd_object *object, uint64_t new_length, unsigned flags);
/* Changes the object's record in a transaction of its own.  The same transaction removes the record of
 * META that done names; NULL: none. */
enum osd_status osd_object_change_record(struct osd_object *object, bool durable,
					 void (*change)(struct osd_record *record, void *arg),
					 void *arg, const struct osd_key *done);
/* The same in a transaction of the caller's. */
enum osd_status osd_object_change_record_in(struct osd_kv_txn *kv, struct osd_object *object,
					    void (*change)(struct osd_record *record, void *arg),
					    void *arg);
/* Commits that the version in the record is stale, if it does not say so yet.  It must before bytes change
 * in place, with these bytes locked. */
enum osd_status osd_object_make_stale(struct osd_object *object);
/* Sets the length in memory.  The end must be locked. */
void osd_object_set_length(struct osd_object *object, uint64_t length);
/* Sets the access time or the modification time of the object and its partition, unless flags or the
 * partition bypass them.  Only memory changes; the record follows when it is settled. */
void osd_object_touch(struct osd_object *object, bool modified, unsigned flags);
/* Makes a change durable if flags or the configuration require it. */
enum osd_status osd_object_finish(struct osd_object *object, unsigned flags);
/* Makes the files length bytes long, with the whole object locked.  While sandboxes share the files they
 * are emptied from there on, not cut, and the length rules until they are. */
enum osd_status osd_object_fit_files(struct osd_object *object, uint64_t length);
/* OSD_OK: the files of the object's first bytes are there, as far as it is known that they must be.  With the object
 * locked. */
enum osd_status osd_object_lost(struct osd_object *object, uint64_t bytes);
/* Removes the files of spare_generation, with the whole object locked. */
enum osd_status osd_object_remove_spare(struct osd_object *object);
/* Follows a commit after which the record has the length (with OSD_REC_LENGTH_RULES) and the place of
 * the head: changes files and memory, and cannot fail.  Charges for a longer object. locked: the caller
 * has the whole object locked. */
struct osd_committed_length {
	uint64_t length, head_bytes;
	uint8_t head_on;
	struct osd_data_version version;
};
void osd_object_truncate_after_commit(struct osd_object *object,
				      const struct osd_committed_length *to, bool locked,
				      unsigned flags);
/* Cut the object's end off, with the end locked: the first changes the record, the second follows its
 * commit. */
void osd_shrink_record(struct osd_record *record, uint64_t length);
void osd_shrink_done(struct osd_object *object, uint64_t old_length, uint64_t length);
/* Takes back osd_object_extend to longer bytes, of which some may be in the files, with the end locked. */
void osd_growth_undo(struct osd_object *object, uint64_t longer, uint64_t length);
/* Take a range out of the middle, with the whole object locked: prepare makes new files, then the
 * record changes, then done or undo follows. */
struct osd_punch {
	uint64_t generation, length;
	bool is_open;
	struct osd_tier_file fresh; /* while is_open */
};
/* Makes the files without [offset, offset + length).  OSD_OK: done or undo must follow.  steps may be
 * NULL. */
enum osd_status osd_punch_prepare(struct osd_object *object, uint64_t offset, uint64_t length,
				  const struct osd_change_steps *steps, struct osd_punch *punch);
/* The same with these bytes in place of all. */
enum osd_status osd_replace_prepare(struct osd_object *object, const void *data, uint64_t length,
				    struct osd_punch *punch);
void osd_punch_record(const struct osd_object *object, const struct osd_punch *punch,
		      struct osd_record *record);
void osd_punch_done(struct osd_object *object, struct osd_punch *punch, uint64_t old_length);
void osd_punch_undo(struct osd_object *object, struct osd_punch *punch); /* after done: nothing */
/* Writes length and times in memory to the record. close: also ends the open reservation. */
enum osd_status osd_object_settle(struct osd_object *object, bool close, bool durable);
bool osd_object_is_settled(struct osd_object *object);
/* The same, except for the times. */
bool osd_object_is_settled_but_times(struct osd_object *object);
/* Write the times in memory of a partition, or of the root, to its record.  If that fails, they wait for the next call. */
void osd_partition_settle(struct osd_objects *objects, struct osd_partition *partition);
void osd_root_settle(struct osd_objects *objects);
/* Settles all objects. everything false: only times, and objects without a write since the last tick that
 * nobody uses now; waits for no READ and no change. */
void osd_settle_all(struct osd_objects *objects, bool everything);
/* Copies data in pieces and leaves holes.  The file `to` may be shorter afterwards than the range, if
 * the range ends in a hole. how may be NULL. */
struct osd_copy_how {
	unsigned flags;		 /* enum osd_data_copy_flags */
	bool (*stop)(void *arg); /* called between pieces; true: OSD_E_TASK_ABORTED; may be NULL */
	void *arg;
	const struct osd_change_steps *steps; /* as stop, with smaller pieces; may be NULL */
};
enum osd_status osd_copy_extents(struct osd_tier_file *from, uint64_t from_offset, uint64_t length,
				 struct osd_tier_file *to, uint64_t to_offset,
				 const struct osd_copy_how *how);
/* Bytes of blocks that the object at hand occupies, which is less than its length if it has holes
 * (docs/format.md).  The last known value while another thread changes the object. */
enum osd_status osd_txn_allocated(struct osd_txn *txn, uint64_t *ret_bytes);
void osd_version_begin(struct osd_object *object); /* under mutex */
void osd_version_end(struct osd_object *object);   /* under mutex */
void osd_version_length(struct osd_object *object, uint64_t length);
void osd_version_generation(struct osd_object *object); /* with the whole object locked */
void osd_version_removed(struct osd_object *object);	/* under mutex */
void osd_version_release(struct osd_object *object);
/* A read-only descriptor of the page, which the caller owns; with the whole object locked, under mutex. */
enum osd_status osd_version_share(struct osd_object *object, uint64_t length, int *ret_fd);
struct osd_data_name osd_object_data_name(const struct osd_object *object, uint64_t generation);

#endif
