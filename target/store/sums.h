/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums.h -- wraps a store of data and keeps a CRC-32C of every 4 KiB block of its files, each file's in a
 * file of its own beside it (osd_data_name.sums; docs/format.md, "Checksums").
 *
 * Order of a change: the sums of its blocks become 0, which says that nothing is known; the bytes change; the
 * new sums are written.  So a process that is killed in between leaves blocks whose sums are not known, never
 * wrong ones.  After a power failure the order in which the kernel wrote the two files is not known either:
 * sums of files that were not sealed then are forgotten (the epoch, below).  The scrub makes sums where none
 * are known, and seals files that have been at rest.
 *
 * A sum is of the whole block, with zeros behind the end of the file: growing and holes change none.  A write
 * of a part of a block first checks what is there; a damaged block stays so until all of it is written.
 *
 * Threads: as the store's.  Writes and reads of two parts of one block are put in order here, because the
 * object layer's range locks know nothing of blocks. */
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
	_Atomic uint64_t damaged;   /* times that a block was found to differ from its sum */
	_Atomic uint64_t forgotten; /* files whose sums were given up after a power failure */
};

/* Takes inner over, also when it fails.  epoch: one more than before after each power failure.
 * verify: of every read; then no descriptors are given out.  figures: borrowed. */
enum osd_status osd_sums_data_wrap(struct osd_data *inner, bool verify,
				   struct osd_sums_figures *figures, struct osd_data **ret_data);
/* Before any file is opened. */
void osd_sums_set_epoch(struct osd_data *data, uint32_t epoch);

/* Asked for each damaged block. */
typedef void osd_sums_damage_fn(void *arg, uint64_t offset);

struct osd_sums_check {
	bool make;   /* sums of blocks that have none; nobody else may write to them */
	bool device; /* read what the device has, not what the page cache has */
	osd_sums_damage_fn *damage;
	void *arg;
	/* What was found: */
	uint64_t blocks, unknown, damaged;
};

/* Reads the blocks that lie, wholly or in part, in the range and compares them; holes are passed over.  Adds
 * to what check says was found. */
enum osd_status osd_sums_check(struct osd_data_file *file, uint64_t offset, uint64_t length,
			       struct osd_sums_check *check);
/* The file's bytes and sums are on the device, and a power failure does not change that until the next change
 * of it.  Nobody else may write to it. */
enum osd_status osd_sums_seal(struct osd_data_file *file);
/* The sums of blocks; 0: nothing is known, or there is no such block. */
enum osd_status osd_sums_get(struct osd_data_file *file, uint64_t block, size_t count,
			     uint32_t *ret_sums);
/* Whether the store is one of these; the three functions above are for its files alone. */
bool osd_sums_are_kept(const struct osd_data *data);

/* Removes every file of sums below a data directory: checksums are off from now on. */
enum osd_status osd_sums_remove_all(int directory_fd);

#endif
