/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_charge.h -- what a job occupies in the store beside its output: the record, code and arguments
 * until it ends (or longer, see osd_job_charge_keeps), tags, result, stderr, traceback.  It is charged to the surrogate's partition, as data
 * is; in the jobs partition, which usually has no quota, to the principal as well (docs/limits.md). */
#ifndef OSD_EXEC_JOB_CHARGE_H
#define OSD_EXEC_JOB_CHARGE_H

#include "exec/job_record.h"

#define OSD_JOB_UNCOUNTED  UINT64_MAX /* the record was written by a release that did not charge */
#define OSD_JOB_BASE_BYTES 1024u      /* for a job's record, and for each member of an array */
#define OSD_JOB_KEEP_MAX   (2u << 20) /* of code and arguments, beyond the end of the job */

struct osd_exec;
struct osd_job_remains;

/* ---- in transactions ------------------------------------------------------------------------- */

/* A job is accepted, with so many bytes of payloads: OSD_E_QUOTA, OSD_E_NO_SPACE.  Sets
 * record->charged. */
enum osd_status osd_job_charge_accepted(struct osd_exec *exec, struct osd_txn *txn,
					struct osd_job_record *record, size_t payload_bytes);
/* Whether code and arguments of a job that ends so are to be kept, for a retry: it did not complete,
 * they are no more than OSD_JOB_KEEP_MAX, and in the jobs partition the principal has used no more than
 * half of what it may. */
bool osd_job_charge_keeps(struct osd_exec *exec, const struct osd_job_record *record);
/* It ends: code and arguments go unless its flags say OSD_JOB_CODE_KEPT, what it leaves comes (NULL:
 * nothing).  limited: as above, else whatever the quota says.  *ret_charged is for the record that is
 * put. */
enum osd_status osd_job_charge_ended(struct osd_exec *exec, struct osd_txn *txn,
				     const struct osd_job_record *record,
				     const struct osd_job_remains *remains, bool limited,
				     uint64_t *ret_charged);
/* osd_job_record_delete, and the end of the charge. */
enum osd_status osd_job_forget(struct osd_exec *exec, struct osd_txn *txn,
			       const struct osd_job_record *record);

/* ---- at the start ---------------------------------------------------------------------------- */

/* What the stored job is charged; counted where its record does not say. */
enum osd_status osd_job_charge_count(struct osd_txn *txn, const struct osd_job_record *record,
				     uint64_t *ret_bytes);

/* ---- bytes of principals in the jobs partition ----------------------------------------------- */

#define OSD_STORED_BUCKETS 256u

struct osd_stored {
	struct osd_stored_bytes *buckets[OSD_STORED_BUCKETS]; /* owned; under exec->lock */
};

void osd_stored_release(struct osd_stored *stored);
/* No other thread yet: what the job found in the store is charged to its principal.  False: no memory. */
bool osd_stored_found(struct osd_stored *stored, const struct osd_job_record *record,
		      uint64_t bytes);

#endif
