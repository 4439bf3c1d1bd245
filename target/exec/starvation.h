/* SPDX-License-Identifier: GPL-2.0-or-later */
/* starvation.h -- processor time that scripts wanted and did not get: the monitor samples each running
 * sandbox some times a second.  Two things follow.  A job's wall limit is extended, within bounds,
 * by the time in which it could not run.  When all scripts together get little, the target reports that
 * to iosd-sandboxd, which gives them their least share.
 *
 * exec->lock held in all of these. */
#ifndef OSD_EXEC_STARVATION_H
#define OSD_EXEC_STARVATION_H

#include <stdbool.h>
#include <stdint.h>

struct osd_exec;
struct osd_sandbox;

/* A starved job may take ten times its wall limit, but at most this much longer. */
#define OSD_STARVED_TIMES     9u
#define OSD_STARVED_MOST_USEC UINT64_C(60000000)

/* By how much a wall limit is extended for a job that waited so long for a processor. */
uint64_t osd_starved_extension(uint64_t wall_usec, uint64_t starved_usec);

/* A job is handed over: its waits count from here on. */
void osd_starvation_begin(struct osd_sandbox *sandbox, uint64_t now_usec);

/* Whether the sandbox's job is past its wall limit, with what it has waited for a processor taken into
 * account; moves sandbox->wall_usec when it is not. */
bool osd_starvation_is_late(struct osd_sandbox *sandbox, uint64_t now_usec);

/* Samples all sandboxes when it is time to; *deadline: no later than the next time. */
void osd_starvation_check(struct osd_exec *exec, uint64_t now_usec, uint64_t *deadline);

#endif
