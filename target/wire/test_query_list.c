/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_query_list.c -- QUERY's criteria: golden bytes, the end of a list, what is refused; the header
 * of its parameter data in both forms. */
#include "wire/query_list.h"

#include "wire/cursor.h"
#include "wire/test_golden.h"

#define NONE 0

static void test_golden_list(void)
{
	struct golden frame = golden("query_list.range");
	struct osd_query_list list;
	struct osd_criterion entry;

	CHECK_EQ(osd_query_list_open(frame.bytes, frame.length, &list), OSD_OK);
	CHECK(list.match_all);
	CHECK_EQ(list.count, 1);
	CHECK(osd_query_list_next(&list, &entry));
	CHECK_EQ(entry.page, 0x10000);
	CHECK_EQ(entry.number, 1);
	CHECK_EQ(entry.min_length, 4);
	CHECK_EQ(osd_get_be(entry.min, 4), 4);
	CHECK_EQ(entry.max_length, 4);
	CHECK_EQ(osd_get_be(entry.max, 4), 80);
	CHECK(!osd_query_list_next(&list, &entry));
}

/* Two entries of odd lengths back to back, one without an upper bound, one with neither. */
static void test_unaligned(void)
{
	static const uint8_t bytes[] = {
		0xf0, 1, 2, 3, /* any; reserved bits are ignored */
		9,    9, 0, 13, 0, 0, 0, 7, 0, 0, 0, 2, 0, 1, 'x', 0, 0,
		0,    0, 0, 12, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0,   0,
		0,    0, 0, /* fewer than 4 bytes: padding */
	};
	struct osd_query_list list;
	struct osd_criterion entry;

	CHECK_EQ(osd_query_list_open(bytes, sizeof(bytes), &list), OSD_OK);
	CHECK(!list.match_all);
	CHECK_EQ(list.count, 2);
	CHECK(osd_query_list_next(&list, &entry));
	CHECK(entry.page == 7 && entry.number == 2 && entry.min_length == 1 && *entry.min == 'x');
	CHECK_EQ(entry.max_length, 0);
	CHECK(osd_query_list_next(&list, &entry));
	CHECK(entry.page == 8 && entry.number == 3 && !entry.min_length && !entry.max_length);
	CHECK(!osd_query_list_next(&list, &entry));
}

static void test_no_criteria(void)
{
	static const uint8_t padded[16] = {1};
	struct osd_query_list list;

	CHECK_EQ(osd_query_list_open(padded, 4, &list), OSD_OK);
	CHECK_EQ(list.count, 0);
	CHECK_EQ(osd_query_list_open(padded, 7, &list), OSD_OK);
	CHECK_EQ(osd_query_list_open(padded, 8, &list), OSD_OK); /* an entry of length 0 */
	CHECK_EQ(list.count, 0);
}

static enum osd_status open_with(size_t at, uint8_t value, size_t length)
{
	struct golden frame = golden("query_list.range");
	struct osd_query_list list;

	if (at < frame.length)
		frame.bytes[at] = value;
	return osd_query_list_open(frame.bytes, length, &list);
}

static void test_refused(void)
{
	CHECK_EQ(open_with(0, 2, 32), OSD_E_CDB_FIELD);	   /* a reserved query type */
	CHECK_EQ(open_with(99, NONE, 3), OSD_E_CDB_FIELD); /* no header */
	CHECK_EQ(open_with(99, NONE, 27), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(99, NONE, 28), OSD_OK);
	CHECK_EQ(open_with(7, 0x13, 32), OSD_E_CDB_FIELD); /* QUERY ENTRY LENGTH does not add up */
	CHECK_EQ(open_with(7, 0x15, 32), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(8, 0x30, 32), OSD_E_CDB_FIELD); /* a partition's page */
	CHECK_EQ(open_with(8, 0x2f, 32), OSD_OK);
	CHECK_EQ(open_with(16, 0xff, 32), OSD_E_CDB_FIELD); /* a minimum that runs past the end */
}

static void test_result_header(void)
{
	struct golden frame = golden("query.result");
	uint8_t bytes[OSD_QUERY_RESULT_HEADER_OSC];

	CHECK_EQ(osd_query_result_header(2, false, bytes), 12);
	CHECK(!memcmp(bytes, frame.bytes, 12));
	frame = golden("query.result_osc");
	CHECK_EQ(osd_query_result_header(2, true, bytes), 13);
	CHECK(!memcmp(bytes, frame.bytes, 13));
	CHECK_EQ(osd_query_result_header(UINT64_MAX / 4, false, bytes), 12);
	CHECK_EQ(osd_get_be(bytes, 8), UINT64_MAX);
}

int main(void)
{
	test_golden_list();
	test_unaligned();
	test_no_criteria();
	test_refused();
	test_result_header();
	return 0;
}
