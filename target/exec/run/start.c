/* SPDX-License-Identifier: GPL-2.0-or-later */
/* start.c -- the thread that accepts a job starts it (run.h), if the job need not wait: the pool's
 * queue is empty, a slot is free, and a sandbox with the job's limits is READY. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/run/run.h"

/* exec->lock held.  The job counts as having waited zero time. */
static struct osd_sandbox *take_fitting(struct osd_exec *exec, const struct osd_job *job)
{
	struct osd_sandbox_order order = osd_pool_order(job);
	struct osd_sandbox *sandbox = osd_sandbox_take(exec->sandboxes, &order);

	osd_assert_held(&exec->lock);
	if (!sandbox)
		return NULL;
	if (sandbox->principal ? osd_sandbox_is_renewed(sandbox, &order)
			       : osd_sandbox_limits_equal(&order.limits, &sandbox->limits))
		return sandbox;
	osd_sandbox_put_back(exec->sandboxes, sandbox);
	return NULL;
}

/* The acceptance of the job commits this record: one commit both accepts and starts the job. */
static void fill_started(struct osd_job_record *record, const struct osd_pool *pool)
{
	memcpy(record->set, pool->config.set, sizeof(record->set));
	record->state = OSD_STATE_STARTING;
	record->reason = OSD_REASON_NONE;
	record->attempt = 1;
	record->generation++;
	record->started_msec = osd_wall_msec();
}

struct osd_run *osd_start_claim(struct osd_job *job, struct osd_job_record *record)
{
	struct osd_pool *pool = job->pool;
	struct osd_exec *exec = pool->exec;
	struct osd_sandbox *sandbox;
	struct osd_run *run;

	osd_assert_held(&exec->lock);
	if (record->state != OSD_STATE_QUEUED || !job->kind->may_start(job) ||
	    (!job->content && !job->args_follow) || osd_pool_next(pool) ||
	    !osd_pool_starts(pool, job->entry.lendable) ||
	    !osd_fair_queue_may_start(&job->entry))
		return NULL;
	sandbox = take_fitting(exec, job);
	if (!sandbox)
		return NULL;
	run = osd_run_create(exec, sandbox);
	if (!run) {
		osd_sandbox_put_back(exec->sandboxes, sandbox);
		return NULL;
	}
	run->occupant = osd_pool_occupy(pool, &job->entry);
	fill_started(record, pool);
	return run;
}

void osd_start_give_back(struct osd_run *run, struct osd_pool *pool)
{
	struct osd_exec *exec = pool->exec;

	osd_assert_held(&exec->lock);
	osd_pool_vacate(pool, run->occupant);
	if (run->sent) {
		osd_sandbox_kill(exec->sandboxes, run->sandbox);
		osd_sandbox_give_back(exec->sandboxes, run->sandbox, true);
	} else {
		osd_sandbox_put_back(exec->sandboxes, run->sandbox);
	}
	free(run);
	osd_proxies_call_next(exec);
}

void osd_start_undo(struct osd_run *run, struct osd_pool *pool, struct osd_job_record *record)
{
	osd_start_give_back(run, pool);
	memset(record->set, 0, sizeof(record->set));
	record->state = OSD_STATE_QUEUED;
	record->reason = OSD_REASON_WAITS_FOR_SLOT;
	record->attempt = 0;
	record->generation--;
	record->started_msec = 0;
}

void osd_start_send_ahead(struct osd_run *run, struct osd_job *job,
			  const struct osd_job_record *record)
{
	osd_run_name_job(run, job, record);
	run->sent = osd_run_send(run, job, record, job->content);
}

void osd_start_begin(struct osd_run *run, struct osd_job *job)
{
	osd_assert_held(&run->exec->lock);
	job->kind->unplace(job);
	job->started_usec = osd_monotonic_usec();
	osd_figures_started(job);
	osd_run_set_job(run, osd_job_ref(job));
	osd_run_begin(run);
}

/* Wakes the proxy only now, so that it wakes up while the sandbox does. */
void osd_start_send(struct osd_run *run)
{
	OSD_CLEANUP_FREE uint8_t *content = NULL;
	struct osd_exec *exec = run->exec;
	struct osd_pool *pool = run->job->pool;
	struct osd_job_record record;
	bool sent, wake;

	osd_lock(&exec->lock);
	record = run->job->record;
	content = OSD_STEAL(run->job->content);
	osd_unlock(&exec->lock);
	osd_run_note_start(run, &record);
	sent = run->sent || osd_run_send(run, run->job, &record, content);
	if (sent && osd_run_linger(run))
		return;
	osd_lock(&exec->lock);
	run->not_sent = !sent;
	run->next_started = pool->started;
	pool->started = run;
	wake = osd_proxies_prepare(exec);
	osd_unlock(&exec->lock);
	if (wake)
		pthread_cond_signal(&exec->runs->work);
}

struct osd_run *osd_start_take(struct osd_pool *pool)
{
	struct osd_run *run = pool->started;

	osd_assert_held(&pool->exec->lock);
	if (run)
		pool->started = run->next_started;
	return run;
}
