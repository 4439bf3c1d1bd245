/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recent.c -- the jobs of an administrator's overview (exec/exec.h). */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "exec/tell/tell.h"

static void describe(const struct osd_job_record *record, struct osd_recent_job *job)
{
	*job = (struct osd_recent_job){
		.id = record->id,
		.state = record->state,
		.reason = record->reason,
		.members = record->array.count,
		.submitted_msec = record->submitted_msec,
		.started_msec = record->started_msec,
		.ended_msec = record->ended_msec,
		.sequence = record->sequence,
	};
	memcpy(job->name, record->name, sizeof(job->name));
	memcpy(job->pool, record->pool, sizeof(job->pool));
	snprintf(job->principal, sizeof(job->principal), "%.*s", OSD_RECENT_PRINCIPAL,
		 record->principal);
}

void osd_recent_ended(struct osd_recent *recent, const struct osd_job_record *record)
{
	describe(record, &recent->ended[recent->count++ % OSD_RECENT_ENDED]);
}

/* ---- unfinished ones --------------------------------------------------------------------------- */

struct choice {
	const struct osd_job *jobs[OSD_RECENT_ALIVE]; /* borrowed: exec->lock is held */
	unsigned count;
};

static bool comes_before(const struct osd_job *a, const struct osd_job *b)
{
	bool a_waits = osd_job_state_waits(a->record.state);

	if (a_waits != osd_job_state_waits(b->record.state))
		return !a_waits;
	return a->record.sequence > b->record.sequence;
}

static void choose(struct choice *choice, const struct osd_job *job)
{
	unsigned at = choice->count;

	if (osd_job_state_terminal(job->record.state) || job->record.flags & OSD_JOB_MEMBER)
		return;
	if (at == OSD_RECENT_ALIVE && !comes_before(job, choice->jobs[at - 1]))
		return;
	if (at == OSD_RECENT_ALIVE)
		at--;
	else
		choice->count++;
	for (; at > 0 && comes_before(job, choice->jobs[at - 1]); at--)
		choice->jobs[at] = choice->jobs[at - 1];
	choice->jobs[at] = job;
}

unsigned osd_exec_recent(struct osd_exec *exec,
			 struct osd_recent_job jobs[OSD_RECENT_ALIVE + OSD_RECENT_ENDED])
{
	const struct osd_recent *recent = exec->recent;
	struct choice choice = {.count = 0};
	const struct osd_job *job = NULL;
	unsigned count = 0;

	osd_lock(&exec->lock);
	while ((job = osd_exec_next_job(exec, job)))
		choose(&choice, job);
	for (unsigned i = 0; i < choice.count; i++)
		describe(&choice.jobs[i]->record, &jobs[count++]);
	for (uint64_t i = 0; i < OSD_MIN(recent->count, OSD_RECENT_ENDED); i++)
		jobs[count++] = recent->ended[(recent->count - 1 - i) % OSD_RECENT_ENDED];
	osd_unlock(&exec->lock);
	return count;
}
