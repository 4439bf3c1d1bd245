/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_places.c -- a principal holds as many places as are free, and no more. */
#include "base/places.h"

#include "base/test.h"

#define MOST 8

static size_t take_all(struct osd_places *places, const char *principal,
		       struct osd_place_holder **ret_holder)
{
	size_t count = 0;

	while (osd_places_take(places, principal, 1, ret_holder) == OSD_OK)
		count++;
	return count;
}

static void test_each_finds_a_place(void)
{
	struct osd_places places = OSD_PLACES(MOST);
	struct osd_place_holder *a, *b, *c;

	CHECK_EQ(take_all(&places, "a", &a), 4);
	CHECK_EQ(take_all(&places, "b", &b), 2);
	CHECK_EQ(take_all(&places, "c", &c), 1);
	osd_places_give(&places, c, 1);
	CHECK_EQ(take_all(&places, "a", &a), 0);
	CHECK_EQ(take_all(&places, "d", &c), 1);
	for (int i = 0; i < 4; i++)
		osd_places_give(&places, a, 1);
	CHECK_EQ(take_all(&places, "b", &b), 2); /* it has 4, and 3 are free */
	osd_places_give(&places, c, 1);
	for (int i = 0; i < 4; i++)
		osd_places_give(&places, b, 1);
	CHECK(!places.holders);
	CHECK_EQ(places.taken, 0);
}

static void test_several_at_once(void)
{
	struct osd_places places = OSD_PLACES(MOST);
	struct osd_place_holder *a, *b, *none = NULL;

	CHECK_EQ(osd_places_take(&places, "a", MOST + 1, &none), OSD_E_QUEUE_FULL);
	CHECK_EQ(osd_places_take(&places, "a", SIZE_MAX, &none), OSD_E_QUEUE_FULL);
	CHECK(!places.holders);
	CHECK_EQ(osd_places_take(&places, "a", 3, &a), OSD_OK);
	CHECK_EQ(osd_places_take(&places, "a", 3, &a), OSD_E_QUEUE_FULL); /* 5 are free */
	CHECK_EQ(osd_places_take(&places, "a", 2, &a), OSD_OK);
	CHECK_EQ(osd_places_take(&places, "b", 4, &none), OSD_E_QUEUE_FULL);
	CHECK_EQ(osd_places_take(&places, "b", 3, &b), OSD_OK);
	CHECK_EQ(osd_places_take(&places, "c", 1, &none), OSD_E_QUEUE_FULL);
	osd_places_give(&places, b, 3);
	osd_places_give(&places, a, 2);
	osd_places_give(&places, a, 3);
	CHECK(!none && !places.holders);
	CHECK_EQ(places.taken, 0);
}

static void test_the_targets_own(void)
{
	struct osd_places places = OSD_PLACES(2);
	struct osd_place_holder *a = NULL;

	for (int i = 0; i < 3; i++)
		osd_places_take_extra(&places);
	CHECK_EQ(osd_places_take(&places, "a", 1, &a), OSD_E_QUEUE_FULL);
	for (int i = 0; i < 2; i++)
		osd_places_give(&places, NULL, 1);
	CHECK_EQ(osd_places_take(&places, "a", 1, &a), OSD_OK);
	osd_places_give(&places, a, 1);
	osd_places_give(&places, NULL, 1);
	CHECK(!places.holders);
}

int main(void)
{
	test_each_finds_a_place();
	test_several_at_once();
	test_the_targets_own();
	return 0;
}
