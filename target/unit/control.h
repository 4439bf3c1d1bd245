/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control.h -- the socket by which a resource manager and administrators' tools look at a running
 * target and change it (docs/control.md).  It is never in the path of a command or a job.
 *
 * Order: create before the jobs' machinery starts (osd_control_jobs_wait may come from then on), start
 * once everything it shows is there, stop before any of that ends, free last. */
#ifndef OSD_UNIT_CONTROL_H
#define OSD_UNIT_CONTROL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"

struct osd_control;
struct osd_unit;
struct osd_exec;
struct osd_figures;
struct osd_objects;

/* What it shows and changes; all borrowed from start to stop. */
struct osd_control_targets {
	struct osd_unit *unit;
	struct osd_objects *objects;
	struct osd_exec *exec;
	const struct osd_figures *figures;
	bool faults; /* some are injected on purpose */
	uid_t manager_uid; /* let in beside root and the target's own user; 0: nobody is */
};

/* NULL: no memory, or no descriptors. */
struct osd_control *osd_control_create(void);
/* Listens at path, mode 0600 (0660 with a manager_uid), and starts the thread.  A socket there that nobody listens at is
 * replaced; anything else at that path is left alone, and message says what it is.
 * OSD_E_PARAM_FIELD, OSD_E_NO_MEMORY, or as the system call failed. */
enum osd_status osd_control_start(struct osd_control *control, const char *path,
				  const struct osd_control_targets *targets, char message[256]);
/* Ends the thread and every connection, and removes the socket; nothing where it was not started. */
void osd_control_stop(struct osd_control *control);
/* NULL is fine. */
void osd_control_free(struct osd_control *control);

/* Jobs have begun to wait: whoever watches is told soon, unless they wait no more.  Any thread, any
 * locks; never waits. */
void osd_control_jobs_wait(struct osd_control *control);

#endif
