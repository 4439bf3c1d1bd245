/* SPDX-License-Identifier: GPL-2.0-or-later */
/* admin.h -- what a resource manager or an administrator may change of a running target's pools and
 * principals, and who used how much (docs/control.md, docs/pools.md).  What is changed holds until the target ends.
 *
 * Any thread; these take exec->lock and never wait for the store.  message says what is wrong, or is
 * empty; nothing was changed then. */
#ifndef OSD_EXEC_ADMIN_H
#define OSD_EXEC_ADMIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct osd_exec;

#define OSD_ADMIN_MESSAGE_MAX 256
#define OSD_POOL_VALUE_MAX    512

enum osd_pool_mode {
	OSD_POOL_RUNNING,
	OSD_POOL_PAUSED,  /* takes jobs and starts none */
	OSD_POOL_DRAINING /* takes none (BUSY), and runs those it has to the end */
};

/* Changes keys of a pool: words is "key=value;..." of the pools file's keys (pool/config.c), but
 * name and set, and of active=, mode= and idle_timeout=; it is changed.  All of them, or none:
 * OSD_E_NO_OBJECT: no such pool; OSD_E_PARAM_FIELD: a key or value is wrong, or the pools together
 * would be beyond slots or budget. */
enum osd_status osd_exec_pool_set(struct osd_exec *exec, const char *name, char *words,
				  char message[OSD_ADMIN_MESSAGE_MAX]);
/* What such a key has now, as text; false: there is no such pool or key. */
bool osd_exec_pool_value(struct osd_exec *exec, const char *name, const char *key,
			 char value[OSD_POOL_VALUE_MAX]);
/* Idle sandboxes are replaced now, those at work after their job; its zygote too. */
enum osd_status osd_exec_pool_recycle(struct osd_exec *exec, const char *name,
				      char message[OSD_ADMIN_MESSAGE_MAX]);
/* Reads the pools file again.  Pools that are new in it start, those no longer in it become gone
 * once their jobs have ended (they drain), the others get its values.  changed says, a line each,
 * what is different; cut when it is longer. */
enum osd_status osd_exec_pools_reload(struct osd_exec *exec, char *changed, size_t changed_size,
				      char message[OSD_ADMIN_MESSAGE_MAX]);
/* New jobs are refused (BUSY) while ordinary commands need the machine. */
void osd_exec_shed(struct osd_exec *exec, bool on);

struct osd_principal_share {
	unsigned weight;    /* 1..1000 */
	unsigned queue_max; /* jobs waiting in a pool; 0: the configured default */
	unsigned at_once;   /* jobs running in a pool; 0: no cap */
};
/* What was set of it; of one of whom nothing was: weight 1, zeroed. */
void osd_exec_principal_share(struct osd_exec *exec, const char *name,
			      struct osd_principal_share *ret_share);
/* In all pools.  OSD_E_PARAM_FIELD; OSD_E_NO_MEMORY. */
enum osd_status osd_exec_principal_set(struct osd_exec *exec, const char *name,
				       const struct osd_principal_share *share,
				       char message[OSD_ADMIN_MESSAGE_MAX]);

/* Since the target started. */
struct osd_principal_usage {
	const char *name; /* borrowed during the call */
	struct osd_principal_share share;
	uint64_t queued, running;		   /* now */
	uint64_t accepted, finished, refused;	   /* jobs */
	uint64_t queue_usec, run_usec, cpu_usec;   /* of those that have ended */
	uint64_t bytes_read, bytes_written, calls; /* likewise */
};
/* Calls fn for principals in order of their names, after the one named (NULL: from the first), until
 * it returns false.  Some that have had no job for long are summed up under the name "(others)". */
void osd_exec_each_usage(struct osd_exec *exec, const char *after,
			 bool (*fn)(void *arg, const struct osd_principal_usage *usage), void *arg);

#endif
