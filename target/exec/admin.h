/* SPDX-License-Identifier: GPL-2.0-or-later */
/* admin.h -- changes to the pools and principals of a running target, and the use of each principal
 * (docs/control.md, docs/pools.md).  The resource manager and administrators make them.
 *
 * Changes hold until the target ends.  If a function fails, nothing was changed, and message names the
 * mistake; otherwise message is empty.
 *
 * Locking: any thread.  These functions take exec->lock and never wait for the store. */
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
	OSD_POOL_PAUSED,  /* accepts jobs, but starts none */
	OSD_POOL_DRAINING /* refuses new jobs (BUSY), and runs those it has to the end */
};

/* Changes keys of a pool: all of them, or none.  words is "key=value;...", and this function writes to it.
 * The keys are those of the pools file (pool/config.c) except name and set, and active, mode and
 * idle_timeout.  OSD_E_NO_OBJECT: no such pool.  OSD_E_PARAM_FIELD: a key or value is wrong, or all pools
 * together would exceed the slots or the memory budget. */
enum osd_status osd_exec_pool_set(struct osd_exec *exec, const char *name, char *words,
				  char message[OSD_ADMIN_MESSAGE_MAX]);
/* Writes the present value of such a key as text.  False: there is no such pool or key. */
bool osd_exec_pool_value(struct osd_exec *exec, const char *name, const char *key,
			 char value[OSD_POOL_VALUE_MAX]);
/* Replaces idle sandboxes now, and working ones after their job; also the zygote. */
enum osd_status osd_exec_pool_recycle(struct osd_exec *exec, const char *name,
				      char message[OSD_ADMIN_MESSAGE_MAX]);
/* Reads the pools file again.  New pools start.  Pools that are not in the file any more drain:
 * they are gone once their jobs have ended.  The others get the new values.  changed: the
 * differences, one per line, cut to its size. */
enum osd_status osd_exec_pools_reload(struct osd_exec *exec, char *changed, size_t changed_size,
				      char message[OSD_ADMIN_MESSAGE_MAX]);
/* Refuses new jobs (BUSY) while ordinary commands need the machine. */
void osd_exec_shed(struct osd_exec *exec, bool on);

struct osd_principal_share {
	unsigned weight;    /* 1..1000 */
	unsigned queue_max; /* jobs waiting in a pool; 0: the configured default */
	unsigned at_once;   /* jobs running in a pool; 0: no cap */
};
/* The settings of a principal; without any: weight 1, the rest zero. */
void osd_exec_principal_share(struct osd_exec *exec, const char *name,
			      struct osd_principal_share *ret_share);
/* Sets the share of a principal in all pools.  OSD_E_PARAM_FIELD: a number is out of range.
 * OSD_E_NO_MEMORY. */
enum osd_status osd_exec_principal_set(struct osd_exec *exec, const char *name,
				       const struct osd_principal_share *share,
				       char message[OSD_ADMIN_MESSAGE_MAX]);

/* The use of a principal since the target started; times in microseconds. */
struct osd_principal_usage {
	const char *name; /* borrowed during the call */
	struct osd_principal_share share;
	uint64_t queued, running;		   /* now */
	uint64_t accepted, finished, refused;	   /* jobs */
	uint64_t queue_usec, run_usec, cpu_usec;   /* of those that have ended */
	uint64_t bytes_read, bytes_written, calls; /* likewise */
};
/* Calls fn for each principal in order of name, from the one after the given name (NULL: from the
 * first), until fn returns false.  The accounts of some principals that have had no job for long
 * are added up under the name "(others)". */
void osd_exec_each_usage(struct osd_exec *exec, const char *after,
			 bool (*fn)(void *arg, const struct osd_principal_usage *usage), void *arg);

#endif
