/* SPDX-License-Identifier: GPL-2.0-or-later */
/* continuation.c -- the CDB continuation segment and its scatter/gather list. */
#include "wire/continuation.h"

#include "base/util.h"
#include "wire/cursor.h"

/* May a segment of this service action carry this descriptor?  (osd2-wire 4.3) */
static bool carries(uint16_t service_action, uint16_t type)
{
	switch (service_action) {
	case OSD_SA_READ:
	case OSD_SA_WRITE:
		return type == OSD_DESC_SG_LIST || type == OSD_DESC_PRECONDITION;
	case OSD_SA_CREATE_AND_WRITE:
		return type == OSD_DESC_SG_LIST || type == OSD_DESC_EXTENSION_CAPS;
	case OSD_SA_APPEND:
	case OSD_SA_CLEAR:
	case OSD_SA_PUNCH:
	case OSD_SA_REMOVE:
	case OSD_SA_REMOVE_COLLECTION:
	case OSD_SA_SET_MEMBER_ATTRIBUTES:
	case OSD_SA_REMOVE_MEMBER_OBJECTS:
		return type == OSD_DESC_PRECONDITION;
	case OSD_SA_SET_ATTRIBUTES:
		return type == OSD_DESC_PRECONDITION || type == OSD_DESC_EXTENSION_CAPS;
	case OSD_SA_QUERY:
		return type == OSD_DESC_QUERY_LIST || type == OSD_DESC_EXTENSION_CAPS;
	case OSD_SA_COPY_USER_OBJECTS:
		return type == OSD_DESC_COPY_SOURCE || type == OSD_DESC_EXTENSION_CAPS;
	case OSD_SA_CREATE_USER_TRACKING_COLLECTION:
		return type == OSD_DESC_EXTENSION_CAPS;
	case OSD_SA_EXEC:
	case OSD_SA_EXECUTE_FUNCTION:
		return type == OSD_DESC_EXEC_PARAMS || type == OSD_DESC_EXTENSION_CAPS;
	default:
		return false;
	}
}

#define LARGEST_ALONE (OSD_CONTINUATION_MAX - OSD_CONTINUATION_HEADER - OSD_DESCRIPTOR_HEADER)

uint32_t osd_descriptor_largest(uint16_t type)
{
	switch (type) {
	case OSD_DESC_SG_LIST:
		return LARGEST_ALONE / OSD_SG_ENTRY * OSD_SG_ENTRY;
	case OSD_DESC_COPY_SOURCE:
		return OSD_COPY_SOURCE_BYTES;
	case OSD_DESC_PRECONDITION:
		return OSD_PRECONDITION_BYTES;
	case OSD_DESC_QUERY_LIST:
	case OSD_DESC_EXEC_PARAMS:
	case OSD_DESC_EXTENSION_CAPS:
		return LARGEST_ALONE;
	default:
		return 0;
	}
}

/* Only these two may need a pad; OSD-2 wants the others' content to be a multiple of 8. */
static bool may_pad(uint16_t type)
{
	return type == OSD_DESC_EXEC_PARAMS || type == OSD_DESC_COPY_SOURCE;
}

/* Reads one descriptor; false: it runs past the segment, or length + pad is not a multiple of 8. */
static bool read_descriptor(struct osd_rd *r, struct osd_descriptor *ret_descriptor)
{
	uint8_t pad;

	ret_descriptor->type = (uint16_t)osd_rd_be(r, 2);
	osd_rd_bytes(r, 1);
	pad = (uint8_t)osd_rd_be(r, 1) & 0x07;
	ret_descriptor->length = (uint32_t)osd_rd_be(r, 4);
	ret_descriptor->content = osd_rd_bytes(r, ret_descriptor->length);
	osd_rd_bytes(r, pad);
	return !r->bad && ((uint64_t)ret_descriptor->length + pad) % 8 == 0 &&
	       (pad == 0 || may_pad(ret_descriptor->type));
}

/* Checks all descriptors; *ret_end is where the last one ends. */
static bool check_descriptors(struct osd_rd r, uint16_t service_action, const uint8_t **ret_end)
{
	uint16_t seen[OSD_CONTINUATION_DESCRIPTORS];
	size_t count = 0;

	for (;;) {
		struct osd_descriptor descriptor;

		*ret_end = r.at;
		if (osd_rd_left(&r) == 0)
			return true;
		if (!read_descriptor(&r, &descriptor))
			return false;
		if (descriptor.type == OSD_DESC_END)
			return true; /* what follows is to be ignored */
		if (!carries(service_action, descriptor.type) ||
		    count == OSD_CONTINUATION_DESCRIPTORS)
			return false;
		for (size_t i = 0; i < count; i++)
			if (seen[i] == descriptor.type)
				return false;
		seen[count++] = descriptor.type;
	}
}

enum osd_status osd_continuation_open(const uint8_t *segment, size_t length,
				      uint16_t service_action,
				      struct osd_continuation *ret_continuation)
{
	struct osd_continuation c;

	*ret_continuation = (struct osd_continuation){NULL, NULL};
	if (length == 0)
		return OSD_OK;
	if (length < OSD_CONTINUATION_HEADER || length % 8 ||
	    segment[0] != OSD_CONTINUATION_FORMAT || osd_get_be(segment + 2, 2) != service_action)
		return OSD_E_CDB_FIELD;
	c.at = segment + OSD_CONTINUATION_HEADER;
	if (!check_descriptors(osd_rd_init(c.at, length - OSD_CONTINUATION_HEADER), service_action,
			       &c.end))
		return OSD_E_CDB_FIELD;
	*ret_continuation = c;
	return OSD_OK;
}

bool osd_continuation_next(struct osd_continuation *continuation,
			   struct osd_descriptor *ret_descriptor)
{
	struct osd_rd r = {continuation->at, continuation->end, false};

	if (osd_rd_left(&r) == 0 || !read_descriptor(&r, ret_descriptor))
		return false;
	continuation->at = r.at;
	return true;
}

bool osd_continuation_find(const struct osd_continuation *continuation, uint16_t type,
			   struct osd_descriptor *ret_descriptor)
{
	struct osd_continuation walk = *continuation;

	while (osd_continuation_next(&walk, ret_descriptor))
		if (ret_descriptor->type == type)
			return true;
	return false;
}

enum osd_status osd_copy_source_decode(const struct osd_descriptor *descriptor,
				       struct osd_copy_source *ret_source)
{
	struct osd_rd r = osd_rd_init(descriptor->content, descriptor->length);
	uint8_t options;

	if (descriptor->type != OSD_DESC_COPY_SOURCE ||
	    (descriptor->length != OSD_COPY_SOURCE_BYTES &&
	     descriptor->length != OSD_COPY_SOURCE_BYTES - 2))
		return OSD_E_CDB_FIELD;
	ret_source->partition_id = osd_rd_be(&r, 8);	  /* 0-7 */
	ret_source->object_id = osd_rd_be(&r, 8);	  /* 8-15 */
	ret_source->attributes = osd_rd_be(&r, 1) & 0x01; /* 16 */
	options = (uint8_t)osd_rd_be(&r, 1);		  /* 17 */
	ret_source->freeze = options & 0x80;
	ret_source->time_of_duplication = options & 0x0f;
	return OSD_OK;
}

enum osd_status osd_precondition_decode(const struct osd_descriptor *descriptor,
					struct osd_precondition *ret_precondition)
{
	struct osd_rd r = osd_rd_init(descriptor->content, descriptor->length);
	uint64_t length;

	if (descriptor->type != OSD_DESC_PRECONDITION ||
	    descriptor->length != OSD_PRECONDITION_BYTES)
		return OSD_E_CDB_FIELD;
	ret_precondition->page = (uint32_t)osd_rd_be(&r, 4);   /* 0-3 */
	ret_precondition->number = (uint32_t)osd_rd_be(&r, 4); /* 4-7 */
	osd_rd_bytes(&r, 6);
	length = osd_rd_be(&r, 2);				/* 14-15 */
	ret_precondition->counter = osd_rd_be(&r, 8);		/* 16-23 */
	ret_precondition->opening = (uint32_t)osd_rd_be(&r, 4); /* 24-27 */
	return length == OSD_VERSION_BYTES ? OSD_OK : OSD_E_CDB_FIELD;
}

/* ---- writing ------------------------------------------------------------------------------ */

void osd_continuation_begin(struct osd_wr *writer, uint16_t service_action)
{
	osd_wr_be(writer, OSD_CONTINUATION_FORMAT, 1);
	osd_wr_zero(writer, 1);
	osd_wr_be(writer, service_action, 2);
	osd_wr_zero(writer, OSD_CONTINUATION_HEADER - 4);
}

void osd_continuation_add(struct osd_wr *writer, uint16_t type, const void *content, size_t length)
{
	uint8_t pad = (uint8_t)(-length & 7);

	osd_wr_be(writer, type, 2);
	osd_wr_zero(writer, 1);
	osd_wr_be(writer, pad, 1);
	osd_wr_be(writer, length, 4);
	osd_wr_bytes(writer, content, length);
	osd_wr_zero(writer, pad);
}

/* ---- scatter/gather ------------------------------------------------------------------------ */

enum osd_status osd_sg_list_open(const struct osd_descriptor *descriptor, uint64_t base,
				 uint64_t length, struct osd_sg_list *ret_list)
{
	struct osd_sg_list list = {descriptor->content, descriptor->content + descriptor->length,
				   base};
	struct osd_sg_list walk = list;
	uint64_t offset, piece, end, sum = 0;

	if (descriptor->type != OSD_DESC_SG_LIST || descriptor->length % OSD_SG_ENTRY)
		return OSD_E_CDB_FIELD;
	for (; walk.at < walk.end; walk.at += OSD_SG_ENTRY) {
		piece = osd_get_be(walk.at + 8, 8);
		if (!osd_add_u64(base, osd_get_be(walk.at, 8), &offset) ||
		    !osd_add_u64(offset, piece, &end) || !osd_add_u64(sum, piece, &sum))
			return OSD_E_CDB_FIELD;
	}
	if (sum != length)
		return OSD_E_CDB_FIELD;
	*ret_list = list;
	return OSD_OK;
}

bool osd_sg_list_next(struct osd_sg_list *list, uint64_t *ret_offset, uint64_t *ret_length)
{
	if (list->at == list->end)
		return false;
	*ret_offset = list->base + osd_get_be(list->at, 8);
	*ret_length = osd_get_be(list->at + 8, 8);
	list->at += OSD_SG_ENTRY;
	return true;
}
