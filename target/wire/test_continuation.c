/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_continuation.c -- continuation segments and scatter/gather lists: golden frames and lies. */
#include "wire/continuation.h"

#include "wire/cursor.h"
#include "wire/test_golden.h"

#define READ_LENGTH 12288

static void test_pieces(void)
{
	struct golden frame = golden("continuation.read_pieces");
	struct osd_wr writer;
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	struct osd_sg_list list;
	uint64_t offset, length;
	uint8_t buffer[80];

	CHECK_EQ(osd_continuation_open(frame.bytes, frame.length, OSD_SA_READ, &continuation),
		 OSD_OK);
	CHECK(osd_continuation_find(&continuation, OSD_DESC_SG_LIST, &descriptor));
	CHECK(!osd_continuation_find(&continuation, OSD_DESC_QUERY_LIST, &descriptor));
	CHECK(osd_continuation_next(&continuation, &descriptor));
	CHECK_EQ(osd_sg_list_open(&descriptor, 10, READ_LENGTH, &list), OSD_OK);
	CHECK(osd_sg_list_next(&list, &offset, &length) && offset == 10 && length == 4096);
	CHECK(osd_sg_list_next(&list, &offset, &length) && offset == 65546 && length == 8192);
	CHECK(!osd_sg_list_next(&list, &offset, &length));
	CHECK_EQ(osd_sg_list_open(&descriptor, 0, READ_LENGTH - 1, &list), OSD_E_CDB_FIELD);
	CHECK_EQ(osd_sg_list_open(&descriptor, UINT64_MAX - 65536, READ_LENGTH, &list),
		 OSD_E_CDB_FIELD);

	writer = osd_wr_init(buffer, sizeof(buffer));
	osd_continuation_begin(&writer, OSD_SA_READ);
	osd_continuation_add(&writer, OSD_DESC_SG_LIST, frame.bytes + 48, 32);
	CHECK_BYTES(buffer, osd_wr_used(&writer), frame.bytes, frame.length);
	osd_continuation_add(&writer, OSD_DESC_SG_LIST, frame.bytes + 48, 32);
	CHECK(writer.bad);
}

static void test_sum_overflow(void)
{
	uint8_t content[32] = {0};
	struct osd_descriptor descriptor = {OSD_DESC_SG_LIST, content, sizeof(content)};
	struct osd_sg_list list;

	osd_put_be(content + 8, UINT64_MAX, 8);
	osd_put_be(content + 24, 1, 8);
	CHECK_EQ(osd_sg_list_open(&descriptor, 0, 0, &list), OSD_E_CDB_FIELD);
	descriptor.length = 24;
	CHECK_EQ(osd_sg_list_open(&descriptor, 0, 0, &list), OSD_E_CDB_FIELD);
}

static void test_exec(void)
{
	struct golden frame = golden("continuation.exec"), params = golden("exec_params.small");
	struct osd_wr writer;
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	uint8_t buffer[112];

	CHECK_EQ(osd_continuation_open(frame.bytes, frame.length, OSD_SA_EXEC, &continuation),
		 OSD_OK);
	CHECK(osd_continuation_find(&continuation, OSD_DESC_EXEC_PARAMS, &descriptor));
	CHECK_BYTES(descriptor.content, descriptor.length, params.bytes, params.length);
	writer = osd_wr_init(buffer, sizeof(buffer));
	osd_continuation_begin(&writer, OSD_SA_EXEC);
	osd_continuation_add(&writer, OSD_DESC_EXEC_PARAMS, params.bytes, params.length);
	CHECK_BYTES(buffer, osd_wr_used(&writer), frame.bytes, frame.length);
}

static void test_copy_source(void)
{
	struct golden frame = golden("continuation.copy");
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;
	struct osd_copy_source source;

	CHECK_EQ(osd_continuation_open(frame.bytes, frame.length, OSD_SA_COPY_USER_OBJECTS,
				       &continuation),
		 OSD_OK);
	CHECK(osd_continuation_next(&continuation, &descriptor));
	CHECK_EQ(osd_copy_source_decode(&descriptor, &source), OSD_OK);
	CHECK_EQ(source.partition_id, 0x10000);
	CHECK_EQ(source.object_id, 0x10001);
	CHECK(source.attributes && !source.freeze && source.time_of_duplication == 0);
	for (uint32_t length = 0; length <= 20; length++) {
		descriptor.length = length;
		CHECK_EQ(osd_copy_source_decode(&descriptor, &source),
			 length == 18 || length == 20 ? OSD_OK : OSD_E_CDB_FIELD);
	}
	descriptor.type = OSD_DESC_SG_LIST;
	CHECK_EQ(osd_copy_source_decode(&descriptor, &source), OSD_E_CDB_FIELD);
}

static enum osd_status open_with(size_t length, size_t at, size_t width, uint64_t value)
{
	struct golden frame = golden("continuation.exec");
	struct osd_continuation continuation;

	osd_put_be(frame.bytes + at, value, width);
	return osd_continuation_open(frame.bytes, length, OSD_SA_EXEC, &continuation);
}

static void test_lies(void)
{
	CHECK_EQ(open_with(112, 1, 1, 0xff), OSD_OK); /* reserved */
	CHECK_EQ(open_with(40, 1, 1, 0), OSD_OK);     /* no descriptor */
	CHECK_EQ(open_with(0, 1, 1, 0), OSD_OK);
	CHECK_EQ(open_with(39, 1, 1, 0), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(44, 1, 1, 0), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(104, 1, 1, 0), OSD_E_CDB_FIELD); /* cut in the descriptor */
	CHECK_EQ(open_with(112, 0, 1, 2), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(112, 2, 2, OSD_SA_READ), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(112, 40, 2, OSD_DESC_END), OSD_E_CDB_FIELD); /* END has no pad */
	CHECK_EQ(open_with(112, 40, 2, OSD_DESC_SG_LIST), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(112, 40, 2, 0x4242), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(112, 43, 1, 0), OSD_E_CDB_FIELD); /* pad and length disagree */
	CHECK_EQ(open_with(112, 44, 4, 0xfffffffc), OSD_E_CDB_FIELD);
	CHECK_EQ(open_with(112, 44, 4, 4), OSD_E_CDB_FIELD); /* leaves nonsense behind */
}

static void test_twice_and_terminated(void)
{
	uint8_t buffer[OSD_CONTINUATION_HEADER + 32] = {0};
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;

	buffer[0] = OSD_CONTINUATION_FORMAT;
	osd_put_be(buffer + 2, OSD_SA_READ, 2);
	osd_put_be(buffer + 40, OSD_DESC_SG_LIST, 2);
	osd_put_be(buffer + 48, OSD_DESC_SG_LIST, 2);
	CHECK_EQ(osd_continuation_open(buffer, sizeof(buffer), OSD_SA_READ, &continuation),
		 OSD_E_CDB_FIELD);
	osd_put_be(buffer + 48, OSD_DESC_END, 2);
	memset(buffer + 56, 0xff, 16); /* behind the end: ignored */
	CHECK_EQ(osd_continuation_open(buffer, sizeof(buffer), OSD_SA_READ, &continuation), OSD_OK);
	CHECK(osd_continuation_next(&continuation, &descriptor) && descriptor.length == 0);
	CHECK(!osd_continuation_next(&continuation, &descriptor));
}

int main(void)
{
	test_pieces();
	test_copy_source();
	test_sum_overflow();
	test_exec();
	test_lies();
	test_twice_and_terminated();
	return 0;
}
