/* SPDX-License-Identifier: GPL-2.0-or-later */
/* receive.c -- what a target sends, checked and acted upon, PDU by PDU. */
#include <stdlib.h>

#include "session.h"

static uint8_t opcode_of(const uint8_t *bhs)
{
	return bhs[BHS_OPCODE] & ISCSI_OPCODE_MASK;
}

/* ---- a header is whole: where does its data segment go? ----------------------------------- */

static bool data_in_header(struct iscsi_session *s, const uint8_t *bhs, uint32_t length)
{
	struct iscsi_task *task = iscsi_find_task(s, bhs_word(bhs, BHS_TAG));
	uint32_t offset = bhs_word(bhs, BHS_BUFFER_OFFSET);

	ISCSI_REQUIRE(s, task && task->opcode == ISCSI_SCSI_COMMAND, "Data-In for an unknown task");
	ISCSI_REQUIRE(s, bhs_word(bhs, BHS_DATA_SN) == task->sn, "Data-In out of sequence");
	/* DataPDUInOrder and DataSequenceInOrder are always Yes: no holes. */
	ISCSI_REQUIRE(s, offset == task->data_in_received, "Data-In at an unexpected offset");
	ISCSI_REQUIRE(s, length <= task->data_in_capacity - offset, "more Data-In than asked for");
	task->sn++;
	s->rx.task = task;
	s->rx.dest = length ? task->data_in + offset : NULL;
	return true;
}

bool iscsi_header_received(struct iscsi_session *s)
{
	const uint8_t *bhs = s->rx.header;
	uint8_t opcode = opcode_of(bhs);
	uint32_t length = bhs_data_length(bhs);
	bool login = s->phase == ISCSI_PHASE_LOGIN;

	ISCSI_REQUIRE(s, !login || opcode == ISCSI_LOGIN_RESPONSE || opcode == ISCSI_REJECT,
		      "not a login answer before the login was over");
	ISCSI_REQUIRE(s, length <= s->params.max_recv_segment, "data segment longer than declared");
	s->rx.data_left = length;
	s->rx.pad_left = iscsi_pad(length);
	s->rx.stage = ISCSI_RX_DATA;
	if (opcode == ISCSI_DATA_IN)
		return data_in_header(s, bhs, length);
	ISCSI_REQUIRE(s, length <= ISCSI_CONTROL_MAX, "control data of an unreasonable length");
	if (length) {
		s->rx.control = malloc(length);
		if (!s->rx.control)
			return iscsi_fail(s, false, "out of memory", 0);
	}
	s->rx.dest = s->rx.control;
	return true;
}

/* ---- the PDU is whole --------------------------------------------------------------------- */

/* The window and, where the PDU carries a status, ExpStatSN. */
static void take_sequence_numbers(struct iscsi_session *s, const uint8_t *bhs, bool has_status)
{
	uint32_t exp_cmd_sn = bhs_word(bhs, BHS_EXP_CMD_SN),
		 max_cmd_sn = bhs_word(bhs, BHS_MAX_CMD_SN);
	uint32_t stat_sn = bhs_word(bhs, BHS_STAT_SN);

	if (has_status && (!s->stat_sn_known || (int32_t)(stat_sn + 1 - s->exp_stat_sn) > 0)) {
		s->exp_stat_sn = stat_sn + 1;
		s->stat_sn_known = true;
	}
	/* RFC 7143 4.2.2.1: a window that shrinks, or MaxCmdSN below ExpCmdSN - 1, is old. */
	if ((int32_t)(max_cmd_sn - (exp_cmd_sn - 1)) >= 0 &&
	    (int32_t)(max_cmd_sn - s->max_cmd_sn) > 0)
		s->max_cmd_sn = max_cmd_sn;
	iscsi_start_waiting(s);
}

/* Bytes of Data-In that did not come, as the target tells it; 0 unless it says "underflow". */
static uint32_t read_underflow(const struct iscsi_task *task, const uint8_t *bhs)
{
	if (task->data_out_length)
		return bhs[BHS_FLAGS] & ISCSI_BIDI_UNDERFLOW ? bhs_word(bhs, BHS_BUFFER_OFFSET) : 0;
	return bhs[BHS_FLAGS] & ISCSI_UNDERFLOW ? bhs_word(bhs, BHS_WORD44) : 0;
}

/* Whether all bytes have come that the target claims to have sent.  Otherwise a caller would read other bytes. */
static bool data_in_complete(const struct iscsi_task *task, const uint8_t *bhs)
{
	uint32_t underflow = read_underflow(task, bhs);

	return underflow <= task->data_in_capacity &&
	       task->data_in_received == task->data_in_capacity - underflow;
}

/* The PDU is the answer to the task. */
static bool take_answer(struct iscsi_session *s, struct iscsi_task *task)
{
	take_sequence_numbers(s, s->rx.header, true);
	memcpy(task->response, s->rx.header, ISCSI_BHS_LENGTH);
	task->control = s->rx.control;
	task->control_length = s->rx.control ? bhs_data_length(s->rx.header) : 0;
	s->rx.control = NULL;
	iscsi_task_answered(s, task);
	return true;
}

static bool scsi_response(struct iscsi_session *s, const uint8_t *bhs)
{
	struct iscsi_task *task = iscsi_find_task(s, bhs_word(bhs, BHS_TAG));

	ISCSI_REQUIRE(s, task && task->opcode == ISCSI_SCSI_COMMAND,
		      "answer to an unknown command");
	ISCSI_REQUIRE(s, bhs[BHS_STATUS] || bhs[BHS_RESPONSE] || data_in_complete(task, bhs),
		      "status GOOD, but Data-In is missing");
	return take_answer(s, task);
}

static bool data_in(struct iscsi_session *s, const uint8_t *bhs)
{
	struct iscsi_task *task = s->rx.task;
	bool has_status = bhs[BHS_FLAGS] & ISCSI_DATA_IN_STATUS;

	s->rx.task = NULL;
	task->data_in_received += bhs_data_length(bhs);
	ISCSI_REQUIRE(s, !has_status || bhs[BHS_FLAGS] & ISCSI_FINAL,
		      "status in a Data-In that is not final");
	if (!has_status) {
		take_sequence_numbers(s, bhs, false);
		return true;
	}
	ISCSI_REQUIRE(s, !task->data_out_length, "status in a Data-In of a bidirectional command");
	ISCSI_REQUIRE(s, bhs[BHS_STATUS] || data_in_complete(task, bhs),
		      "status GOOD, but Data-In is missing");
	return take_answer(s, task);
}

static bool ready_to_transfer(struct iscsi_session *s, const uint8_t *bhs)
{
	struct iscsi_task *task = iscsi_find_task(s, bhs_word(bhs, BHS_TAG));
	uint32_t offset = bhs_word(bhs, BHS_BUFFER_OFFSET), length = bhs_word(bhs, BHS_WORD44);

	ISCSI_REQUIRE(s, task && task->opcode == ISCSI_SCSI_COMMAND, "R2T for an unknown task");
	/* MaxOutstandingR2T is 1; but it may come while unsolicited data are being sent. */
	ISCSI_REQUIRE(s, !task->held.remaining, "R2T while another is being served");
	ISCSI_REQUIRE(s, bhs_word(bhs, BHS_DATA_SN) == task->sn, "R2T out of sequence");
	ISCSI_REQUIRE(s, bhs_word(bhs, BHS_WORD20) != ISCSI_NO_TAG, "R2T without a transfer tag");
	ISCSI_REQUIRE(s, length && length <= s->params.max_burst,
		      "R2T for nothing or more than a burst");
	ISCSI_REQUIRE(s, offset == task->data_out_requested, "R2T at an unexpected offset");
	ISCSI_REQUIRE(s, length <= task->data_out_length - offset, "R2T for more than there is");
	take_sequence_numbers(s, bhs, false);
	task->sn++;
	task->data_out_requested += length;
	task->held = (struct iscsi_burst){
		.offset = offset,
		.remaining = length,
		.target_tag = bhs_word(bhs, BHS_WORD20),
	};
	memcpy(task->held.lun, bhs + BHS_LUN, sizeof(task->held.lun));
	if (!task->tx.queued)
		iscsi_next_data_out(s, task);
	return true;
}

/* The target's ping: answered at once, without data (RFC 7143 11.18). */
static bool answer_ping(struct iscsi_session *s, const uint8_t *bhs)
{
	struct iscsi_tx *tx;

	ISCSI_REQUIRE(s, s->ping_count < ISCSI_UNSOLICITED_MAX, "a flood of pings");
	tx = calloc(1, sizeof(*tx));
	if (!tx)
		return iscsi_fail(s, false, "out of memory", 0);
	tx->header[BHS_OPCODE] = ISCSI_NOP_OUT | ISCSI_IMMEDIATE;
	tx->header[BHS_FLAGS] = ISCSI_FINAL;
	memcpy(tx->header + BHS_LUN, bhs + BHS_LUN, 8);
	bhs_set_word(tx->header, BHS_TAG, ISCSI_NO_TAG);
	bhs_set_word(tx->header, BHS_WORD20, bhs_word(bhs, BHS_WORD20));
	bhs_set_word(tx->header, BHS_CMD_SN, s->cmd_sn);
	iscsi_finish_header(s, tx, ISCSI_BHS_LENGTH);
	iscsi_enqueue(s, tx);
	s->ping_count++;
	return true;
}

static bool nop_in(struct iscsi_session *s, const uint8_t *bhs)
{
	uint32_t tag = bhs_word(bhs, BHS_TAG);
	struct iscsi_task *task;

	if (tag == ISCSI_NO_TAG) {
		take_sequence_numbers(s, bhs, false);
		return bhs_word(bhs, BHS_WORD20) == ISCSI_NO_TAG || answer_ping(s, bhs);
	}
	task = iscsi_find_task(s, tag);
	ISCSI_REQUIRE(s, task && task->opcode == ISCSI_NOP_OUT, "NOP-In for an unknown ping");
	return take_answer(s, task);
}

/* Answers that only need to match their request. */
static bool plain_answer(struct iscsi_session *s, const uint8_t *bhs)
{
	struct iscsi_task *task = iscsi_find_task(s, bhs_word(bhs, BHS_TAG));

	ISCSI_REQUIRE(s, task && task->opcode == (opcode_of(bhs) & ~0x20u),
		      "answer to an unknown request");
	return take_answer(s, task);
}

static bool unsolicited(struct iscsi_session *s, const uint8_t *bhs)
{
	struct iscsi_event *event;

	ISCSI_REQUIRE(s, s->event_count < ISCSI_UNSOLICITED_MAX, "a flood of messages");
	take_sequence_numbers(s, bhs, true);
	event = &s->events[s->event_count++];
	memcpy(event->bhs, bhs, ISCSI_BHS_LENGTH);
	event->data = s->rx.control;
	event->data_length = s->rx.control ? bhs_data_length(bhs) : 0;
	s->rx.control = NULL;
	return true;
}

static bool act(struct iscsi_session *s, const uint8_t *bhs)
{
	switch (opcode_of(bhs)) {
	case ISCSI_NOP_IN:
		return nop_in(s, bhs);
	case ISCSI_SCSI_RESPONSE:
		return scsi_response(s, bhs);
	case ISCSI_DATA_IN:
		return data_in(s, bhs);
	case ISCSI_R2T:
		return ready_to_transfer(s, bhs);
	case ISCSI_LOGIN_RESPONSE:
	case ISCSI_TEXT_RESPONSE:
	case ISCSI_LOGOUT_RESPONSE:
	case ISCSI_TASK_MANAGEMENT_RESPONSE:
		return plain_answer(s, bhs);
	case ISCSI_ASYNC:
	case ISCSI_REJECT:
		return unsolicited(s, bhs);
	default:
		return iscsi_fail(s, true, "PDU with an unknown opcode", 0);
	}
}

bool iscsi_pdu_received(struct iscsi_session *s)
{
	bool ok = act(s, s->rx.header);

	free(s->rx.control);
	s->rx.control = NULL;
	s->rx.dest = NULL;
	s->rx.stage = ISCSI_RX_HEADER;
	s->rx.header_have = 0;
	s->rx.header_need = ISCSI_BHS_LENGTH;
	return ok;
}
