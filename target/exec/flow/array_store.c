/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array_store.c -- removes arrays that have ended, with their members, from the store, in steps
 * (flow.h). */
#include "base/util.h"
#include "exec/flow/flow.h"

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

static enum osd_status remove_member(struct osd_exec *exec, struct osd_txn *txn,
				     const struct osd_job_record *record)
{
	struct osd_object_id companion = {record->id.partition_id, record->result_object};
	enum osd_status status = osd_remove_if_there(txn, record->id);

	if (status == OSD_OK && companion.object_id)
		status = osd_remove_if_there(txn, companion);
	return status == OSD_OK ? osd_job_forget(exec, txn, record) : status;
}

enum osd_status osd_array_remove_members(struct osd_exec *exec, struct osd_txn *txn,
					 const struct osd_job_record *head, size_t most,
					 uint32_t *at)
{
	enum osd_status status = OSD_OK;

	for (; *at < head->array.count && most > 0 && status == OSD_OK; ++*at) {
		struct osd_job_record record;

		status = osd_job_record_get(txn, osd_array_member_id(head, *at), &record);
		if (status == OSD_E_NO_OBJECT) { /* removed alone */
			status = OSD_OK;
			continue;
		}
		if (status == OSD_OK && osd_after_await_decision(exec, record.id))
			status = OSD_E_CONFLICT;
		if (status == OSD_OK) {
			osd_exec_forget_ended(exec, record.id);
			status = remove_member(exec, txn, &record);
			most--;
		}
	}
	return status;
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
	if (status != OSD_OK || !osd_job_state_terminal(head.state))
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	status = osd_array_remove_members(removal->exec, txn, &head, OSD_REMOVED_AT_ONCE,
					  &removal->next);
	removal->more = removal->next < head.array.count;
	return status;
}

enum osd_status osd_array_remove_all(struct osd_exec *exec, struct osd_object_id id)
{
	struct removal removal = {.exec = exec, .id = id, .more = true};
	enum osd_status status = OSD_OK;

	while (removal.more && status == OSD_OK) {
		status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL, remove_some, &removal);
		removal.at = removal.next;
	}
	return status;
}
