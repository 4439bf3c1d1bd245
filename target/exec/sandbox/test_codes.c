/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_codes.c -- which codes are sent to a sandbox that keeps some. */

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
	osd_kept_codes_note(&codes, 2, 0);
	CHECK(place(&codes, 1, "a", &kept) == 2 && kept);
	CHECK(place(&codes, 1, "b", &kept) == 3 && !kept); /* tracebacks show another name */
}

static void test_the_oldest_goes(void)
{
	struct osd_kept_codes codes = {0};
	bool kept;

	for (uint8_t number = 1; number <= OSD_CODE_SLOTS; number++)
		osd_kept_codes_note(&codes, place(&codes, number, "", &kept), 0);
	CHECK(place(&codes, 1, "", &kept) == 1 && kept);
	CHECK(place(&codes, 9, "", &kept) == 1 && !kept);
	CHECK(place(&codes, 1, "", &kept) == 2 && !kept);
	CHECK(place(&codes, 3, "", &kept) == 3 && kept);
}

static void test_short_once_proved(void)
{
	struct osd_kept_codes codes = {0};
	bool kept;
	uint8_t slot = place(&codes, 1, "a", &kept);

	CHECK(!osd_kept_codes_are_short(&codes, slot));
	osd_kept_codes_note(&codes, slot, 1000000);
	CHECK(!osd_kept_codes_are_short(&codes, slot));
	osd_kept_codes_note(&codes, slot, 10);
	CHECK(osd_kept_codes_are_short(&codes, slot));
	osd_kept_codes_note(&codes, slot, 1000000);
	CHECK(!osd_kept_codes_are_short(&codes, slot));
	for (uint8_t number = 2; number <= 1 + OSD_CODE_SLOTS; number++) /* another takes its place */
		osd_kept_codes_note(&codes, place(&codes, number, "", &kept), 1000000);
	CHECK(!osd_kept_codes_are_short(&codes, slot));
}

/* Waits in vain become rare. */
static void test_in_vain(void)
{
	struct osd_kept_codes codes = {0};
	unsigned waits = 0;
	bool kept;
	uint8_t slot = place(&codes, 1, "a", &kept);

	osd_kept_codes_note(&codes, slot, 0);
	for (unsigned call = 0; call < 640; call++) {
		if (osd_kept_codes_are_short(&codes, slot)) {
			osd_kept_codes_waited(&codes, slot, true);
			waits++;
		}
		osd_kept_codes_note(&codes, slot, 0);
	}
	CHECK(waits > 2 && waits < 20);
	while (!osd_kept_codes_are_short(&codes, slot))
		osd_kept_codes_note(&codes, slot, 0);
	osd_kept_codes_waited(&codes, slot, false);
	CHECK(osd_kept_codes_are_short(&codes, slot));
}

int main(void)
{
	test_short_once_proved();
	test_in_vain();
	test_kept_once_said();
	test_the_oldest_goes();
	return 0;
}
