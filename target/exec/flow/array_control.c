/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array_control.c -- cancel, kill, hold and release of a whole array (flow.h), requested inside a
 * transaction.  The transaction writes the head's record, and the records of those members that
 * have their own and change with it.  Memory changes after the commit.  Until then no member
 * starts.  A change of one member and a change of the array exclude each other: the second caller
 * tries again. */
#include "exec/flow/flow.h"

/* ---- memory; exec->lock held ----------------------------------------------------------------- */

/* Whether the hold or release of the array applies to this member. */
static bool is_meant(const struct osd_job *member, uint8_t to)
{
	return !member->end_reason &&
	       member->record.state == (to == OSD_STATE_HELD ? OSD_STATE_QUEUED : OSD_STATE_HELD);
}

static void move_members(struct osd_exec *exec, struct osd_array *array, uint8_t to)
{
	const struct osd_job_record *head = &array->head->record;

	osd_assert_held(&exec->lock);
	for (uint32_t at = 0; at < head->array.count; at++) {
		struct osd_job *member = osd_exec_find(exec, osd_array_member_id(head, at));

		if (!member || !is_meant(member, to))
			continue;
		if (to == OSD_STATE_HELD) {
			member->kind->unqueue(member);
			osd_job_apply(exec, member, OSD_JOB_EVENT_HOLD, OSD_REASON_HELD);
		} else {
			osd_job_apply(exec, member, OSD_JOB_EVENT_RELEASE,
				      OSD_REASON_WAITS_FOR_SLOT);
			osd_exec_enqueue(exec, member);
		}
	}
}

static void apply(struct osd_exec *exec, struct osd_job *head)
{
	struct osd_array *array = head->array;

	osd_assert_held(&exec->lock);
	if (array->ending_next) {
		osd_array_end(head, array->ending_next);
		return;
	}
	head->record.state = head->pending.state;
	head->record.reason = head->pending.reason;
	if (head->pending.state == OSD_STATE_QUEUED)
		head->record.begin_msec = 0;
	array->waits_as = head->pending.state;
	osd_job_touch(head);
	move_members(exec, array, head->pending.state);
}

/* Takes over a reference of the head. */
static void change_ended(void *arg, bool committed)
{
	struct osd_job *head = arg;
	struct osd_exec *exec = head->exec;

	osd_lock(&exec->lock);
	if (committed && head->in_table)
		apply(exec, head);
	head->pending.txn = NULL;
	osd_array_settle(head->array);
	osd_after_changed(head);
	if (head->in_table)
		osd_array_work(head->array, 0); /* the array waited for this */
	osd_job_unref(head);
	osd_unlock(&exec->lock);
}

/* Stores the requested control in head->pending and ending_next; false: there is nothing to do. */
static bool begin(struct osd_exec *exec, struct osd_job *head, struct osd_txn *txn, uint8_t control)
{
	struct osd_array *array = head->array;
	uint16_t ending = head->record.array.ending;
	bool waits = head->after && head->after->left > 0;

	osd_assert_held(&exec->lock);
	if (ending && (control != OSD_CONTROL_KILL || ending != OSD_REASON_CANCELLED))
		return false;
	array->ending_next = control == OSD_CONTROL_CANCEL ? OSD_REASON_CANCELLED
			     : control == OSD_CONTROL_KILL ? OSD_REASON_KILLED
							   : 0;
	head->pending.txn = txn;
	head->pending.state = head->record.state;
	head->pending.reason = head->record.reason;
	if (control == OSD_CONTROL_HOLD) {
		head->pending.state = OSD_STATE_HELD;
		head->pending.reason = OSD_REASON_HELD;
	} else if (control == OSD_CONTROL_RELEASE) {
		head->pending.state = OSD_STATE_QUEUED;
		head->pending.reason = waits ? OSD_REASON_WAITS_FOR_JOB : OSD_REASON_WAITS_FOR_SLOT;
	}
	osd_array_settle(array);
	return true;
}

/* ---- the store ------------------------------------------------------------------------------- */

/* The next member, from *at on, whose own record changes with the head's. */
static bool next_stored(struct osd_exec *exec, struct osd_job *head, uint32_t *at,
			struct osd_job_record *ret_record)
{
	bool found = false;

	osd_lock(&exec->lock);
	for (; *at < head->record.array.count && !found; ++*at) {
		struct osd_job *member =
			osd_exec_find(exec, osd_array_member_id(&head->record, *at));

		found = member && member->stored && is_meant(member, head->pending.state);
		if (found)
			*ret_record = member->record;
	}
	osd_unlock(&exec->lock);
	return found;
}

static enum osd_status write_change(struct osd_exec *exec, struct osd_txn *txn,
				    struct osd_job *head)
{
	struct osd_job_record record;
	enum osd_status status;
	uint16_t ending;
	uint32_t at = 0;

	osd_lock(&exec->lock);
	record = head->record;
	ending = head->array->ending_next;
	osd_unlock(&exec->lock);
	record.generation++;
	record.state = head->pending.state;
	record.reason = head->pending.reason;
	if (ending)
		record.array.ending = ending;
	else if (record.state == OSD_STATE_QUEUED)
		record.begin_msec = 0;
	status = osd_job_record_put(txn, &record);
	while (status == OSD_OK && !ending && next_stored(exec, head, &at, &record)) {
		record.generation++;
		record.state = head->pending.state;
		record.reason = head->pending.reason;
		status = osd_job_record_put(txn, &record);
	}
	return status;
}

/* Drops the caller's reference to head. */
enum osd_status osd_array_control(struct osd_txn *txn, struct osd_job *head, uint8_t control)
{
	struct osd_exec *exec = head->exec;
	bool changing = false, first = false;
	enum osd_status status = OSD_OK;

	osd_lock(&exec->lock);
	if ((head->pending.txn && head->pending.txn != txn) || head->array->changing > 0) {
		status = OSD_E_CONFLICT;
	} else if (head->in_table && !head->end_reason) {
		first = !head->pending.txn;
		changing = begin(exec, head, txn, control);
	}
	if (changing && first)
		osd_job_ref(head); /* for change_ended */
	osd_job_unref(head);
	osd_unlock(&exec->lock);
	if (changing && first)
		status = osd_txn_on_end(txn, change_ended, head);
	return changing && status == OSD_OK ? write_change(exec, txn, head) : status;
}
