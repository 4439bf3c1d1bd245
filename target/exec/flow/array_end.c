/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array_end.c -- the end of arrays: the members that are to end, step by step, and the record of the
 * head when all have ended (flow.h). */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "exec/flow/flow.h"

#define STEP_MEMBERS 64 /* members ended before other work gets a chance */

/* Whether the reason is a predecessor that ended otherwise than asked; the message then names that
 * job. */
static bool is_of_predecessor(uint16_t reason)
{
	return reason == OSD_REASON_UNREACHABLE || reason == OSD_REASON_NOT_NEEDED;
}

void osd_array_end(struct osd_job *head, uint16_t reason)
{
	struct osd_array *array = head->array;
	uint16_t *ending = &head->record.array.ending;

	osd_assert_held(&head->exec->lock);
	/* Any reason except a cancel also ends the members that have started. */
	if (*ending && (*ending != OSD_REASON_CANCELLED || reason == OSD_REASON_CANCELLED ||
			is_of_predecessor(reason)))
		return;
	*ending = reason;
	osd_job_touch(head);
	osd_array_settle(array);
	osd_array_work(array, 0);
}

/* Releases the lock meanwhile.  A member with a change under way is ended by osd_array_work, once
 * that change is over. */
static void end_member(struct osd_array *array, struct osd_job *member)
{
	const struct osd_job_record *head = &array->head->record;
	struct osd_exec *exec = member->exec;
	uint16_t reason = head->array.ending;
	bool waits = osd_job_state_waits(member->record.state);

	osd_assert_held(&exec->lock);
	if ((!waits && reason == OSD_REASON_CANCELLED) || !osd_exec_claim(exec, member, reason))
		return;
	if (is_of_predecessor(reason))
		memcpy(member->record.message, head->message, sizeof(head->message));
	osd_unlock(&exec->lock);
	osd_exec_end_claimed(exec, member, reason);
	osd_lock(&exec->lock);
}

/* "2 FAILED, 1 TIMEOUT of 16" */
static void sum_up(const struct osd_array *array, char *text, size_t capacity)
{
	size_t used = 0;

	for (unsigned state = OSD_STATE_FAILED; state < OSD_JOB_STATES_END; state++)
		if (array->counts[state])
			used += (size_t)snprintf(text + used, capacity - used, "%s%zu %s",
						 used ? ", " : "", array->counts[state],
						 osd_job_state_name(state));
	snprintf(text + used, capacity - used, " of %u", array->head->record.array.count);
}

static void end_head(struct osd_array *array)
{
	struct osd_job *head = array->head;
	struct osd_exec *exec = head->exec;
	size_t completed = array->counts[OSD_STATE_COMPLETED];
	size_t cancelled = array->counts[OSD_STATE_CANCELLED];
	struct osd_job_record record = head->record;
	struct osd_job_remains remains = {.states = array->states,
					  .states_length = record.array.count};
	uint8_t state = OSD_STATE_FAILED;
	uint16_t reason = OSD_REASON_MEMBERS;

	osd_assert_held(&exec->lock);
	if (completed == record.array.count) {
		state = OSD_STATE_COMPLETED;
		reason = OSD_REASON_NONE;
	} else if (completed + cancelled == record.array.count) {
		reason = array->cancelled_for;
		state = OSD_STATE_CANCELLED;
	} else if (record.array.ending == OSD_REASON_UNREACHABLE ||
		   record.array.ending == OSD_REASON_ZONE_REMOVED) {
		reason = record.array.ending;
	}
	if (state != OSD_STATE_COMPLETED && !is_of_predecessor(reason))
		sum_up(array, record.message, sizeof(record.message));
	head->end_reason = OSD_REASON_MEMBERS; /* the default: no other thread changes it from here
					        * on */
	record.attempt = record.started_msec ? 1 : 0;
	osd_job_record_end(&record, state, reason);
	if (record.started_msec)
		record.run_usec =
			(record.ended_msec - OSD_MIN(record.ended_msec, record.started_msec)) *
			1000;
	osd_unlock(&exec->lock);
	osd_exec_finish(exec, head, &record, &remains);
	osd_lock(&exec->lock);
}

void osd_array_end_if_over(struct osd_array *array)
{
	const struct osd_job *head = array->head;

	osd_assert_held(&head->exec->lock);
	if (head->in_table && !head->pending.txn && !head->end_reason &&
	    array->ended == head->record.array.count)
		end_head(array);
}

void osd_array_step(struct osd_array *array)
{
	struct osd_job *head = array->head;
	uint32_t count = head->record.array.count;

	osd_assert_held(&head->exec->lock);
	array->working = false;
	osd_array_end_if_over(array);
	if (head->in_table && !head->pending.txn && !head->end_reason) {
		for (int i = 0;
		     i < STEP_MEMBERS && head->record.array.ending && array->cursor < count; i++) {
			struct osd_object_id id =
				osd_array_member_id(&head->record, array->cursor++);
			struct osd_job *member = osd_exec_find(head->exec, id);

			if (member)
				end_member(array, member);
		}
		if (head->record.array.ending && array->cursor < count)
			osd_array_work(array, array->cursor);
	}
	osd_job_unref(head);
}
