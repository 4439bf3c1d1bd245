/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_codes.c -- which codes are sent to a sandbox that keeps some. */
#include <string.h>

#include "base/test.h"
#include "exec/sandbox/sandbox.h"

static uint8_t place(struct osd_kept_codes *codes, uint8_t number, const char *name, bool *ret_kept)
{
	uint8_t sha256[32] = {number};

	return osd_kept_codes_place(codes, sha256, name, ret_kept);
}

static void test_kept_once_said(void)
{
	struct osd_kept_codes codes = {0};
	bool kept;
	uint8_t slot = place(&codes, 1, "a", &kept);

	CHECK(slot == 1 && !kept);
	CHECK(place(&codes, 1, "a", &kept) == 2 && !kept); /* its first job did not keep it */
	osd_kept_codes_note(&codes, 2);
	CHECK(place(&codes, 1, "a", &kept) == 2 && kept);
	CHECK(place(&codes, 1, "b", &kept) == 3 && !kept); /* tracebacks show another name */
}

static void test_the_oldest_goes(void)
{
	struct osd_kept_codes codes = {0};
	bool kept;

	for (uint8_t number = 1; number <= OSD_CODE_SLOTS; number++)
		osd_kept_codes_note(&codes, place(&codes, number, "", &kept));
	CHECK(place(&codes, 1, "", &kept) == 1 && kept);
	CHECK(place(&codes, 9, "", &kept) == 1 && !kept);
	CHECK(place(&codes, 1, "", &kept) == 2 && !kept);
	CHECK(place(&codes, 3, "", &kept) == 3 && kept);
}

int main(void)
{
	test_kept_once_said();
	test_the_oldest_goes();
	return 0;
}
