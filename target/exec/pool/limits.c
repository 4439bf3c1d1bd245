/* SPDX-License-Identifier: GPL-2.0-or-later */
/* limits.c -- the limits of a job in its pool (pool.h). */
#include <stdatomic.h>
#include <unistd.h>

#include "base/util.h"
#include "exec/pool/pool.h"

static uint64_t host_memory(void)
{
	static _Atomic uint64_t known; /* asked once: each acceptance of a job needs it */

	if (!atomic_load(&known)) {
		long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

		atomic_store(&known, pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size
							    : UINT64_MAX);
	}
	return atomic_load(&known);
}

uint64_t osd_pool_memory_most(const struct osd_pool_config *config)
{
	return OSD_MAX(config->standard.memory_bytes,
		       OSD_MIN(config->maximum.memory_bytes, host_memory()));
}

bool osd_pool_settle_limits(const struct osd_pool_config *config, struct osd_job_limits *limits)
{
	const struct osd_job_limits *standard = &config->standard, *maximum = &config->maximum;

#define X(field, row)                                                                              \
	if (limits->field == 0)                                                                    \
		limits->field = standard->field;                                                   \
	if (limits->field > maximum->field)                                                        \
		return false;
	OSD_JOB_LIMITS(X)
#undef X
	if (limits->cpu_usec == 0) /* neither the job nor the pool sets one */
		limits->cpu_usec = OSD_MIN(limits->wall_usec, maximum->cpu_usec);
	return limits->memory_bytes >= OSD_POOL_LEAST_MEMORY &&
	       limits->memory_bytes <= osd_pool_memory_most(config);
}

struct osd_sandbox_limits osd_sandbox_limits_of(const struct osd_job_limits *limits)
{
	return (struct osd_sandbox_limits){
		.memory_bytes = limits->memory_bytes,
		/* More than the exact limit: the monitor enforces that one, this one is the
		 * fallback. */
		.cpu_seconds = (uint32_t)(limits->cpu_usec / 1000000 + 2),
		.processes = (uint32_t)limits->processes,
		.open_files = (uint32_t)limits->open_files,
	};
}
