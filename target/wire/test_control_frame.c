/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_control_frame.c -- frames of the control socket against bytes typed by hand, and what is none. */
#include "wire/control_frame.h"

#include "wire/test_golden.h"

static void check_frame(const char *name, uint16_t type, uint32_t serial, const char *payload)
{
	struct golden wanted = golden(name);
	struct osd_control_frame frame = {.type = type,
					  .serial = serial,
					  .payload = payload,
					  .payload_bytes = (uint32_t)strlen(payload)},
				 back;
	uint8_t bytes[GOLDEN_MAX];

	CHECK_BYTES(bytes, osd_control_encode(&frame, bytes, sizeof(bytes)), wanted.bytes,
		    wanted.length);
	CHECK_EQ(osd_control_encode(&frame, bytes, wanted.length - 1), 0);
	CHECK_EQ(osd_control_decode(wanted.bytes, wanted.length, &back), OSD_CONTROL_FINE);
	CHECK_EQ(back.type, type);
	CHECK_EQ(back.serial, serial);
	CHECK_BYTES(back.payload, back.payload_bytes, payload, strlen(payload));
	for (size_t cut = 0; cut < wanted.length; cut++)
		CHECK_EQ(osd_control_decode(wanted.bytes, cut, &back), OSD_CONTROL_NO_FRAME);
}

static void test_golden(void)
{
	check_frame("control.hello", OSD_CONTROL_HELLO, 1, "role=manager\nwho=m\nversions=1-1\n");
	check_frame("control.snapshot", OSD_CONTROL_SNAPSHOT, 0xfffffffe, "");
	check_frame("control.workers", OSD_CONTROL_WORKERS, 0x01020304,
		    "count=6\nby=ann\nwhy=queue of 40\n");
	check_frame("control.error", OSD_CONTROL_ERROR, 0x01020304,
		    "{\"schema\":\"iosd.control/1\",\"code\":\"frame\",\"message\":\"\xc3\xa9\"}");
}

static void test_other_version(void)
{
	struct golden frame = golden("control.version_2");
	struct osd_control_frame back = {.type = 9};

	CHECK_EQ(osd_control_decode(frame.bytes, frame.length, &back), OSD_CONTROL_OTHER_VERSION);
	CHECK_EQ(back.serial, 5);
	CHECK_EQ(back.type, 0);
}

static void test_no_frames(void)
{
	static uint8_t large[OSD_CONTROL_MAX + 1];
	struct golden good = golden("control.workers");
	struct osd_control_frame frame = {
		.payload = (char *)large,
		.payload_bytes = OSD_CONTROL_MAX - OSD_CONTROL_HEADER + 1,
	};

	CHECK_EQ(osd_control_encode(&frame, large, sizeof(large)), 0);
	good.bytes[3] ^= 1;
	CHECK_EQ(osd_control_decode(good.bytes, good.length, &frame), OSD_CONTROL_NO_FRAME);
	good.bytes[3] ^= 1;
	CHECK_EQ(osd_control_decode(good.bytes, good.length + 1, &frame), OSD_CONTROL_NO_FRAME);
	memcpy(large, good.bytes, OSD_CONTROL_HEADER);
	osd_put_be(large + 12, OSD_CONTROL_MAX - OSD_CONTROL_HEADER, 4);
	CHECK_EQ(osd_control_decode(large, OSD_CONTROL_MAX, &frame), OSD_CONTROL_FINE);
	osd_put_be(large + 12, OSD_CONTROL_MAX - OSD_CONTROL_HEADER + 1, 4);
	CHECK_EQ(osd_control_decode(large, OSD_CONTROL_MAX + 1, &frame), OSD_CONTROL_NO_FRAME);
}

static void check_pair(struct osd_rd *r, const char *key, const char *value)
{
	struct osd_control_pair pair;

	CHECK(osd_control_next(r, &pair));
	CHECK_BYTES(pair.key, pair.key_bytes, key, strlen(key));
	CHECK_BYTES(pair.value, pair.value_bytes, value, strlen(value));
}

static void test_pairs(void)
{
	static const char text[] = "count=6\nby=\nwhy=a=b c\n";
	struct osd_rd r = osd_rd_init(text, sizeof(text) - 1);
	struct osd_control_pair pair;

	check_pair(&r, "count", "6");
	check_pair(&r, "by", "");
	check_pair(&r, "why", "a=b c");
	CHECK(!osd_control_next(&r, &pair) && !r.bad);
}

static void test_bad_pairs(void)
{
	static const char *const bad[] = {
		"count=6",
		"\n",
		"count\n",
		"=6\n",
		"Count=6\n",
		"count =6\n",
		"a=\x01\n",
		"a=\xff\n",
		"a=\x7f\n",
		"a=b\n\n",
		"an_overlong_key_of_33_characters_=1\n",
	};
	struct osd_control_pair pair;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct osd_rd r = osd_rd_init(bad[i], strlen(bad[i]));

		while (osd_control_next(&r, &pair))
			;
		CHECK(r.bad);
	}
}

int main(void)
{
	test_golden();
	test_other_version();
	test_no_frames();
	test_pairs();
	test_bad_pairs();
	return 0;
}
