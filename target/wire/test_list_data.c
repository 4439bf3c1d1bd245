/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_list_data.c -- LIST's parameter data: golden frames, truncation, reading. */
#include "wire/list_data.h"

#include "wire/cursor.h"
#include "wire/test_golden.h"
#include "testing/initiator.h"

static void test_complete(void)
{
	struct golden frame = golden("list.objects");
	static const uint64_t ids[] = {0x10000, 0x10001, 0x10005};
	struct osd_list_writer writer;
	struct osd_list_data list;
	uint8_t buffer[64];
	uint64_t id;

	osd_list_writer_init(&writer, buffer, sizeof(buffer));
	CHECK_EQ(osd_list_writer_room(&writer, 8), 5);
	for (size_t i = 0; i < 3; i++)
		CHECK(osd_list_writer_id(&writer, ids[i]));
	CHECK_BYTES(buffer, osd_list_writer_finish(&writer, OSD_ODF_USER_OBJECTS, 9, false),
		    frame.bytes, frame.length);
	CHECK_EQ(osd_list_data_open(frame.bytes, frame.length, &list), OSD_OK);
	CHECK(list.format == OSD_ODF_USER_OBJECTS && list.continuation_id == 0 &&
	      !list.list_changed);
	for (size_t i = 0; i < 3; i++)
		CHECK(osd_list_data_next_id(&list, &id) && id == ids[i]);
	CHECK(!osd_list_data_next_id(&list, &id));
}

static void test_cut(void)
{
	struct golden frame = golden("list.partitions_cut");
	struct osd_list_writer writer;
	struct osd_list_data list;
	uint8_t buffer[39];
	uint64_t id;

	osd_list_writer_init(&writer, buffer, sizeof(buffer)); /* 7 bytes short of a second id */
	CHECK(osd_list_writer_id(&writer, 0x10000));
	CHECK(!osd_list_writer_id(&writer, 0x10001));
	osd_list_writer_left_out(&writer, 8, 0x10002);
	CHECK_BYTES(buffer, osd_list_writer_finish(&writer, OSD_ODF_PARTITIONS, 9, false),
		    frame.bytes, frame.length);
	CHECK_EQ(osd_list_data_open(frame.bytes, frame.length, &list), OSD_OK);
	CHECK(list.continuation_id == 0x10001 && list.list_identifier == 9);
	CHECK(osd_list_data_next_id(&list, &id) && id == 0x10000);
	CHECK(!osd_list_data_next_id(&list, &id));
}

static void test_nothing_fits(void)
{
	struct osd_list_writer writer;
	uint8_t buffer[24];

	osd_list_writer_init(&writer, buffer, 0);
	CHECK_EQ(osd_list_writer_room(&writer, 8), 0);
	CHECK(!osd_list_writer_id(&writer, 0x10000));
	CHECK_EQ(osd_list_writer_finish(&writer, OSD_ODF_PARTITIONS, 1, false), 0);

	osd_list_writer_init(&writer, buffer, 24);
	CHECK(!osd_list_writer_id(&writer, 0x10000));
	osd_list_writer_left_out(&writer, UINT64_MAX, 0x10001);
	CHECK_EQ(osd_list_writer_finish(&writer, OSD_ODF_PARTITIONS, 1, true), 24);
	CHECK_EQ(osd_get_be(buffer, 8), UINT64_MAX);
	CHECK_EQ(osd_get_be(buffer + 8, 8), 0x10000);
	CHECK_EQ(buffer[23], 0x06);
}

static void test_blocks(void)
{
	struct golden frame = golden("list.attributes");
	struct osd_attr_writer attributes;
	struct osd_list_writer writer;
	struct osd_list_data list;
	struct osd_attr_group block;
	struct osd_attr attr;
	uint8_t entries[64], buffer[64];

	osd_attr_writer_init(&attributes, entries, sizeof(entries), OSD_LIST_BARE);
	CHECK_EQ(osd_attr_writer_add(&attributes, 1, 0x82, "\0\0\0\0\0\0\4\0", 8), OSD_OK);
	osd_list_writer_init(&writer, buffer, sizeof(buffer));
	CHECK(osd_list_writer_block(&writer, 0x10000, OSD_USER_OBJECT, entries,
				    osd_attr_writer_finish(&attributes)));
	CHECK_BYTES(buffer, osd_list_writer_finish(&writer, OSD_ODF_USER_OBJECT_ATTRS, 0, false),
		    frame.bytes, frame.length);
	CHECK_EQ(osd_list_data_open(frame.bytes, frame.length, &list), OSD_OK);
	CHECK(osd_list_data_next_block(&list, &block) && block.object_id == 0x10000);
	CHECK(osd_attr_list_next(&block.attributes, &attr) && attr.number == 0x82 &&
	      attr.length == 8);
	CHECK(!osd_list_data_next_block(&list, &block));
}

int main(void)
{
	test_complete();
	test_cut();
	test_nothing_fits();
	test_blocks();
	return 0;
}
