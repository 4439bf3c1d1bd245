/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tgt_cmd.c -- scsi_cmd to osd_request and back: checks of what tgtd hands over, buffers,
 * status, sense data and residuals.
 *
 * tgtd's buffers come uninitialised and, by default, count as wholly transferred: every way out
 * of here sets both residuals, also after an error, or another session's memory would be sent. */
#include <string.h>

#include "base/util.h"
#include "command/table.h"
#include "shim/shim.h"
#include "wire/cdb_peek.h"
#include "wire/cursor.h"
#include "wire/osd2.h"

#define SAM_CHECK_CONDITION 0x02
#define FREE_COMMANDS_MAX   256u

#define ASC_INVALID_OPCODE	   0x2000
#define ASC_INVALID_FIELD_IN_CDB   0x2400
#define ASC_LOGICAL_UNIT_NOT_READY 0x0400

/* ---- answers --------------------------------------------------------------------------------- */

static void set_transferred(struct tgt_data_buffer *buffer, uint64_t actual)
{
	if (actual <= buffer->length) {
		buffer->resid = (int32_t)(buffer->length - (uint32_t)actual);
		buffer->transfer_len = (uint32_t)actual;
	} else {
		buffer->resid =
			(int32_t) - (int64_t)OSD_MIN(actual - buffer->length, (uint64_t)INT32_MAX);
		buffer->transfer_len = buffer->length;
	}
}

/* Data-In that was not produced was cut to the size of the buffer: the difference is the
 * overflow. */
static int put_answer(struct tgt_cmd *cmd, const struct osd_request *request)
{
	set_transferred(&cmd->in_sdb, request->data_in_needed);
	if (cmd->in_sdb.transfer_len > request->data_in_length)
		cmd->in_sdb.transfer_len = (uint32_t)request->data_in_length;
	set_transferred(&cmd->out_sdb, request->data_out_used);
	memcpy(cmd->sense_buffer, request->sense, request->sense_length);
	cmd->sense_len = (int)request->sense_length;
	return request->sam_status;
}

/* Refuses a command that cannot even become a request: bare sense data, nothing transferred. */
static int refuse(struct tgt_cmd *cmd, enum osd_sense_key key, uint16_t asc_ascq)
{
	struct osd_wr w = osd_wr_init(cmd->sense_buffer, sizeof(cmd->sense_buffer));

	osd_wr_be(&w, 0x72, 1);
	osd_wr_be(&w, (uint64_t)key, 1);
	osd_wr_be(&w, asc_ascq, 2);
	osd_wr_zero(&w, 4);
	cmd->sense_len = (int)osd_wr_used(&w);
	set_transferred(&cmd->in_sdb, 0);
	set_transferred(&cmd->out_sdb, 0);
	return SAM_CHECK_CONDITION;
}

/* ---- commands -------------------------------------------------------------------------------- */

static struct shim_command *command_get(struct shim_lu *lu)
{
	struct shim_command *command = lu->free_commands;

	if (!command)
		return calloc(1, sizeof(*command));
	lu->free_commands = command->next;
	lu->free_count--;
	command->next = NULL;
	return command;
}

static void command_put(struct shim_command *command)
{
	struct shim_lu *lu = command->lu;

	free(command->identity);
	command->identity = NULL;

	if (lu->free_count == FREE_COMMANDS_MAX) {
		free(command);
		return;
	}
	command->next = lu->free_commands;
	lu->free_commands = command;
	lu->free_count++;
}

void shim_commands_free(struct shim_lu *lu)
{
	while (lu->free_commands) {
		struct shim_command *command = lu->free_commands;

		lu->free_commands = command->next;
		free(command);
	}
	lu->free_count = 0;
}

/* Writes its answer, and frees it; returns the SAM status. */
static int end_command(struct shim_command *command)
{
	int result = put_answer(command->cmd, &command->request);

	command_put(command);
	return result;
}

static void copy_text(char *to, const char *from)
{
	memcpy(to, from, strlen(from) + 1);
}

/* Whether the command depends on the session's user and address: a command that may run in the background
 * does, too. */
static bool needs_user(const struct shim_command *command, const struct osd_command_def *def)
{
	return def && (def->flags & OSD_CMD_NEEDS_USER || osd_cdb_peek_immed_tr(command->cdb));
}

static void fill_peer(struct shim_command *command, const struct osd_command_def *def)
{
	bool whole = needs_user(command, def);
	const struct shim_peer *peer = shim_peer(command->lu, command->cmd->cmd_itn_id, whole);

	copy_text(command->initiator_name, peer->name);
	copy_text(command->chap_user, whole ? peer->chap_user : "");
	copy_text(command->address, whole ? peer->address : "");
}

/* The present INQUIRY data of tgtd, which tgtadm may change; NULL: no memory. */
static struct osd_identity *present_identity(const struct tgt_lu *lu)
{
	const struct tgt_lu_attributes *attrs = &lu->attrs;
	struct osd_identity *identity = malloc(sizeof(*identity));

	if (!identity)
		return NULL;
	osd_identity_init(identity, attrs->vendor_id, attrs->product_id, attrs->product_rev,
			  attrs->version_desc);
	for (unsigned i = 0; i < OSD_ARRAY_SIZE(attrs->lu_vpd); i++)
		if (attrs->lu_vpd[i])
			osd_identity_add(identity, (uint8_t)(i | 0x80), attrs->lu_vpd[i]->data,
					 attrs->lu_vpd[i]->size);
	return identity;
}

static void fill_request(struct shim_command *command)
{
	struct tgt_cmd *cmd = command->cmd;
	struct osd_request *request = &command->request;
	const struct osd_command_def *def;
	/* The initiator task tag as it stands in the header: big-endian. */
	uint32_t tag = (uint32_t)cmd->tag;
	bool reads = cmd->data_dir & TGT_DATA_READ, writes = cmd->data_dir & TGT_DATA_WRITE;

	memcpy(command->cdb, cmd->scb, (size_t)cmd->scb_len);
	def = osd_command_of(command->cdb, (size_t)cmd->scb_len);
	fill_peer(command, def);
	request->cdb = command->cdb;
	request->cdb_length = (size_t)cmd->scb_len;
	request->data_out = writes ? (const uint8_t *)(uintptr_t)cmd->out_sdb.buffer : NULL;
	request->data_out_length = writes ? cmd->out_sdb.length : 0;
	request->data_in = reads ? (uint8_t *)(uintptr_t)cmd->in_sdb.buffer : NULL;
	request->data_in_capacity = reads ? cmd->in_sdb.length : 0;
	request->nexus = (struct osd_nexus){
		.id = cmd->cmd_itn_id,
		.initiator_name = command->initiator_name,
		.chap_name = command->chap_user,
		.address = command->address};
	request->task_tag = osd_get_be((const uint8_t *)&tag, sizeof(tag));
	request->lun = (uint16_t)command->lu->lu->lun;
	request->aborted = false;
	if (def && def->flags & OSD_CMD_NEEDS_IDENTITY)
		command->identity = present_identity(command->lu->lu);
	request->identity = command->identity;
	request->done = shim_done;
	request->front_end = command;
}

static bool buffer_is_sound(const struct tgt_data_buffer *buffer, bool used)
{
	return !used || buffer->length == 0 ||
	       (buffer->buffer != 0 && buffer->length <= OSD_TRANSFER_MAX);
}

/* Checks that tgtd does not make itself.  0: fine. */
static uint16_t check_cmd(const struct tgt_cmd *cmd)
{
	if (!cmd->scb || cmd->scb_len < 10 || cmd->scb_len > SHIM_CDB_MAX ||
	    !osd_cdb_is_whole(cmd->scb, (size_t)cmd->scb_len))
		return ASC_INVALID_OPCODE;
	if (cmd->data_dir < TGT_DATA_NONE || cmd->data_dir > TGT_DATA_BIDIRECTIONAL ||
	    !buffer_is_sound(&cmd->in_sdb, cmd->data_dir & TGT_DATA_READ) ||
	    !buffer_is_sound(&cmd->out_sdb, cmd->data_dir & TGT_DATA_WRITE))
		return ASC_INVALID_FIELD_IN_CDB;
	return 0;
}

int shim_cmd_submit(struct shim_lu *lu, struct tgt_cmd *cmd)
{
	struct shim_command *command;
	uint16_t asc_ascq;

	if (!lu || !lu->unit)
		return refuse(cmd, OSD_SK_NOT_READY, ASC_LOGICAL_UNIT_NOT_READY);
	asc_ascq = check_cmd(cmd);
	if (asc_ascq) {
		osd_unit_reject(lu->unit, asc_ascq == ASC_INVALID_OPCODE
						      ? OSD_REJECTED_COMMAND
						      : OSD_REJECTED_BUFFERS);
		return refuse(cmd, OSD_SK_ILLEGAL_REQUEST, asc_ascq);
	}
	command = command_get(lu);
	if (!command) {
		osd_unit_reject(lu->unit, OSD_REJECTED_MEMORY);
		return refuse(cmd, OSD_SK_HARDWARE_ERROR, 0x5500);
	}
	command->lu = lu;
	command->cmd = cmd;
	fill_request(command);
	if (osd_unit_try(lu->unit, &lu->window, &command->request))
		return end_command(command);
	cmd->state |= TGT_CMD_ASYNC; /* before a worker can finish it */
	shim_expect(command);
	osd_unit_submit(lu->unit, &lu->window, &command->request);
	if (!shim_is_done(command)) {
		shim_watch(lu->completions, command);
		return 0;
	}
	cmd->state &= ~TGT_CMD_ASYNC;
	return end_command(command);
}

void shim_cmd_finish(struct shim_command *command)
{
	struct tgt_cmd *cmd = command->cmd;

	shim_unwatch(command);
	target_cmd_io_done(cmd, end_command(command)); /* may free cmd and its buffers */
}
