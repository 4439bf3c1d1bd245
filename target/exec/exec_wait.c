/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec_wait.c -- synchronous EXECs that wait for a job (design D15): added by a submission, ended
 * by the job, the clock, an abort or shutdown, whichever detaches the wait first under
 * exec->lock. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/exec_impl.h"

static uint64_t wait_usec(const struct osd_exec_params *params)
{
	const struct osd_exec_limit_info *limit = &osd_exec_limits[OSD_LIMIT_SYNC_WAIT];

	return osd_exec_has(params, OSD_EXEC_PARAM_SYNC_WAIT)
		       ? OSD_MIN(params->sync_wait_usec, limit->maximum)
		       : limit->standard;
}

enum osd_status osd_exec_wait_reserve(struct osd_exec *exec,
				      const struct osd_exec_submission *submission,
				      struct osd_exec_wait **ret_wait)
{
	struct osd_place_holder *holder;
	struct osd_exec_wait *wait;
	enum osd_status status;

	if (exec->quiescing)
		return OSD_E_QUEUE_FULL;
	status = osd_places_take(&exec->wait_places, submission->principal, &holder);
	if (status != OSD_OK)
		return status;
	wait = malloc(sizeof(*wait));
	if (!wait) {
		osd_places_give(&exec->wait_places, holder);
		return OSD_E_NO_MEMORY;
	}
	*wait = (struct osd_exec_wait){
		.holder = holder,
		.done = submission->done,
		.arg = submission->arg,
		.aborted = submission->aborted,
		.deadline_usec = osd_monotonic_usec() + wait_usec(submission->params),
		.end_on_abort = submission->params->flags & OSD_EXEC_END_ON_ABORT,
		.next = exec->reserved,
	};
	exec->reserved = wait;
	*ret_wait = wait;
	return OSD_OK;
}

static bool is_aborted(const struct osd_exec_wait *wait)
{
	return wait->aborted && __atomic_load_n(wait->aborted, __ATOMIC_ACQUIRE);
}

static void unreserve(struct osd_exec *exec, const struct osd_exec_wait *wait)
{
	struct osd_exec_wait **link = &exec->reserved;

	while (*link != wait)
		link = &(*link)->next;
	*link = wait->next;
}

void osd_exec_wait_start(struct osd_exec *exec, struct osd_exec_wait *wait,
			 struct osd_object_id job)
{
	unreserve(exec, wait);
	wait->job = job;
	if (exec->quiescing)
		wait->deadline_usec = 0;
	wait->next = exec->waits;
	exec->waits = wait;
	osd_monitor_by(exec, is_aborted(wait) ? 0 : wait->deadline_usec);
}

void osd_exec_wait_take(struct osd_exec *exec, struct osd_exec_wait *wait)
{
	unreserve(exec, wait);
	osd_places_give(&exec->wait_places, wait->holder);
	wait->next = NULL;
}

void osd_exec_wait_drop(struct osd_exec *exec, struct osd_exec_wait *wait)
{
	if (!wait)
		return;
	osd_exec_wait_take(exec, wait);
	free(wait);
}

/* Moves *link from exec->waits to the front of *taken. */
static void take(struct osd_exec *exec, struct osd_exec_wait **link, struct osd_exec_wait **taken)
{
	struct osd_exec_wait *wait = *link;

	*link = wait->next;
	osd_places_give(&exec->wait_places, wait->holder);
	wait->next = *taken;
	*taken = wait;
}

static bool same_id(struct osd_object_id a, struct osd_object_id b)
{
	return a.partition_id == b.partition_id && a.object_id == b.object_id;
}

struct osd_exec_wait *osd_exec_take_waits(struct osd_exec *exec, const struct osd_job *job)
{
	struct osd_exec_wait *taken = NULL;

	for (struct osd_exec_wait **link = &exec->waits; *link;) {
		if (!job || same_id((*link)->job, job->record.id))
			take(exec, link, &taken);
		else
			link = &(*link)->next;
	}
	return taken;
}

struct osd_exec_wait *osd_exec_take_late_waits(struct osd_exec *exec, uint64_t now_usec,
					       uint64_t *deadline)
{
	struct osd_exec_wait *taken = NULL;

	for (struct osd_exec_wait **link = &exec->waits; *link;) {
		(*link)->was_aborted = is_aborted(*link);
		if ((*link)->was_aborted || (*link)->deadline_usec <= now_usec) {
			take(exec, link, &taken);
		} else {
			*deadline = OSD_MIN(*deadline, (*link)->deadline_usec);
			link = &(*link)->next;
		}
	}
	return taken;
}

void osd_exec_deliver(struct osd_exec_wait *waits, struct osd_exec_outcome outcome)
{
	while (waits) {
		struct osd_exec_wait *next = waits->next;

		outcome.job = waits->job;
		waits->done(waits->arg, &outcome);
		free(waits);
		waits = next;
	}
}

void osd_exec_deliver_late(struct osd_exec *exec, struct osd_exec_wait *waits)
{
	while (waits) {
		struct osd_exec_wait *wait = waits;
		struct osd_exec_outcome outcome = {.status = OSD_E_STILL_RUNNING};
		struct osd_object_id job = wait->job;
		bool end = wait->was_aborted && wait->end_on_abort;

		waits = wait->next;
		wait->next = NULL;
		if (wait->was_aborted)
			outcome.status = OSD_E_TASK_ABORTED;
		osd_exec_deliver(wait, outcome);
		if (end)
			osd_exec_end_one(exec, job, OSD_REASON_CLIENT_GONE);
	}
}

void osd_exec_look_at_aborted(struct osd_exec *exec)
{
	osd_lock(&exec->lock);
	if (exec->waits)
		osd_monitor_by(exec, 0);
	osd_unlock(&exec->lock);
}

void osd_exec_quiesce(struct osd_exec *exec)
{
	struct osd_exec_outcome outcome = {.status = OSD_E_STILL_RUNNING};
	struct osd_exec_wait *taken;

	osd_lock(&exec->lock);
	exec->quiescing = true;
	taken = osd_exec_take_waits(exec, NULL);
	osd_unlock(&exec->lock);
	osd_exec_deliver(taken, outcome);
}
