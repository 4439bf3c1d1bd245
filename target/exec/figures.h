/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures.h -- what is counted of pools, their jobs and sandboxes since the target started, as text
 * (docs/control.md, "pools").  Any thread. */
#ifndef OSD_EXEC_FIGURES_H
#define OSD_EXEC_FIGURES_H

#include <stdbool.h>

struct osd_exec;
struct osd_json;

/* Take exec->lock.  Whether a pool that serves has jobs that wait for a slot or a sandbox. */
bool osd_exec_jobs_wait(struct osd_exec *exec);
/* "jobs" and "pools" of an object that is open; nothing is written while it is held. */
void osd_exec_write_figures(struct osd_exec *exec, struct osd_json *json);

#endif
