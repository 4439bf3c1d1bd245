/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup.h -- one control group per slot, made for its first sandbox, in whatever hierarchies this
 * host has: cgroup v2, or v1's memory, pids and cpu.
 *
 * A sandbox joins by writing to the procs files handed to it; joining a group made earlier costs
 * tens of microseconds, making one for each job would cost milliseconds.  A hierarchy
 * that only weighs processor time has one group for all: zygotes are put there, and their
 * children are born in it.  Results: 0 or -errno. */
#ifndef OSD_SANDBOX_CGROUP_H
#define OSD_SANDBOX_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "layers.h"
#include "wire/sandboxd_frame.h"

#define OSD_HIERARCHIES 3

struct osd_cgroup_slot {
	int directory; /* -1: none */
	int tasks;     /* a process with one thread joins by writing "0" to it */
	int oom, peak; /* of memory: counter of OOM kills, peak use (v1); -1: none */
	uint64_t oom_kills; /* as of the last prepare */
	uint64_t memory_bytes; /* limits as they are; 0: not known */
	uint32_t processes;
	unsigned pool; /* in the group of this pool */
};

struct osd_hierarchy {
	unsigned layers; /* controllers it serves */
	bool unified;    /* cgroup v2 */
	char path[PATH_MAX];
	bool common; /* one group for all sandboxes; no slots */
	struct osd_cgroup_slot *slots; /* owned; NULL when common */
};

struct osd_cgroups {
	struct osd_hierarchy hierarchies[OSD_HIERARCHIES];
	size_t count;
	unsigned slots;
	uint32_t pools; /* by number: those that have a group of their own */
};

#define OSD_CGROUP_POOLS  32u		   /* numbers of pools are below it */
#define OSD_CGROUP_COMMON OSD_CGROUP_POOLS /* no pool: the group of all */

/* Prepare for groups of `slots` sandboxes below parent (a path inside every hierarchy; NULL: below the
 * daemon's own group). states gets the state of the three controllers.  Removes the groups of a dead
 * daemon. */
void osd_cgroups_open(struct osd_cgroups *groups, const char *parent, unsigned slots,
		      struct osd_layer_states *states);

#define OSD_CPU_SHARE_MAX 90u

/* Sets the CPU weight of all sandboxes together. share: the percentage of one CPU that they get while
 * four competitors compute on it. times: multiplies the weight, for more competitors. 0: an idle group,
 * as after open, which gets the time that no other process uses.  Competitors are the processes and
 * groups beside this one, whose weights the kernel compares.  Failures are logged. */
void osd_cgroups_weigh(const struct osd_cgroups *groups, unsigned share, unsigned times);

/* Bounds the processor time of a pool's next sandboxes, together: percent of all processors, 1 to
 * OSD_CPU_SHARE_WHOLE, which is no bound.  The caller then adopts the pool's zygotes again.  -ENOENT: this host offers no
 * control group for processor time. */
int osd_cgroups_bound(struct osd_cgroups *groups, unsigned pool, unsigned percent);
/* The group of a pool in a hierarchy, or the common one, if it has none there. */
unsigned osd_cgroups_pool(const struct osd_cgroups *groups, const struct osd_hierarchy *h,
			  unsigned pool);
int osd_cgroup_place_of(const struct osd_hierarchy *h, unsigned pool, char path[PATH_MAX]);

/* Set the limits of the slot's next sandbox, which is one of this pool. fds gets the procs files of its groups (borrowed); the
 * result is their number. */
int osd_cgroups_prepare(struct osd_cgroups *groups, unsigned slot, unsigned pool,
			const struct osd_sandbox_limits *limits, int fds[OSD_HIERARCHIES]);
int osd_cgroups_limit(struct osd_cgroups *groups, unsigned slot,
		      const struct osd_sandbox_limits *limits);

/* Put a zygote of a pool, and so its children, into the groups that these sandboxes share. */
int osd_cgroups_adopt(const struct osd_cgroups *groups, unsigned pool, pid_t pid);

/* Adds to *status the peak memory, and whether the kernel's OOM killer ended the sandbox. */
void osd_cgroups_usage(struct osd_cgroups *groups, unsigned slot, struct osd_sandbox_exit *status);

/* Whether removing them takes CAP_DAC_OVERRIDE: their parent, often the root of a v1 hierarchy, is not
 * writable by its mode. */
bool osd_cgroups_need_override(const struct osd_cgroups *groups);

/* Kill the processes that still run in the groups, wait for their end up to 10 s, and remove the
 * groups. */
void osd_cgroups_remove(const struct osd_cgroups *groups);
/* The same, and closes the descriptors. */
void osd_cgroups_close(struct osd_cgroups *groups);

#endif
