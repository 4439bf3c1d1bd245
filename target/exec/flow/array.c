/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array.c -- arrays in memory: their members, the head's figures, their place in the queue (flow.h).
 * Elsewhere: controls of whole arrays (array_control.c), their end (array_end.c), their removal
 * from the store (array_store.c). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/flow/flow.h"

void osd_array_member_record(const struct osd_job_record *head, uint32_t at, uint32_t index,
			     struct osd_job_record *ret_record)
{
	*ret_record = *head;
	ret_record->id = osd_array_member_id(head, at);
	ret_record->sequence = head->sequence + 1 + at;
	ret_record->array.index = index;
	ret_record->array.count = 0;
	ret_record->array.ending = 0;
	ret_record->flags =
		(head->flags & ~(unsigned)(OSD_JOB_ARRAY | OSD_JOB_AFTER | OSD_JOB_RANGES)) |
		OSD_JOB_MEMBER;
	ret_record->key_length = 0;
	ret_record->charged = 0; /* charged with its array, except what it leaves at its end */
	ret_record->predecessor = (struct osd_object_id){0};
	ret_record->begin_msec = 0; /* it begins with its array */
	ret_record->reason =
		head->state == OSD_STATE_HELD ? OSD_REASON_HELD : OSD_REASON_WAITS_FOR_SLOT;
	ret_record->started_msec = 0;
	ret_record->generation = 1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum osd_status osd_array_create(struct osd_job *job)
{
	const struct osd_job_array *size = &job->record.array;
	struct osd_array *array = calloc(1, sizeof(*array) + size->count);
	enum osd_status status;

	if (!array)
		return OSD_E_NO_MEMORY;
	array->head = job;
	array->counts[0] = size->count;
	array->cursor = size->count;
	array->waits_as = job->record.state;
	status = osd_fair_queue_init(&array->waiting, SIZE_MAX, SIZE_MAX);
	if (status == OSD_OK)
		status = osd_fair_queue_reserve(&array->waiting, "", 0, true, &array->anchor);
	/* For all members: once the array is accepted, no push of a member may fail. */
	if (status == OSD_OK)
		status = osd_fair_queue_make_room(&array->anchor, size->count);
	if (status != OSD_OK) {
		osd_array_free(array);
		return status;
	}
	job->array = array;
	return OSD_OK;
}

/* The list is valid (wire/index_ranges.h), or empty. */
static enum osd_status keep_ranges(struct osd_array *array, const uint8_t *ranges, size_t length)
{
	if (length == 0)
		return OSD_OK;
	array->ranges = malloc(length);
	if (!array->ranges)
		return OSD_E_NO_MEMORY;
	memcpy(array->ranges, ranges, length);
	array->ranges_length = length;
	return OSD_OK;
}

static enum osd_status bad_indices(const struct osd_job_record *head, const char *how)
{
	return osd_internal("the indices of array 0x%" PRIx64 "/0x%" PRIx64 " are %s",
			    head->id.partition_id, head->id.object_id, how);
}

enum osd_status osd_array_load(struct osd_txn *txn, void *arg)
{
	struct osd_array *array = arg;
	const struct osd_job_record *head = &array->head->record;
	OSD_CLEANUP_FREE uint8_t *bytes = malloc(OSD_JOB_PAYLOAD_MAX);
	uint32_t first, last, count;
	size_t length = 0;
	enum osd_status status;

	if (!bytes)
		return OSD_E_NO_MEMORY;
	status = osd_job_payload_get(txn, head->id, OSD_PAYLOAD_INDICES, bytes, OSD_JOB_PAYLOAD_MAX,
				     &length);
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? bad_indices(head, "absent") : status;
	if (length > OSD_JOB_PAYLOAD_MAX ||
	    !osd_index_ranges_check(bytes, length, head->array.count, &first, &last, &count) ||
	    count != head->array.count)
		return bad_indices(head, "damaged");
	free(array->ranges); /* left from a transaction that is run again */
	array->ranges = NULL;
	return keep_ranges(array, bytes, length);
}

static struct osd_index_walk walk_indices(const struct osd_array *array)
{
	return osd_index_walk_begin(array->ranges, array->ranges_length,
				    array->head->record.array.index);
}

enum osd_status osd_array_prepare(struct osd_array *array, const struct osd_exec_text *ranges)
{
	const struct osd_job_record *head = &array->head->record;

	if (keep_ranges(array, ranges->bytes, ranges->length) != OSD_OK)
		return OSD_E_NO_MEMORY;
	for (uint32_t at = head->array.count; at > 0; at--) {
		struct osd_job *job = calloc(1, sizeof(*job));

		if (!job)
			return OSD_E_NO_MEMORY;
		job->references = 1;
		job->exec = array->head->exec;
		job->kind = &osd_kind_member;
		job->pool = array->head->pool;
		job->next_delayed = array->prepared;
		array->prepared = job;
	}
	return OSD_OK;
}

void osd_array_fill(struct osd_array *array, const struct osd_job_record *head)
{
	struct osd_index_walk walk = walk_indices(array);
	uint32_t at = 0;

	for (struct osd_job *job = array->prepared; job; job = job->next_delayed) {
		osd_array_member_record(head, at++, osd_index_walk_next(&walk), &job->record);
		job->accepted_usec = osd_monotonic_usec();
		job->entry.priority = job->record.priority;
		job->entry.sequence = job->record.sequence;
	}
}

void osd_array_free(struct osd_array *array)
{
	if (!array)
		return;
	while (array->prepared) {
		struct osd_job *job = array->prepared;

		array->prepared = job->next_delayed;
		osd_job_unref(job);
	}
	osd_fair_queue_release(&array->waiting);
	free(array->ranges);
	free(array);
}

/* ---- what the head shows --------------------------------------------------------------------- */

/* The array is RUNNING from its first member's start on, because a state never goes back. */
uint8_t osd_array_state(const struct osd_array *array)
{
	return array->head->record.started_msec ? OSD_STATE_RUNNING : array->waits_as;
}

static void add_usage(struct osd_job_record *head, const struct osd_job_record *member)
{
	head->cpu_user_usec += member->cpu_user_usec;
	head->cpu_system_usec += member->cpu_system_usec;
	head->bytes_read += member->bytes_read;
	head->bytes_written += member->bytes_written;
	head->calls += member->calls;
	head->peak_bytes = OSD_MAX(head->peak_bytes, member->peak_bytes);
	head->flags |= member->flags & OSD_JOB_WROTE;
}

/* The first start of a member is the start of the array. */
static void note_start(struct osd_job_record *head, uint64_t started_msec)
{
	if (!started_msec || (head->started_msec && head->started_msec <= started_msec))
		return;
	head->started_msec = started_msec;
	head->queue_usec = started_msec > head->submitted_msec
				   ? (started_msec - head->submitted_msec) * 1000
				   : 0;
}

void osd_array_count(struct osd_array *array, const struct osd_job_record *member)
{
	struct osd_job_record *head = &array->head->record;
	uint8_t *shown = &array->states[osd_array_at(member)];

	array->counts[*shown]--;
	array->counts[member->state]++;
	*shown = member->state;
	if (array->counts[OSD_STATE_QUEUED])
		array->waits_as = OSD_STATE_QUEUED;
	else if (array->counts[OSD_STATE_HELD])
		array->waits_as = OSD_STATE_HELD;
	note_start(head, member->started_msec);
	osd_job_touch(array->head);
	if (!osd_job_state_terminal(member->state))
		return;
	array->ended++;
	if (member->state == OSD_STATE_CANCELLED)
		array->cancelled_for = member->reason;
	add_usage(head, member);
}

void osd_array_note(struct osd_job *member)
{
	struct osd_array *array = member->head->array;
	uint32_t at = osd_array_at(&member->record);

	if (array->states[at] == member->record.state)
		return;
	osd_array_count(array, &member->record);
	if (array->ended == array->head->record.array.count)
		osd_array_work(array, array->cursor);
}

size_t osd_array_ahead(const struct osd_job *member)
{
	const struct osd_array *array = member->head->array;
	const struct osd_fair_entry *first = osd_fair_queue_peek(&array->waiting, false);

	if (!member->entry.queued || !first || first->sequence > member->entry.sequence)
		return 0;
	/* Members between the two may have ended: no more are ahead than wait. */
	return (size_t)OSD_MIN(member->entry.sequence - first->sequence,
			       (uint64_t)array->waiting.entry_count - 1);
}

void osd_array_view(const struct osd_job *head, const struct osd_txn *txn,
		    struct osd_job_view *view)
{
	const struct osd_array *array = head->array;
	uint8_t to = head->pending.state,
		from = to == OSD_STATE_HELD ? OSD_STATE_QUEUED : OSD_STATE_HELD;

	memcpy(view->counts, array->counts, sizeof(array->counts));
	memcpy(view->states, array->states, head->record.array.count);
	/* An end reaches the members one by one after the commit: txn shows none of it. */
	if (head->pending.txn != txn || array->ending_next)
		return;
	view->counts[to] += view->counts[from];
	view->counts[from] = 0;
	for (uint32_t at = 0; at < head->record.array.count; at++)
		if (view->states[at] == from)
			view->states[at] = to;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool may_start_one(const struct osd_array *array)
{
	const struct osd_job *head = array->head;
	const struct osd_job_array *size = &head->record.array;

	return head->in_table && array->waiting.entry_count > 0 && !size->ending &&
	       !head->end_reason && (size->at_once == 0 || array->running < size->at_once) &&
	       !(head->after && head->after->left > 0) && !head->pending.txn;
}

void osd_array_settle(struct osd_array *array)
{
	struct osd_job *head = array->head;

	if (!may_start_one(array)) {
		osd_fair_queue_drop(&head->pool->queue, &head->entry);
		return;
	}
	if (head->entry.queued)
		return;
	if (osd_fair_queue_push(&head->pool->queue, &head->entry) == OSD_OK)
		osd_pool_has_work(head->pool);
	else
		osd_exec_delay(head->exec, head, OSD_NO_MEMORY_USEC);
}

enum osd_status osd_array_place(struct osd_job *member)
{
	struct osd_job *head = member->head;
	enum osd_status status =
		osd_fair_queue_reserve(&head->array->waiting, "", 1, true, &member->entry);

	if (status == OSD_OK)
		osd_fair_queue_add_place(&head->pool->queue, &head->entry);
	return status;
}

void osd_array_unplace(struct osd_job *member)
{
	if (!member->entry.principal)
		return;
	osd_fair_queue_unreserve(&member->head->array->waiting, &member->entry);
	osd_fair_queue_drop_place(&member->pool->queue, &member->head->entry);
}

struct osd_job *osd_array_first(struct osd_job *head)
{
	struct osd_fair_entry *entry = osd_fair_queue_peek(&head->array->waiting, false);

	return osd_container_of(entry, struct osd_job, entry);
}

struct osd_job *osd_array_take(struct osd_job *head)
{
	struct osd_array *array = head->array;
	struct osd_fair_entry *entry = osd_fair_queue_pop(&array->waiting);
	struct osd_job *member = osd_container_of(entry, struct osd_job, entry);

	osd_assert_held(&head->exec->lock);
	array->running++;
	member->takes_turn = true;
	member->stored = true; /* soon */
	osd_array_settle(array);
	return member;
}

void osd_array_yield(struct osd_job *member)
{
	struct osd_array *array = member->head->array;

	osd_assert_held(&member->exec->lock);
	if (!member->takes_turn)
		return;
	member->takes_turn = false;
	array->running--;
	osd_array_settle(array);
}

void osd_array_admit(struct osd_array *array)
{
	osd_assert_held(&array->head->exec->lock);
	while (array->prepared) {
		struct osd_job *member = array->prepared;

		array->prepared = member->next_delayed;
		member->next_delayed = NULL;
		member->head = osd_job_ref(array->head);
		/* The head has the place already, and the anchor keeps the principal in the queue, so
		 * nothing is allocated here. */
		osd_fair_queue_reserve(&array->waiting, "", 1, true, &member->entry);
		osd_exec_admit(member->exec, member);
		osd_job_unref(member);
	}
}

enum osd_status osd_array_admit_rest(struct osd_array *array)
{
	const struct osd_job_record *head = &array->head->record;
	struct osd_exec *exec = array->head->exec;
	struct osd_index_walk walk = walk_indices(array);
	struct osd_job_record record;

	for (uint32_t at = 0; at < head->array.count; at++) {
		uint32_t index = osd_index_walk_next(&walk);
		enum osd_status status;
		struct osd_job *member;

		if (array->states[at] != 0)
			continue;
		osd_array_member_record(head, at, index, &record);
		/* Above every number that an earlier run has shown: recovery raised the head's. */
		record.generation = head->generation;
		member = osd_job_create(exec, &record, array->head->pool);
		if (!member)
			return OSD_E_NO_MEMORY;
		member->head = osd_job_ref(array->head);
		status = osd_array_place(member);
		if (status == OSD_OK)
			osd_exec_admit(exec, member);
		osd_job_unref(member);
		if (status != OSD_OK)
			return status;
	}
	if (array->ended == head->array.count || head->array.ending)
		osd_array_work(array, 0);
	return OSD_OK;
}
