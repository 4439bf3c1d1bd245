/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_perform.c -- commands about the logical unit, inside an OSD CDB: PERFORM SCSI COMMAND, whose
 * embedded commands answer as the unit does when they come alone, and PERFORM TASK MANAGEMENT
 * FUNCTION (osd2-wire 3.17, 3.18).
 *
 * Data and sense data of an embedded command are its own: no object identification, field pointers
 * into the embedded CDB.  Not here: the functions themselves (command/task_management.h). */

#include "base/util.h"
#include "command/commands.h"
#include "command/table.h"
#include "wire/cursor.h"
#include "wire/inquiry.h"

enum { FIELD_FUNCTION = 39 };

/* ---- embedded commands ----------------------------------------------------------------------- */

static enum osd_status bad_field(struct osd_request *request, uint16_t embedded_byte)
{
	request->fault.embedded = true;
	return osd_command_fail(request, OSD_E_CDB_FIELD, embedded_byte);
}

/* The embedded command's data, as far as its ALLOCATION LENGTH goes. */
static enum osd_status give(struct osd_request *request, const void *bytes, size_t length)
{
	size_t allocation = osd_embedded_allocation(request->decoded.embedded);

	osd_command_data_in(request, bytes, OSD_MIN(length, allocation));
	return OSD_OK;
}

/* A unit that gets here has no error: NO SENSE, in the requested format. */
static enum osd_status request_sense(struct osd_request *request)
{
	static const uint8_t descriptor_format[8] = {0x72}, fixed_format[18] = {[0] = 0x70,
										 [7] = 10};

	if (request->decoded.embedded[1] & 0x01)
		return give(request, descriptor_format, sizeof(descriptor_format));
	return give(request, fixed_format, sizeof(fixed_format));
}

static enum osd_status inquiry(struct osd_request *request)
{
	const uint8_t *cdb = request->decoded.embedded;
	const struct osd_identity *identity = request->identity;
	uint8_t bytes[OSD_VPD_HEADER + OSD_VPD_MAX];
	size_t length;

	if (!identity)
		return OSD_E_NO_MEMORY;
	if (!(cdb[1] & 0x01)) /* EVPD */
		return cdb[2] ? bad_field(request, 2)
			      : give(request, identity->standard, sizeof(identity->standard));
	length = osd_identity_page(identity, cdb[2], bytes);
	return length ? give(request, bytes, length) : bad_field(request, 2);
}

/* Lists only this unit: an OSD command does not report the target's other units. */
static enum osd_status report_luns(struct osd_request *request)
{
	const uint8_t *cdb = request->decoded.embedded;
	uint16_t lun = request->lun & 0x3fff;
	uint8_t bytes[16] = {0};

	if (cdb[2] > 2)
		return bad_field(request, 2);
	if (osd_embedded_allocation(cdb) < sizeof(bytes))
		return bad_field(request, 6);
	if (cdb[2] == 1)
		return give(request, bytes, 8); /* well known units only: none */
	osd_put_be(bytes, 8, 4);
	osd_put_be(bytes + 8, lun > 0xff ? 0x4000u | lun : lun, 2);
	return give(request, bytes, sizeof(bytes));
}

/* One 8-byte command descriptor of REPORT SUPPORTED OPERATION CODES. */
static void put_opcode(struct osd_request *request, uint8_t opcode, uint16_t service_action,
		       bool has_action, uint16_t cdb_length, uint32_t *left)
{
	uint8_t bytes[8] = {0};
	size_t length = OSD_MIN(*left, (uint32_t)sizeof(bytes));

	bytes[0] = opcode;
	osd_put_be(bytes + 2, service_action, 2);
	bytes[5] = has_action ? 1 : 0; /* SERVACTV */
	osd_put_be(bytes + 6, cdb_length, 2);
	osd_command_data_in(request, bytes, length);
	*left -= (uint32_t)length;
}

/* All commands (reporting options 0, no timeouts): those below, and the rows of the table. */
static enum osd_status report_opcodes(struct osd_request *request)
{
	static const struct {
		uint8_t opcode, length;
	} embedded[] = {{OSD_SCSI_TEST_UNIT_READY, 6},
			{OSD_SCSI_REQUEST_SENSE, 6},
			{OSD_SCSI_INQUIRY, 6},
			{OSD_SCSI_REPORT_LUNS, 12}};
	const struct osd_command_def *def;
	uint32_t left = osd_embedded_allocation(request->decoded.embedded);
	uint8_t header[4];
	size_t rows = 0;

	while (osd_command_at(rows))
		rows++;
	osd_put_be(header, (OSD_ARRAY_SIZE(embedded) + 1 + rows) * 8, sizeof(header));
	give(request, header, sizeof(header));
	left -= OSD_MIN(left, (uint32_t)sizeof(header));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(embedded); i++)
		put_opcode(request, embedded[i].opcode, 0, false, embedded[i].length, &left);
	put_opcode(request, OSD_SCSI_MAINTENANCE_IN, OSD_SCSI_REPORT_OPCODES, true, 12, &left);
	for (size_t i = 0; (def = osd_command_at(i)); i++)
		put_opcode(request, OSD_OPCODE, def->service_action, true, OSD_CDB_LENGTH, &left);
	return OSD_OK;
}

static enum osd_status maintenance_in(struct osd_request *request)
{
	const uint8_t *cdb = request->decoded.embedded;

	if ((cdb[1] & 0x1f) != OSD_SCSI_REPORT_OPCODES)
		return bad_field(request, 1);
	return cdb[2] ? bad_field(request, 2) : report_opcodes(request);
}

enum osd_status osd_cmd_perform_scsi_command(struct osd_command_context *ctx)
{
	switch (ctx->request->decoded.embedded[0]) {
	case OSD_SCSI_TEST_UNIT_READY:
		return OSD_OK;
	case OSD_SCSI_REQUEST_SENSE:
		return request_sense(ctx->request);
	case OSD_SCSI_INQUIRY:
		return inquiry(ctx->request);
	case OSD_SCSI_REPORT_LUNS:
		return report_luns(ctx->request);
	case OSD_SCSI_MAINTENANCE_IN:
		return maintenance_in(ctx->request);
	default: /* MODE SENSE and LOG SENSE too: there are no pages */
		return OSD_E_OPCODE;
	}
}

/* ---- task management ------------------------------------------------------------------------- */

static bool is_function(uint8_t function)
{
	switch (function) {
	case OSD_TASK_ABORT:
	case OSD_TASK_ABORT_SET:
	case OSD_TASK_CLEAR_SET:
	case OSD_TASK_LU_RESET:
	case OSD_TASK_NEXUS_RESET:
	case OSD_TASK_CLEAR_ACA:
	case OSD_TASK_QUERY:
	case OSD_TASK_QUERY_SET:
	case OSD_TASK_QUERY_UA:
		return true;
	}
	return false;
}

/* The answer is written now, and sent once the commands have ended (task_management.h). */
enum osd_status osd_cmd_perform_task_management_function(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;
	enum osd_task_response response = OSD_TASK_REJECTED;
	uint8_t bytes[8] = {0, 6};
	enum osd_status status = OSD_OK;

	if (!is_function(cdb->task_function))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_FUNCTION);
	if (ctx->manage_tasks)
		status = ctx->manage_tasks(request, cdb->task_function, cdb->task_tag, &response);
	if (status != OSD_OK && status != OSD_PENDING)
		return status;
	bytes[4] = (uint8_t)response;
	osd_command_data_in(request, bytes, (size_t)OSD_MIN(cdb->allocation_length, sizeof(bytes)));
	return status;
}
