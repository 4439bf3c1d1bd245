/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_json.c -- every kind of value; text of all kinds; a buffer of every length too short. */
#include "wire/json.h"

#include "base/test.h"

static void write_all(struct osd_json *json)
{
	osd_json_open(json, NULL, '{');
	osd_json_number(json, "n", UINT64_MAX);
	osd_json_open(json, "list", '[');
	osd_json_usec(json, NULL, 0);
	osd_json_usec(json, NULL, 50);
	osd_json_usec(json, NULL, 10000000);
	osd_json_usec(json, NULL, 1500000);
	osd_json_null(json, NULL);
	osd_json_close(json, ']');
	osd_json_open(json, "empty", '{');
	osd_json_close(json, '}');
	osd_json_bool(json, "yes", true);
	osd_json_bool(json, "no", false);
	osd_json_text(json, "text", "\"a\\b\" \xc3\xa9");
	osd_json_text(json, "bytes", "\xff\x01\x7f");
	osd_json_close(json, '}');
}

static void test_values(void)
{
	static const char wanted[] =
		"{\"n\":18446744073709551615,\"list\":[0,0.00005,10,1.5,null],\"empty\":{},"
		"\"yes\":true,\"no\":false,\"text\":\"\\u0022a\\u005cb\\u0022 \xc3\xa9\","
		"\"bytes\":\"\\u00ff\\u0001\\u007f\"}";
	char buffer[512];
	struct osd_json json = osd_json_init(buffer, sizeof(buffer));

	write_all(&json);
	CHECK(!json.w.bad);
	CHECK_BYTES(buffer, osd_wr_used(&json.w), wanted, sizeof(wanted) - 1);
	for (size_t capacity = 0; capacity < sizeof(wanted) - 1; capacity++) {
		json = osd_json_init(buffer, capacity);
		write_all(&json);
		CHECK(json.w.bad);
	}
}

static void test_histogram(void)
{
	static const char wanted[] =
		"{\"counts\":[1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2],\"sum\":120.000012}";
	struct osd_histogram histogram = {0};
	char buffer[512];
	struct osd_json json = osd_json_init(buffer, sizeof(buffer));

	osd_histogram_add(&histogram, 10);
	osd_histogram_add(&histogram, 60000001);
	osd_histogram_add(&histogram, 60000001);
	osd_json_histogram(&json, NULL, &histogram);
	CHECK_BYTES(buffer, osd_wr_used(&json.w), wanted, sizeof(wanted) - 1);
}

int main(void)
{
	test_values();
	test_histogram();
	return 0;
}
