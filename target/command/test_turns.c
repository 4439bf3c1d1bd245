/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_turns.c -- turns of commands that share a thread: in order, owners in turn, and losers pause. */
#include "command/turns.h"

#include "base/test.h"

/* Nobody may go at now, for so long. */
static void expect_wait(struct osd_turns *turns, uint64_t now_ms, uint64_t wait_ms)
{
	uint64_t wait;

	CHECK(osd_turns_take(turns, now_ms, &wait) == NULL);
	CHECK_EQ(wait, wait_ms);
}

static void expect(struct osd_turns *turns, uint64_t now_ms, const struct osd_turn *turn)
{
	uint64_t wait;

	CHECK(osd_turns_take(turns, now_ms, &wait) == turn);
}

static void test_order(void)
{
	struct osd_turn a = {0}, b = {0}, c = {0};
	struct osd_turns turns;

	osd_turns_init(&turns);
	expect_wait(&turns, 0, OSD_TURN_NEVER);
	osd_turns_add(&turns, &a);
	osd_turns_add(&turns, &b);
	expect(&turns, 0, &a);
	osd_turns_add(&turns, &a);
	osd_turns_add(&turns, &c);
	expect(&turns, 0, &b);
	expect(&turns, 0, &a);
	expect(&turns, 0, &c);
	expect_wait(&turns, 0, OSD_TURN_NEVER);
	osd_turns_add(&turns, &b); /* an emptied line has a good end */
	expect(&turns, 0, &b);
}

/* Others go first, and who is last in the line and leaves it from the middle breaks nothing. */
static void test_losers(void)
{
	struct osd_turn a = {0}, b = {0}, c = {0};
	struct osd_turns turns;

	osd_turns_init(&turns);
	osd_turns_add_loser(&turns, &a, 1000);
	osd_turns_add(&turns, &b);
	expect(&turns, 1000, &b);
	expect_wait(&turns, 1000, OSD_TURN_PAUSE_MS);
	osd_turns_add_loser(&turns, &b, 1003);
	expect_wait(&turns, 1004, OSD_TURN_PAUSE_MS - 4);
	osd_turns_add(&turns, &c);
	expect(&turns, 1010, &a);
	expect(&turns, 1010, &c);
	expect_wait(&turns, 1010, 3);
	expect(&turns, 1013, &b);
	expect_wait(&turns, 1013, OSD_TURN_NEVER);
}

/* One owner has three commands, another one: every second turn is the other one's. */
static void test_owners_take_turns(void)
{
	static const char many, few;
	struct osd_turn a = {.owner = &many}, b = a, c = a, other = {.owner = &few};
	struct osd_turns turns;

	osd_turns_init(&turns);
	osd_turns_add(&turns, &a);
	osd_turns_add(&turns, &b);
	osd_turns_add(&turns, &c);
	expect(&turns, 0, &a);
	osd_turns_add(&turns, &other);
	osd_turns_add(&turns, &a);
	expect(&turns, 0, &other);
	osd_turns_add(&turns, &other);
	expect(&turns, 0, &b);
	osd_turns_add(&turns, &b);
	expect(&turns, 0, &other);
	osd_turns_add_loser(&turns, &other, 5);
	expect(&turns, 5, &c);
	expect(&turns, 5, &a);
	expect(&turns, 5, &b);
	expect_wait(&turns, 5, OSD_TURN_PAUSE_MS);
	osd_turns_add(&turns, &a);
	expect(&turns, 5 + OSD_TURN_PAUSE_MS, &other);
}

static void test_pauses(void)
{
	struct osd_turn turn = {0};
	struct osd_turns turns;
	uint64_t now = 0, pause = OSD_TURN_PAUSE_MS;

	osd_turns_init(&turns);
	for (unsigned i = 0; i < 1000; i++) {
		osd_turns_add_loser(&turns, &turn, now);
		expect_wait(&turns, now, pause);
		expect_wait(&turns, now + pause - 1, 1);
		now += pause;
		expect(&turns, now, &turn);
		pause = pause * 2 < OSD_TURN_PAUSE_MAX_MS ? pause * 2 : OSD_TURN_PAUSE_MAX_MS;
	}
	CHECK_EQ(pause, OSD_TURN_PAUSE_MAX_MS);
	osd_turns_add(&turns, &turn); /* a step that was done */
	expect(&turns, now, &turn);
	osd_turns_add_loser(&turns, &turn, now);
	expect_wait(&turns, now, OSD_TURN_PAUSE_MS);
}

int main(void)
{
	test_order();
	test_losers();
	test_owners_take_turns();
	test_pauses();
	return 0;
}
