/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_reuse.c -- who may be given a used sandbox, and which sandboxes are never used again. */
#include "exec/sandbox/reuse.h"

#include "base/test.h"

#define MIB (UINT64_C(1) << 20)

static const struct osd_reuse_facts fine = {
	.finished = true,
	.output_stored = true,
	.principal = "chap:alice",
	.jobs = 1,
	.jobs_max = 1000,
	.cpu_used_usec = 1000000,
	.cpu_limit_usec = 60000000,
	.cpu_seconds = 62,
	.peak_bytes = 50 * MIB,
	.peak_first_bytes = 30 * MIB,
};

static void test_words(void)
{
	enum osd_reuse reuse = OSD_REUSE_NEVER;

	CHECK(osd_reuse_parse("never", &reuse) && reuse == OSD_REUSE_NEVER);
	CHECK(osd_reuse_parse("verified", &reuse) && reuse == OSD_REUSE_VERIFIED);
	CHECK(osd_reuse_parse("trusted", &reuse) && reuse == OSD_REUSE_TRUSTED);
	CHECK(!osd_reuse_parse("", &reuse) && !osd_reuse_parse("always", &reuse));
	CHECK(reuse == OSD_REUSE_TRUSTED);
}

static void test_who(void)
{
	struct osd_reuse_facts facts = fine;

	CHECK(!osd_reuse_keeps(OSD_REUSE_NEVER, &facts));
	CHECK(osd_reuse_keeps(OSD_REUSE_VERIFIED, &facts));
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.principal = "addr:chap:"; /* a name cannot pretend */
	CHECK(!osd_reuse_keeps(OSD_REUSE_VERIFIED, &facts));
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.principal = "addr:"; /* not known */
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.principal = "";
	CHECK(!osd_reuse_keeps(OSD_REUSE_VERIFIED, &facts));
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
}

static void test_what_happened(void)
{
	struct osd_reuse_facts facts = fine;

	facts.finished = false;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts = fine;
	facts.output_stored = false;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts = fine;
	facts.jobs = 999;
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.jobs = 1000;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
}

static void test_what_is_left(void)
{
	struct osd_reuse_facts facts = fine;

	facts.cpu_used_usec = 2000000;
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.cpu_used_usec++;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.cpu_used_usec = UINT64_MAX;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts = fine;
	facts.cpu_limit_usec = UINT64_MAX;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts = fine;
	facts.peak_bytes = facts.peak_first_bytes + OSD_REUSE_GROWTH_MAX;
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.peak_bytes++;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.stage = true; /* its data are as long as it may use memory */
	facts.memory_bytes = 256 * MIB;
	facts.peak_bytes = facts.peak_first_bytes + 128 * MIB;
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.peak_bytes++;
	CHECK(!osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.memory_bytes = 16 * MIB;
	facts.peak_bytes = facts.peak_first_bytes + OSD_REUSE_GROWTH_MAX;
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
	facts.peak_bytes = 0; /* a sandbox that lies downwards gains nothing */
	CHECK(osd_reuse_keeps(OSD_REUSE_TRUSTED, &facts));
}

static void test_fits(void)
{
	const struct osd_sandbox_limits usual = {
		.memory_bytes = 256 * MIB, .cpu_seconds = 62, .processes = 1, .open_files = 256};
	struct osd_sandbox_limits other = usual;

	CHECK(osd_reuse_fits("chap:alice", &usual, "chap:alice", &other));
	CHECK(!osd_reuse_fits("chap:alice", &usual, "chap:alic", &other));
	CHECK(!osd_reuse_fits("chap:alice", &usual, "chap:bob", &other));
	CHECK(!osd_reuse_fits("chap:alice", &usual, "", &other));
	CHECK(!osd_reuse_fits(NULL, &usual, "chap:alice", &other));
	other.memory_bytes++;
	CHECK(!osd_reuse_fits("chap:alice", &usual, "chap:alice", &other));
	other = usual;
	other.processes = 2;
	CHECK(!osd_reuse_fits("chap:alice", &usual, "chap:alice", &other));
}

int main(void)
{
	test_words();
	test_who();
	test_what_happened();
	test_what_is_left();
	test_fits();
	return 0;
}
