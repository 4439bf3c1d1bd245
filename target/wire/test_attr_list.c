/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_attr_list.c -- attribute lists: golden frames, lists that lie, writers cut at every
 * length. */
#include "wire/attr_list.h"

#include "wire/cursor.h"
#include "wire/test_golden.h"
#include "testing/initiator.h"

static void test_read_get_list(void)
{
	struct golden frame = golden("attrs.get");
	struct osd_attr_list list;
	struct osd_attr attr;

	CHECK_EQ(osd_attr_list_open(frame.bytes, frame.length, OSD_LIST_GET, &list), OSD_OK);
	CHECK(osd_attr_list_next(&list, &attr));
	CHECK(attr.page == 0x90000001 && attr.number == 4 && !attr.value);
	CHECK(osd_attr_list_next(&list, &attr));
	CHECK_EQ(attr.number, 0xc0);
	CHECK(!osd_attr_list_next(&list, &attr));
}

static void test_read_set_list(void)
{
	struct golden frame = golden("data_out.write");
	struct osd_attr_list list;
	struct osd_attr attr;

	CHECK_EQ(osd_attr_list_open(frame.bytes + 8, 32, OSD_LIST_SET, &list), OSD_OK);
	CHECK(osd_attr_list_next(&list, &attr));
	CHECK(attr.page == 0x10000 && attr.number == 1);
	CHECK_BYTES(attr.value, attr.length, "\1\2\3\4", 4);
	CHECK(!osd_attr_list_next(&list, &attr));
}

static enum osd_status open_with(struct golden frame, size_t length, size_t at, uint64_t value,
				 uint8_t type)
{
	struct osd_attr_list list;

	osd_put_be(frame.bytes + at, value, 2);
	return osd_attr_list_open(frame.bytes, length, type, &list);
}

static void test_lists_that_lie(void)
{
	struct golden get = golden("attrs.get"), set = golden("attrs.retrieved");

	CHECK_EQ(open_with(get, 7, 2, 0, OSD_LIST_GET), OSD_E_PARAM_LENGTH);
	CHECK_EQ(open_with(get, 12, 2, 0, OSD_LIST_GET), OSD_E_PARAM_LENGTH);
	CHECK_EQ(open_with(get, 8, 2, 0, OSD_LIST_GET), OSD_OK); /* an empty list */
	CHECK_EQ(open_with(get, 24, 0, 0x0900, OSD_LIST_GET), OSD_E_PARAM_FIELD);
	CHECK_EQ(open_with(set, 56, 0, 0x0100, OSD_LIST_SET), OSD_E_PARAM_FIELD);
	CHECK_EQ(open_with(set, 56, 46, 9, OSD_LIST_SET), OSD_E_PARAM_LENGTH);
	CHECK_EQ(open_with(set, 56, 46, 0xffff, OSD_LIST_SET), OSD_E_PARAM_LENGTH);
	CHECK_EQ(open_with(set, 48, 2, 0, OSD_LIST_SET), OSD_E_PARAM_LENGTH); /* in the value */
	CHECK_EQ(open_with(set, 40, 2, 0, OSD_LIST_SET), OSD_E_PARAM_LENGTH); /* in the header */
}

static void test_longest_value(void)
{
	static uint8_t bytes[16 + 0x10000];
	struct osd_attr_list list;

	osd_put_be(bytes + 14, 0xffff, 2);
	CHECK_EQ(osd_attr_entries_open(bytes, sizeof(bytes), OSD_LIST_SET, &list),
		 OSD_E_PARAM_FIELD);
	osd_put_be(bytes + 14, 0xfffe, 2);
	CHECK_EQ(osd_attr_entries_open(bytes, sizeof(bytes), OSD_LIST_SET, &list), OSD_OK);
}

static void test_most_entries(void)
{
	static uint8_t bytes[8 * (65536 + 1)];
	struct osd_attr_list list;

	CHECK_EQ(osd_attr_entries_open(bytes, 8 * 65536, OSD_LIST_GET, &list), OSD_OK);
	CHECK_EQ(osd_attr_entries_open(bytes, sizeof(bytes), OSD_LIST_GET, &list),
		 OSD_E_PARAM_LENGTH);
}

static size_t write_retrieved(uint8_t *buffer, size_t capacity)
{
	struct osd_attr_writer writer;

	osd_attr_writer_init(&writer, buffer, capacity, OSD_LIST_SET);
	CHECK_EQ(osd_attr_writer_add(&writer, 0x90000001, 4, "ACME    ", 8), OSD_OK);
	CHECK_EQ(osd_attr_writer_add(&writer, 0x90000001, 0xc0, "\0\0\0\0\0\0\0\1", 8), OSD_OK);
	return osd_attr_writer_finish(&writer);
}

/* At every allocation length: the bytes placed are those of the whole list, entries that cannot
 * start are left out, nothing is written behind the allocation, LIST LENGTH stays. */
static void test_write_truncated(void)
{
	struct golden frame = golden("attrs.retrieved");

	for (size_t capacity = 0; capacity <= 64; capacity++) {
		uint8_t buffer[80];
		size_t expected = capacity;
		size_t placed;

		if (capacity >= 32 && capacity < 48)
			expected = 32; /* the second entry cannot start */
		else if (capacity >= 8 && capacity < 24)
			expected = 8;
		else if (capacity > 56)
			expected = 56;
		memset(buffer, 0xee, sizeof(buffer));
		placed = write_retrieved(buffer, capacity);
		CHECK_EQ(placed, expected);
		CHECK_BYTES(buffer, placed, frame.bytes, placed);
		CHECK_EQ(buffer[placed], 0xee);
	}
}

static void test_read_retrieved(void)
{
	struct golden frame = golden("attrs.retrieved");

	for (size_t length = 8; length <= frame.length; length++) {
		struct osd_attr_list list;
		struct osd_attr attr;
		size_t count = 0;

		CHECK_EQ(osd_attr_retrieved_open(frame.bytes, length, &list), OSD_OK);
		while (osd_attr_list_next(&list, &attr))
			count++;
		CHECK_EQ(count, length < 32 ? 0 : length < 56 ? 1 : 2);
	}
}

static void test_write_lists_to_send(void)
{
	struct golden frame = golden("attrs.get");
	struct osd_attr_writer writer;
	uint8_t buffer[64];
	size_t placed;

	osd_attr_writer_init(&writer, buffer, sizeof(buffer), OSD_LIST_GET);
	osd_attr_writer_ask(&writer, 0x90000001, 4);
	osd_attr_writer_ask(&writer, 0x90000001, 0xc0);
	placed = osd_attr_writer_finish(&writer);
	osd_put_be(buffer + 4, 0, 4); /* the frame has the 0 that initiators send */
	CHECK_BYTES(buffer, placed, frame.bytes, frame.length);
}

static size_t write_groups(uint8_t *buffer, size_t capacity)
{
	struct osd_attr_writer writer;

	osd_attr_writer_init(&writer, buffer, capacity, OSD_LIST_MULTI_OBJECT);
	osd_attr_writer_begin_group(&writer, 0x10000, OSD_USER_OBJECT);
	CHECK_EQ(osd_attr_writer_add(&writer, 0x10000, 1, "\xca\xfe", 2), OSD_OK);
	osd_attr_writer_end_group(&writer);
	osd_attr_writer_begin_group(&writer, 0x10001, OSD_USER_OBJECT);
	CHECK_EQ(osd_attr_writer_add(&writer, 0x10000, 1, NULL, 0), OSD_OK);
	osd_attr_writer_end_group(&writer);
	return osd_attr_writer_finish(&writer);
}

static void test_groups(void)
{
	struct golden frame = golden("attrs.groups");
	struct osd_attr_groups groups;
	struct osd_attr_group group;
	struct osd_attr attr;
	uint8_t buffer[128];
	size_t placed;

	CHECK_BYTES(buffer, write_groups(buffer, sizeof(buffer)), frame.bytes, frame.length);
	for (size_t capacity = 0; capacity < frame.length; capacity++) {
		memset(buffer, 0xee, sizeof(buffer));
		placed = write_groups(buffer, capacity);
		CHECK(placed <= capacity && buffer[capacity] == 0xee);
		CHECK_BYTES(buffer, placed, frame.bytes, placed);
	}
	CHECK_EQ(osd_attr_groups_open(frame.bytes, frame.length, &groups), OSD_OK);
	CHECK(osd_attr_groups_next(&groups, &group));
	CHECK(group.object_id == 0x10000 && group.object_type == OSD_USER_OBJECT);
	CHECK(osd_attr_list_next(&group.attributes, &attr) && attr.length == 2);
	CHECK(!osd_attr_list_next(&group.attributes, &attr));
	CHECK(osd_attr_groups_next(&groups, &group));
	CHECK(osd_attr_list_next(&group.attributes, &attr) && attr.length == 0);
	CHECK(!osd_attr_groups_next(&groups, &group));
}

static void test_writer_limits(void)
{
	static uint8_t buffer[200000], value[OSD_ATTRIBUTE_MAX + 1];
	struct osd_attr_writer writer;

	osd_attr_writer_init(&writer, buffer, sizeof(buffer), OSD_LIST_MULTI_OBJECT);
	CHECK_EQ(osd_attr_writer_add(&writer, 1, 1, value, sizeof(value)), OSD_E_PARAM_FIELD);
	osd_attr_writer_begin_group(&writer, 1, OSD_USER_OBJECT);
	CHECK_EQ(osd_attr_writer_add(&writer, 1, 1, value, OSD_ATTRIBUTE_MAX), OSD_E_GROUP_LENGTH);
	CHECK_EQ(osd_attr_writer_add(&writer, 1, 1, value, OSD_ATTR_GROUP_MAX - 16), OSD_OK);
	CHECK_EQ(osd_attr_writer_add(&writer, 1, 2, NULL, 0), OSD_E_GROUP_LENGTH);
	osd_attr_writer_end_group(&writer);
	CHECK_EQ(osd_attr_writer_finish(&writer), 8 + 16 + OSD_ATTR_GROUP_MAX);
}

static void test_page_format(void)
{
	uint8_t page[8], buffer[8];

	osd_page_header(page, 0x90000002, 0x24);
	CHECK_BYTES(page, sizeof(page), "\x90\0\0\2\0\0\0\x24", 8);
	CHECK_EQ(osd_page_place(page, sizeof(page), buffer, 5), 5);
	CHECK_BYTES(buffer, 5, page, 5);
	CHECK_EQ(osd_page_place(page, sizeof(page), NULL, 0), 0);
}

int main(void)
{
	test_read_get_list();
	test_read_set_list();
	test_lists_that_lie();
	test_longest_value();
	test_most_entries();
	test_write_truncated();
	test_read_retrieved();
	test_write_lists_to_send();
	test_groups();
	test_writer_limits();
	test_page_format();
	return 0;
}
