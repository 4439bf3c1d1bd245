/* SPDX-License-Identifier: GPL-2.0-or-later */
/* session.h -- an iSCSI session of one connection, seen from the initiator: a state machine over a
 * socket, without threads, timers, blocking calls or Python.
 *
 * Order of calls: iscsi_init; login exchanges (text negotiation is the caller's); iscsi_start with
 * what was negotiated; then any commands; iscsi_release at the end.  Between calls wait for
 * iscsi_events() on the descriptor, then call iscsi_service(); finished tasks come out of
 * iscsi_next_done().
 *
 * Thread rule: one thread at a time.  Nothing here blocks.
 * Errors: functions return false once the session has failed; s->error then says why, s->violation
 * whether the target broke the protocol, and every task comes out of iscsi_next_done() unanswered.
 * The target is not trusted: each length, offset, tag and sequence number it sends is checked.
 *
 * Who owns what: a task belongs to the session from submit until iscsi_next_done() hands it back;
 * its data buffers must stay valid until then.  The descriptor is borrowed. */
#ifndef PYOSD_SESSION_H
#define PYOSD_SESSION_H

#include "pdu.h"

#define ISCSI_TASKS_MAX	      1024u
#define ISCSI_CONTROL_MAX     (1u << 20) /* sense, text, ping data: more is a hostile target */
#define ISCSI_UNSOLICITED_MAX 64u	 /* events not fetched, pings not answered yet */
#define ISCSI_RX_BUFFER	      (64u << 10)

enum iscsi_phase { ISCSI_PHASE_LOGIN, ISCSI_PHASE_FULL, ISCSI_PHASE_FAILED };

struct iscsi_params {		   /* negotiated; lengths in bytes */
	uint32_t max_send_segment; /* the target's MaxRecvDataSegmentLength */
	uint32_t max_recv_segment; /* ours */
	uint32_t max_burst, first_burst;
	bool immediate_data, initial_r2t;
	bool header_digest; /* CRC32C */
};

/* One PDU that is being sent.  The header is ours; data is borrowed from the task. */
struct iscsi_tx {
	struct iscsi_tx *next;
	struct iscsi_task *task; /* NULL: the answer to a ping, freed when sent */
	bool queued;
	size_t sent; /* of header + data + pad */
	size_t header_length;
	const uint8_t *data;
	uint32_t data_length;
	uint8_t header[ISCSI_TX_HEADER_MAX];
};

/* A run of Data-Out the target asked for (R2T) or allows (unsolicited). */
struct iscsi_burst {
	uint32_t offset, remaining, data_sn, target_tag;
	uint8_t lun[8];
};

struct iscsi_task {
	struct iscsi_task *next; /* waiting or done list */
	uint8_t opcode;		 /* of the request, enum iscsi_opcode */
	bool immediate;		 /* takes no command sequence number */
	bool started;		 /* its PDU has been built */
	bool answered;
	uint32_t tag;
	uint32_t cmd_sn;
	uint16_t lun;
	void *owner; /* the caller's own */

	/* SCSI command; borrowed buffers. */
	uint8_t cdb[ISCSI_CDB_MAX];
	uint16_t cdb_length;
	const uint8_t *data_out;
	uint32_t data_out_length;
	uint8_t *data_in;
	uint32_t data_in_capacity;

	/* Progress of the transfers. */
	uint32_t data_in_received;
	uint32_t data_out_requested; /* bytes sent unasked or asked for so far */
	uint32_t sn; /* of the next Data-In or R2T: one sequence (RFC 7143 4.2.2.4) */
	struct iscsi_burst burst;
	struct iscsi_burst held; /* asked for while burst was under way */

	/* Login, text and task management: bytes 1-3, 8-23 and text to send. */
	uint8_t request[ISCSI_BHS_LENGTH];

	/* The answer, once answered. */
	uint8_t response[ISCSI_BHS_LENGTH];
	uint8_t *control; /* owned: sense (with its length field) or text */
	uint32_t control_length;

	struct iscsi_tx tx;
};

/* An unsolicited PDU of the target: asynchronous message or reject. */
struct iscsi_event {
	uint8_t bhs[ISCSI_BHS_LENGTH];
	uint8_t *data; /* owned */
	uint32_t data_length;
};

enum iscsi_rx_stage { ISCSI_RX_HEADER, ISCSI_RX_DATA };

struct iscsi_rx {
	enum iscsi_rx_stage stage;
	uint8_t header[ISCSI_BHS_LENGTH + ISCSI_AHS_MAX + ISCSI_DIGEST];
	size_t header_have, header_need;
	uint8_t *dest; /* where the data segment goes: control, or a task's buffer */
	uint32_t data_left, pad_left;
	uint8_t *control;	 /* owned */
	struct iscsi_task *task; /* of a Data-In; alive while its segment arrives */
	size_t start, end;	 /* of what is in buffer, not consumed */
	uint8_t buffer[ISCSI_RX_BUFFER];
};

struct iscsi_session {
	int fd;
	enum iscsi_phase phase;
	bool violation;
	const char *error; /* static text, NULL while well */
	int error_number;  /* errno behind it, or 0 */
	struct iscsi_params params;

	uint32_t cmd_sn, exp_stat_sn, max_cmd_sn;
	bool stat_sn_known;
	uint32_t task_count; /* in the table */
	uint32_t generation; /* upper half of new tags */
	uint32_t next_slot;
	struct iscsi_task *tasks[ISCSI_TASKS_MAX];
	struct iscsi_task *waiting, **waiting_tail; /* for room in the command window */
	struct iscsi_task *done, **done_tail;
	struct iscsi_tx *tx, **tx_tail;
	struct iscsi_event events[ISCSI_UNSOLICITED_MAX];
	uint32_t event_count, ping_count;
	struct iscsi_rx rx;
	uint64_t bytes_sent, bytes_received;
};

void iscsi_init(struct iscsi_session *s, int fd, uint32_t max_recv_segment);
/* Fails what is under way; fetch iscsi_next_done() until NULL, then release. */
void iscsi_release(struct iscsi_session *s);
/* Login is over: use these parameters from now on. */
void iscsi_start(struct iscsi_session *s, const struct iscsi_params *params);

/* Takes a zeroed task whose request fields are set; gives it a tag.  False: failed session, wrong
 * phase or table full: the task stays the caller's. */
bool iscsi_submit(struct iscsi_session *s, struct iscsi_task *task);
/* The next finished task, now the caller's, or NULL.  Free with iscsi_task_free. */
struct iscsi_task *iscsi_next_done(struct iscsi_session *s);
void iscsi_task_free(struct iscsi_task *task);

/* poll(2) events wanted. */
short iscsi_events(const struct iscsi_session *s);
/* Sends and receives what the socket takes and has; false once the session has failed. */
bool iscsi_service(struct iscsi_session *s);

/* ---- between the files of this folder ----------------------------------------------------- */

/* Records the first failure; always returns false. */
bool iscsi_fail(struct iscsi_session *s, bool violation, const char *error, int error_number);
#define ISCSI_REQUIRE(s, condition, text)                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return iscsi_fail((s), true, (text), 0);                                   \
	} while (0)

struct iscsi_task *iscsi_find_task(struct iscsi_session *s, uint32_t tag);
/* The answer is complete: hands the task to the done list once nothing of it is being sent. */
void iscsi_task_answered(struct iscsi_session *s, struct iscsi_task *task);
void iscsi_enqueue(struct iscsi_session *s, struct iscsi_tx *tx);
/* Fills in what every PDU we send carries: tag, CmdSN, ExpStatSN, lengths, digest. */
void iscsi_finish_header(struct iscsi_session *s, struct iscsi_tx *tx, size_t header_length);
/* Starts waiting tasks while the command window has room. */
void iscsi_start_waiting(struct iscsi_session *s);

/* task.c: builds a SCSI command's PDU; continues Data-Out after one was sent. */
void iscsi_build_command(struct iscsi_session *s, struct iscsi_task *task);
void iscsi_next_data_out(struct iscsi_session *s, struct iscsi_task *task);
/* receive.c: a whole header has come: decide where its data goes; the data has come too: act. */
bool iscsi_header_received(struct iscsi_session *s);
bool iscsi_pdu_received(struct iscsi_session *s);

#endif
