/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kinds.c -- the kinds of jobs (job/job.h): for each kind, its entry in a queue, the effects of its
 * end, and its status page.  A plain job waits in its pool's queue.  The head of an array waits
 * there on behalf of the first member that may start.  Members wait in the array's own heap
 * (flow.h). */
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/flow/flow.h"

/* ---- of all kinds -------------------------------------------------------------------------------- */

static void do_nothing(struct osd_job *job)
{
	(void)job;
}

static bool is_false(const struct osd_job *job)
{
	(void)job;
	return false;
}

static size_t none_behind(const struct osd_job *job)
{
	(void)job;
	return 0;
}

static struct osd_job *itself(struct osd_job *job)
{
	return job;
}

static void view_no_parts(const struct osd_job *job, const struct osd_txn *txn,
			  struct osd_job_view *view)
{
	(void)job, (void)txn, (void)view;
}

static bool always_shows(const struct osd_job *job, const struct osd_job_view *view)
{
	(void)job, (void)view;
	return true;
}

/* ---- jobs that stand in their pool's queue: plain ones and heads ------------------------------------ */

static bool waits_for_others(const struct osd_job *job)
{
	return job->after && job->after->left > 0;
}

/* Records the job it waits for; false: it waits for no other job any more. */
static bool wait_for_jobs(struct osd_job *job)
{
	bool waits = waits_for_others(job);
	uint16_t reason = waits ? OSD_REASON_WAITS_FOR_JOB : OSD_REASON_WAITS_FOR_SLOT;

	if (job->after && job->record.attempt == 0 && job->record.reason != reason) {
		job->record.reason = reason;
		osd_job_touch(job);
	}
	return waits;
}

static void unqueue(struct osd_job *job)
{
	osd_fair_queue_drop(&job->pool->queue, &job->entry);
}

static void unplace(struct osd_job *job)
{
	osd_fair_queue_unreserve(&job->pool->queue, &job->entry);
}

/* The head of an array is not counted: its members are. */
static void enter(struct osd_job *job)
{
	job->pool->jobs += !job->array;
}

/* An unconfigured pool goes with its last job. */
static void leave(struct osd_job *job)
{
	job->pool->jobs -= !job->array;
	if (job->pool->leaving)
		osd_alarm_by(&job->exec->monitor, 0);
	osd_after_ended(job);
}

/* ---- plain ones ---------------------------------------------------------------------------------------- */

/* Pushes it into its pool's queue. */
static enum osd_status push(struct osd_job *job)
{
	job->entry.since = osd_monotonic_usec();
	return osd_fair_queue_push(&job->pool->queue, &job->entry);
}

/* A job that had started gave up its place: it gets one again, even beyond the limits. */
static enum osd_status enqueue_plain(struct osd_job *job)
{
	enum osd_status status = OSD_OK;

	if (wait_for_jobs(job))
		return OSD_OK; /* the end of the last of them queues it */
	if (!job->entry.principal)
		status = osd_pool_reserve(job->pool, job->record.principal, 1, true, &job->entry);
	if (status == OSD_OK)
		status = push(job);
	if (status == OSD_OK)
		osd_pool_has_work(job->pool);
	osd_pool_note_deadline(job);
	return status;
}

static bool plain_may_start(const struct osd_job *job)
{
	return !job->after;
}

static void view_plain(const struct osd_job *job, struct osd_job_view *v)
{
	v->ahead = osd_fair_queue_ahead(&job->pool->queue, &job->entry);
	v->waits_for = osd_after_waits_for(job, &v->awaited);
}

/* Of jobs that are in no array. */
#define NO_MEMBER                                                                                  \
	.unqueue = unqueue, .unplace = unplace, .waits = waits_for_others, .changed = do_nothing,  \
	.paused = do_nothing, .entered = enter, .left = leave, .unended = osd_after_pin,           \
	.is_changing = is_false, .change_begins = do_nothing, .change_ended = osd_after_changed,   \
	.behind = none_behind

const struct osd_job_kind osd_kind_plain = {
	NO_MEMBER,
	.release = do_nothing,
	.enqueue = enqueue_plain,
	.may_start = plain_may_start,
	.first = itself,
	.take = itself,
	.view = view_plain,
	.view_parts = view_no_parts,
	.shows_pending = always_shows,
};

/* ---- heads of arrays ------------------------------------------------------------------------------------ */

static void release_head(struct osd_job *job)
{
	osd_array_free(job->array);
}

static enum osd_status enqueue_head(struct osd_job *job)
{
	if (!wait_for_jobs(job))
		osd_array_settle(job->array);
	osd_pool_note_deadline(job);
	return OSD_OK;
}

/* The state of an array follows from its members. */
static void view_head(const struct osd_job *job, struct osd_job_view *v)
{
	const struct osd_array *array = job->array;
	uint8_t state = osd_array_state(array);

	view_plain(job, v);
	memcpy(v->counts, array->counts, sizeof(v->counts));
	if (state == v->own.state)
		return;
	v->own.state = state;
	v->own.reason = state == OSD_STATE_RUNNING ? OSD_REASON_NONE
			: state == OSD_STATE_HELD  ? OSD_REASON_HELD
						   : OSD_REASON_WAITS_FOR_SLOT;
	if (v->own.started_msec)
		v->own.run_usec =
			1000 * (osd_wall_msec() - OSD_MIN(osd_wall_msec(), v->own.started_msec));
}

static bool head_shows_pending(const struct osd_job *job, const struct osd_job_view *v)
{
	return v->own.state != OSD_STATE_RUNNING && !job->array->ending_next;
}

const struct osd_job_kind osd_kind_head = {
	NO_MEMBER,
	.release = release_head,
	.enqueue = enqueue_head,
	.end_parts = osd_array_end,
	.control = osd_array_control,
	.may_start = is_false,
	.first = osd_array_first,
	.take = osd_array_take,
	.view = view_head,
	.view_parts = osd_array_view,
	.shows_pending = head_shows_pending,
};

/* ---- members --------------------------------------------------------------------------------------------- */

/* Pushes it into its array's heap. */
static enum osd_status push_member(struct osd_job *job)
{
	struct osd_array *array = job->head->array;
	enum osd_status status = osd_fair_queue_push(&array->waiting, &job->entry);

	if (status == OSD_OK && array->head->record.array.ending)
		osd_array_work(array, 0);
	else if (status == OSD_OK)
		osd_array_settle(array);
	return status;
}

static enum osd_status enqueue_member(struct osd_job *job)
{
	enum osd_status status = job->entry.principal ? OSD_OK : osd_array_place(job);

	osd_pool_note_deadline(job);
	return status == OSD_OK ? push_member(job) : status;
}

static void unqueue_member(struct osd_job *job)
{
	if (!job->entry.queued)
		return;
	osd_fair_queue_drop(&job->head->array->waiting, &job->entry);
	osd_array_settle(job->head->array);
}

static void leave_array(struct osd_job *job)
{
	leave(job);
	osd_array_yield(job);
	osd_array_note(job);
}

static bool array_is_changing(const struct osd_job *job)
{
	return job->head->pending.txn;
}

static void member_changes(struct osd_job *job)
{
	job->head->array->changing++;
}

/* The array may have waited for this change. */
static void member_changed(struct osd_job *job)
{
	struct osd_array *array = job->head->array;

	array->changing--;
	if (job->in_table && job->head->record.array.ending)
		osd_array_work(array, osd_array_at(&job->record));
}

/* It is the first of those that wait. */
static size_t members_behind(const struct osd_job *job)
{
	return job->head->array->waiting.entry_count - 1;
}

/* A member also waits for what its array waits for. */
static void view_member(const struct osd_job *job, struct osd_job_view *v)
{
	const struct osd_job *head = job->head;
	uint32_t at_once = head->record.array.at_once;

	v->ahead = osd_fair_queue_ahead(&job->pool->queue, &head->entry) + osd_array_ahead(job);
	v->waits_for = osd_after_waits_for(head, &v->awaited);
	if (v->own.reason == OSD_REASON_HELD && head->record.begin_msec)
		v->own.reason = OSD_REASON_WAITS_FOR_TIME;
	if (v->own.reason != OSD_REASON_WAITS_FOR_SLOT)
		return;
	if (v->waits_for)
		v->own.reason = OSD_REASON_WAITS_FOR_JOB;
	else if (at_once && head->array->running >= at_once)
		v->own.reason = OSD_REASON_WAITS_FOR_TURN;
}

const struct osd_job_kind osd_kind_member = {
	.release = do_nothing,
	.enqueue = enqueue_member,
	.unqueue = unqueue_member,
	.unplace = osd_array_unplace,
	.waits = is_false,
	.changed = osd_array_note,
	.paused = osd_array_yield,
	.entered = enter,
	.left = leave_array,
	.unended = do_nothing,
	.is_changing = array_is_changing,
	.change_begins = member_changes,
	.change_ended = member_changed,
	.may_start = is_false,
	.first = itself,
	.behind = members_behind,
	.take = itself,
	.view = view_member,
	.view_parts = view_no_parts,
	.shows_pending = always_shows,
};

/* ---- a job that is being accepted ------------------------------------------------------------------------ */

enum osd_status osd_flow_prepare(struct osd_job *job, const struct osd_flow_request *request)
{
	enum osd_status status =
		osd_after_create(request->after, request->after_count, &job->after);

	if (status != OSD_OK || !job->record.array.count)
		return status;
	status = osd_array_create(job);
	if (status != OSD_OK)
		return status;
	job->array->reuse_usec = request->reuse_usec;
	return osd_array_prepare(job->array, &request->ranges);
}

const struct osd_job_kind *osd_flow_kind_of(const struct osd_job_record *record)
{
	if (record->flags & OSD_JOB_ARRAY)
		return &osd_kind_head;
	return record->flags & OSD_JOB_MEMBER ? &osd_kind_member : &osd_kind_plain;
}
