/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sense.c -- descriptor-format sense data: the encoder. */
#include "wire/sense.h"

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/sense_layout.h"

static void begin(struct osd_wr *w, enum descriptor type, uint8_t body)
{
	osd_wr_be(w, type, 1);
	osd_wr_be(w, body, 1);
}

static void put_object(struct osd_wr *w, const struct osd_sense *sense)
{
	begin(w, OBJECT, OBJECT_BODY);
	osd_wr_zero(w, 6);
	osd_wr_be(w, sense->not_initiated, 4);
	osd_wr_be(w, sense->completed, 4);
	osd_wr_be(w, sense->partition_id, 8);
	osd_wr_be(w, sense->object_id, 8);
}

static void put_field(struct osd_wr *w, const struct osd_sense *sense)
{
	begin(w, SENSE_KEY_SPECIFIC, SPECIFIC_BODY);
	osd_wr_zero(w, 2);
	osd_wr_be(w, sense->field_in_data_out ? SPECIFIC_VALID : SPECIFIC_VALID | SPECIFIC_IN_CDB,
		  1);
	osd_wr_be(w, sense->field_pointer, 2);
	osd_wr_zero(w, 1);
}

static void put_number(struct osd_wr *w, enum descriptor type, uint64_t value)
{
	begin(w, type, INFORMATION_BODY);
	osd_wr_be(w, type == INFORMATION ? VALID : 0, 1);
	osd_wr_zero(w, 1);
	osd_wr_be(w, value, 8);
}

static void put_attributes(struct osd_wr *w, const struct osd_sense *sense)
{
	unsigned count = OSD_MIN(sense->attribute_count, OSD_SENSE_ATTRIBUTES);

	begin(w, ATTRIBUTE, (uint8_t)(ATTRIBUTE_BODY + count * ATTRIBUTE_BYTES));
	osd_wr_zero(w, ATTRIBUTE_BODY);
	for (unsigned i = 0; i < count; i++) {
		osd_wr_be(w, sense->attributes[i].page, 4);
		osd_wr_be(w, sense->attributes[i].number, 4);
	}
}

static void put_text(struct osd_wr *w, const struct osd_sense *sense)
{
	size_t length = OSD_MIN(sense->text_length, OSD_SENSE_TEXT_MAX);

	begin(w, TEXT, (uint8_t)length);
	osd_wr_bytes(w, sense->text, length);
}

size_t osd_sense_encode(const struct osd_sense *sense, uint8_t bytes[OSD_SENSE_MAX])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_SENSE_MAX);

	osd_wr_be(&w, RESPONSE_CURRENT, 1);
	osd_wr_be(&w, sense->sense_key & 0x0f, 1);
	osd_wr_be(&w, sense->asc_ascq, 2);
	osd_wr_zero(&w, 4);
	if (sense->has_response_icv) {
		begin(&w, RESPONSE_ICV, ICV_BODY);
		osd_wr_bytes(&w, sense->response_icv, ICV_BODY);
	}
	if (sense->has_object)
		put_object(&w, sense);
	if (sense->has_field)
		put_field(&w, sense);
	if (sense->has_command_information)
		put_number(&w, COMMAND_INFORMATION, sense->command_information);
	if (sense->has_information)
		put_number(&w, INFORMATION, sense->information);
	if (sense->attribute_count)
		put_attributes(&w, sense);
	if (sense->text && !sense->attribute_count)
		put_text(&w, sense);
	bytes[7] = (uint8_t)(osd_wr_used(&w) - HEADER); /* all of them together: 238 bytes */
	return osd_wr_used(&w);
}
