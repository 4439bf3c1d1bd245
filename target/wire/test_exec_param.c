/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_exec_param.c -- EXEC PARAMETERS: golden frames, every refusal, unknown and repeated tags. */
#include "wire/exec_param.h"

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/index_ranges.h"
#include "wire/test_golden.h"
#include "wire/text.h"
#include "testing/initiator.h"

static bool text_is(struct osd_exec_text text, const char *wanted)
{
	return text.length == strlen(wanted) && !memcmp(text.bytes, wanted, text.length);
}

static struct osd_exec_params roundtrip(const struct golden *frame)
{
	struct osd_exec_params params;
	uint8_t again[GOLDEN_MAX];
	const char *why;

	CHECK_EQ(osd_exec_params_decode(frame->bytes, frame->length, &params, &why), OSD_OK);
	CHECK(!why);
	CHECK_BYTES(again, osd_exec_params_encode(&params, again, sizeof(again)), frame->bytes,
		    frame->length);
	for (size_t capacity = 0; capacity < frame->length; capacity++)
		CHECK_EQ(osd_exec_params_encode(&params, again, capacity), 0);
	return params;
}

static void test_small(void)
{
	struct golden frame = golden("exec_params.small");
	struct osd_exec_params params = roundtrip(&frame);

	CHECK(osd_exec_has(&params, OSD_EXEC_PARAM_ENGINE) && text_is(params.engine, "python"));
	CHECK_EQ(params.wall_usec, 5000000);
	CHECK(text_is(params.name, "count requests"));
	CHECK(!osd_exec_has(&params, OSD_EXEC_PARAM_CPU) && params.cpu_usec == 0);
}

static void test_full(void)
{
	struct golden frame = golden("exec_params.full");
	struct osd_exec_params params = roundtrip(&frame);

	CHECK_EQ(params.present, (UINT32_C(1) << 22) - 2);
	CHECK(params.args_encoding == OSD_ARGS_JSON && text_is(params.args, "{\"n\": 7}"));
	CHECK_EQ(params.wall_usec, 10000000);
	CHECK_EQ(params.cpu_usec, 5000000);
	CHECK_EQ(params.memory_bytes, 64 * OSD_MIB);
	CHECK_EQ(params.processes, 1);
	CHECK_EQ(params.output_bytes, OSD_MIB);
	CHECK_EQ(params.open_files, 32);
	CHECK_EQ(params.io_bytes, OSD_GIB);
	CHECK(params.priority == -5);
	CHECK(params.tag_count == 2 && text_is(params.tags[0], "team=blue") &&
	      text_is(params.tags[1], "a=b"));
	CHECK(text_is(params.key, "key-1"));
	CHECK(params.surrogate_partition == 0x10000 && params.surrogate_id == 0x20000);
	CHECK_EQ(params.sync_wait_usec, 2000000);
	CHECK_EQ(params.flags,
		 OSD_EXEC_HOLD | OSD_EXEC_IDEMPOTENT | OSD_EXEC_END_ON_ABORT | 75 << 8);
	CHECK(params.after_count == 2 && params.after[0].object_id == 0x10005 &&
	      params.after[0].condition == OSD_AFTER_COMPLETED && params.after[1].condition == 0);
	CHECK(params.array_first == 0 && params.array_last == 15 && params.array_at_once == 4);
	CHECK(text_is(params.pool, "bulk"));
	CHECK_EQ(params.expiry_usec, 3600 * OSD_SECOND);
}

/* A frame with one parameter; returns why it was refused, or NULL. */
static const char *decode_one(uint16_t tag, uint16_t flags, const void *value, uint32_t length)
{
	struct osd_exec_params params;
	uint8_t frame[512] = {0, 1, 0, 1};
	const char *why;
	enum osd_status status;

	osd_put_be(frame + 4, tag, 2);
	osd_put_be(frame + 6, flags, 2);
	osd_put_be(frame + 8, length, 4);
	memcpy(frame + 12, value, length);
	status = osd_exec_params_decode(frame, 12 + (length + 7) / 8 * 8, &params, &why);
	CHECK_EQ(status, why ? OSD_E_CDB_FIELD : OSD_OK);
	return why;
}

static const char *decode_number(uint16_t tag, uint64_t value)
{
	uint8_t bytes[8];

	osd_put_be(bytes, value, 8);
	return decode_one(tag, 1, bytes, 8);
}

static void test_values(void)
{
	static const uint8_t zeros[200];

	CHECK(!decode_number(OSD_EXEC_PARAM_WALL, OSD_DAY));
	CHECK(decode_number(OSD_EXEC_PARAM_WALL, OSD_DAY + 1));
	CHECK(decode_number(OSD_EXEC_PARAM_WALL, 0));
	CHECK(!decode_number(OSD_EXEC_PARAM_MEMORY, UINT64_MAX));
	CHECK(!decode_number(OSD_EXEC_PARAM_SURROGATE_ID, 0));
	CHECK(decode_number(OSD_EXEC_PARAM_PROCESSES, 17));
	CHECK(!decode_number(OSD_EXEC_PARAM_GRACE, 5 * OSD_SECOND));
	CHECK(decode_number(OSD_EXEC_PARAM_GRACE, 5 * OSD_SECOND + 1));
	CHECK(!decode_number(OSD_EXEC_PARAM_BEGIN, (UINT64_C(1) << 48) - 1));
	CHECK(decode_number(OSD_EXEC_PARAM_BEGIN, UINT64_C(1) << 48));
	CHECK(decode_number(OSD_EXEC_PARAM_BEGIN, 0));
	CHECK(decode_one(OSD_EXEC_PARAM_WALL, 1, "\0\0\0\1", 4));
	CHECK(decode_one(OSD_EXEC_PARAM_WALL, 1, "\0\0\0\0\0\0\0\1\0", 9));
	CHECK(!decode_one(OSD_EXEC_PARAM_PRIORITY, 1, "\xff\x9c", 2)); /* -100 */
	CHECK(decode_one(OSD_EXEC_PARAM_PRIORITY, 1, "\xff\x9b", 2));
	CHECK(decode_one(OSD_EXEC_PARAM_FLAGS, 1, "\x80\0\0\0", 4));
	CHECK(!decode_one(OSD_EXEC_PARAM_FLAGS, 1, "\0\5\0\0", 4)); /* packed byte-code */
	CHECK(!decode_one(OSD_EXEC_PARAM_FLAGS, 1, "\0\2\0\0", 4)); /* zstd: read, not offered */
	CHECK(decode_one(OSD_EXEC_PARAM_FLAGS, 1, "\0\3\0\0", 4));
	CHECK(decode_one(OSD_EXEC_PARAM_FLAGS, 1, "\0\x8\0\0", 4)); /* no predecessor */
	CHECK(decode_one(OSD_EXEC_PARAM_FLAGS, 1, "\0\x10\0\0", 4));
	CHECK(decode_one(OSD_EXEC_PARAM_NAME, 1, "", 0));
	CHECK(decode_one(OSD_EXEC_PARAM_NAME, 1, "a\nb", 3));
	CHECK(decode_one(OSD_EXEC_PARAM_NAME, 1, zeros, 129));
	CHECK(!decode_one(OSD_EXEC_PARAM_KEY, 1, zeros, 64));
	CHECK(decode_one(OSD_EXEC_PARAM_KEY, 1, zeros, 65));
	CHECK(decode_one(OSD_EXEC_PARAM_TAG, 1, "novalue", 7));
	CHECK(decode_one(OSD_EXEC_PARAM_TAG, 1, "=v", 2));
	CHECK(!decode_one(OSD_EXEC_PARAM_TAG, 1, "k=", 2));
	CHECK(decode_one(OSD_EXEC_PARAM_TAG, 1, "", 0));
	CHECK(!decode_one(OSD_EXEC_PARAM_ARGS, 1, "\0\0", 2));
	CHECK(decode_one(OSD_EXEC_PARAM_ARGS, 1, "\0\0x", 3));
	CHECK(decode_one(OSD_EXEC_PARAM_ARGS, 1, "\0\3x", 3));
	CHECK(decode_one(OSD_EXEC_PARAM_ARGS, 1, "\0", 1));
	CHECK(decode_one(OSD_EXEC_PARAM_AFTER, 1, zeros, 0));
	CHECK(!decode_one(OSD_EXEC_PARAM_AFTER, 1, zeros, 48));
	CHECK(decode_one(OSD_EXEC_PARAM_AFTER, 1, zeros, 25));
	CHECK(decode_one(OSD_EXEC_PARAM_ARRAY, 1, "\0\0\0\5\0\0\0\4\0\0\0\0", 12));
	CHECK(decode_one(OSD_EXEC_PARAM_ARRAY, 1, "\0\0\0\0\0\0\x27\x10\0\0\0\0", 12));
	CHECK(!decode_one(OSD_EXEC_PARAM_ARRAY, 1, "\0\0\0\0\0\0\x27\x0f\0\0\0\0", 12));
}

/* ARRAY with these ranges behind first, last and at once. */
static const char *decode_ranges(uint32_t first, uint32_t last, const uint32_t *numbers,
				 size_t count)
{
	uint8_t value[256];

	osd_put_be(value, first, 4);
	osd_put_be(value + 4, last, 4);
	osd_put_be(value + 8, 0, 4);
	for (size_t i = 0; i < count; i++)
		osd_put_be(value + 12 + 4 * i, numbers[i], 4);
	return decode_one(OSD_EXEC_PARAM_ARRAY, 1, value, (uint32_t)(12 + 4 * count));
}

static void test_ranges(void)
{
	static const uint32_t mixed[] = {1, 3, 2, 10, 20, 2, UINT32_MAX, UINT32_MAX, 1};
	static const uint32_t overlap[] = {1, 5, 2, 5, 7, 1}, falls[] = {5, 5, 1, 1, 1, 1};
	static const uint32_t no_step[] = {1, 1, 0}, beside[] = {1, 4, 2}, backwards[] = {4, 1, 1};
	static const uint32_t most[] = {0, 9999 * 7, 7}, many[] = {0, 9999, 1, 10000, 10000, 1};

	CHECK(!decode_ranges(1, UINT32_MAX, mixed, 9));
	CHECK(decode_ranges(0, UINT32_MAX, mixed, 9));	   /* not its first index */
	CHECK(decode_ranges(1, UINT32_MAX - 1, mixed, 9)); /* nor its last */
	CHECK(decode_ranges(1, UINT32_MAX, mixed, 8));
	CHECK(decode_ranges(1, 7, overlap, 6));
	CHECK(decode_ranges(5, 1, falls, 6));
	CHECK(decode_ranges(1, 1, no_step, 3));
	CHECK(decode_ranges(1, 4, beside, 3));
	CHECK(decode_ranges(4, 1, backwards, 3));
	CHECK(!decode_ranges(0, 9999 * 7, most, 3));
	CHECK(decode_ranges(0, 10000, many, 6));
}

static void test_walk(void)
{
	static const uint32_t mixed[] = {1, 3, 2, 10, 20, 5, UINT32_MAX, UINT32_MAX, 1};
	static const uint32_t indices[] = {1, 3, 10, 15, 20, UINT32_MAX};
	uint8_t bytes[sizeof(mixed)];
	uint32_t first, last, count;
	struct osd_index_walk walk;

	for (size_t i = 0; i < OSD_ARRAY_SIZE(mixed); i++)
		osd_put_be(bytes + 4 * i, mixed[i], 4);
	CHECK(osd_index_ranges_check(bytes, sizeof(bytes), 6, &first, &last, &count));
	CHECK(first == 1 && last == UINT32_MAX && count == 6);
	CHECK(!osd_index_ranges_check(bytes, sizeof(bytes), 5, &first, &last, &count));
	walk = osd_index_walk_begin(bytes, sizeof(bytes), 0);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(indices); i++)
		CHECK_EQ(osd_index_walk_next(&walk), indices[i]);
	walk = osd_index_walk_begin(NULL, 0, 7);
	CHECK_EQ(osd_index_walk_next(&walk), 7);
	CHECK_EQ(osd_index_walk_next(&walk), 8);
}

static void test_unknown(void)
{
	CHECK(!decode_one(99, 0, "whatever", 8));
	CHECK(!decode_one(0, 0, "x", 1));
	CHECK(decode_one(99, OSD_EXEC_PARAM_CRITICAL, "whatever", 8));
	CHECK(decode_one(32, OSD_EXEC_PARAM_CRITICAL, "whatever", 8));
}

static void test_frames_that_lie(void)
{
	struct golden frame = golden("exec_params.small");
	struct osd_exec_params params;

	for (size_t length = 0; length < frame.length; length++)
		CHECK_EQ(osd_exec_params_decode(frame.bytes, length, &params, NULL),
			 OSD_E_CDB_FIELD);
	frame.bytes[3] = 2; /* one parameter more than counted */
	CHECK_EQ(osd_exec_params_decode(frame.bytes, frame.length, &params, NULL), OSD_E_CDB_FIELD);
	frame.bytes[3] = 4;
	CHECK_EQ(osd_exec_params_decode(frame.bytes, frame.length, &params, NULL), OSD_E_CDB_FIELD);
	frame.bytes[3] = 3;
	frame.bytes[1] = 2; /* another version */
	CHECK_EQ(osd_exec_params_decode(frame.bytes, frame.length, &params, NULL), OSD_E_CDB_FIELD);
	frame.bytes[1] = 1;
	osd_put_be(frame.bytes + 8, 0xffffffff, 4);
	CHECK_EQ(osd_exec_params_decode(frame.bytes, frame.length, &params, NULL), OSD_E_CDB_FIELD);
}

static void test_repeated(void)
{
	uint8_t frame[4 + 17 * 16] = {0, 1, 0, 2};
	struct osd_exec_params params;

	for (size_t i = 0; i < 17; i++) {
		osd_put_be(frame + 4 + 16 * i, OSD_EXEC_PARAM_TAG, 2);
		osd_put_be(frame + 8 + 16 * i, 3, 4);
		memcpy(frame + 12 + 16 * i, "k=v", 3);
	}
	CHECK_EQ(osd_exec_params_decode(frame, 36, &params, NULL), OSD_OK);
	CHECK_EQ(params.tag_count, 2);
	frame[3] = 17;
	CHECK_EQ(osd_exec_params_decode(frame, sizeof(frame), &params, NULL), OSD_E_CDB_FIELD);
	osd_put_be(frame + 4, OSD_EXEC_PARAM_POOL, 2);
	osd_put_be(frame + 20, OSD_EXEC_PARAM_POOL, 2);
	frame[3] = 2;
	CHECK_EQ(osd_exec_params_decode(frame, 36, &params, NULL), OSD_E_CDB_FIELD);
}

static bool clean(const char *text)
{
	return osd_text_is_clean((const uint8_t *)text, strlen(text));
}

static void test_text(void)
{
	CHECK(clean("") && clean("plain") && clean("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
	CHECK(!clean("\x1b[0m") && !clean("\x7f") && !clean("\xc2\x85"));
	CHECK(!clean("\x80") && !clean("\xc3") && !clean("\xe2\x82") && !clean("\xc3(") &&
	      !clean("\xff"));
	/* overlong */
	CHECK(!clean("\xc0\xaf") && !clean("\xe0\x80\xaf") && !clean("\xf0\x80\x80\xaf"));
	CHECK(!clean("\xed\xa0\x80") && !clean("\xf4\x90\x80\x80")); /* surrogate, above 10FFFF */
}

int main(void)
{
	test_small();
	test_full();
	test_values();
	test_ranges();
	test_walk();
	test_unknown();
	test_frames_that_lie();
	test_repeated();
	test_text();
	for (size_t i = 0; i < OSD_LIMIT_COUNT; i++)
		CHECK(osd_exec_limits[i].name &&
		      osd_exec_limits[i].standard <= osd_exec_limits[i].maximum);
	return 0;
}
