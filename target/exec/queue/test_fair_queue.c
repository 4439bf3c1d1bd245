/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_fair_queue.c -- order, fairness, weights, caps and removal of fair_queue.c. */
#include "base/test.h"
#include "base/util.h"
#include "exec/queue/queue.h"

enum { COUNT = 64 };

static struct osd_fair_queue queue;
static struct osd_fair_entry entries[COUNT];

static void start(size_t place_max, size_t principal_place_max)
{
	CHECK(osd_fair_queue_init(&queue, place_max, principal_place_max) == OSD_OK);
	for (size_t i = 0; i < COUNT; i++)
		entries[i] = (struct osd_fair_entry){.sequence = i};
}

static void push(size_t i, const char *principal, int16_t priority)
{
	entries[i].priority = priority;
	CHECK(osd_fair_queue_reserve(&queue, principal, 1, false, &entries[i]) == OSD_OK);
	CHECK(osd_fair_queue_push(&queue, &entries[i]) == OSD_OK);
}

static size_t pop(void)
{
	struct osd_fair_entry *entry = osd_fair_queue_pop(&queue);

	CHECK(entry && !entry->queued);
	osd_fair_queue_unreserve(&queue, entry);
	return (size_t)(entry - entries);
}

static void finish(void)
{
	CHECK(!osd_fair_queue_pop(&queue));
	CHECK(queue.place_count == 0 && queue.entry_count == 0);
	osd_fair_queue_release(&queue);
}

static void test_order_inside_a_principal(void)
{
	start(100, 100);
	push(0, "a", 0);
	push(1, "a", 5);
	push(2, "a", 0);
	push(3, "a", -1);
	CHECK(osd_fair_queue_ahead(&queue, &entries[3]) == 3);
	CHECK(osd_fair_queue_ahead(&queue, &entries[1]) == 0);
	CHECK(pop() == 1 && pop() == 0 && pop() == 2 && pop() == 3);
	finish();
}

static void test_one_job_is_not_stuck_behind_many(void)
{
	start(100, 100);
	for (size_t i = 0; i < 40; i++)
		push(i, "many", 100);
	CHECK(pop() == 0 && pop() == 1);
	push(50, "one", -100);
	CHECK(osd_fair_queue_ahead(&queue, &entries[50]) <= 1);
	CHECK(pop() == 50 || pop() == 50);
	while (queue.entry_count)
		pop();
	finish();
}

static void test_weights(void)
{
	size_t heavy = 0;

	start(100, 100);
	CHECK(osd_fair_queue_set_share(&queue, "heavy", (struct osd_fair_share){3, 0, 0}) ==
	      OSD_OK);
	for (size_t i = 0; i < 60; i++)
		push(i, i % 2 ? "heavy" : "light", 0);
	for (size_t i = 0; i < 20; i++)
		heavy += pop() % 2;
	CHECK(heavy == 15);
	while (queue.entry_count)
		pop();
	CHECK(osd_fair_queue_set_share(&queue, "heavy", (struct osd_fair_share){1, 0, 0}) ==
	      OSD_OK);
	finish();
}

/* Entries that may take a lent slot are in turn among themselves, whatever waits in front of them. */
static void test_lent_slots(void)
{
	start(100, 100);
	push(0, "job", 100);
	CHECK(!osd_fair_queue_peek(&queue, true));
	for (size_t i = 1; i < 4; i++)
		entries[i].lendable = true;
	push(1, "stage", -100);
	push(2, "stage", -100);
	push(3, "other stage", -100);
	CHECK(osd_fair_queue_peek(&queue, true) == &entries[1]);
	osd_fair_queue_take(&queue, &entries[1]);
	CHECK(osd_fair_queue_peek(&queue, true) == &entries[3]);
	osd_fair_queue_take(&queue, &entries[3]);
	CHECK(osd_fair_queue_peek(&queue, true) == &entries[2]);
	CHECK(pop() == 0 && pop() == 2);
	CHECK(!osd_fair_queue_peek(&queue, true));
	osd_fair_queue_unreserve(&queue, &entries[1]);
	osd_fair_queue_unreserve(&queue, &entries[3]);
	finish();
}

/* Ten seconds make up for one point, and not for more. */
static void test_age(void)
{
	start(100, 100);
	entries[0].accepted_usec = 0;
	entries[1].accepted_usec = OSD_FAIR_AGE_USEC - 1;
	entries[2].accepted_usec = OSD_FAIR_AGE_USEC;
	entries[3].accepted_usec = 200 * OSD_FAIR_AGE_USEC + 1;
	push(3, "a", 100);
	push(0, "a", -100);
	push(1, "a", -99);
	push(2, "a", -99);
	CHECK(pop() == 1 && pop() == 0 && pop() == 2 && pop() == 3);
	finish();
}

static void test_at_once(void)
{
	struct osd_fair_principal *running[2];

	start(100, 100);
	CHECK(osd_fair_queue_set_share(&queue, "a", (struct osd_fair_share){1, 0, 2}) == OSD_OK);
	for (size_t i = 0; i < 4; i++)
		push(i, "a", 0);
	push(4, "b", -5);
	for (size_t i = 0; i < 2; i++)
		running[i] = osd_fair_queue_started(&entries[i]);
	CHECK(!osd_fair_queue_may_start(&entries[3]) && osd_fair_queue_may_start(&entries[4]));
	CHECK(osd_fair_queue_runnable(&queue) == 1 && pop() == 4);
	CHECK(queue.entry_count == 4 && !osd_fair_queue_peek(&queue, false) &&
	      !osd_fair_queue_pop(&queue));
	osd_fair_queue_ended(&queue, running[0]);
	CHECK(pop() == 0);
	running[0] = osd_fair_queue_started(&entries[1]);
	CHECK(!osd_fair_queue_peek(&queue, false));
	CHECK(osd_fair_queue_set_share(&queue, "a", (struct osd_fair_share){1, 0, 0}) == OSD_OK);
	while (queue.entry_count)
		pop();
	for (size_t i = 0; i < 2; i++)
		osd_fair_queue_ended(&queue, running[i]);
	finish();
}

static void test_caps(void)
{
	start(3, 2);
	push(0, "a", 0);
	push(1, "a", 0);
	CHECK(osd_fair_queue_reserve(&queue, "a", 1, false, &entries[2]) == OSD_E_QUEUE_FULL);
	push(3, "b", 0);
	CHECK(osd_fair_queue_reserve(&queue, "c", 1, false, &entries[4]) == OSD_E_QUEUE_FULL);
	CHECK(osd_fair_queue_reserve(&queue, "c", 1, true, &entries[4]) == OSD_OK);
	osd_fair_queue_unreserve(&queue, &entries[4]);
	CHECK(osd_fair_queue_set_share(&queue, "c", (struct osd_fair_share){1, 1, 0}) == OSD_OK);
	CHECK(osd_fair_queue_place_max(&queue, "c") == 1 &&
	      osd_fair_queue_place_max(&queue, "d") == 2);
	queue.place_max = 5;
	CHECK(osd_fair_queue_reserve(&queue, "c", 2, false, &entries[4]) == OSD_E_QUEUE_FULL);
	while (queue.entry_count)
		pop();
	finish();
}

static void test_drop_and_hold(void)
{
	start(100, 100);
	for (size_t i = 0; i < 30; i++)
		push(i, "a", (int16_t)(i * 7 % 11));
	for (size_t i = 0; i < 30; i += 3) {
		osd_fair_queue_drop(&queue,
				    &entries[i]); /* held: out of the queue, its place kept */
		osd_fair_queue_drop(&queue, &entries[i]);
	}
	CHECK(queue.entry_count == 20 && queue.place_count == 30);
	CHECK(osd_fair_queue_push(&queue, &entries[3]) == OSD_OK);
	for (int16_t last = 100; queue.entry_count;) {
		size_t i = pop();

		CHECK(entries[i].priority <= last && (i % 3 || i == 3));
		last = entries[i].priority;
	}
	for (size_t i = 0; i < 30; i += 3)
		osd_fair_queue_unreserve(&queue, &entries[i]);
	finish();
}

/* An entry that stands for several jobs. */
static void test_places(void)
{
	struct osd_fair_entry array = {.sequence = 1}, single = {.sequence = 2}, late = {0};

	CHECK(osd_fair_queue_init(&queue, 10, 6) == OSD_OK);
	CHECK(osd_fair_queue_reserve(&queue, "a", 7, false, &array) == OSD_E_QUEUE_FULL);
	CHECK(osd_fair_queue_reserve(&queue, "a", 5, false, &array) == OSD_OK);
	CHECK(osd_fair_queue_reserve(&queue, "a", 1, false, &single) == OSD_OK);
	CHECK(osd_fair_queue_reserve(&queue, "a", 1, false, &late) == OSD_E_QUEUE_FULL);
	CHECK(osd_fair_queue_reserve(&queue, "b", 5, false, &late) == OSD_E_QUEUE_FULL);
	CHECK(queue.place_count == 6);
	CHECK(osd_fair_queue_push(&queue, &array) == OSD_OK);
	CHECK(osd_fair_queue_push(&queue, &single) == OSD_OK);
	CHECK(osd_fair_queue_ahead(&queue, &single) == 5);
	osd_fair_queue_drop_place(&queue, &array);
	CHECK(osd_fair_queue_ahead(&queue, &single) == 4 && queue.place_count == 5);
	for (int left = 4; left > 0; left--)
		osd_fair_queue_drop_place(&queue, &array);
	CHECK(osd_fair_queue_pop(&queue) == &array && queue.place_count == 1);
	osd_fair_queue_add_place(&queue, &array); /* whatever the caps, and though it had none */
	CHECK(osd_fair_queue_push(&queue, &array) == OSD_OK && queue.place_count == 2);
	osd_fair_queue_drop(&queue, &array);
	osd_fair_queue_drop(&queue, &single);
	osd_fair_queue_unreserve(&queue, &array);
	osd_fair_queue_unreserve(&queue, &single);
	CHECK(queue.place_count == 0);
	osd_fair_queue_release(&queue);
}

static uint64_t oldest_by_hand(void)
{
	uint64_t since = UINT64_MAX;

	for (size_t i = 0; i < COUNT; i++)
		if (entries[i].queued)
			since = OSD_MIN(since, entries[i].since);
	return since;
}

/* Entries come in any order of since, and go from anywhere: the oldest is always known. */
static void test_oldest(void)
{
	uint32_t random = 7;

	start(COUNT, COUNT);
	CHECK_EQ(osd_fair_queue_oldest(&queue), UINT64_MAX);
	for (unsigned round = 0; round < 5000; round++) {
		struct osd_fair_entry *entry;

		random = random * 1664525u + 1013904223u;
		entry = &entries[(random >> 8) % COUNT];
		if (entry->queued) {
			osd_fair_queue_drop(&queue, entry);
			osd_fair_queue_unreserve(&queue, entry);
		} else {
			entry->since = round % 3 ? round : random >> 20; /* most are the newest */
			push((size_t)(entry - entries), round % 2 ? "a" : "b", 0);
		}
		CHECK_EQ(osd_fair_queue_oldest(&queue), oldest_by_hand());
	}
	while (queue.entry_count) {
		pop();
		CHECK_EQ(osd_fair_queue_oldest(&queue), oldest_by_hand());
	}
	CHECK(!queue.oldest && !queue.newest);
	finish();
}

int main(void)
{
	test_places();
	test_order_inside_a_principal();
	test_one_job_is_not_stuck_behind_many();
	test_weights();
	test_lent_slots();
	test_age();
	test_at_once();
	test_caps();
	test_drop_and_hold();
	test_oldest();
	return 0;
}
