/* SPDX-License-Identifier: GPL-2.0-or-later */
/* offload.c -- jobs that a pool gives back to their clients: what it knows for decisions where jobs run
 * (advice/advice.h), and its deadline.  See pool.h. */
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/pool/pool.h"

_Static_assert(OSD_ADVICE_PRINCIPAL_MAX == OSD_JOB_PRINCIPAL_MAX, "principals are compared whole");

#define MEAN_PART 8 /* of the mean run time, a new run is one part */

/* Until a new job of the pool would start.  A job that has run for long is expected to run as long again. */
static uint64_t wait_of(const struct osd_pool *pool, uint64_t now)
{
	const struct osd_pool_load *load = &pool->load;
	uint64_t slots = OSD_MAX(pool->supply.active, 1u), queued = pool->queue.entry_count;
	uint64_t elapsed = load->running ? now - load->started_usec / load->running : 0;
	uint64_t usual = load->run_usec ? load->run_usec : elapsed;

	if (queued == 0 && pool->supply.busy < slots)
		return 0;
	return (OSD_MAX(usual / 2, elapsed) + queued * usual) / slots;
}

static struct osd_advice_work work_of(const struct osd_pool *pool,
				      const struct osd_job_record *record, uint64_t bytes)
{
	return (struct osd_advice_work){
		.sha256 = record->code_sha256,
		.set = record->set[0] ? record->set : pool->config.set,
		.bytes = bytes,
	};
}

/* The jobs that share the processors with a job of the pool: all; or those of the pool, if its CPU share is scarcer.
 * */
static void find_sharers(const struct osd_pool *pool, unsigned *ret_running, double *ret_processors)
{
	const struct osd_exec *exec = pool->exec;
	double processors = exec->pools->processors;
	double own = processors * (double)pool->config.cpu_share / OSD_CPU_SHARE_WHOLE;
	unsigned all = (unsigned)exec->running_count, here = (unsigned)pool->load.running;
	bool scarce = osd_advice_slowdown(here, own) > osd_advice_slowdown(all, processors);

	*ret_running = scarce ? here : all;
	*ret_processors = scarce ? own : processors;
}

static bool decide(struct osd_pool *pool, struct osd_job_record *record, uint64_t wait_usec)
{
	const struct osd_exec *exec = pool->exec;
	struct osd_job_offload *offload = &record->offload;
	const struct osd_advice_work work = work_of(pool, record, offload->home_bytes);
	struct osd_advice_load load = {
		.principal = record->principal,
		.now_usec = osd_monotonic_usec(),
		.wait_usec = wait_usec,
	};
	struct osd_advice_numbers numbers;
	bool for_client;

	find_sharers(pool, &load.running, &load.processors);
	for_client = osd_advice_is_for_client(&exec->pools->advice, &work, offload->home_usec,
					      &load, &numbers);

	offload->near_usec = numbers.near_usec;
	offload->wait_usec = numbers.wait_usec;
	offload->weighed_usec = numbers.home_usec;
	return for_client;
}

static void push_back(struct osd_pool *pool, const struct osd_job_record *record,
		      enum osd_advice_stage stage, enum osd_advice_reason reason)
{
	const struct osd_job_offload *offload = &record->offload;
	struct osd_advice_push push = {
		.at_msec = osd_wall_msec(),
		.stage = stage,
		.reason = reason,
		.numbers = {offload->near_usec, offload->wait_usec, offload->weighed_usec},
	};

	memcpy(push.name, record->name, sizeof(push.name) - 1);
	memcpy(push.pool, pool->config.name, sizeof(push.pool) - 1);
	memcpy(push.principal, record->principal, sizeof(push.principal) - 1);
	pool->figures.pushed[reason]++;
	osd_advice_pushed(&pool->exec->pools->advice, record->principal, offload->home_usec,
			  osd_monotonic_usec(), &push);
}

bool osd_pool_refuses_work(struct osd_pool *pool, struct osd_job_record *record)
{
	if (!(record->flags & OSD_JOB_PURE) || record->flags & OSD_JOB_ARRAY ||
	    !decide(pool, record, wait_of(pool, osd_monotonic_usec())))
		return false;
	push_back(pool, record, OSD_ADVICE_ADMISSION, OSD_ADVICE_SOONER);
	return true;
}

bool osd_pool_returns_work(struct osd_job *job)
{
	struct osd_job_record *record = &job->record;
	struct osd_pool *pool = job->pool;
	uint64_t slots = OSD_MAX(pool->supply.active, 1u), behind = job->kind->behind(job);

	if (!(record->flags & OSD_JOB_PURE) || record->attempt > 0)
		return false;
	/* Members are alike: this one stands for the last, which waits for all others. */
	decide(pool, record, 0);
	return decide(pool, record, record->offload.near_usec * behind / slots);
}

void osd_pool_work_returned(const struct osd_job *job)
{
	push_back(job->pool, &job->record, OSD_ADVICE_DISPATCH, OSD_ADVICE_SOONER);
}

/* ---- the deadline ---------------------------------------------------------------------------- */

bool osd_pool_would_be_late(struct osd_pool *pool, struct osd_job_record *record)
{
	uint64_t deadline = pool->config.deadline_usec, wait;

	if (!deadline || record->state != OSD_STATE_QUEUED)
		return false;
	wait = wait_of(pool, osd_monotonic_usec());
	if (wait + record->offload.near_usec <= deadline)
		return false;
	record->offload.wait_usec = wait;
	push_back(pool, record, OSD_ADVICE_ADMISSION, OSD_ADVICE_LATE);
	return true;
}

/* The last moment at which the job can start and end in time, as far as is known.  OSD_NEVER: it may be as late as it
 * is.  A stage is part of another job. */
static uint64_t latest_start(const struct osd_job *job)
{
	const struct osd_job *whole = osd_job_whole(job);
	uint64_t deadline = job->pool->config.deadline_usec, near = job->record.offload.near_usec;

	if (!deadline || job->record.attempt > 0 || job->record.state != OSD_STATE_QUEUED ||
	    job->entry.lendable || whole->kind->waits(whole))
		return OSD_NEVER;
	return OSD_MAX(job->ready_usec, whole->ready_usec) + deadline - OSD_MIN(near, deadline);
}

bool osd_pool_is_late(const struct osd_job *job, uint64_t now_usec)
{
	return !(job->record.flags & OSD_JOB_ARRAY) && now_usec > latest_start(job);
}

void osd_pool_note_deadline(struct osd_job *job)
{
	struct osd_exec *exec = job->exec;
	uint64_t latest = latest_start(job), now = osd_monotonic_usec(), msec;

	if (latest == OSD_NEVER)
		return;
	msec = osd_wall_msec() + (latest - OSD_MIN(latest, now)) / 1000 + 1;
	exec->idle_msec = OSD_MIN(exec->idle_msec, msec);
	osd_exec_sweep_by(exec, msec);
}

/* ---- runs ------------------------------------------------------------------------------------ */

void osd_pool_work_starts(struct osd_job *job)
{
	struct osd_pools *pools = job->exec->pools;
	double processors;
	unsigned running;

	find_sharers(job->pool, &running, &processors);
	job->slowdown = osd_advice_slowdown(running, processors);
	if (!(job->record.flags & OSD_JOB_PURE))
		return;
	pools->advice.unknown += !job->record.offload.near_usec;
	pools->advice.stayed += job->record.offload.near_usec && job->record.offload.home_usec;
}

void osd_pool_work_ended(const struct osd_job *job, const struct osd_job_record *record)
{
	struct osd_pools *pools = job->exec->pools;
	struct osd_pool_load *load = &job->pool->load;
	const struct osd_advice_work work = work_of(job->pool, record, record->bytes_read);
	const struct osd_advice_run run = {
		.now_usec = osd_monotonic_usec(),
		.run_usec = record->run_usec,
		.cpu_usec = record->cpu_user_usec + record->cpu_system_usec,
		.starved_usec = record->starved_usec,
		.starving_known = job->starving_known,
		.output_bytes = record->result_length + record->stdout_length,
		.slowdown = OSD_MAX(job->slowdown, 1.0),
	};
	uint64_t predicted = record->offload.near_usec;

	if (record->reason == OSD_REASON_DEADLINE)
		push_back(job->pool, record, OSD_ADVICE_DISPATCH, OSD_ADVICE_LATE);
	if (!record->attempt)
		return;
	load->run_usec = load->run_usec
				 ? load->run_usec - load->run_usec / MEAN_PART +
					   record->run_usec / MEAN_PART
				 : record->run_usec;
	if (!(record->flags & OSD_JOB_PURE) || record->state != OSD_STATE_COMPLETED)
		return;
	if (predicted)
		osd_histogram_add(&pools->advice_error,
				  OSD_MAX(predicted, record->run_usec) -
					  OSD_MIN(predicted, record->run_usec));
	osd_advice_ran(&pools->advice, &work, &run);
}
