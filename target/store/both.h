/* SPDX-License-Identifier: GPL-2.0-or-later */
/* both.h -- two operations on data files at once: the calling thread does one while the other is
 * under way (design D9).  The other is left to the kernel by io_uring where its file is a plain one,
 * else to a helper thread; a kernel without io_uring, or that refuses it, is found out once.  A read of
 * what is in memory is done at once.
 *
 * Any thread, any number of them at once: no lock is held while a device works. */
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
	uint64_t offset;	    /* this and the next four: not of SYNC */
	void *buffer;		    /* READ */
	const void *bytes;	    /* WRITE */
	size_t length;
	unsigned flags;		/* READ: enum osd_data_read_flags; NOWAIT: both must be NULL */
	size_t done;		/* READ: bytes read, as by osd_data_read; 0 on failure */
	enum osd_status status; /* how it ended */
};

/* rings: by io_uring where the kernel has it. */
enum osd_status osd_both_open(bool rings, struct osd_both **ret_both);
/* No call may be under way.  NULL is fine. */
void osd_both_close(struct osd_both *both);
/* Returns when both have ended, either way.  there: the one that is likely to take longer.
 * both NULL: one after the other. */
void osd_data_both(struct osd_both *both, struct osd_data_op *here, struct osd_data_op *there);

/* Calls so far whose second half a ring did, and a helper thread. */
void osd_both_counts(const struct osd_both *both, uint64_t *ret_rings, uint64_t *ret_helpers);

#endif
