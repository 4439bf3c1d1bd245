/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_advice.c -- estimates, decisions, what clients can do to them, and the bounds of both. */
#include "exec/advice/advice.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"

#define MIB	   (UINT64_C(1) << 20)
#define SECOND	   UINT64_C(1000000)
#define IDLE_FOR(who, now)                                                                         \
	(struct osd_advice_load){.principal = (who), .now_usec = (now), .processors = 1}
#define IDLE(now) IDLE_FOR("ada", now)

static struct osd_advice *advice;
static const uint8_t one[32] = {1}, other[32] = {2};

static struct osd_advice_work work_of(const uint8_t *sha256, uint64_t bytes)
{
	return (struct osd_advice_work){.sha256 = sha256, .set = "", .bytes = bytes};
}

static void ran_starving(const uint8_t *sha256, uint64_t run_usec, uint64_t cpu_usec,
			 double slowdown)
{
	const struct osd_advice_work work = work_of(sha256, MIB);
	const struct osd_advice_run run = {.run_usec = run_usec,
					   .cpu_usec = cpu_usec,
					   .starved_usec = run_usec - cpu_usec,
					   .slowdown = slowdown};

	osd_advice_ran(advice, &work, &run);
}

static void ran(const uint8_t *sha256, uint64_t bytes, uint64_t run_usec, uint64_t cpu_usec,
		double slowdown)
{
	const struct osd_advice_work work = work_of(sha256, bytes);
	const struct osd_advice_run run = {
		.run_usec = run_usec, .cpu_usec = cpu_usec, .slowdown = slowdown};

	osd_advice_ran(advice, &work, &run);
}

static uint64_t alone(const uint8_t *sha256, uint64_t bytes)
{
	const struct osd_advice_work work = work_of(sha256, bytes);

	return osd_advice_alone(advice, &work);
}

static bool is_for_client(uint64_t home_usec, struct osd_advice_load load,
			  struct osd_advice_numbers *numbers)
{
	const struct osd_advice_work work = work_of(one, MIB);

	return osd_advice_is_for_client(advice, &work, home_usec, &load, numbers);
}

static void start(void)
{
	advice = calloc(1, sizeof(*advice));
	CHECK(advice);
}

static void test_the_estimate_follows_the_bytes(void)
{
	start();
	CHECK_EQ(alone(one, MIB), 0);
	ran(one, MIB, SECOND, SECOND, 1);
	CHECK_EQ(alone(one, MIB), SECOND);
	CHECK_EQ(alone(one, 4 * MIB), 4 * SECOND); /* one size: through the origin */
	CHECK_EQ(alone(one, 0), SECOND);
	ran(one, 3 * MIB, 2 * SECOND, 2 * SECOND, 1); /* half a second by MiB, from half a second on */
	CHECK(alone(one, 5 * MIB) > 2900000 && alone(one, 5 * MIB) < 3100000);
	CHECK(alone(one, 1) > 450000 && alone(one, 1) < 550000);
	CHECK_EQ(alone(other, MIB), 0);
	free(advice);
}

static void test_other_jobs_are_not_of_the_code(void)
{
	start();
	ran(one, MIB, 3 * SECOND, SECOND, 3); /* two others ran */
	CHECK(alone(one, MIB) > 1600000 && alone(one, MIB) < 1700000);
	ran(other, MIB, 3 * SECOND, SECOND, 1); /* it waited for data */
	CHECK_EQ(alone(other, MIB), 3 * SECOND);
	free(advice);
}

static void test_decisions(void)
{
	struct osd_advice_numbers numbers;
	struct osd_advice_load load = IDLE(0);

	start();
	CHECK(!is_for_client(1, load, &numbers)); /* never seen */
	CHECK_EQ(numbers.near_usec, 0);
	ran(one, MIB, SECOND, SECOND, 1);
	CHECK(!is_for_client(0, load, &numbers)); /* the client does not know */
	CHECK(is_for_client(SECOND - 1000, load, &numbers));
	CHECK(!is_for_client(SECOND + 1000, load, &numbers));
	load.running = 2;
	CHECK(is_for_client(3 * SECOND - 1000, load, &numbers));
	CHECK_EQ(numbers.near_usec, 3 * SECOND);
	load.processors = 4;
	CHECK(!is_for_client(3 * SECOND - 1000, load, &numbers));
	load.wait_usec = 5 * SECOND;
	CHECK(is_for_client(6 * SECOND - 1000, load, &numbers));
	CHECK(!is_for_client(6 * SECOND + 1000, load, &numbers));
	free(advice);
}

/* It computes for a fifth of a second, and waits for its data for four. */
static void test_other_jobs_do_not_lengthen_the_wait_for_data(void)
{
	const struct osd_advice_work work = work_of(one, MIB);
	struct osd_advice_run run = {
		.run_usec = SECOND, .cpu_usec = SECOND / 5, .starving_known = true, .slowdown = 1};
	struct osd_advice_load load = IDLE(0);
	struct osd_advice_numbers numbers;

	start();
	osd_advice_ran(advice, &work, &run);
	load.running = 2;
	CHECK(!is_for_client(3 * SECOND / 2, load, &numbers));
	CHECK(numbers.near_usec > 1390000 && numbers.near_usec < 1410000); /* and not 3 s */
	run = (struct osd_advice_run){.run_usec = 14 * SECOND / 10,
				      .cpu_usec = SECOND / 5,
				      .starved_usec = 4 * SECOND / 10,
				      .starving_known = true,
				      .slowdown = 3}; /* as expected */
	for (unsigned i = 0; i < 20; i++)
		osd_advice_ran(advice, &work, &run);
	CHECK(osd_advice_factor(advice, 0) > 0.99 && osd_advice_factor(advice, 0) < 1.01);
	is_for_client(1, load, &numbers);
	CHECK(numbers.near_usec > 1380000 && numbers.near_usec < 1420000);
	free(advice);
}

static void test_a_share_of_a_processor(void)
{
	struct osd_advice_load load = IDLE(0);
	struct osd_advice_numbers numbers;

	start();
	ran(one, MIB, SECOND, SECOND, 1);
	load.processors = 0.25;
	CHECK(is_for_client(4 * SECOND - 1000, load, &numbers));
	CHECK(!is_for_client(4 * SECOND + 1000, load, &numbers));
	free(advice);
}

static void push(const char *principal, uint64_t home_usec, uint64_t now_usec)
{
	const struct osd_advice_push push = {.at_msec = 1, .stage = OSD_ADVICE_DISPATCH};

	osd_advice_pushed(advice, principal, home_usec, now_usec, &push);
}

static void test_work_at_clients_counts(void)
{
	struct osd_advice_numbers numbers;
	unsigned home = 0;

	start();
	ran(one, MIB, SECOND, SECOND, 1);
	while (is_for_client(SECOND / 5, IDLE(0), &numbers)) { /* four fit into the time of one near */
		push("ada", SECOND / 5, 0);
		home++;
	}
	CHECK_EQ(home, 4);
	CHECK_EQ(advice->pushed[OSD_ADVICE_DISPATCH], 4);
	osd_advice_pushed(advice, "ada", 0, 0, &(struct osd_advice_push){.reason = OSD_ADVICE_LATE});
	CHECK_EQ(advice->pushed[OSD_ADVICE_ADMISSION], 0); /* that was no comparison */
	CHECK_EQ(advice->pushes, 5);
	CHECK(is_for_client(SECOND / 5, IDLE(SECOND), &numbers)); /* they are done */
	free(advice);
}

static void test_a_client_that_lies_harms_itself_for_a_minute(void)
{
	struct osd_advice_numbers numbers;

	start();
	ran(one, MIB, SECOND, SECOND, 1);
	for (unsigned i = 0; i < 1000; i++)
		push("ada", UINT64_C(86400) * SECOND, 0);
	CHECK(!is_for_client(SECOND / 5, IDLE(SECOND), &numbers));
	CHECK(is_for_client(SECOND / 5, IDLE(OSD_ADVICE_BACKLOG_USEC), &numbers));
	CHECK(is_for_client(SECOND / 5, IDLE_FOR("bob", SECOND), &numbers)); /* of others: never */
	CHECK(alone(one, INT64_MAX) <= UINT64_C(86400) * SECOND);
	free(advice);
}

/* More principals than are remembered: the one that is done first is forgotten. */
static void test_the_work_of_each_principal_counts_by_itself(void)
{
	struct osd_advice_numbers numbers;
	char name[OSD_ADVICE_PRINCIPAL_MAX + 1];

	start();
	ran(one, MIB, SECOND, SECOND, 1);
	for (unsigned i = 0; i <= OSD_ADVICE_CLIENTS; i++) {
		memset(name, 'a', sizeof(name)); /* they differ in their last byte */
		name[OSD_ADVICE_PRINCIPAL_MAX] = '\0';
		name[OSD_ADVICE_PRINCIPAL_MAX - 1] = (char)(1 + i);
		push(name, (i + 2) * SECOND, 0);
		CHECK(!is_for_client(SECOND / 5, IDLE_FOR(name, 0), &numbers));
	}
	CHECK(!is_for_client(SECOND / 5, IDLE_FOR(name, SECOND), &numbers));
	name[OSD_ADVICE_PRINCIPAL_MAX - 1] = 1;
	CHECK(is_for_client(SECOND / 5, IDLE_FOR(name, 0), &numbers));
	free(advice);
}

static void test_the_factor_adapts_and_is_forgotten(void)
{
	double before;

	start();
	for (unsigned i = 0; i < 20; i++) /* twice as long as two jobs on a processor should take */
		ran_starving(one, 4 * SECOND, SECOND, 2);
	CHECK(osd_advice_factor(advice, 0) > 1.7 && osd_advice_factor(advice, 0) < 2);
	for (unsigned i = 0; i < 20; i++)
		ran_starving(other, 4 * SECOND, SECOND, 64);
	before = osd_advice_factor(advice, 0);
	CHECK(before >= 0.25 && before < 0.5);
	CHECK(osd_advice_factor(advice, 120 * SECOND) == 1);
	free(advice);
}

static void test_rooms_are_bounded(void)
{
	uint8_t sha256[32] = {0};

	start();
	ran(one, MIB, SECOND, SECOND, 1);
	for (unsigned i = 0; i < 4 * OSD_ADVICE_CODES; i++) {
		sha256[8] = (uint8_t)i;
		sha256[9] = (uint8_t)(i >> 8);
		ran(sha256, MIB, SECOND, SECOND, 1);
		push("ada", 1, 0);
		CHECK(i % 100 || alone(one, MIB)); /* used, so it stays */
	}
	CHECK(alone(one, MIB) && alone(sha256, MIB));
	memset(sha256, 0, sizeof(sha256));
	CHECK_EQ(alone(sha256, MIB), 0);
	CHECK_EQ(advice->pushes, 4 * OSD_ADVICE_CODES);
	free(advice);
}

int main(void)
{
	test_the_estimate_follows_the_bytes();
	test_other_jobs_are_not_of_the_code();
	test_decisions();
	test_other_jobs_do_not_lengthen_the_wait_for_data();
	test_a_share_of_a_processor();
	test_work_at_clients_counts();
	test_a_client_that_lies_harms_itself_for_a_minute();
	test_the_work_of_each_principal_counts_by_itself();
	test_the_factor_adapts_and_is_forgotten();
	test_rooms_are_bounded();
	return 0;
}
