/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rlimits.h -- a job's limits as resource limits.  One table: a sandbox sets it on itself, the
 * daemon sets it anew when the job turns out to have other limits than the sandbox was started
 * with. */
#ifndef OSD_SANDBOX_RLIMITS_H
#define OSD_SANDBOX_RLIMITS_H

#include <sys/resource.h>

#include "wire/sandboxd_frame.h"

#define OSD_RLIMIT_COUNT     9
#define OSD_STACK_BYTES      (8u << 20)
/* stdin, stdout, stderr, job socket; room for descriptors in transit */
#define OSD_OWN_OPEN_FILES   8u
#define OSD_OWN_THREADS      1u /* the management thread */

struct osd_rlimit {
	const char *name;
	int resource;
	rlim_t value; /* soft and hard */
};

/* Files cannot grow, no core is written, nothing is locked. */
static inline void osd_limits_table(const struct osd_sandbox_limits *limits,
				    struct osd_rlimit table[OSD_RLIMIT_COUNT])
{
	const struct osd_rlimit rows[OSD_RLIMIT_COUNT] = {
		{"memory", RLIMIT_DATA, limits->memory_bytes},
		{"cpu", RLIMIT_CPU, limits->cpu_seconds},
		{"open files", RLIMIT_NOFILE, (rlim_t)limits->open_files + OSD_OWN_OPEN_FILES},
		{"processes", RLIMIT_NPROC, (rlim_t)limits->processes + OSD_OWN_THREADS},
		{"stack", RLIMIT_STACK, OSD_STACK_BYTES},
		{"file size", RLIMIT_FSIZE, 0},
		{"core", RLIMIT_CORE, 0},
		{"locked memory", RLIMIT_MEMLOCK, 0},
		{"message queues", RLIMIT_MSGQUEUE, 0},
	};

	for (unsigned i = 0; i < OSD_RLIMIT_COUNT; i++)
		table[i] = rows[i];
}

#endif
