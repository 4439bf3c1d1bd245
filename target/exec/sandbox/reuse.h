/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reuse.h -- whether a sandbox may run another job after the one it has run.  Pure
 * decisions; what is done about them: keep.c.
 *
 * Reuse is hygiene, not a boundary: a script that wants to can leave something for the next one.  So
 * it is off unless the target's owner asks for it, and then only between jobs of one principal with
 * the same limits. */
#ifndef OSD_EXEC_SANDBOX_REUSE_H
#define OSD_EXEC_SANDBOX_REUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/sandboxd_frame.h"

enum osd_reuse {
	OSD_REUSE_NEVER,
	OSD_REUSE_VERIFIED, /* between jobs of a principal that has proven its name */
	OSD_REUSE_TRUSTED,  /* between jobs of any principal, an address being one */
};

#define OSD_REUSE_JOBS_MAX   1000	       /* of one sandbox, unless its pool says otherwise */
#define OSD_REUSE_RESET_USEC UINT64_C(1000000) /* it says READY again in this time */
#define OSD_REUSE_GROWTH_MAX                                                                       \
	(UINT64_C(32) << 20) /* peak over that of a pristine one: the peak cannot be
						       reset, and shows with the next job's usage */

/* "never", "verified" or "trusted". */
const char *osd_reuse_name(enum osd_reuse reuse);
bool osd_reuse_parse(const char *text, enum osd_reuse *ret_reuse);

/* A sandbox whose job is over. */
struct osd_reuse_facts {
	bool finished; /* by its script: it returned, raised, or exited; it was not told to end */
	bool output_stored; /* all of it, within its limit */
	const char *principal;
	uint64_t jobs, jobs_max;		/* it has run, this one included; and may */
	uint64_t cpu_used_usec, cpu_limit_usec; /* of the process so far; of one job */
	uint32_t cpu_seconds;			/* RLIMIT_CPU of the process */
	uint64_t peak_bytes, peak_first_bytes;
	uint64_t memory_bytes; /* its limit */
	bool stage;	       /* it runs stages alone, whose usage nobody asks for */
};
bool osd_reuse_keeps(enum osd_reuse reuse, const struct osd_reuse_facts *facts);

/* Whether a sandbox kept for one principal, with these limits in force, is one for the other's job.
 */
bool osd_reuse_fits(const char *kept_for, const struct osd_sandbox_limits *in_force,
		    const char *principal, const struct osd_sandbox_limits *wanted);

#endif
