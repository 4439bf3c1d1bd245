/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_ration.c -- so many lines a period, and the number of the others with the next line. */
#include "base/ration.h"

#include "base/test.h"

#define PERIOD UINT64_C(1000000)

static void test_lines_are_limited_and_the_others_counted(void)
{
	struct osd_ration ration = OSD_RATION(2, PERIOD);
	unsigned withheld = 99;

	CHECK(osd_ration_take(&ration, 5 * PERIOD, &withheld));
	CHECK_EQ(withheld, 0);
	CHECK(osd_ration_take(&ration, 5 * PERIOD + 1, &withheld));
	for (unsigned i = 0; i < 7; i++) {
		CHECK(!osd_ration_take(&ration, 6 * PERIOD - 1, &withheld));
		CHECK_EQ(withheld, 0);
	}
	CHECK(osd_ration_take(&ration, 6 * PERIOD, &withheld));
	CHECK_EQ(withheld, 7);
	CHECK(osd_ration_take(&ration, 6 * PERIOD, &withheld));
	CHECK_EQ(withheld, 0);
	CHECK(!osd_ration_take(&ration, 6 * PERIOD, &withheld));
}

int main(void)
{
	test_lines_are_limited_and_the_others_counted();
	return 0;
}
