/* SPDX-License-Identifier: GPL-2.0-or-later */
/* acceptance.h -- a submission that is becoming a job, and the record made from its parameters.
 * Elsewhere: queue and store (submit.c). */
#include "exec/target.h"
#ifndef OSD_EXEC_ACCEPTANCE_H
#define OSD_EXEC_ACCEPTANCE_H

struct osd_acceptance {
	struct osd_exec *exec;
	const struct osd_exec_submission *submission;
	struct osd_pool *pool;
	struct osd_job *job;
	struct osd_job_record record;
	uint8_t tags[OSD_JOB_TAGS_MAX];
	size_t tags_length;
	bool existing;		  /* the key is known: record is that of the earlier job */
	struct osd_exec_wait *wait; /* of its submitter, reserved; NULL: it is not synchronous */
	struct osd_run *run;	  /* set if it starts at once; NULL: it is queued */
	enum osd_refusal refusal; /* why it is BUSY; OSD_REFUSAL_COUNT: it is not */
};

/* exec and submission are set: checks the parameters, finds the pool, and makes record and tags.
 * OSD_E_CDB_FIELD, OSD_E_BYTECODE, OSD_E_POOL_ACCESS.  Takes exec->lock for moments. */
enum osd_status osd_acceptance_fill(struct osd_acceptance *acceptance);

/* repeated.c.  The earlier job with the same key, if there is one, becomes that of the acceptance. */
enum osd_status osd_repeated_find(struct osd_txn *txn, struct osd_acceptance *acceptance);
/* Answers a synchronous submission of a job that has already ended; no lock held. */
void osd_repeated_deliver(struct osd_exec *exec, struct osd_exec_wait *wait,
			  const struct osd_job_record *found);

#endif
