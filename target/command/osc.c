/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osc.c -- see osc.h. */
#include "command/osc.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/context.h"
#include "wire/continuation.h"
#include "wire/cursor.h"
#include "wire/map_data.h"

enum { FIELD_LENGTH = 32, FIELD_START = 40, FIELD_WORD48 = 48 };

#define SGL_COUNT    8u	 /* be64 number of pairs, before them */
#define VEC_HEADER   16u /* be64 stride, be64 length of an element */
#define SEGMENT_HEAD (OSD_CONTINUATION_HEADER + OSD_DESCRIPTOR_HEADER)
#define PIECES_MAX   ((OSD_CONTINUATION_MAX - SEGMENT_HEAD) / OSD_SG_ENTRY)

bool osd_osc_forgives(const struct osd_request *request, enum osd_status status)
{
	return request->osc_compat && status == OSD_E_NO_PARTITION &&
	       request->decoded.service_action == OSD_SA_REMOVE_PARTITION;
}

bool osd_osc_refuses_page_zero(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->decoded;

	return request->osc_compat && cdb->service_action == OSD_SA_SET_ATTRIBUTES &&
	       cdb->attributes.format == OSD_CDBFMT_SET_ONE && cdb->attributes.set_page == 0;
}

bool osd_osc_lists_pairs(const struct osd_request *request)
{
	return request->osc_compat;
}

bool osd_osc_has_current(const struct osd_request *request, uint32_t number)
{
	return !request->osc_compat || number <= OSD_CURRENT_APPEND_START; /* osd2-wire 9-15 */
}

enum osd_status osd_osc_check_flush(struct osd_request *request, struct osd_object *object)
{
	const struct osd_cdb *cdb = &request->decoded;
	uint64_t length = 0;
	enum osd_status status = OSD_OK;

	if (!request->osc_compat || (cdb->command_bits & OSD_FLUSH_SCOPE_MASK) != OSD_FLUSH_RANGE)
		return OSD_OK;
	status = osd_object_length(object, &length);
	if (status == OSD_OK && cdb->starting_byte_address > length)
		status = osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_START);
	return status;
}

uint64_t osd_osc_map_least(const struct osd_request *request)
{
	return request->osc_compat ? OSD_MAP_DESCRIPTOR : 0;
}

bool osd_osc_has_no_extensions(const struct osd_request *request)
{
	return request->osc_compat;
}

bool osd_osc_query_header(const struct osd_request *request)
{
	return request->osc_compat;
}

/* A segment with one descriptor, whose content is length bytes. */
static enum osd_status make_segment(const struct osd_request *request, uint16_t type,
				    const void *content, size_t length, uint8_t **ret_segment,
				    size_t *ret_length)
{
	size_t capacity = SEGMENT_HEAD + length;
	uint8_t *segment = malloc(capacity);
	struct osd_wr writer = osd_wr_init(segment, capacity);

	if (!segment)
		return OSD_E_NO_MEMORY;
	osd_continuation_begin(&writer, request->decoded.service_action);
	osd_continuation_add(&writer, type, content, length);
	*ret_segment = segment;
	*ret_length = osd_wr_used(&writer);
	return OSD_OK;
}

/* ---- data distributions ---------------------------------------------------------------------- */

static bool is_write(const struct osd_request *request)
{
	return osd_cdb_command_data_out(&request->decoded) != 0;
}

/* WRITE's LENGTH counts the header, READ's does not. */
static enum osd_status take_header(struct osd_request *request, uint64_t header)
{
	struct osd_cdb *cdb = &request->decoded;

	if (header > request->data_out_length || (is_write(request) && header > cdb->length))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	if (is_write(request))
		cdb->length -= header;
	cdb->continuation_length = (uint32_t)header;
	return OSD_OK;
}

static enum osd_status sgl_segment(struct osd_request *request, uint8_t **ret_segment,
				   size_t *ret_length)
{
	uint64_t count;
	enum osd_status status;

	if (request->data_out_length < SGL_COUNT)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	count = osd_get_be(request->data_out, 8);
	if (count > PIECES_MAX)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	status = take_header(request, SGL_COUNT + count * OSD_SG_ENTRY);
	if (status != OSD_OK)
		return status;
	return make_segment(request, OSD_DESC_SG_LIST, request->data_out + SGL_COUNT,
			    (size_t)count * OSD_SG_ENTRY, ret_segment, ret_length);
}

/* Element i is at i x stride; the last one may be short.  Offsets beyond 64 bits are refused, as in
 * any list of pieces: it is enough to check the last one. */
static enum osd_status put_elements(struct osd_request *request, uint64_t stride, uint64_t element,
				    uint8_t *list, size_t count)
{
	uint64_t left = request->decoded.length;

	if (count > 1 && stride > UINT64_MAX / (count - 1))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	for (size_t i = 0; i < count; i++) {
		uint64_t length = OSD_MIN(element, left);

		osd_put_be(list + i * OSD_SG_ENTRY, stride * i, 8);
		osd_put_be(list + i * OSD_SG_ENTRY + 8, length, 8);
		left -= length;
	}
	return OSD_OK;
}

static enum osd_status vec_segment(struct osd_request *request, uint8_t **ret_segment,
				   size_t *ret_length)
{
	OSD_CLEANUP_FREE uint8_t *list = NULL;
	uint64_t stride, element, count;
	enum osd_status status = take_header(request, VEC_HEADER);

	if (status != OSD_OK)
		return status;
	stride = osd_get_be(request->data_out, 8);
	element = osd_get_be(request->data_out + 8, 8);
	if (element == 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	count = request->decoded.length / element + (request->decoded.length % element != 0);
	if (count > PIECES_MAX)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	list = malloc((size_t)count * OSD_SG_ENTRY + 1);
	if (!list)
		return OSD_E_NO_MEMORY;
	status = put_elements(request, stride, element, list, (size_t)count);
	if (status != OSD_OK)
		return status;
	return make_segment(request, OSD_DESC_SG_LIST, list, (size_t)count * OSD_SG_ENTRY,
			    ret_segment, ret_length);
}

/* ---- QUERY ----------------------------------------------------------------------------------- */

/* The list plain in Data-Out, bytes 48-51 its length; told from a segment by its content. */
static enum osd_status query_segment(struct osd_request *request, uint8_t **ret_segment,
				     size_t *ret_length)
{
	static const uint8_t reserved[3];
	const uint8_t *bytes = request->data_out;
	size_t length = request->decoded.continuation_length, padded = (length + 7) & ~(size_t)7;
	OSD_CLEANUP_FREE uint8_t *list = NULL;

	if (length >= OSD_CONTINUATION_HEADER && length % 8 == 0 &&
	    bytes[0] == OSD_CONTINUATION_FORMAT && osd_get_be(bytes + 2, 2) == OSD_SA_QUERY)
		return OSD_OK;
	if (length < 4 || memcmp(bytes + 1, reserved, sizeof(reserved)) != 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_WORD48);
	list = calloc(1, padded); /* zeros at the end of a list are no entry */
	if (!list)
		return OSD_E_NO_MEMORY;
	memcpy(list, bytes, length);
	return make_segment(request, OSD_DESC_QUERY_LIST, list, padded, ret_segment, ret_length);
}

enum osd_status osd_osc_segment(struct osd_request *request, uint8_t **ret_segment,
				size_t *ret_length)
{
	const struct osd_cdb *cdb = &request->decoded;

	*ret_segment = NULL;
	*ret_length = 0;
	if (!request->osc_compat)
		return OSD_OK;
	if (cdb->data_distribution && cdb->continuation_length)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_WORD48);
	if (cdb->data_distribution == OSD_DDT_SGL)
		return sgl_segment(request, ret_segment, ret_length);
	if (cdb->data_distribution == OSD_DDT_VEC)
		return vec_segment(request, ret_segment, ret_length);
	if (cdb->service_action == OSD_SA_QUERY && cdb->continuation_length)
		return query_segment(request, ret_segment, ret_length);
	return OSD_OK;
}
