/* SPDX-License-Identifier: GPL-2.0-or-later */
/* owner.c -- the submitter of a job.  It decides who may read the job's surrogate, or the object
 * that holds the result. */
#include <string.h>

#include "exec/target.h"

/* OSD_E_NO_OBJECT: it was submitted without a capability. */
static enum osd_status owner_of(const struct osd_job_record *record, struct osd_job_owner *owner)
{
	if (!record->rights.limited)
		return OSD_E_NO_OBJECT;
	owner->zone = record->zone;
	memcpy(owner->audit, record->rights.grant.capability.audit, sizeof(owner->audit));
	return OSD_OK;
}

/* OSD_E_WOULD_BLOCK: it is not in memory. */
static enum osd_status look_in_memory(struct osd_exec *exec, struct osd_object_id id,
				      struct osd_job_owner *owner)
{
	enum osd_status status = OSD_E_WOULD_BLOCK;
	const struct osd_job_record *record;
	const struct osd_job *job;

	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	record = job ? &job->record : osd_exec_find_ended(exec, id);
	if (record)
		status = owner_of(record, owner);
	osd_unlock(&exec->lock);
	return status;
}

enum osd_status osd_exec_owner_in(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, struct osd_job_owner *ret_owner)
{
	struct osd_job_record record;
	enum osd_status status;

	if (!exec)
		return OSD_E_NO_OBJECT;
	status = look_in_memory(exec, id, ret_owner);
	if (status != OSD_E_WOULD_BLOCK)
		return status;
	status = osd_job_record_get(txn, id, &record);
	if (status == OSD_E_NO_OBJECT) { /* it may hold a job's result */
		status = osd_job_companion_find(txn, id, &id);
		if (status == OSD_OK)
			status = osd_job_record_get(txn, id, &record);
	}
	return status == OSD_OK ? owner_of(&record, ret_owner) : status;
}

struct asked {
	struct osd_exec *exec;
	struct osd_object_id id;
	struct osd_job_owner *owner;
};

static enum osd_status ask_in(struct osd_txn *txn, void *arg)
{
	struct asked *asked = arg;

	return osd_exec_owner_in(asked->exec, txn, asked->id, asked->owner);
}

enum osd_status osd_exec_owner(struct osd_exec *exec, struct osd_object_id id, bool nowait,
			       struct osd_job_owner *ret_owner)
{
	struct asked asked = {exec, id, ret_owner};

	if (nowait)
		return look_in_memory(exec, id, ret_owner);
	return osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, ask_in, &asked);
}
