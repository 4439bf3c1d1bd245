/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reuse.c -- see reuse.h. */
#include "exec/sandbox/reuse.h"

#include <string.h>

#include "base/util.h"

static const char *const words[] = {"never", "verified", "trusted"};

const char *osd_reuse_name(enum osd_reuse reuse)
{
	return words[reuse];
}

bool osd_reuse_parse(const char *text, enum osd_reuse *ret_reuse)
{
	uint8_t place = 0;
	bool found = osd_find_word(words, OSD_ARRAY_SIZE(words), text, &place);

	if (found)
		*ret_reuse = (enum osd_reuse)place;
	return found;
}

/* As struct osd_principal (security.h) says it. */
static bool is_verified(const char *principal)
{
	return strncmp(principal, "audit:", 6) == 0 || strncmp(principal, "chap:", 5) == 0;
}

/* "addr:" alone is every session whose address is not known: several clients, possibly. */
static bool permitted(enum osd_reuse reuse, const char *principal)
{
	if (reuse == OSD_REUSE_TRUSTED)
		return principal[0] != '\0' && strcmp(principal, "addr:") != 0;
	return reuse == OSD_REUSE_VERIFIED && is_verified(principal);
}

/* The kernel's limit is on the process: it must leave a whole job's worth. */
static bool has_time_left(const struct osd_reuse_facts *facts)
{
	uint64_t whole = (uint64_t)facts->cpu_seconds * 1000000;

	return facts->cpu_used_usec <= whole &&
	       facts->cpu_limit_usec <= whole - facts->cpu_used_usec;
}

/* The data of a stage come and go, and the memory for them with each sandbox would take longer than many stages. */
static uint64_t growth_max(const struct osd_reuse_facts *facts)
{
	return facts->stage ? OSD_MAX(OSD_REUSE_GROWTH_MAX, facts->memory_bytes / 2)
			    : OSD_REUSE_GROWTH_MAX;
}

bool osd_reuse_keeps(enum osd_reuse reuse, const struct osd_reuse_facts *facts)
{
	if (!permitted(reuse, facts->principal) || !facts->finished || !facts->output_stored)
		return false;
	if (facts->jobs >= facts->jobs_max || !has_time_left(facts))
		return false;
	return facts->peak_bytes <= facts->peak_first_bytes ||
	       facts->peak_bytes - facts->peak_first_bytes <= growth_max(facts);
}

bool osd_reuse_fits(const char *kept_for, const struct osd_sandbox_limits *in_force,
		    const char *principal, const struct osd_sandbox_limits *wanted)
{
	return kept_for && strcmp(kept_for, principal) == 0 &&
	       osd_sandbox_limits_equal(in_force, wanted);
}
