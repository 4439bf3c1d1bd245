/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier.h -- one object's bytes over two data stores: [0, head_bytes) in the head file, the rest in
 * the tail file (design D9).  With one store everything is in the head file (head_bytes
 * UINT64_MAX). The head file is extended to exactly head_bytes before the tail's first byte is
 * written, so the object's length is that of the head, or head_bytes + tail once there is a tail.
 * What concerns both files is asked of both at once and ends when both have; it fails if either
 * does.  Of an object with a tail OSD_E_HEAD_FAILED and OSD_E_TAIL_FAILED say which;
 * OSD_E_HEAD_ABSENT: the head's device is not there (absent_data.c).
 *
 * Reads and writes may run in any number of threads (the object layer's range locks order them);
 * truncate and close need the file alone. */
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
	struct osd_data *tail; /* owned; NULL: head holds everything */
	struct osd_both *both; /* owned; NULL: head and tail are asked one after the other */
	bool one_device;       /* both are on it, so its room is counted once */
};

enum osd_tier_head_on { OSD_HEAD_ON_HEAD, OSD_HEAD_ON_TAIL };

struct osd_tier_file {
	struct osd_tier *tier;	   /* borrowed */
	struct osd_data_name name; /* of the head; constant while open */
	uint64_t head_bytes;
	enum osd_tier_head_on head_on;
	struct osd_lock lock;			    /* while opening */
	bool no_tail;				    /* under lock: looked for, and not there */
	struct osd_rwlock replaced;		    /* written while adopting; see osd_tier_sync */
	_Atomic(struct osd_data_file *) head, tail; /* owned; NULL: not open */
};

struct osd_tier_handles {
	struct osd_data_file *head, *tail; /* owned; NULL: none */
};

/* Closes both stores; all files have been released. */
void osd_tier_close(struct osd_tier *tier);
/* For one object, nothing open; the caller sets name, head_bytes and head_on.  release closes what is
 * open. */
void osd_tier_file_init(struct osd_tier_file *file, struct osd_tier *tier);
void osd_tier_file_release(struct osd_tier_file *file);
/* Whether a read needs no open(2). */
bool osd_tier_file_is_open(struct osd_tier_file *file);
/* file becomes what other is, and other is released; nobody else uses either, but to sync file. */
void osd_tier_file_adopt(struct osd_tier_file *file, struct osd_tier_file *other);
/* What is open, for the caller to close, which may wait for a device; a later call opens again. */
struct osd_tier_handles osd_tier_detach(struct osd_tier_file *file);
void osd_tier_close_handles(struct osd_tier_handles *handles);
/* Both in one. */
void osd_tier_shut(struct osd_tier_file *file);
/* *ret_read is less than length only at the end of what was written; holes are zeros.  flags: those of
 * osd_data_read. */
enum osd_status osd_tier_read(struct osd_tier_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read);
/* Before a change of [from, to) of an object of length bytes: are the files there that hold its bytes?  One
 * that is not has been lost, which fails as reading it does: made anew, it would read as zeros.  A change of
 * all that was in it may make it again. */
enum osd_status osd_tier_miss(struct osd_tier_file *file, uint64_t length, uint64_t from,
			      uint64_t to);
/* All or an error, after which the range may hold part of it.  Makes files that are not there. */
enum osd_status osd_tier_write(struct osd_tier_file *file, uint64_t offset, const void *bytes,
			       size_t length);
/* To size bytes, more or fewer; zeros where it grows. */
enum osd_status osd_tier_truncate(struct osd_tier_file *file, uint64_t size);
/* The range reads as zeros; the length does not change. */
enum osd_status osd_tier_zero(struct osd_tier_file *file, uint64_t offset, uint64_t length);
/* The object's length as its files have it, and the later of their times.  A tail behind a short head
 * does not count, and is not looked for, but by _all: a power failure may have left such a head. */
enum osd_status osd_tier_stat(struct osd_tier_file *file, struct osd_data_stat *ret_stat);
enum osd_status osd_tier_stat_all(struct osd_tier_file *file, struct osd_data_stat *ret_stat);
/* 0 when it is not there; the head is not asked. */
enum osd_status osd_tier_tail_size(struct osd_tier_file *file, uint64_t *ret_tail);
/* Of each file, 0 when it is not there. */
enum osd_status osd_tier_part_sizes(struct osd_tier_file *file, uint64_t *ret_head,
				    uint64_t *ret_tail);
/* The first range at or after offset that is no hole, as osd_data_next_extent; one that goes on from
 * the head into the tail is one. */
enum osd_status osd_tier_next_extent(struct osd_tier_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end);
/* The source is there as far as the range goes. */
enum osd_status osd_tier_copy(struct osd_tier_file *from, uint64_t from_offset,
			      struct osd_tier_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags);
/* to has no file yet.  OSD_E_UNSUPPORTED: not with these; files of to may have been made. */
enum osd_status osd_tier_clone(struct osd_tier_file *from, struct osd_tier_file *to);
/* Whether file systems and stores can, for whatever files. */
bool osd_tier_can_clone(const struct osd_tier *tier);
/* Milliseconds since 1970; of what is open. */
enum osd_status osd_tier_set_modified(struct osd_tier_file *file, uint64_t modified_ms);
/* Data; with directories also the names.  The only call that needs no lock on the object's bytes. */
enum osd_status osd_tier_sync(struct osd_tier_file *file, bool directories);
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
