/* SPDX-License-Identifier: GPL-2.0-or-later */
/* story.c -- the log lines of one job, and the limit on the number of logged jobs (job.h). */
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "exec/job/job.h"

#define STORIES_PER_SECOND  20 /* of about five lines each */
#define FAILURES_PER_SECOND 10 /* lines about jobs that are not logged otherwise */

/* ---- how much is told ------------------------------------------------------------------------ */

#define SECOND_USEC UINT64_C(1000000)

static struct osd_ration stories = OSD_RATION(STORIES_PER_SECOND, SECOND_USEC);
static struct osd_ration failures = OSD_RATION(FAILURES_PER_SECOND, SECOND_USEC);

static enum osd_told decide(void)
{
	unsigned withheld;

	if (osd_log_wants(OSD_LOG_DEBUG))
		return OSD_TOLD;
	if (!osd_log_wants(OSD_LOG_INFO) ||
	    !osd_ration_take(&stories, osd_monotonic_usec(), &withheld))
		return OSD_UNTOLD;
	if (withheld)
		osd_info("%u jobs were not logged: at most %d a second are, at level debug all",
			 withheld, STORIES_PER_SECOND);
	return OSD_TOLD;
}

bool osd_story_is_told(struct osd_job *job)
{
	unsigned char undecided = OSD_TOLD_UNDECIDED;

	if (atomic_load(&job->told) == OSD_TOLD_UNDECIDED)
		atomic_compare_exchange_strong(&job->told, &undecided, (unsigned char)decide());
	return atomic_load(&job->told) == OSD_TOLD;
}

static struct osd_log_about about(const struct osd_job_record *record, uint64_t sandbox)
{
	return (struct osd_log_about){record->id.partition_id, record->id.object_id, sandbox,
				      record->pool};
}

/* ---- what is told ---------------------------------------------------------------------------- */

void osd_story_accepted(struct osd_job *job, const struct osd_job_record *record)
{
	struct osd_log_about whom = about(record, 0);
	const char *signer = record->function.signer;
	char principal[512], name[256], signed_by[160] = "";

	if (!osd_story_is_told(job))
		return;
	osd_log_quote(principal, sizeof(principal), record->principal, strlen(record->principal));
	osd_log_quote(name, sizeof(name), record->name, strlen(record->name));
	osd_log_quote(signed_by, sizeof(signed_by), signer, strlen(signer));
	osd_log_about(&whom, OSD_LOG_INFO,
		      "accepted, state %s, members %u, name '%s', principal '%s'%s%s%s",
		      osd_job_state_name(record->state), record->array.count, name, principal,
		      signer[0] ? ", signer '" : "", signed_by, signer[0] ? "'" : "");
}

void osd_story_started(struct osd_job *job, const struct osd_job_record *record, uint64_t sandbox,
		       pid_t pid)
{
	struct osd_log_about whom = about(record, sandbox);

	if (!osd_story_is_told(job))
		return;
	osd_log_about(&whom, OSD_LOG_INFO, "started, attempt %u, host pid %d, waited %llu us",
		      record->attempt, (int)pid, (unsigned long long)record->queue_usec);
}

void osd_story_asked(struct osd_job *job, unsigned reason)
{
	struct osd_log_about whom = about(&job->record, 0);

	if (osd_story_is_told(job))
		osd_log_about(&whom, OSD_LOG_INFO, "is to end: %s (reason %u)",
			      osd_job_reason_info(reason)->label, reason);
}

void osd_story_again(struct osd_job *job, uint64_t delay_usec)
{
	struct osd_log_about whom = about(&job->record, 0);

	if (osd_story_is_told(job))
		osd_log_about(&whom, OSD_LOG_INFO, "attempt %u came to nothing, another in %llu ms",
			      job->record.attempt, (unsigned long long)delay_usec / 1000);
}

/* Whether the host is at fault: neither the script nor a request ended the job. */
static bool is_alarming(const struct osd_job_record *record)
{
	unsigned block = record->reason / 100;

	return (block == 4 && record->reason != OSD_REASON_PROTOCOL) || block == 5 || block == 9;
}

static void tell_end(const struct osd_job_record *record)
{
	struct osd_log_about whom = about(record, record->sandbox_id);

	osd_log_about(
		&whom, is_alarming(record) ? OSD_LOG_WARNING : OSD_LOG_INFO,
		"ended %s%s%s (reason %u), exit %u, signal %u, attempt %u, waited %llu us, ran "
		"%llu us, "
		"cpu %llu us, peak %llu B, read %llu B, wrote %llu B, calls %llu, stdout %llu B",
		osd_job_state_name(record->state), record->reason ? ": " : "",
		osd_job_reason_info(record->reason)->label, record->reason, record->exit_code,
		record->signal, record->attempt, (unsigned long long)record->queue_usec,
		(unsigned long long)record->run_usec,
		(unsigned long long)record->cpu_user_usec + record->cpu_system_usec,
		(unsigned long long)record->peak_bytes, (unsigned long long)record->bytes_read,
		(unsigned long long)record->bytes_written, (unsigned long long)record->calls,
		(unsigned long long)record->stdout_length);
}

void osd_story_lost(const struct osd_job_record *record)
{
	unsigned withheld;

	if (!is_alarming(record) || !osd_ration_take(&failures, osd_monotonic_usec(), &withheld))
		return;
	tell_end(record);
	if (withheld)
		osd_warning("%u more jobs that ended like this were not logged", withheld);
}

void osd_story_ended(struct osd_job *job, const struct osd_job_record *record)
{
	if (osd_story_is_told(job))
		tell_end(record);
	else
		osd_story_lost(record);
}
