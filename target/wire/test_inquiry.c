/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_inquiry.c -- INQUIRY data byte for byte. */
#include "wire/inquiry.h"

#include "base/test.h"

static const uint16_t versions[OSD_INQUIRY_VERSIONS] = {0x0440, 0x0960, 0x0300};

static void test_standard_data(void)
{
	static const uint8_t expected[OSD_INQUIRY_STANDARD] =
		"\x11\x00\x05\x12\x3d\x00\x00\x02"
		"IOSD    THE PRODUCT'S NA1.00"
		"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
		"\x04\x40\x09\x60\x03\x00\x00";
	struct osd_identity identity;

	osd_identity_init(&identity, "IOSD", "THE PRODUCT'S NAME IS TOO LONG", "1.00", versions);
	CHECK(!memcmp(identity.standard, expected, sizeof(expected)));
}

static void test_pages(void)
{
	uint8_t page[OSD_VPD_HEADER + OSD_VPD_MAX], large[300] = {7};
	struct osd_identity identity;

	osd_identity_init(&identity, "", "", "", versions);
	CHECK_EQ(osd_identity_page(&identity, 0x80, page), 0);
	CHECK_EQ(osd_identity_page(&identity, 0, page), 5);
	CHECK(!memcmp(page, "\x11\0\0\1\0", 5));
	osd_identity_add(&identity, 0x80, "SN", 2);
	osd_identity_add(&identity, 0xb0, large, sizeof(large));
	osd_identity_add(&identity, 0xb2, NULL, 0);
	CHECK_EQ(osd_identity_page(&identity, 0, page), 8);
	CHECK(!memcmp(page, "\x11\0\0\4\0\x80\xb0\xb2", 8));
	CHECK_EQ(osd_identity_page(&identity, 0x80, page), 6);
	CHECK(!memcmp(page, "\x11\x80\0\2SN", 6));
	CHECK_EQ(osd_identity_page(&identity, 0xb0, page), sizeof(page));
	CHECK_EQ(osd_identity_page(&identity, 0xb2, page), 4);
	CHECK_EQ(osd_identity_page(&identity, 0xb1, page), 0);
	for (int i = 0; i < 20; i++)
		osd_identity_add(&identity, (uint8_t)(0xc0 + i), "x", 1);
	CHECK_EQ(identity.page_count, OSD_VPD_PAGES);
	CHECK_EQ(osd_identity_page(&identity, 0, page), 5 + OSD_VPD_PAGES);
}

int main(void)
{
	test_standard_data();
	test_pages();
	return 0;
}
