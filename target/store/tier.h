/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier.h -- the bytes of one object in two data stores: [0, head_bytes) in the head file, the rest
 * in the tail file.  With one store, everything is in the head file (head_bytes
 * UINT64_MAX).  The head file is extended to exactly head_bytes before the first byte of the tail
 * is written.  So the length of an object is that of the head, or head_bytes + tail once there is a
 * tail.
 *
 * An operation on both files runs on both at once and returns when both have ended; it fails if
 * either does.  For an object with a tail, OSD_E_HEAD_FAILED and OSD_E_TAIL_FAILED name the half.
 * OSD_E_HEAD_ABSENT: the device of the head is absent (absent_data.c).  Any number of threads may
 * read and write; the range locks of the object layer order them.  Truncate and close require
 * exclusive use of the file. */
#ifndef OSD_STORE_TIER_H
#define OSD_STORE_TIER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "store/both.h"
#include "store/store.h"

#define OSD_TIER_ONE UINT64_MAX /* head_bytes: no tail */

struct osd_tier {
	struct osd_data *head; /* owned */
	struct osd_data *tail; /* owned; NULL: the head holds everything */
	struct osd_both *both; /* owned; NULL: first the head, then the tail */
	bool one_device;       /* both stores are on it, so its space is counted once */
};

enum osd_tier_head_on { OSD_HEAD_ON_HEAD, OSD_HEAD_ON_TAIL };

struct osd_tier_file {
	struct osd_tier *tier;	   /* borrowed */
	struct osd_data_name name; /* of the head; constant while open */
	uint64_t head_bytes;
	enum osd_tier_head_on head_on;
	struct osd_lock lock;			    /* while opening */
	bool no_tail;				    /* under lock: known not to exist */
	struct osd_rwlock replaced;		    /* written while adopting; see osd_tier_sync */
	_Atomic(struct osd_data_file *) head, tail; /* owned; NULL: not open */
	/* Names that may be new, and how many of them are synced: one for the head, and one each time that a tail was
	 * opened which may have been made then. */
	_Atomic uint64_t names_made, names_synced;
};

struct osd_tier_handles {
	struct osd_data_file *head, *tail; /* owned; NULL: none */
};

/* Closes both stores; all files have been released. */
void osd_tier_close(struct osd_tier *tier);
/* Initialises a file with nothing open; the caller sets name, head_bytes and head_on.  release
 * closes what is open. */
void osd_tier_file_init(struct osd_tier_file *file, struct osd_tier *tier);
void osd_tier_file_release(struct osd_tier_file *file);
/* Whether a read of [from, to) needs no open(2), which may wait for the device. */
bool osd_tier_file_is_open(struct osd_tier_file *file, uint64_t from, uint64_t to);
/* Moves other into file, and releases other.  No other thread may use either, except to sync
 * file. */
void osd_tier_file_adopt(struct osd_tier_file *file, struct osd_tier_file *other);
/* Detaches the open handles, for the caller to close, which may wait for a device.  A later call
 * opens the files again. */
struct osd_tier_handles osd_tier_detach(struct osd_tier_file *file);
void osd_tier_close_handles(struct osd_tier_handles *handles);
/* Detaches and closes the open handles. */
void osd_tier_shut(struct osd_tier_file *file);
/* *ret_read is less than length only at the end of the written data; holes are zeros.  flags: those
 * of osd_data_read, and OSD_TIER_HOLES: of two files one or both may be missing, and are holes.
 * OSD_E_NO_OBJECT: there is one file at most, and it does not exist. */
#define OSD_TIER_HOLES 0x100u
enum osd_status osd_tier_read(struct osd_tier_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read);
/* Called before a copy of the first length bytes: a missing file has been lost, and the copy would have
 * zeros. */
enum osd_status osd_tier_lost(struct osd_tier_file *file, uint64_t length);
/* Called before a change of [from, to) of an object of length bytes: checks that the files that
 * hold its bytes exist.  A missing file has been lost: creating it again would turn its bytes into
 * zeros, so this fails as a read does.  A change of all its bytes may create it again. */
enum osd_status osd_tier_miss(struct osd_tier_file *file, uint64_t length, uint64_t from,
			      uint64_t to);
/* Writes all, or fails; then the range may hold a part of it.  Creates missing files. */
enum osd_status osd_tier_write(struct osd_tier_file *file, uint64_t offset, const void *bytes,
			       size_t length);
/* Sets the length to size; new bytes are zeros. */
enum osd_status osd_tier_truncate(struct osd_tier_file *file, uint64_t size);
/* Makes the range read as zeros; the length does not change. */
enum osd_status osd_tier_zero(struct osd_tier_file *file, uint64_t offset, uint64_t length);
/* The object's length according to its files, and the later of their times.  A tail after a short
 * head does not count, unless all: a power failure may have left such a head. */
enum osd_status osd_tier_stat(struct osd_tier_file *file, bool all, struct osd_data_stat *ret_stat);
/* The size of the tail file, or 0 if there is none; does not access the head. */
enum osd_status osd_tier_tail_size(struct osd_tier_file *file, uint64_t *ret_tail);
/* The size of each file; 0 if it does not exist. */
enum osd_status osd_tier_part_sizes(struct osd_tier_file *file, uint64_t *ret_head,
				    uint64_t *ret_tail);
/* The first range at or after offset that is not a hole, as osd_data_next_extent.  A range that
 * continues from the head into the tail is returned as one. */
enum osd_status osd_tier_next_extent(struct osd_tier_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end);
/* The source range must exist. */
enum osd_status osd_tier_copy(struct osd_tier_file *from, uint64_t from_offset,
			      struct osd_tier_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags);
/* to must have no file yet.  OSD_E_UNSUPPORTED: cannot clone these files; files of to may have been
 * created. */
enum osd_status osd_tier_clone(struct osd_tier_file *from, struct osd_tier_file *to);
/* Whether file systems and stores can clone at all. */
bool osd_tier_can_clone(const struct osd_tier *tier);
/* Milliseconds since 1970; applies to the open files. */
enum osd_status osd_tier_set_modified(struct osd_tier_file *file, uint64_t modified_ms);
/* Syncs the data, and names that may be new.  The only call that needs no lock on the object's bytes. */
enum osd_status osd_tier_sync(struct osd_tier_file *file);
/* Of the bytes in one of the two files, in its own offsets, where the store keeps checksums: as osd_sums_check.
 * OSD_E_NO_OBJECT: there is no such file. */
struct osd_sums_check;
enum osd_status osd_tier_check_sums(struct osd_tier_file *file, bool tail, uint64_t offset,
				    uint64_t length, struct osd_sums_check *check);
/* As osd_sums_seal, of each file. */
enum osd_status osd_tier_seal_sums(struct osd_tier_file *file);
/* Read-only descriptors, the caller's to close; *ret_tail_fd -1: there is no tail.  OSD_E_UNSUPPORTED: not with
 * this store. */
enum osd_status osd_tier_share(struct osd_tier_file *file, int *ret_head_fd, int *ret_tail_fd);

/* By name, whatever is open. */
enum osd_status osd_tier_remove(struct osd_tier *tier, const struct osd_data_name *name);
/* The same of files that are where those of file are; tail: there may be one. */
enum osd_status osd_tier_remove_parts(const struct osd_tier_file *file,
				      const struct osd_data_name *name, bool tail);
enum osd_status osd_tier_remove_partition(struct osd_tier *tier, uint64_t partition_id,
					  uint32_t incarnation);
/* Everything written so far, on both devices. */
enum osd_status osd_tier_sync_all(struct osd_tier *tier);
/* Bytes, as osd_data_capacity; of a device that both are on, once. */
enum osd_status osd_tier_capacity(struct osd_tier *tier, uint64_t *ret_total, uint64_t *ret_free);

#endif
