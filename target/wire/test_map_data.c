/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_map_data.c -- READ MAP data: golden bytes, pieces of more than 4 GiB, truncation. */

#include "base/test.h"
#include "wire/map_data.h"
#include "testing/initiator.h"

static void test_golden(void)
{
	static const uint8_t wanted[] = {
		0, 0, 0, 0, 0,	  0,	0,    0x20, /* additional length */
		0, 0, 0, 1, 0,	  0,	0x10, 0,    0, 0, 0, 0, 0, 0, 0,    0, /* data */
		0, 0, 0, 2, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0, 0, 0x10, 0, /* hole */
	};
	struct osd_map_writer writer;
	uint8_t bytes[64];

	osd_map_writer_init(&writer, bytes, sizeof(bytes));
	osd_map_writer_add(&writer, 1, 0, 0x1000);
	osd_map_writer_add(&writer, 2, 0x1000, 0x12345678);
	CHECK_BYTES(bytes, osd_map_writer_finish(&writer), wanted, sizeof(wanted));
}

/* Every byte of a long range is listed once; ranges that do not fit are counted. */
static void test_long_range(size_t capacity)
{
	const uint64_t start = 4096, length = (UINT64_C(10) << 30) + 1;
	struct osd_map_descriptor descriptor;
	struct osd_map_writer writer;
	struct osd_map_data map;
	uint8_t bytes[64];
	uint64_t at = start;
	size_t count = 0;

	osd_map_writer_init(&writer, bytes, capacity);
	osd_map_writer_add(&writer, 1, start, length);
	CHECK(osd_map_data_open(bytes, osd_map_writer_finish(&writer), &map) == OSD_OK);
	CHECK_EQ(map.additional_length, 3 * OSD_MAP_DESCRIPTOR);
	while (osd_map_data_next(&map, &descriptor)) {
		CHECK_EQ(descriptor.type, 1);
		CHECK_EQ(descriptor.offset, at);
		at += descriptor.length;
		count++;
	}
	CHECK_EQ(count, (capacity - OSD_MAP_HEADER) / OSD_MAP_DESCRIPTOR > 3
				? 3
				: (capacity - OSD_MAP_HEADER) / OSD_MAP_DESCRIPTOR);
	if (count == 3)
		CHECK_EQ(at, start + length);
}

static void test_nothing_fits(void)
{
	struct osd_map_writer writer;
	struct osd_map_data map;
	uint8_t bytes[OSD_MAP_HEADER];

	osd_map_writer_init(&writer, NULL, 0);
	osd_map_writer_add(&writer, 1, 0, 1);
	CHECK_EQ(osd_map_writer_finish(&writer), 0);
	CHECK_EQ(writer.count, 1);
	osd_map_writer_init(&writer, bytes, sizeof(bytes));
	osd_map_writer_add(&writer, 1, 0, 1);
	CHECK_EQ(osd_map_writer_finish(&writer), OSD_MAP_HEADER);
	CHECK(osd_map_data_open(bytes, 7, &map) == OSD_E_PARAM_LENGTH);
	CHECK(osd_map_data_open(bytes, 8, &map) == OSD_OK);
	CHECK_EQ(map.additional_length, 16);
	CHECK(map.at == map.end);
}

int main(void)
{
	test_golden();
	for (size_t capacity = OSD_MAP_HEADER; capacity <= 64; capacity++)
		test_long_range(capacity);
	test_nothing_fits();
	return 0;
}
