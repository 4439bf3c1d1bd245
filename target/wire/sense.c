/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sense.c -- descriptor-format sense data: encode and decode. */
#include "wire/sense.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

#define RESPONSE_CURRENT 0x72
#define HEADER           8

enum descriptor {
	INFORMATION = 0x00,
	COMMAND_INFORMATION = 0x01,
	SENSE_KEY_SPECIFIC = 0x02,
	OBJECT = 0x06,
	RESPONSE_ICV = 0x07,
	ATTRIBUTE = 0x08,
};

/* Lengths of what follows a descriptor's first two bytes. */
enum {
	INFORMATION_BODY = 10,
	SPECIFIC_BODY = 6,
	OBJECT_BODY = 30,
	ICV_BODY = 32,
	ATTRIBUTE_BODY = 2, /* before the attributes */
	ATTRIBUTE_BYTES = 8,
};

#define SPECIFIC_VALID  0x80 /* SKSV */
#define SPECIFIC_IN_CDB 0x40 /* C/D */
#define VALID           0x80

/* ---- encode -------------------------------------------------------------------------------- */

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
	bytes[7] = (uint8_t)(osd_wr_used(&w) - HEADER); /* all of them together: 238 bytes */
	return osd_wr_used(&w);
}

/* ---- decode -------------------------------------------------------------------------------- */

static void get_object(const uint8_t *d, struct osd_sense *sense)
{
	sense->has_object = true;
	sense->not_initiated = (uint32_t)osd_get_be(d + 8, 4);
	sense->completed = (uint32_t)osd_get_be(d + 12, 4);
	sense->partition_id = osd_get_be(d + 16, 8);
	sense->object_id = osd_get_be(d + 24, 8);
}

static void get_field(const uint8_t *d, struct osd_sense *sense)
{
	if (!(d[4] & SPECIFIC_VALID))
		return;
	sense->has_field = true;
	sense->field_in_data_out = !(d[4] & SPECIFIC_IN_CDB);
	sense->field_pointer = (uint16_t)osd_get_be(d + 5, 2);
}

/* As many as we keep of those it has room for. */
static void get_attributes(const uint8_t *d, uint8_t body, struct osd_sense *sense)
{
	unsigned count = body < ATTRIBUTE_BODY ? 0 : (body - ATTRIBUTE_BODY) / ATTRIBUTE_BYTES;

	sense->attribute_count = OSD_MIN(count, OSD_SENSE_ATTRIBUTES);
	for (unsigned i = 0; i < sense->attribute_count; i++, d += ATTRIBUTE_BYTES) {
		sense->attributes[i].page = (uint32_t)osd_get_be(d + 4, 4);
		sense->attributes[i].number = (uint32_t)osd_get_be(d + 8, 4);
	}
}

/* d: a whole descriptor with at least body bytes after its first two. */
static void get_descriptor(const uint8_t *d, uint8_t body, struct osd_sense *sense)
{
	switch (d[0]) {
	case INFORMATION:
		if (body >= INFORMATION_BODY && (d[2] & VALID)) {
			sense->has_information = true;
			sense->information = osd_get_be(d + 4, 8);
		}
		break;
	case COMMAND_INFORMATION:
		if (body >= INFORMATION_BODY) {
			sense->has_command_information = true;
			sense->command_information = osd_get_be(d + 4, 8);
		}
		break;
	case SENSE_KEY_SPECIFIC:
		if (body >= SPECIFIC_BODY)
			get_field(d, sense);
		break;
	case OBJECT:
		if (body >= OBJECT_BODY)
			get_object(d, sense);
		break;
	case RESPONSE_ICV:
		if (body >= ICV_BODY) {
			sense->has_response_icv = true;
			memcpy(sense->response_icv, d + 2, ICV_BODY);
		}
		break;
	case ATTRIBUTE:
		get_attributes(d, body, sense);
		break;
	}
}

bool osd_sense_decode(const uint8_t *bytes, size_t length, struct osd_sense *ret_sense)
{
	struct osd_sense sense = {0};
	struct osd_rd r;

	if (length < HEADER || (bytes[0] & 0x7f) != RESPONSE_CURRENT)
		return false;
	sense.sense_key = bytes[1] & 0x0f;
	sense.asc_ascq = (uint16_t)osd_get_be(bytes + 2, 2);
	if (length > HEADER + (size_t)bytes[7])
		length = HEADER + (size_t)bytes[7];
	r = osd_rd_init(bytes + HEADER, length - HEADER);
	while (osd_rd_left(&r) >= 2) {
		const uint8_t *descriptor = r.at;
		uint8_t body = descriptor[1];

		if (!osd_rd_bytes(&r, 2 + (size_t)body))
			break;
		get_descriptor(descriptor, body, &sense);
	}
	*ret_sense = sense;
	return true;
}
