/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures.h -- the counters of pools, their jobs and sandboxes since the target started, as text
 * (docs/control.md, "pools").  Any thread. */
#ifndef OSD_EXEC_FIGURES_H
#define OSD_EXEC_FIGURES_H

#include <stdbool.h>

struct osd_exec;
struct osd_json;

/* Takes exec->lock.  Whether a pool that serves has jobs that wait for a slot or a sandbox. */
bool osd_exec_jobs_wait(struct osd_exec *exec);
/* Writes "jobs" and "pools" into an open object; does not write while it holds the lock. */
void osd_exec_write_figures(struct osd_exec *exec, struct osd_json *json);

#endif
