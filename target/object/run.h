/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.h -- where and when the store is open: the boot of the machine, and the folder.  Two records compare
 * it with the run before, because a power failure, or a copy of a store in use, may have lost writes that
 * the death of the process alone does not lose. */
#ifndef OSD_OBJECT_RUN_H
#define OSD_OBJECT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/cursor.h"

struct osd_objects;

#define OSD_BOOT_BYTES 16
#define OSD_RUN_BYTES  32 /* in a record */

struct osd_run {
	uint8_t boot[OSD_BOOT_BYTES]; /* of the kernel; zeros: not known */
	uint64_t device, inode;	      /* of the data directory */
};

void osd_run_find(const struct osd_objects *objects, struct osd_run *ret_run);
void osd_run_put(struct osd_wr *w, const struct osd_run *run);
void osd_run_get(struct osd_rd *r, struct osd_run *ret_run);
/* Whether writes of the last run can have been lost only by the end of the process. */
bool osd_run_is_unbroken(const struct osd_objects *objects, const struct osd_run *last,
			 const struct osd_run *now);

#endif
