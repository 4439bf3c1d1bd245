/* SPDX-License-Identifier: GPL-2.0-or-later */
/* session.c -- life of a session: phases, tags, the command window, tasks in and out.
 * Not here: transfers of one command (task.c), what arrives (receive.c), the socket (io.c). */
#include "session.h"

#include <poll.h>
#include <stdlib.h>

#define SLOT_BITS 10
_Static_assert(1u << SLOT_BITS == ISCSI_TASKS_MAX, "a tag is generation and slot");

/* Serial number arithmetic (RFC 1982): a at or after b. */
static bool serial_reached(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) >= 0;
}

void iscsi_init(struct iscsi_session *s, int fd, uint32_t max_recv_segment)
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->params.max_recv_segment = max_recv_segment;
	s->params.max_send_segment = 8192; /* default until negotiated (RFC 7143 13.12) */
	s->cmd_sn = 1;
	s->max_cmd_sn = 1;
	s->waiting_tail = &s->waiting;
	s->done_tail = &s->done;
	s->tx_tail = &s->tx;
	s->rx.header_need = ISCSI_BHS_LENGTH;
}

void iscsi_start(struct iscsi_session *s, const struct iscsi_params *params)
{
	s->params = *params;
	s->phase = ISCSI_PHASE_FULL;
}

static void push_done(struct iscsi_session *s, struct iscsi_task *task)
{
	task->next = NULL;
	*s->done_tail = task;
	s->done_tail = &task->next;
}

static void forget_task(struct iscsi_session *s, struct iscsi_task *task)
{
	s->tasks[task->tag & (ISCSI_TASKS_MAX - 1)] = NULL;
	s->task_count--;
}

/* Drops what was to be sent; pings' answers are the session's own. */
static void drop_tx(struct iscsi_session *s)
{
	while (s->tx) {
		struct iscsi_tx *tx = s->tx;

		s->tx = tx->next;
		tx->queued = false;
		if (!tx->task)
			free(tx);
	}
	s->tx_tail = &s->tx;
}

bool iscsi_fail(struct iscsi_session *s, bool violation, const char *error, int error_number)
{
	if (s->phase == ISCSI_PHASE_FAILED)
		return false;
	s->phase = ISCSI_PHASE_FAILED;
	s->violation = violation;
	s->error = error;
	s->error_number = error_number;
	drop_tx(s);
	s->waiting = NULL;
	s->waiting_tail = &s->waiting;
	s->rx.task = NULL;
	for (uint32_t slot = 0; slot < ISCSI_TASKS_MAX; slot++) {
		struct iscsi_task *task = s->tasks[slot];

		if (task) {
			forget_task(s, task);
			push_done(s, task);
		}
	}
	return false;
}

void iscsi_release(struct iscsi_session *s)
{
	iscsi_fail(s, false, "session closed", 0);
	for (uint32_t i = 0; i < s->event_count; i++)
		free(s->events[i].data);
	s->event_count = 0;
	free(s->rx.control);
	s->rx.control = NULL;
}

void iscsi_task_free(struct iscsi_task *task)
{
	if (!task)
		return;
	free(task->control);
	free(task);
}

struct iscsi_task *iscsi_find_task(struct iscsi_session *s, uint32_t tag)
{
	struct iscsi_task *task = s->tasks[tag & (ISCSI_TASKS_MAX - 1)];

	return task && task->tag == tag && task->started && !task->answered ? task : NULL;
}

/* Puts the task into a free slot; the tag is never FFFF_FFFFh and not soon used again. */
static bool assign_tag(struct iscsi_session *s, struct iscsi_task *task)
{
	if (s->task_count == ISCSI_TASKS_MAX)
		return false;
	do
		s->next_slot = (s->next_slot + 1) & (ISCSI_TASKS_MAX - 1);
	while (s->tasks[s->next_slot]);
	s->generation = (s->generation + 1) & 0x1fffff;
	task->tag = s->generation << SLOT_BITS | s->next_slot;
	s->tasks[s->next_slot] = task;
	s->task_count++;
	return true;
}

void iscsi_enqueue(struct iscsi_session *s, struct iscsi_tx *tx)
{
	tx->next = NULL;
	tx->queued = true;
	tx->sent = 0;
	*s->tx_tail = tx;
	s->tx_tail = &tx->next;
}

void iscsi_finish_header(struct iscsi_session *s, struct iscsi_tx *tx, size_t header_length)
{
	osd_put_be(tx->header + BHS_DATA_LENGTH, tx->data_length, 3);
	bhs_set_word(tx->header, BHS_EXP_STAT_SN, s->exp_stat_sn);
	tx->header_length = header_length;
	if (s->phase == ISCSI_PHASE_FULL && s->params.header_digest) {
		iscsi_digest_put(tx->header + header_length, tx->header, header_length);
		tx->header_length += ISCSI_DIGEST;
	}
}

/* Login, text, logout, NOP and task management: the caller gave most of the header. */
static void build_plain(struct iscsi_session *s, struct iscsi_task *task)
{
	struct iscsi_tx *tx = &task->tx;

	memcpy(tx->header, task->request, ISCSI_BHS_LENGTH);
	tx->header[BHS_OPCODE] = (uint8_t)(task->opcode | (task->immediate ? ISCSI_IMMEDIATE : 0));
	bhs_set_word(tx->header, BHS_TAG, task->tag);
	bhs_set_word(tx->header, BHS_CMD_SN, task->cmd_sn);
	tx->data = task->data_out;
	tx->data_length = task->data_out_length;
	iscsi_finish_header(s, tx, ISCSI_BHS_LENGTH);
	iscsi_enqueue(s, tx);
}

static void start_task(struct iscsi_session *s, struct iscsi_task *task)
{
	task->started = true;
	task->cmd_sn = s->cmd_sn;
	if (!task->immediate)
		s->cmd_sn++;
	task->tx.task = task;
	if (task->opcode == ISCSI_SCSI_COMMAND)
		iscsi_build_command(s, task);
	else
		build_plain(s, task);
}

void iscsi_start_waiting(struct iscsi_session *s)
{
	while (s->waiting && serial_reached(s->max_cmd_sn, s->cmd_sn)) {
		struct iscsi_task *task = s->waiting;

		s->waiting = task->next;
		if (!s->waiting)
			s->waiting_tail = &s->waiting;
		start_task(s, task);
	}
}

bool iscsi_submit(struct iscsi_session *s, struct iscsi_task *task)
{
	bool login = task->opcode == ISCSI_LOGIN;

	if (s->phase != (login ? ISCSI_PHASE_LOGIN : ISCSI_PHASE_FULL) || !assign_tag(s, task))
		return false;
	if (task->immediate) {
		start_task(s, task);
		return true;
	}
	task->next = NULL;
	*s->waiting_tail = task;
	s->waiting_tail = &task->next;
	iscsi_start_waiting(s);
	return true;
}

/* Takes a Data-Out of which nothing has been sent off the queue: stock tgtd does not survive data
 * for a command it has answered. */
static void withdraw_data_out(struct iscsi_session *s, struct iscsi_tx *tx)
{
	struct iscsi_tx **link = &s->tx;

	if (tx->sent || tx->header[BHS_OPCODE] != ISCSI_DATA_OUT)
		return;
	while (*link != tx)
		link = &(*link)->next;
	*link = tx->next;
	if (s->tx_tail == &tx->next)
		s->tx_tail = link;
	tx->queued = false;
}

void iscsi_task_answered(struct iscsi_session *s, struct iscsi_task *task)
{
	task->answered = true;
	task->burst.remaining = task->held.remaining = 0; /* the target wants no more */
	if (task->tx.queued)
		withdraw_data_out(s, &task->tx);
	if (task->tx.queued)
		return; /* io.c comes back when the PDU under way is out */
	forget_task(s, task);
	push_done(s, task);
}

struct iscsi_task *iscsi_next_done(struct iscsi_session *s)
{
	struct iscsi_task *task = s->done;

	if (!task)
		return NULL;
	s->done = task->next;
	if (!s->done)
		s->done_tail = &s->done;
	return task;
}

short iscsi_events(const struct iscsi_session *s)
{
	if (s->phase == ISCSI_PHASE_FAILED)
		return 0;
	return (short)(s->tx ? POLLIN | POLLOUT : POLLIN);
}
