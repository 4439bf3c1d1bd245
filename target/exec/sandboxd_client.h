/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandboxd_client.h -- between the connection (sandboxd_client.c) and the sandboxes
 * (sandbox_pool.c). exec->lock held in all of these. */
#ifndef OSD_EXEC_SANDBOXD_CLIENT_H
#define OSD_EXEC_SANDBOXD_CLIENT_H

#include "exec/sandbox.h"

/* Descriptors of SPAWNED, in order. */
enum { SPAWNED_PIDFD, SPAWNED_SHM, SPAWNED_JOB, SPAWNED_STDOUT, SPAWNED_STDERR, OSD_SPAWNED_FDS };

/* False: no connection (any more). */
bool osd_service_send(struct osd_exec *exec, enum osd_sandboxd_type type, uint64_t id,
		      const void *body, size_t length);

/* Has the sandbox look at its control line; in vain while iosd-sandboxd is behind or stopped, for other
 * messages must find room in the socket.  Never loses the connection. */
void osd_service_nudge(struct osd_exec *exec, uint64_t id);

/* Tells how much of the processor time that they want scripts get; in vain as above. */
void osd_service_report_share(struct osd_exec *exec, unsigned per_mille);

/* What has come in.  osd_pool_spawned takes the descriptors it wants, leaving -1. */
void osd_pool_spawned(struct osd_exec *exec, uint64_t id, pid_t pid, int fds[OSD_SPAWNED_FDS]);
void osd_pool_exited(struct osd_exec *exec, uint64_t id, const struct osd_sandbox_exit *status);
void osd_pool_refused(struct osd_exec *exec, uint64_t id, const char *why);
void osd_pool_limits_set(struct osd_exec *exec, uint64_t id);
void osd_pool_service_lost(struct osd_exec *exec);

#endif
