/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rlimits.h -- a job's limits as resource limits.  One table: a sandbox sets it on itself, the
 * daemon sets it anew when the job turns out to have other limits than the sandbox was started
 * with.
 *
 * Raising a hard limit takes CAP_SYS_RESOURCE, which root in a container often has not got.  There a
 * sandbox that is forked ahead of need gets the hard limits of the most any job may ask for, until
 * the daemon sets the job's own; the soft ones are what the kernel enforces, and the filter denies
 * a sandbox setrlimit and prlimit64. */
#ifndef OSD_SANDBOX_RLIMITS_H
#define OSD_SANDBOX_RLIMITS_H

#include <sys/resource.h>

#include "wire/sandboxd_frame.h"

#define OSD_RLIMIT_COUNT     9
#define OSD_STACK_BYTES      (8u << 20)
/* stdin, stdout, stderr, job socket, and room for descriptors in transit */
#define OSD_OWN_OPEN_FILES   8u
/* the most a target may ask for */
#define OSD_PROCESSES_MAX    64u
/* that an engine has beside those of the job */
#define OSD_ENGINE_THREADS_MAX 32u
#define OSD_OPEN_FILES_MAX   4096u

struct osd_rlimit {
	const char *name;
	int resource;
	rlim_t value;
	rlim_t ceiling; /* the most any job may ask for */
};

/* file_bytes: of the longest file, 0: files cannot grow.  No core is written, nothing is locked. */
static inline void osd_limits_table(const struct osd_sandbox_limits *limits, uint64_t file_bytes,
				    struct osd_rlimit table[OSD_RLIMIT_COUNT])
{
	const struct osd_rlimit rows[OSD_RLIMIT_COUNT] = {
		{"memory", RLIMIT_DATA, limits->memory_bytes, RLIM_INFINITY},
		{"cpu", RLIMIT_CPU, limits->cpu_seconds, RLIM_INFINITY},
		{"open files", RLIMIT_NOFILE, (rlim_t)limits->open_files + OSD_OWN_OPEN_FILES,
		 OSD_OPEN_FILES_MAX + OSD_OWN_OPEN_FILES},
		{"processes", RLIMIT_NPROC, limits->processes,
		 OSD_PROCESSES_MAX + OSD_ENGINE_THREADS_MAX},
		{"stack", RLIMIT_STACK, OSD_STACK_BYTES, OSD_STACK_BYTES},
		{"file size", RLIMIT_FSIZE, file_bytes, file_bytes ? RLIM_INFINITY : 0},
		{"core", RLIMIT_CORE, 0, 0},
		{"locked memory", RLIMIT_MEMLOCK, 0, 0},
		{"message queues", RLIMIT_MSGQUEUE, 0, 0},
	};

	for (unsigned i = 0; i < OSD_RLIMIT_COUNT; i++)
		table[i] = rows[i];
}

#endif
