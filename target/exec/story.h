/* SPDX-License-Identifier: GPL-2.0-or-later */
/* story.h -- what the log says of one job: accepted, started, asked to end, another attempt, ended; each
 * line names the job, its pool and sandbox (docs/logs.md).
 *
 * A job's story is told whole or not at all, which is decided where it begins: at level info for so many
 * jobs a second, at debug for all.  However many are not told one by one, those that are lost or fail of
 * the host get a line when they end.
 *
 * Any thread.  Each does nothing where the job is not told; record is the job's as of then. */
#ifndef OSD_EXEC_STORY_H
#define OSD_EXEC_STORY_H

#include <stdint.h>

struct osd_job;
struct osd_job_record;
struct osd_run;

enum osd_told { OSD_TOLD_UNDECIDED, OSD_TOLD, OSD_UNTOLD };

/* Before anybody else can see the job. */
void osd_story_accepted(struct osd_job *job, const struct osd_job_record *record);
/* So that iosd-sandboxd's lines name the job.  Before its sandbox gets it, which may end at once;
 * exec->lock not held. */
void osd_story_name(struct osd_run *run, struct osd_job *job, const struct osd_job_record *record);
/* That, where it was not done before, and that it has started; exec->lock not held. */
void osd_story_started(struct osd_run *run, const struct osd_job_record *record);
void osd_story_asked(struct osd_job *job, unsigned reason);
void osd_story_again(struct osd_job *job, uint64_t delay_usec);
void osd_story_ended(struct osd_job *job, const struct osd_job_record *record);
/* Of one that was lost with the target's last run. */
void osd_story_lost(const struct osd_job_record *record);

#endif
