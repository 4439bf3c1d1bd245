/* SPDX-License-Identifier: GPL-2.0-or-later */
/* task.c -- the way out of one SCSI command: its PDU with immediate data, and its Data-Out. */
#include "base/util.h"
#include "session.h"

void iscsi_build_command(struct iscsi_session *s, struct iscsi_task *task)
{
	struct iscsi_tx *tx = &task->tx;
	uint32_t out = task->data_out_length, in = task->data_in_capacity;
	uint32_t unasked = OSD_MIN(out, s->params.first_burst), immediate = 0;
	uint8_t flags = ISCSI_COMMAND_SIMPLE;
	size_t header_length;

	if (s->params.immediate_data)
		immediate = OSD_MIN(unasked, s->params.max_send_segment);
	if (s->params.initial_r2t)
		unasked = immediate;
	if (out)
		flags |= ISCSI_COMMAND_WRITE;
	if (in)
		flags |= ISCSI_COMMAND_READ;
	if (unasked == immediate)
		flags |= ISCSI_FINAL; /* no unsolicited Data-Out follows */
	memset(tx->header, 0, ISCSI_BHS_LENGTH);
	tx->header[BHS_OPCODE] = ISCSI_SCSI_COMMAND;
	tx->header[BHS_FLAGS] = flags;
	iscsi_put_lun(tx->header, task->lun);
	bhs_set_word(tx->header, BHS_TAG, task->tag);
	bhs_set_word(tx->header, BHS_WORD20, out ? out : in);
	bhs_set_word(tx->header, BHS_CMD_SN, task->cmd_sn);
	header_length = iscsi_put_cdb(tx->header, task->cdb, task->cdb_length, out ? in : 0);
	tx->data = task->data_out;
	tx->data_length = immediate;
	task->data_out_requested = unasked;
	task->burst = (struct iscsi_burst){
		.offset = immediate,
		.remaining = unasked - immediate,
		.target_tag = ISCSI_NO_TAG,
	};
	memcpy(task->burst.lun, tx->header + BHS_LUN, sizeof(task->burst.lun));
	iscsi_finish_header(s, tx, header_length);
	iscsi_enqueue(s, tx);
}

void iscsi_next_data_out(struct iscsi_session *s, struct iscsi_task *task)
{
	struct iscsi_burst *burst = &task->burst;
	struct iscsi_tx *tx = &task->tx;
	uint32_t length;

	if (!burst->remaining) {
		*burst = task->held;
		task->held.remaining = 0;
	}
	if (!burst->remaining)
		return;
	length = OSD_MIN(burst->remaining, s->params.max_send_segment);
	memset(tx->header, 0, ISCSI_BHS_LENGTH);
	tx->header[BHS_OPCODE] = ISCSI_DATA_OUT;
	tx->header[BHS_FLAGS] = length == burst->remaining ? ISCSI_FINAL : 0;
	memcpy(tx->header + BHS_LUN, burst->lun, sizeof(burst->lun));
	bhs_set_word(tx->header, BHS_TAG, task->tag);
	bhs_set_word(tx->header, BHS_WORD20, burst->target_tag);
	bhs_set_word(tx->header, BHS_DATA_SN, burst->data_sn++);
	bhs_set_word(tx->header, BHS_BUFFER_OFFSET, burst->offset);
	tx->data = task->data_out + burst->offset;
	tx->data_length = length;
	burst->offset += length;
	burst->remaining -= length;
	iscsi_finish_header(s, tx, ISCSI_BHS_LENGTH);
	iscsi_enqueue(s, tx);
}
