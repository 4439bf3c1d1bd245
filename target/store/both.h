/* SPDX-License-Identifier: GPL-2.0-or-later */
/* both.h -- two operations on data files at the same time: the calling thread does one
 * while the other is under way.  The kernel does the other with io_uring if its file is a plain
 * one; otherwise a helper thread does it.  A kernel that has no io_uring, or refuses it, is
 * detected once.  A read of data in memory is done at once.  Any thread, any number of calls: no
 * lock is held while a device works. */
#ifndef OSD_STORE_BOTH_H
#define OSD_STORE_BOTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct osd_both;

enum osd_data_act { OSD_DATA_READ, OSD_DATA_WRITE, OSD_DATA_SYNC };

struct osd_data_op {
	enum osd_data_act act;
	struct osd_data_file *file; /* borrowed; NULL: nothing to do */
	uint64_t offset;	    /* SYNC uses neither this nor the next four */
	void *buffer;		    /* READ */
	const void *bytes;	    /* WRITE */
	size_t length;
	unsigned flags;		/* READ: enum osd_data_read_flags; NOWAIT: both must be NULL */
	size_t done;		/* READ: bytes read, as by osd_data_read; 0 on failure */
	enum osd_status status; /* how it ended */
};

/* rings: use io_uring if the kernel has it. */
enum osd_status osd_both_open(bool rings, struct osd_both **ret_both);
/* No call may be under way.  NULL is fine. */
void osd_both_close(struct osd_both *both);
/* Returns when both have ended, successfully or not.  there: the one that is likely to take longer.
 * both NULL: one after the other. */
void osd_data_both(struct osd_both *both, struct osd_data_op *here, struct osd_data_op *there);

/* The calls so far whose second half was done by a ring, and by a helper thread. */
void osd_both_counts(const struct osd_both *both, uint64_t *ret_rings, uint64_t *ret_helpers);

#endif
