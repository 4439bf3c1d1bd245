/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums.h -- wraps a data store, and keeps a CRC-32C of every 4 KiB block of its files.  The sums of
 * a file are in a file of their own beside it (osd_data_name.sums; docs/format.md, "Checksums").
 *
 * Order of a change: the sums of its blocks become 0, which means "unknown"; the bytes change; the
 * new sums are written.  So a process that is killed in between leaves unknown sums, never wrong
 * ones.  After a power failure, the order in which the kernel wrote the two files is unknown, too.
 * Then the sums of files that were not sealed are dropped (the epoch, below).  The scrub computes
 * unknown sums, and seals files that have not changed for a while.
 *
 * A sum covers the whole block, with zeros after the end of the file: growing and holes change no
 * sum.  A write of a part of a block first checks the present contents.  A damaged block stays
 * damaged until all of it is written.
 *
 * Threads: as the store's.  This layer orders accesses to two parts of one block, because the range
 * locks of the object layer do not know blocks. */
#ifndef OSD_STORE_SUMS_H
#define OSD_STORE_SUMS_H

#include <stdatomic.h>

#include "base/crc32c.h"
#include "store/store.h"

#define OSD_SUM_BLOCK OSD_CRC32C_BLOCK

/* Of blocks, since the store was opened. */
struct osd_sums_figures {
	_Atomic uint64_t checked;
	_Atomic uint64_t made;	    /* sums of blocks of which nothing was known */
	_Atomic uint64_t damaged;   /* times that a block differed from its sum */
	_Atomic uint64_t forgotten; /* files whose sums were dropped after a power failure */
};

/* Takes over inner, also on failure.  epoch: increased after each power failure.  verify: check
 * every read; then no descriptors are shared.  figures: borrowed. */
enum osd_status osd_sums_data_wrap(struct osd_data *inner, bool verify,
				   struct osd_sums_figures *figures, struct osd_data **ret_data);
/* Call it before any file is opened. */
void osd_sums_set_epoch(struct osd_data *data, uint32_t epoch);

/* Called for each damaged block. */
typedef void osd_sums_damage_fn(void *arg, uint64_t offset);

struct osd_sums_check {
	bool make;   /* sums of blocks that have none; nobody else may write to them */
	bool device; /* read what the device has, not what the page cache has */
	osd_sums_damage_fn *damage;
	void *arg;
	/* What was found: */
	uint64_t blocks, unknown, damaged;
};

/* Reads all blocks that overlap the range, except holes, and compares them with their sums.  Adds
 * the results to check. */
enum osd_status osd_sums_check(struct osd_data_file *file, uint64_t offset, uint64_t length,
			       struct osd_sums_check *check);
/* Seals the file: its bytes and sums are on the device, and stay valid after a power failure until
 * its next change.  No other thread may write to it. */
enum osd_status osd_sums_seal(struct osd_data_file *file);
/* Whether the store keeps sums; the functions above are only for its files. */
bool osd_sums_are_kept(const struct osd_data *data);

#endif
