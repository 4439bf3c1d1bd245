/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control.h -- the socket through which a resource manager and administrators' tools inspect and
 * change a running target (docs/control.md).  No command or job depends on it.  Order: create
 * before the jobs' machinery starts (from then on osd_control_jobs_wait may be called); start once
 * everything it shows exists; stop before any of that ends; free last. */
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

/* The parts that it shows and changes; all borrowed from start to stop. */
struct osd_control_targets {
	struct osd_unit *unit;
	struct osd_objects *objects;
	struct osd_exec *exec;
	struct osd_functions *functions;
	const struct osd_figures *figures;
	uint64_t lease_usec; /* of a manager; 0: the usual one */
	bool faults; /* some are injected on purpose */
	uid_t manager_uid; /* admitted, as are root and the target's own user; 0: no further user */
};

/* NULL: no memory, or no descriptors. */
struct osd_control *osd_control_create(void);
/* Listens at path, mode 0600 (0660 with a manager_uid), and starts the thread.  Replaces a socket
 * on which no process listens.  Anything else at that path is left alone, and named in message.
 * OSD_E_PARAM_FIELD, OSD_E_NO_MEMORY, or the status of the failed system call. */
enum osd_status osd_control_start(struct osd_control *control, const char *path,
				  const struct osd_control_targets *targets, char message[256]);
/* Ends the thread and every connection, and removes the socket; does nothing if it was not
 * started. */
void osd_control_stop(struct osd_control *control);
/* NULL is fine. */
void osd_control_free(struct osd_control *control);

/* Called when jobs have begun to wait: watchers are notified soon, unless the jobs have started by
 * then.  Any thread, any locks; never waits. */
void osd_control_jobs_wait(struct osd_control *control);

#endif
