/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_stage.c -- values that name a stage, and frames, byte for byte. */
#include "wire/stage.h"

#include <string.h>

#include "base/test.h"

static const uint8_t good[] = {1, 1, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0,   1,   0,
			       0, 0, 0, 0, 1, 0, 0, 'r', 'u', 'n', 'k', '1'};

static void test_value(void)
{
	uint8_t bytes[sizeof(good) + 1];
	struct osd_stage_value value;

	CHECK(osd_stage_value_decode(good, sizeof(good), &value));
	CHECK(!value.none && value.inherited);
	CHECK_EQ(value.partition_id, 1);
	CHECK_EQ(value.object_id, 0x10000);
	CHECK_EQ(value.method_length, 3);
	CHECK(memcmp(value.method, "run", 3) == 0);
	CHECK_EQ(value.parameters_length, 2);
	CHECK(memcmp(value.parameters, "k1", 2) == 0);
	for (size_t length = 0; length < sizeof(good); length++)
		CHECK(!osd_stage_value_decode(good, length, &value));
	memcpy(bytes, good, sizeof(good));
	bytes[sizeof(good)] = 'x';
	CHECK(!osd_stage_value_decode(bytes, sizeof(bytes), &value));
	for (size_t at = 0; at < 8; at++) { /* every byte of the fixed part is checked */
		memcpy(bytes, good, sizeof(good));
		bytes[at] ^= 0x80;
		CHECK(!osd_stage_value_decode(bytes, sizeof(good), &value));
	}
	memcpy(bytes, good, sizeof(good));
	bytes[sizeof(good) - 1] = '\n';
	CHECK(!osd_stage_value_decode(bytes, sizeof(good), &value));
}

static void test_none(void)
{
	uint8_t bytes[24] = {0};
	struct osd_stage_value value;

	CHECK(osd_stage_value_decode(bytes, sizeof(bytes), &value));
	CHECK(value.none && !value.inherited);
	bytes[15] = 1;
	CHECK(!osd_stage_value_decode(bytes, sizeof(bytes), &value));
}

static void test_frame(void)
{
	static const uint8_t wanted[] = {0, 1, 0, 2, 0, 0, 0, 7, 0, 0, 0,   0,  0,
					 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 'k', '1'};
	const struct osd_stage_frame frame = {512, 768, 7, "k1", 2};
	uint8_t bytes[OSD_STAGE_FRAME_MAX];

	CHECK_EQ(osd_stage_frame_encode(&frame, bytes), sizeof(wanted));
	CHECK(memcmp(bytes, wanted, sizeof(wanted)) == 0);
}

static void test_source(void)
{
	static const uint8_t wanted[OSD_SOURCE_BYTES] = {0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0,
							 0, 0, 1, 0, 3, 0, 0, 0, 0, 1, 2, 1};
	const struct osd_source_value source = {0x20000, 0x10003, 0x102, true};
	struct osd_source_value value;
	uint8_t bytes[OSD_SOURCE_BYTES];

	osd_source_value_encode(&source, bytes);
	CHECK(memcmp(bytes, wanted, sizeof(wanted)) == 0);
	CHECK(osd_source_value_decode(bytes, sizeof(bytes), &value));
	CHECK_EQ(value.partition_id, 0x20000);
	CHECK_EQ(value.object_id, 0x10003);
	CHECK_EQ(value.created_msec, 0x102);
	CHECK(value.writable);
	CHECK(osd_source_value_decode(bytes, OSD_SOURCE_IDS, &value));
	CHECK_EQ(value.created_msec, 0);
	CHECK(!value.writable);
	bytes[OSD_SOURCE_IDS] = 1; /* the flags, as a client sends them */
	CHECK(osd_source_value_decode(bytes, OSD_SOURCE_GIVEN, &value));
	CHECK(value.writable);
	bytes[OSD_SOURCE_IDS] = 2;
	CHECK(!osd_source_value_decode(bytes, OSD_SOURCE_GIVEN, &value));
	for (size_t length = 0; length < sizeof(bytes); length++)
		CHECK(length == OSD_SOURCE_IDS ||
		      !osd_source_value_decode(bytes, length, &value));
	memset(bytes, 0, 8);
	CHECK(!osd_source_value_decode(bytes, sizeof(bytes), &value));
}

int main(void)
{
	test_source();
	test_value();
	test_none();
	test_frame();
	return 0;
}
