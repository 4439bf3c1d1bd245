/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recent.h -- the jobs that an administrator's overview shows: running, waiting, and ended last.
 * Bounded, in memory; the store has all jobs.  An array counts as one job: its members are not
 * shown. */
#ifndef OSD_EXEC_RECENT_H
#define OSD_EXEC_RECENT_H

#include <stdint.h>

#include "exec/record/record.h"

struct osd_exec;

#define OSD_RECENT_ALIVE     32 /* running jobs first, then the newest waiting ones */
#define OSD_RECENT_ENDED     32
#define OSD_RECENT_PRINCIPAL 128 /* bytes kept of a principal's name */

struct osd_recent_job {
	struct osd_object_id id;
	uint8_t state;
	uint16_t reason;
	uint32_t members; /* of an array; 0: it is none */
	uint64_t submitted_msec, started_msec, ended_msec;
	uint64_t sequence;
	char name[OSD_JOB_NAME_MAX + 1];
	char principal[OSD_RECENT_PRINCIPAL + 1];
	char pool[OSD_JOB_POOL_MAX + 1];
};

/* At most OSD_RECENT_ALIVE + OSD_RECENT_ENDED: unfinished jobs first, then ended ones, the newest first in
 * both.  Takes exec->lock; returns how many. */
unsigned osd_exec_recent(struct osd_exec *exec,
			 struct osd_recent_job jobs[OSD_RECENT_ALIVE + OSD_RECENT_ENDED]);

#endif
