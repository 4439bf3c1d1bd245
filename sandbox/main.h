/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.h -- a sandbox, from the fork to its exit. */
#ifndef OSD_SANDBOX_MAIN_H
#define OSD_SANDBOX_MAIN_H

#include <linux/filter.h>
#include <stdnoreturn.h>

#include "engine.h"
#include "wire/sandboxd_frame.h"

/* the job socket; 0 /dev/null, 1 and 2 pipes, 3 shared memory until mapped */
#define OSD_SANDBOX_JOB_FD 4

/* Prepared once by the zygote for all its sandboxes. */
struct osd_confinement {
	const struct osd_engine *engine;
	unsigned layers;
	unsigned uid_base; /* slot n runs as uid_base + 1 + n */
	struct sock_fprog filter;
};

/* The data of this sandbox.  Descriptors: enum zygote_spawn_fd, then cgroup.procs files. */
struct osd_sandbox_start {
	unsigned slot;
	struct osd_sandbox_limits limits;
	uint64_t file_bytes; /* of the longest file in its scratch folder */
	int landlock_fd;     /* its rules; -1: none */
	const int *fds;
	size_t fd_count;
};

/* In the child, right after the fork. */
noreturn void osd_sandbox_main(const struct osd_confinement *confinement,
			       const struct osd_sandbox_start *start);

#endif
