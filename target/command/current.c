/* SPDX-License-Identifier: GPL-2.0-or-later */
/* current.c -- see current.h. */
#include "command/current.h"

#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/util.h"
#include "command/osc.h"
#include "command/table.h"
#include "security/security.h"
#include "wire/cursor.h"

#define IDENTIFICATION_BYTES 40u
#define PAGE_HEADER	     8u

static const struct row {
	uint32_t number;
	uint8_t length;
	uint8_t reserved; /* bytes behind it in the page form */
	const char *what;
} rows[] = {
	{1, 32, 0, "response integrity check value; zero under NOSEC"},
	{OSD_CURRENT_TYPE, 1, 3, "type of the object addressed or made"},
	{OSD_CURRENT_PARTITION_ID, 8, 0, "its partition id"},
	{OSD_CURRENT_OBJECT_ID, 8, 0, "its object id; of many made, the highest"},
	{OSD_CURRENT_APPEND_START, 8, 0, "where APPEND wrote"},
	{OSD_CURRENT_CAPACITY, 8, 0, "change in used capacity, signed"},
};

static void put_value(const struct osd_request *request, const struct row *row, struct osd_wr *w)
{
	switch (row->number) {
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
		osd_wr_be(w, (uint64_t)(request->capacity_change + request->set_change), 8);
		break;
	default:
		osd_wr_zero(w, row->length);
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

static enum osd_status add(const struct osd_request *request, const struct row *row,
			   struct osd_attr_writer *writer)
{
	uint8_t value[32];
	struct osd_wr w = osd_wr_init(value, sizeof(value));

	put_value(request, row, &w);
	return osd_attr_writer_add(writer, OSD_PAGE_CURRENT_COMMAND, row->number, value,
				   osd_wr_used(&w));
}

static enum osd_status add_identification(struct osd_attr_writer *writer)
{
	static const char name[IDENTIFICATION_BYTES] = "INCITS  T10 Current Command";

	return osd_attr_writer_add(writer, OSD_PAGE_CURRENT_COMMAND, 0, name, sizeof(name));
}

/* The principal whose jobs the sender would follow.  Without a capability it is "addr:" alone,
 * because only EXEC knows user and address of a session.  The attribute is an extension of this
 * target, so neither number FFFF_FFFFh nor the page form includes it. */
static enum osd_status add_principal(const struct osd_request *request,
				     struct osd_attr_writer *writer)
{
	struct osd_principal principal;

	osd_command_principal(request, &request->security.proof.grant, &principal);
	return osd_attr_writer_add(writer, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_PRINCIPAL,
				   (const uint8_t *)principal.key, strlen(principal.key));
}

/* Extensions of this target as well: of the job that the command has submitted. */
static enum osd_status add_result(const struct osd_request *request, uint32_t number,
				  struct osd_attr_writer *writer)
{
	size_t length = number == OSD_CURRENT_RESULT_LENGTH ? 8 : 1;
	uint64_t number_value = number == OSD_CURRENT_RESULT_LENGTH ? request->result_length
				: number == OSD_CURRENT_RESULT_FORM ? request->result_form
								    : request->cached_result;
	uint8_t value[8];

	osd_put_be(value, number_value, length);
	return osd_attr_writer_add(writer, OSD_PAGE_CURRENT_COMMAND, number, value, length);
}

/* An extension as well: of the command's data in Data-In or, if it has none, in Data-Out, as they are in
 * memory. */
static enum osd_status add_checksum(const struct osd_request *request,
				    struct osd_attr_writer *writer)
{
	const struct osd_cdb *cdb = &request->decoded;
	size_t in = (size_t)OSD_MIN(request->command_data_in, (uint64_t)request->data_in_capacity);
	bool out = !in && request->def->flags & OSD_CMD_DATA_OUT && cdb->length;
	uint32_t crc = 0;
	uint8_t value[4];

	if (in)
		crc = osd_crc32c(0, request->data_in, in);
	else if (out)
		crc = osd_crc32c(0, request->data_out + cdb->continuation_length,
				 (size_t)cdb->length);
	osd_put_be(value, crc, sizeof(value));
	return osd_attr_writer_add(writer, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_CHECKSUM, value,
				   in || out ? sizeof(value) : 0);
}

enum osd_status osd_current_entries(const struct osd_request *request, uint32_t number,
				    struct osd_attr_writer *writer)
{
	bool all = number == OSD_NUMBER_ALL, found = false;
	enum osd_status status = OSD_OK;

	if (all || number == 0)
		status = add_identification(writer);
	else if (number == OSD_CURRENT_PRINCIPAL)
		return add_principal(request, writer);
	else if (number == OSD_CURRENT_RESULT_LENGTH || number == OSD_CURRENT_RESULT_FORM ||
		 number == OSD_CURRENT_CACHED_RESULT)
		return add_result(request, number, writer);
	else if (number == OSD_CURRENT_CHECKSUM)
		return add_checksum(request, writer);
	for (size_t i = 0; status == OSD_OK && i < row_count(request); i++) {
		if (!all && rows[i].number != number)
			continue;
		status = add(request, &rows[i], writer);
		found = true;
	}
	if (status == OSD_OK && !all && number != 0 && !found)
		status = osd_attr_writer_add(writer, OSD_PAGE_CURRENT_COMMAND, number, NULL, 0);
	return status;
}

size_t osd_current_page(const struct osd_request *request, uint8_t page[OSD_CURRENT_PAGE_BYTES])
{
	struct osd_wr w = osd_wr_init(page, OSD_CURRENT_PAGE_BYTES);

	osd_wr_be(&w, OSD_PAGE_CURRENT_COMMAND, 4); /* 0-3 */
	osd_wr_be(&w, 0, 4);			    /* 4-7 */
	for (size_t i = 0; i < row_count(request); i++) {
		put_value(request, &rows[i], &w);
		osd_wr_zero(&w, rows[i].reserved);
	}
	osd_put_be(page + 4, osd_wr_used(&w) - PAGE_HEADER, 4);
	return osd_wr_used(&w);
}

void osd_current_print_table(FILE *out)
{
	const char *name = "T10 Current Command";
	unsigned form = 0;

	fprintf(out, "%08" PRIX32 "\t%s\t0\t%u\tno\tpage identification\n",
		OSD_PAGE_CURRENT_COMMAND, name, IDENTIFICATION_BYTES);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++) {
		fprintf(out, "%08" PRIX32 "\t%s\t%" PRIX32 "\t%u\tno\t%s\n",
			OSD_PAGE_CURRENT_COMMAND, name, rows[i].number, rows[i].length,
			rows[i].what);
		form += rows[i].length + rows[i].reserved;
	}
	fprintf(out, "%08" PRIX32 "\t%s\tform\t%u\tno\tlength of the page form\n",
		OSD_PAGE_CURRENT_COMMAND, name, form);
}
