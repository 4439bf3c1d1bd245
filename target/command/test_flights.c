/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_flights.c -- READs that wait for what another one computes. */
#include "command/flights.h"

#include "base/test.h"

static unsigned resumed;

static void resume(struct osd_request *request)
{
	CHECK(request->again);
	request->again = false;
	resumed++;
}

static void make_requests(struct osd_request *requests, size_t count)
{
	memset(requests, 0, count * sizeof(*requests));
	for (size_t i = 0; i < count; i++)
		requests[i].resume = resume;
}

static struct osd_flight flight_of(uint64_t counter, uint64_t first, uint64_t last)
{
	return (struct osd_flight){.key = {.source = {1, 2}, .version = {counter, 1}},
				   .first = first,
				   .last = last,
				   .reader = "a"};
}

static void test_one_computes(void)
{
	struct osd_flight one = flight_of(1, 4, 9), same = flight_of(1, 5, 9);
	struct osd_flight more = flight_of(1, 4, 10), later = flight_of(2, 4, 9);
	struct osd_request requests[5];
	struct osd_flights flights;

	make_requests(requests, 5);
	osd_flights_init(&flights);
	CHECK(osd_flights_begin(&flights, &one, &requests[0]) == OSD_OK);
	CHECK(osd_flights_begin(&flights, &same, &requests[1]) == OSD_PENDING);
	CHECK(osd_flights_begin(&flights, &same, &requests[2]) == OSD_PENDING);
	CHECK(osd_flights_begin(&flights, &more, &requests[3]) == OSD_OK);
	CHECK(osd_flights_begin(&flights, &later, &requests[4]) == OSD_OK);
	resumed = 0;
	osd_flights_end(&flights, &more, true, OSD_OK);
	osd_flights_end(&flights, &later, true, OSD_OK);
	CHECK_EQ(resumed, 0);
	osd_flights_end(&flights, &one, true, OSD_OK);
	CHECK_EQ(resumed, 2);
	CHECK(!requests[1].alone && !requests[2].alone);
	osd_flights_end(&flights, &one, true, OSD_OK); /* it has not begun again */
	CHECK_EQ(resumed, 2);
	CHECK(!flights.list);
	osd_flights_release(&flights);
}

/* One user may have to wait long for a sandbox: others do not wait for that. */
static void test_each_user_computes(void)
{
	struct osd_flight one = flight_of(1, 0, 0), other = one, same = one;
	struct osd_request requests[3];
	struct osd_flights flights;

	make_requests(requests, 3);
	other.reader = "b";
	osd_flights_init(&flights);
	CHECK(osd_flights_begin(&flights, &one, &requests[0]) == OSD_OK);
	CHECK(osd_flights_begin(&flights, &other, &requests[1]) == OSD_OK);
	CHECK(osd_flights_begin(&flights, &same, &requests[2]) == OSD_PENDING);
	osd_flights_end(&flights, &other, true, OSD_OK);
	resumed = 0;
	osd_flights_end(&flights, &one, true, OSD_OK);
	CHECK_EQ(resumed, 1);
	osd_flights_release(&flights);
}

/* After a failure the others compute for themselves; after an abort one of them takes the place. */
static void test_failures(void)
{
	const enum osd_status ends[] = {OSD_E_STAGE, OSD_E_TASK_ABORTED};
	struct osd_flights flights;

	osd_flights_init(&flights);
	for (int i = 0; i < 2; i++) {
		struct osd_flight one = flight_of(1, 0, 0), two = one, three = one;
		struct osd_request requests[3];

		make_requests(requests, 3);
		CHECK(osd_flights_begin(&flights, &one, &requests[0]) == OSD_OK);
		CHECK(osd_flights_begin(&flights, &two, &requests[1]) == OSD_PENDING);
		osd_flights_end(&flights, &one, false, ends[i]);
		CHECK(requests[1].alone == (i == 0));
		CHECK(osd_flights_begin(&flights, &two, &requests[2]) == OSD_OK);
		CHECK(osd_flights_begin(&flights, &three, &requests[1]) ==
		      (i == 0 ? OSD_OK : OSD_PENDING));
		osd_flights_end(&flights, &three, false,
				OSD_E_STAGE); /* alone: nobody waits for it */
		osd_flights_end(&flights, &two, true, OSD_OK);
		CHECK(!flights.list);
	}
	osd_flights_release(&flights);
}

static void test_aborts(void)
{
	struct osd_flight one = flight_of(1, 0, 0), two = one;
	struct osd_request requests[4];
	struct osd_flights flights;

	make_requests(requests, 4);
	osd_flights_init(&flights);
	CHECK(osd_flights_begin(&flights, &one, &requests[0]) == OSD_OK);
	for (int i = 1; i < 3; i++)
		CHECK(osd_flights_begin(&flights, &two, &requests[i]) == OSD_PENDING);
	resumed = 0;
	requests[2].aborted = requests[3].aborted = true;
	osd_flights_look_at_aborted(&flights);
	CHECK_EQ(resumed, 1);
	CHECK(osd_flights_begin(&flights, &two, &requests[3]) == OSD_E_TASK_ABORTED);
	osd_flights_end(&flights, &one, true, OSD_OK);
	CHECK_EQ(resumed, 2);
	osd_flights_release(&flights);
}

int main(void)
{
	test_one_computes();
	test_each_user_computes();
	test_failures();
	test_aborts();
	return 0;
}
