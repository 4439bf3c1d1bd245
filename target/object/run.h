/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.h -- where and when the store is open: the boot of the machine, and the folder.  Two records compare
 * it with the run before, because a power failure, or a copy of a store in use, may have lost writes that
 * the death of the process alone does not lose. */
#ifndef OSD_OBJECT_RUN_H
#define OSD_OBJECT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "object/record.h"

struct osd_objects;

#define OSD_BOOT_BYTES 16

struct osd_run {
	uint8_t boot[OSD_BOOT_BYTES]; /* of the kernel; zeros: not known */
	uint64_t device, inode;	      /* of the data directory */
};

void osd_run_find(const struct osd_objects *objects, struct osd_run *ret_run);

/* A record of META about the last run, with one or two numbers.  get reads it for a change, which put writes.
 * OSD_E_NO_OBJECT: there is none.  *ret_known: it is there, and whole. */
struct osd_run_record {
	uint32_t numbers[2];
	struct osd_run at;
};
enum osd_status osd_run_record_get(struct osd_objects *objects, struct osd_kv_txn *kv,
				   enum osd_meta_kind kind, size_t count,
				   struct osd_run_record *ret_record, bool *ret_known);
enum osd_status osd_run_record_put(struct osd_kv_txn *kv, enum osd_meta_kind kind, size_t count,
				   const struct osd_run_record *record);

/* Whether writes of the last run can have been lost only by the end of the process. */
bool osd_run_is_unbroken(const struct osd_objects *objects, const struct osd_run *last,
			 const struct osd_run *now);

#endif
