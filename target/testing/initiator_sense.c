/* SPDX-License-Identifier: GPL-2.0-or-later */
/* initiator_sense.c -- decodes descriptor-format sense data. */
#include <string.h>

#include "base/util.h"
#include "testing/initiator.h"
#include "wire/cursor.h"
#include "wire/sense_layout.h"

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
	case TEXT:
		sense->text = (const char *)d + 2;
		sense->text_length = body;
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
