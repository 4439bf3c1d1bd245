/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_sense.c -- sense data against golden frames, and what the reader makes of others' sense
 * data. */
#include "wire/sense.h"

#include <string.h>

#include "base/status.h"
#include "wire/test_golden.h"
#include "testing/initiator.h"

static void check(const struct osd_sense *sense, const char *name)
{
	struct golden frame = golden(name);
	uint8_t bytes[OSD_SENSE_MAX];
	struct osd_sense back;
	size_t length = osd_sense_encode(sense, bytes);

	CHECK_BYTES(bytes, length, frame.bytes, frame.length);
	CHECK(osd_sense_decode(frame.bytes, frame.length, &back));
	length = osd_sense_encode(&back, bytes);
	CHECK_BYTES(bytes, length, frame.bytes, frame.length);
}

static void test_golden_frames(void)
{
	check(&(struct osd_sense){OSD_SK_ILLEGAL_REQUEST, 0x2400, .has_object = true,
				  .partition_id = 0x10000, .object_id = 0x12345,
				  .not_initiated = OSD_FN_ALL, .has_field = true,
				  .field_pointer = 24},
	      "sense.no_object");
	check(&(struct osd_sense){OSD_SK_RECOVERED_ERROR, 0x3b17, .has_object = true,
				  .partition_id = 0x10000, .object_id = 0x10001,
				  .completed = OSD_FN_ALL, .has_command_information = true,
				  .command_information = 3},
	      "sense.short_read");
	check(&(struct osd_sense){OSD_SK_ILLEGAL_REQUEST, 0x2600, .has_object = true,
				  .not_initiated = OSD_FN_IMP_ST_ATT,
				  .completed = OSD_FN_VALIDATION | OSD_FN_CMD_CAP | OSD_FN_COMMAND |
					       OSD_FN_SET_CAP,
				  .has_field = true, .field_in_data_out = true, .field_pointer = 8,
				  .attribute_count = 1, .attributes = {{0x90000001, 4}}},
	      "sense.read_only");
	check(&(struct osd_sense){.sense_key = OSD_SK_ILLEGAL_REQUEST, .asc_ascq = 0x2000},
	      "sense.opcode");
	check(&(struct osd_sense){OSD_SK_ABORTED_COMMAND, 0x8002, .has_object = true,
				  .partition_id = 0x10000, .object_id = 0x10007,
				  .completed = OSD_FN_ALL, .has_command_information = true,
				  .command_information = 202, .has_information = true,
				  .information = 5},
	      "sense.job_failed");
}

static void test_everything_fits(void)
{
	struct osd_sense sense = {.has_object = true,
				  .has_field = true,
				  .has_information = true,
				  .has_command_information = true,
				  .has_response_icv = true,
				  .attribute_count = OSD_SENSE_ATTRIBUTES,
				  .response_icv = {1},
				  .attributes = {[15] = {3, 4}}};
	uint8_t bytes[OSD_SENSE_MAX];
	struct osd_sense back;
	size_t length = osd_sense_encode(&sense, bytes);

	CHECK_EQ(length, 8 + 32 + 8 + 12 + 12 + 34 + 4 + 16 * 8);
	CHECK_EQ(bytes[7], length - 8);
	CHECK(osd_sense_decode(bytes, length, &back));
	CHECK(back.has_response_icv && back.response_icv[0] == 1);
	CHECK(back.attribute_count == 16 && back.attributes[15].number == 4);
}

/* The longest text, beside all that may come with it. */
static void test_text(void)
{
	struct osd_sense sense = {OSD_SK_ILLEGAL_REQUEST, 0x802e, .has_object = true,
				  .has_command_information = true, .has_information = true,
				  .has_field = true, .has_response_icv = true}, back;
	char text[OSD_SENSE_TEXT_MAX + 1];
	uint8_t bytes[OSD_SENSE_MAX];
	size_t length;

	memset(text, 'x', sizeof(text));
	sense.text = text;
	sense.text_length = sizeof(text);
	length = osd_sense_encode(&sense, bytes);
	CHECK(length <= OSD_SENSE_MAX && bytes[7] == length - 8);
	CHECK(osd_sense_decode(bytes, length, &back));
	CHECK_BYTES((const uint8_t *)back.text, back.text_length, (const uint8_t *)text,
		    OSD_SENSE_TEXT_MAX);
	CHECK(back.has_information && back.has_object && back.has_response_icv);
	sense.attribute_count = 1;
	length = osd_sense_encode(&sense, bytes);
	CHECK(osd_sense_decode(bytes, length, &back) && !back.text && back.attribute_count == 1);
}

static void test_reader(void)
{
	static const uint8_t fixed_format[18] = {0x70, 0, 5};
	/* An unknown descriptor, then 02h, then one that says it is longer than the data. */
	static const uint8_t odd[] = {0x72, 5, 0x24, 0, 0,    0, 0,   16, 0x80, 2,  9, 9,
				      0x02, 6, 0,    0, 0xc0, 0, 129, 0,  0x06, 30, 0, 0};
	struct osd_sense sense;

	CHECK(!osd_sense_decode(fixed_format, sizeof(fixed_format), &sense));
	CHECK(!osd_sense_decode(odd, 7, &sense));
	CHECK(osd_sense_decode(odd, sizeof(odd), &sense));
	CHECK(sense.has_field && !sense.field_in_data_out && !sense.has_object);
	CHECK_EQ(sense.field_pointer, 129);
	CHECK(osd_sense_decode(odd, 13, &sense));
	CHECK(!sense.has_field);
}

int main(void)
{
	test_golden_frames();
	test_everything_fits();
	test_text();
	test_reader();
	return 0;
}
