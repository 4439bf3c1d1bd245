/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wait.c -- synchronous EXECs that wait for a job.  A submission adds the wait.  The
 * job, the clock, an abort or the shutdown ends it: the first to detach the wait under
 * exec->lock. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/job/job.h"

/* Before the transaction of the job: once that is committed, nothing may refuse the wait. */
enum osd_status osd_exec_wait_reserve(struct osd_exec *exec, const struct osd_exec_wait *wanted,
				      const char *principal, uint64_t usec,
				      struct osd_exec_wait **ret_wait)
{
	const struct osd_exec_limit_info *limit = &osd_exec_limits[OSD_LIMIT_SYNC_WAIT];
	struct osd_place_holder *holder;
	struct osd_exec_wait *wait;
	enum osd_status status;

	osd_assert_held(&exec->lock);
	if (exec->quiescing)
		return OSD_E_QUEUE_FULL;
	status = osd_places_take(&exec->wait_places, principal, 1, &holder);
	if (status != OSD_OK)
		return status;
	wait = malloc(sizeof(*wait));
	if (!wait) {
		osd_places_give(&exec->wait_places, holder, 1);
		return OSD_E_NO_MEMORY;
	}
	*wait = *wanted;
	wait->holder = holder;
	wait->deadline_usec =
		osd_monotonic_usec() + (usec ? OSD_MIN(usec, limit->maximum) : limit->standard);
	wait->next = exec->reserved;
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
	osd_assert_held(&exec->lock);
	unreserve(exec, wait);
	wait->job = job;
	if (exec->quiescing)
		wait->deadline_usec = 0;
	wait->next = exec->waits;
	exec->waits = wait;
	osd_alarm_by(&exec->monitor, is_aborted(wait) ? 0 : wait->deadline_usec);
}

void osd_exec_wait_take(struct osd_exec *exec, struct osd_exec_wait *wait)
{
	osd_assert_held(&exec->lock);
	unreserve(exec, wait);
	osd_places_give(&exec->wait_places, wait->holder, 1);
	wait->next = NULL;
}

void osd_exec_wait_drop(struct osd_exec *exec, struct osd_exec_wait *wait)
{
	osd_assert_held(&exec->lock);
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
	osd_places_give(&exec->wait_places, wait->holder, 1);
	wait->next = *taken;
	*taken = wait;
}

struct osd_exec_wait *osd_exec_take_waits(struct osd_exec *exec, const struct osd_job *job)
{
	struct osd_exec_wait *taken = NULL;

	osd_assert_held(&exec->lock);
	for (struct osd_exec_wait **link = &exec->waits; *link;) {
		if (!job || osd_same_id((*link)->job, job->record.id))
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

	osd_assert_held(&exec->lock);
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
