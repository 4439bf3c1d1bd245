/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures.c -- see figures.h: counting.  Not here: how it is shown (figures_json.c). */
#include "exec/figures.h"

#include "base/clock.h"
#include "base/util.h"
#include "exec/proxy.h"

void osd_figures_arrived(struct osd_exec *exec, const struct osd_job *job)
{
	uint64_t count = job->array ? job->record.array.count : 1;

	exec->accepted += count;
	job->pool->figures.arrived += count;
	osd_principal_accepted(exec, job->record.principal, count);
}

void osd_figures_started(const struct osd_job *job)
{
	struct osd_pool_figures *figures = &job->pool->figures;

	figures->started++;
	if (job->record.attempt == 1)
		osd_histogram_add(&figures->queue, job->started_usec - job->accepted_usec);
}

void osd_figures_handed_over(const struct osd_run *run)
{
	osd_histogram_add(&run->job->pool->figures.start,
			  run->handed_over_usec - run->job->started_usec);
}

void osd_figures_again(struct osd_exec *exec, uint16_t reason)
{
	exec->retried[osd_job_reason_row(reason)]++;
}

void osd_figures_ended(struct osd_exec *exec, const struct osd_job *job,
		       const struct osd_job_record *record)
{
	struct osd_pool_figures *figures = &job->pool->figures;

	if (!job->head)
		osd_recent_ended(&exec->recent, record);
	if (job->array)
		return; /* its members are what is counted */
	exec->finished++;
	exec->lost += record->state == OSD_STATE_SANDBOX_LOST;
	figures->ended++;
	osd_principal_ended(exec, record);
	figures->finished[osd_job_reason_row(record->reason)]++;
	figures->cpu_usec += record->cpu_user_usec + record->cpu_system_usec;
	if (record->attempt)
		osd_histogram_add(&figures->run, record->run_usec);
	if (record->state == OSD_STATE_CANCELLED && job->end_asked_usec)
		osd_histogram_add(&figures->cancel, osd_monotonic_usec() - job->end_asked_usec);
}

void osd_figures_called(struct osd_exec *exec, uint16_t op, enum osd_answer_code code)
{
	atomic_fetch_add_explicit(&exec->calls.counts[op][code], 1, memory_order_relaxed);
}

static enum osd_call_kind kind_of(uint16_t op)
{
	switch (op) {
	case OSD_CALL_READ:
	case OSD_CALL_WRITE:
	case OSD_CALL_APPEND:
	case OSD_CALL_TRUNCATE:
	case OSD_CALL_CLEAR:
	case OSD_CALL_PUNCH:
	case OSD_CALL_FLUSH:
		return OSD_CALL_KIND_DATA;
	case OSD_CALL_GETATTR:
	case OSD_CALL_SETATTR:
		return OSD_CALL_KIND_ATTRIBUTES;
	case OSD_CALL_LIST:
	case OSD_CALL_QUERY:
		return OSD_CALL_KIND_LIST;
	default:
		return OSD_CALL_KIND_OTHER;
	}
}

void osd_figures_call_took(struct osd_exec *exec, uint16_t op, uint64_t usec)
{
	osd_histogram_add(&exec->calls.seconds[kind_of(op)], usec);
}
