/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_pace.c -- a rate: what is due at once, what later, and what pauses are worth. */
#include "base/pace.h"

#include "base/test.h"

#define SECOND UINT64_C(1000000)
#define RATE   UINT64_C(1000000)
#define NOW    (1000 * SECOND)
#define BURST  (RATE / 10) /* bytes of the time that is kept */

static void check_near(uint64_t due, uint64_t expected)
{
	CHECK(due >= expected && due <= expected + 2);
}

static void test_without_a_bound_nothing_waits(void)
{
	struct osd_pace pace = {.rate = 0};

	CHECK_EQ(osd_pace_take(&pace, UINT64_MAX, NOW), 0);
	CHECK_EQ(pace.bytes, 0);
}

static void test_bytes_are_due_one_after_the_other(void)
{
	struct osd_pace pace = {.rate = RATE};

	CHECK_EQ(osd_pace_take(&pace, 0, NOW), 0);
	CHECK_EQ(osd_pace_take(&pace, BURST / 2, NOW), 0);
	check_near(osd_pace_take(&pace, BURST / 2 + RATE, NOW), NOW + SECOND);
	check_near(osd_pace_take(&pace, RATE, NOW), NOW + 2 * SECOND); /* of another thread */
	CHECK_EQ(pace.bytes, BURST + 2 * RATE);
	check_near(osd_pace_take(&pace, RATE, NOW + 2 * SECOND), NOW + 3 * SECOND);
}

static void test_a_long_pause_is_worth_a_short_burst(void)
{
	struct osd_pace pace = {.rate = RATE};

	osd_pace_take(&pace, RATE, NOW);
	check_near(osd_pace_take(&pace, RATE, NOW + 1000 * SECOND),
		   NOW + 1001 * SECOND - SECOND / 10);
}

static void test_small_pieces_are_not_free(void)
{
	struct osd_pace pace = {.rate = UINT64_MAX};

	for (unsigned i = 0; i < 1000; i++)
		osd_pace_take(&pace, 1, 0);
	CHECK_EQ(pace.due_nsec, 1000);
}

static void test_no_number_is_too_large(void)
{
	struct osd_pace pace = {.rate = 1};
	uint64_t day = UINT64_C(86400) * SECOND;

	for (unsigned i = 0; i < 3; i++)
		CHECK(osd_pace_take(&pace, UINT64_MAX, NOW) <= NOW + day);
	pace.rate = RATE; /* a new rate holds for the bytes that follow */
	CHECK(osd_pace_take(&pace, 1, NOW + day) <= NOW + day + 2);
}

int main(void)
{
	test_without_a_bound_nothing_waits();
	test_bytes_are_due_one_after_the_other();
	test_a_long_pause_is_worth_a_short_burst();
	test_small_pieces_are_not_free();
	test_no_number_is_too_large();
	return 0;
}
