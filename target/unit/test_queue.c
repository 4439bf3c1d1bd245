/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_queue.c -- lanes take turns, within a lane the order is that of arrival, classes do not mix. */
#include "unit/queue.h"

#include "base/test.h"

#define MANY 100

static struct osd_request requests[MANY + 2];

static void add(struct osd_queue *queue, unsigned index, uint64_t nexus, enum osd_command_span which)
{
	requests[index] = (struct osd_request){.nexus = {.id = nexus}, .submitted_ns = 1000 + index};
	osd_queue_add(queue, which, &requests[index]);
}

/* Somebody with a hundred delays somebody with one by one. */
static void test_turns(void)
{
	struct osd_queue queue;

	osd_queue_init(&queue);
	for (unsigned i = 0; i < MANY; i++)
		add(&queue, i, 1, OSD_SPAN_SHORT);
	add(&queue, MANY, 2, OSD_SPAN_SHORT);
	CHECK_EQ(osd_queue_count(&queue, OSD_SPAN_SHORT), MANY + 1);
	CHECK_EQ(osd_queue_oldest_ns(&queue), 1000);
	CHECK(osd_queue_take(&queue, OSD_SPAN_SHORT) == &requests[0]);
	CHECK(osd_queue_take(&queue, OSD_SPAN_SHORT) == &requests[MANY]);
	for (unsigned i = 1; i < MANY; i++) {
		CHECK(osd_queue_peek(&queue, OSD_SPAN_SHORT) == &requests[i]);
		CHECK(osd_queue_take(&queue, OSD_SPAN_SHORT) == &requests[i]);
	}
	CHECK(osd_queue_peek(&queue, OSD_SPAN_SHORT) == NULL);
	CHECK_EQ(osd_queue_count(&queue, OSD_SPAN_SHORT), 0);
	CHECK_EQ(osd_queue_oldest_ns(&queue), UINT64_MAX);
}

/* Emptied and filled again, in turn with others. */
static void test_again(void)
{
	struct osd_queue queue;

	osd_queue_init(&queue);
	for (unsigned round = 0; round < 3; round++) {
		add(&queue, 0, 1, OSD_SPAN_LONG);
		add(&queue, 1, 2, OSD_SPAN_LONG);
		add(&queue, 2, 1, OSD_SPAN_SHORT);
		CHECK(osd_queue_take(&queue, OSD_SPAN_LONG) == &requests[0]);
		add(&queue, 0, 1, OSD_SPAN_LONG);
		CHECK(osd_queue_take(&queue, OSD_SPAN_LONG) == &requests[1]);
		CHECK(osd_queue_take(&queue, OSD_SPAN_LONG) == &requests[0]);
		CHECK(osd_queue_peek(&queue, OSD_SPAN_LONG) == NULL);
		CHECK_EQ(osd_queue_oldest_ns(&queue), 1002);
		CHECK(osd_queue_take(&queue, OSD_SPAN_SHORT) == &requests[2]);
	}
}

int main(void)
{
	test_turns();
	test_again();
	return 0;
}
