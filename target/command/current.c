/* SPDX-License-Identifier: GPL-2.0-or-later */
/* current.c -- see current.h. */
#include "command/current.h"

#include "base/crc32c.h"
#include "base/util.h"
#include "command/osc.h"
#include "command/table.h"
#include "security/security.h"
#include "wire/cursor.h"

#define IDENTIFICATION_BYTES 40u
#define PAGE_HEADER	     8u
#define RESPONSE_ICV	     1u

static const struct row {
	uint32_t number;
	uint8_t reserved; /* bytes behind the value in the page form */
} rows[] = {
	{RESPONSE_ICV, 0},	    {OSD_CURRENT_TYPE, 3},	   {OSD_CURRENT_PARTITION_ID, 0},
	{OSD_CURRENT_OBJECT_ID, 0}, {OSD_CURRENT_APPEND_START, 0}, {OSD_CURRENT_CAPACITY, 0},
};

static void put_principal(const struct osd_request *request, struct osd_wr *w)
{
	struct osd_principal principal;

	osd_command_principal(request, &principal);
	osd_wr_text(w, principal.key);
}

/* Of the command's data in Data-In or, if it has none, in Data-Out, as they are in memory. */
static void put_checksum(const struct osd_request *request, struct osd_wr *w)
{
	const struct osd_cdb *cdb = &request->decoded;
	size_t in = (size_t)OSD_MIN(request->command_data_in, (uint64_t)request->data_in_capacity);

	if (in)
		osd_wr_be(w, osd_crc32c(0, request->data_in, in), 4);
	else if (request->def->flags & OSD_CMD_DATA_OUT && cdb->length)
		osd_wr_be(w,
			  osd_crc32c(0, request->data_out + cdb->continuation_length,
				     (size_t)cdb->length),
			  4);
}

/* Nothing: the attribute is not defined.  The numbers of this target's extensions are not in the rows, so neither number
 * FFFF_FFFFh nor the page form includes them. */
static void put_value(const struct osd_request *request, uint32_t number, struct osd_wr *w)
{
	static const char identification[IDENTIFICATION_BYTES] = "INCITS  T10 Current Command";

	switch (number) {
	case 0:
		osd_wr_bytes(w, identification, sizeof(identification));
		break;
	case RESPONSE_ICV:
		osd_wr_zero(w, OSD_MAC_LENGTH);
		break;
	case OSD_CURRENT_TYPE:
		osd_wr_be(w, (uint64_t)request->object_type, 1);
		break;
	case OSD_CURRENT_PARTITION_ID:
		osd_wr_be(w, request->object.partition_id, 8);
		break;
	case OSD_CURRENT_OBJECT_ID:
		osd_wr_be(w, request->object.object_id, 8);
		break;
	case OSD_CURRENT_APPEND_START:
		osd_wr_be(w, request->append_start, 8);
		break;
	case OSD_CURRENT_CAPACITY:
		if (osd_osc_has_current(request, number))
			osd_wr_be(w, (uint64_t)(request->capacity_change + request->set_change), 8);
		break;
	/* The principal whose jobs the sender would follow.  Without a capability it is "addr:" alone, because only
	 * EXEC knows user and address of a session. */
	case OSD_CURRENT_PRINCIPAL:
		put_principal(request, w);
		break;
	case OSD_CURRENT_RESULT_LENGTH: /* this and the next two: of the job that the command has submitted */
		osd_wr_be(w, request->result_length, 8);
		break;
	case OSD_CURRENT_RESULT_FORM:
		osd_wr_be(w, request->result_form, 1);
		break;
	case OSD_CURRENT_CACHED_RESULT:
		osd_wr_be(w, request->cached_result, 1);
		break;
	case OSD_CURRENT_CHECKSUM:
		put_checksum(request, w);
		break;
	}
}

static size_t row_count(const struct osd_request *request)
{
	size_t count = 0;

	while (count < OSD_ARRAY_SIZE(rows) &&
	       osd_osc_has_current(request, rows[count].number))
		count++;
	return count;
}

static enum osd_status add(const struct osd_request *request, uint32_t number,
			   struct osd_attr_writer *writer)
{
	uint8_t value[OSD_PRINCIPAL_MAX];
	struct osd_wr w = osd_wr_init(value, sizeof(value));

	put_value(request, number, &w);
	return osd_attr_writer_add(writer, OSD_PAGE_CURRENT_COMMAND, number, value,
				   osd_wr_used(&w));
}

enum osd_status osd_current_entries(const struct osd_request *request, uint32_t number,
				    struct osd_attr_writer *writer)
{
	enum osd_status status = add(request, number == OSD_NUMBER_ALL ? 0 : number, writer);

	if (number == OSD_NUMBER_ALL)
		for (size_t i = 0; status == OSD_OK && i < row_count(request); i++)
			status = add(request, rows[i].number, writer);
	return status;
}

size_t osd_current_page(const struct osd_request *request, uint8_t page[OSD_CURRENT_PAGE_BYTES])
{
	struct osd_wr w = osd_wr_init(page, OSD_CURRENT_PAGE_BYTES);

	osd_wr_be(&w, OSD_PAGE_CURRENT_COMMAND, 4); /* 0-3 */
	osd_wr_be(&w, 0, 4);			    /* 4-7 */
	for (size_t i = 0; i < row_count(request); i++) {
		put_value(request, rows[i].number, &w);
		osd_wr_zero(&w, rows[i].reserved);
	}
	osd_put_be(page + 4, osd_wr_used(&w) - PAGE_HEADER, 4);
	return osd_wr_used(&w);
}
