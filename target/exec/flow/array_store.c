/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array_store.c -- removes jobs that have ended from the store, an array with its members (flow.h). */
#include "exec/flow/flow.h"

#define REMOVED_AT_ONCE 512 /* members of an array removed in one transaction */

bool osd_array_keeps(struct osd_exec *exec, const struct osd_job_record *record)
{
	struct osd_object_id head = {record->id.partition_id, record->array.object_id};
	bool keeps;

	if (!(record->flags & OSD_JOB_MEMBER))
		return false;
	osd_lock(&exec->lock);
	keeps = !exec->formatting && osd_exec_find(exec, head);
	osd_unlock(&exec->lock);
	return keeps;
}

enum osd_status osd_flow_forget(struct osd_exec *exec, struct osd_txn *txn,
				const struct osd_job_record *record)
{
	if (osd_after_await_decision(exec, record->id))
		return OSD_E_CONFLICT;
	osd_exec_forget_ended(exec, record->id);
	return osd_job_forget(exec, txn, record);
}

/* With the record first: for the removal of the surrogate there is no job any more. */
static enum osd_status remove_one(struct osd_exec *exec, struct osd_txn *txn,
				  const struct osd_job_record *record)
{
	struct osd_object_id companion = {record->id.partition_id, record->result_object};
	enum osd_status status = osd_flow_forget(exec, txn, record);

	if (status == OSD_OK)
		status = osd_remove_if_there(txn, record->id);
	return status == OSD_OK && companion.object_id ? osd_remove_if_there(txn, companion)
						       : status;
}

/* The surrogate of a member without a record, if it is there: the array was not taken up after a restart. */
static enum osd_status remove_unfinished(struct osd_txn *txn, struct osd_object_id id,
					 bool *ret_any)
{
	enum osd_status status = osd_surrogate_marked(txn, id, ret_any);

	if (status == OSD_OK && *ret_any)
		status = osd_remove_if_there(txn, id);
	return osd_status_is_gone(status) ? OSD_OK : status;
}

/* Removes members from *at on, as many as fit in a transaction.  *at is then the first that was not reached. */
static enum osd_status remove_members(struct osd_exec *exec, struct osd_txn *txn,
				      const struct osd_job_record *head, uint32_t *at)
{
	enum osd_status status = OSD_OK;

	for (size_t left = REMOVED_AT_ONCE; *at < head->array.count && left > 0; ++*at) {
		struct osd_object_id id = osd_array_member_id(head, *at);
		struct osd_job_record record;
		bool any = true;

		status = osd_job_record_get(txn, id, &record);
		if (status == OSD_OK) {
			status = remove_one(exec, txn, &record);
		} else if (status == OSD_E_NO_OBJECT) { /* removed alone, or never taken up */
			any = false;
			status = remove_unfinished(txn, id, &any);
		}
		if (status != OSD_OK)
			return status;
		left -= any;
	}
	return OSD_OK;
}

/* ---- removal in steps ------------------------------------------------------------------------ */

struct removal {
	struct osd_exec *exec;
	struct osd_object_id id;
	uint32_t at, next; /* first member left; the same once the transaction has committed */
	bool more;
};

static enum osd_status remove_some(struct osd_txn *txn, void *arg)
{
	struct removal *removal = arg;
	struct osd_job_record head;
	enum osd_status status = osd_job_record_get(txn, removal->id, &head);

	removal->next = removal->at;
	removal->more = false;
	if (status == OSD_OK && !osd_job_state_terminal(head.state))
		return OSD_E_JOB_IN_WAY;
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	status = remove_members(removal->exec, txn, &head, &removal->next);
	removal->more = removal->next < head.array.count;
	return status;
}

static enum osd_status remove_in_steps(void *exec, struct osd_object_id id)
{
	struct removal removal = {.exec = exec, .id = id, .more = true};
	enum osd_status status = OSD_OK;

	while (removal.more && status == OSD_OK) {
		if (osd_exec_stops(removal.exec))
			return OSD_E_BUSY; /* the next start removes the rest */
		status =
			osd_txn_run(removal.exec->objects, OSD_TXN_INTERNAL, remove_some, &removal);
		removal.at = removal.next;
	}
	return status;
}

/* ---- whole jobs ------------------------------------------------------------------------------ */

static enum osd_status remove_all_members(struct osd_exec *exec, struct osd_txn *txn,
					  const struct osd_job_record *head)
{
	uint32_t at = 0;
	enum osd_status status = remove_members(exec, txn, head, &at);

	return status == OSD_OK && at < head->array.count
		       ? osd_txn_first(txn, remove_in_steps, exec, head->id)
		       : status;
}

enum osd_status osd_flow_forget_all(struct osd_exec *exec, struct osd_txn *txn,
				    const struct osd_job_record *record)
{
	enum osd_status status = remove_all_members(exec, txn, record);

	return status == OSD_OK ? osd_flow_forget(exec, txn, record) : status;
}

enum osd_status osd_flow_remove(struct osd_exec *exec, struct osd_txn *txn,
				const struct osd_job_record *record)
{
	enum osd_status status = remove_all_members(exec, txn, record);

	return status == OSD_OK ? remove_one(exec, txn, record) : status;
}
