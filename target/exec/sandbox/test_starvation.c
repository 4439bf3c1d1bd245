/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_starvation.c -- by how much a wall limit is extended.  With real processes:
 * tests/exec/test_starvation.py. */
#include "exec/sandbox/sandbox.h"

#include "base/test.h"

#define SECOND UINT64_C(1000000)

int main(void)
{
	CHECK_EQ(osd_starved_extension(2 * SECOND, 0), 0);
	CHECK_EQ(osd_starved_extension(2 * SECOND, 5 * SECOND), 5 * SECOND);
	CHECK_EQ(osd_starved_extension(2 * SECOND, 99 * SECOND), 18 * SECOND);
	CHECK_EQ(osd_starved_extension(0, SECOND), 0);
	CHECK_EQ(osd_starved_extension(6 * SECOND, 99 * SECOND), 54 * SECOND);
	CHECK_EQ(osd_starved_extension(7 * SECOND, 99 * SECOND), OSD_STARVED_MOST_USEC);
	CHECK_EQ(osd_starved_extension(UINT64_MAX, UINT64_MAX), OSD_STARVED_MOST_USEC);
	return 0;
}
