/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_hook.c -- values that name a hook, and frames, byte for byte. */
#include "wire/hook.h"

#include <string.h>

#include "base/test.h"

static const uint8_t check[] = {1, 6, 0, 3, 0, 2, 0, 0, 0, 0, 0, 0, 0,	 0,   0,   1,	0,
				0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 'r', 'u', 'n', 'k', '1'};
static const uint8_t after[] = {2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
				0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0};

static void test_check(void)
{
	uint8_t bytes[sizeof(check) + 1];
	struct osd_hook_value value;

	CHECK(osd_hook_value_decode(check, sizeof(check), &value));
	CHECK_EQ(value.events, 6);
	CHECK_EQ(value.partition_id, 1);
	CHECK_EQ(value.object_id, 0x10000);
	CHECK(value.method_length == 3 && memcmp(value.method, "run", 3) == 0);
	CHECK(value.parameters_length == 2 && memcmp(value.parameters, "k1", 2) == 0);
	for (size_t length = 0; length < sizeof(check); length++)
		CHECK(!osd_hook_value_decode(check, length, &value));
	memcpy(bytes, check, sizeof(check));
	bytes[sizeof(check)] = 'x';
	CHECK(!osd_hook_value_decode(bytes, sizeof(bytes), &value));
	for (size_t at = 0; at < 8; at++) { /* every byte of the fixed part is checked */
		memcpy(bytes, check, sizeof(check));
		bytes[at] ^= 0x80;
		CHECK(!osd_hook_value_decode(bytes, sizeof(check), &value));
	}
	memcpy(bytes, check, sizeof(check));
	bytes[1] = 0; /* it checks nothing */
	CHECK(!osd_hook_value_decode(bytes, sizeof(check), &value));
	memcpy(bytes, check, sizeof(check));
	bytes[27] = 1; /* it derives nothing */
	CHECK(!osd_hook_value_decode(bytes, sizeof(check), &value));
}

static void test_after(void)
{
	uint8_t bytes[sizeof(after)];
	struct osd_hook_value value;

	CHECK(osd_hook_value_decode(after, sizeof(after), &value));
	CHECK_EQ(value.events, 16);
	CHECK_EQ(value.page, 0x10000);
	memcpy(bytes, after, sizeof(after));
	bytes[1] = 1;
	CHECK(!osd_hook_value_decode(bytes, sizeof(bytes), &value));
	memcpy(bytes, after, sizeof(after));
	bytes[25] = 0; /* no page */
	CHECK(!osd_hook_value_decode(bytes, sizeof(bytes), &value));
}

static void test_frame(void)
{
	static const uint8_t wanted[] = {
		0,    1,    2, 1, 0x88, 0x86, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, /* 0-15 */
		0,    0,    0, 0, 0,	1,    0, 1, 0, 0, 0, 0, 0, 0, 2, 0, /* 16-31 */
		0,    0,    0, 0, 0,	0,    0, 3, 0, 0, 0, 0, 0, 0, 0, 4, /* 32-47 */
		0,    0,    0, 0, 0,	0,    0, 5, 0, 0, 0, 0, 0, 0, 0, 6, /* 48-63 */
		0,    0,    0, 1, 0,	0,    0, 3, 0, 1, 0, 0, 0, 0, 0, 0, /* 64-79 */
		'k',  '1',  'a', 'x', 'y', 'z'};
	struct osd_hook_frame frame = {.events = 2, .service_action = 0x8886,
				       .partition_id = 0x10000, .object_id = 0x10001,
				       .offset = 512, .length = 3, .old_length = 4,
				       .created_msec = 5, .now_msec = 6, .page = 0x10000,
				       .parameters = "k1", .parameters_length = 2,
				       .attributes = (const uint8_t *)"a", .attributes_length = 1,
				       .data = (const uint8_t *)"xyz", .data_length = 3};
	uint8_t bytes[sizeof(wanted)];

	CHECK_EQ(osd_hook_frame_length(&frame), sizeof(wanted));
	osd_hook_frame_encode(&frame, bytes);
	CHECK(memcmp(bytes, wanted, sizeof(wanted)) == 0);
	frame.data = NULL;
	CHECK_EQ(osd_hook_frame_length(&frame), sizeof(wanted) - 3);
	osd_hook_frame_encode(&frame, bytes);
	CHECK(bytes[3] == 0 && bytes[71] == 0);
}

int main(void)
{
	test_check();
	test_after();
	test_frame();
	return 0;
}
