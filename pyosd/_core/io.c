/* SPDX-License-Identifier: GPL-2.0-or-later */
/* io.c -- bytes between the session and its socket, never blocking.  Large Data-In is received
 * straight into the caller's buffer; what follows it in the stream lands in the receive buffer by
 * the same call. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "session.h"

#define TX_PDUS_PER_CALL  16
#define CALLS_PER_SERVICE 32 /* then let the caller look at what is done */

/* ---- out ---------------------------------------------------------------------------------- */

static size_t tx_total(const struct iscsi_tx *tx)
{
	return tx->header_length + tx->data_length + iscsi_pad(tx->data_length);
}

/* Adds what is left of one segment; *skip bytes of the PDU are out already. */
static int add_iov(struct iovec *iov, int count, const uint8_t *base, size_t length, size_t *skip)
{
	if (*skip >= length) {
		*skip -= length;
		return count;
	}
	iov[count].iov_base = (void *)(base + *skip);
	iov[count].iov_len = length - *skip;
	*skip = 0;
	return count + 1;
}

static int gather(const struct iscsi_session *s, struct iovec *iov)
{
	static const uint8_t zeros[4];
	int count = 0, pdus = 0;

	for (const struct iscsi_tx *tx = s->tx; tx && pdus < TX_PDUS_PER_CALL;
	     tx = tx->next, pdus++) {
		size_t skip = tx->sent;

		count = add_iov(iov, count, tx->header, tx->header_length, &skip);
		count = add_iov(iov, count, tx->data, tx->data_length, &skip);
		count = add_iov(iov, count, zeros, iscsi_pad(tx->data_length), &skip);
	}
	return count;
}

/* The PDU at the head is out: continue its task's burst, finish the task, or forget a ping's
 * answer. */
static void tx_finished(struct iscsi_session *s)
{
	struct iscsi_tx *tx = s->tx;
	struct iscsi_task *task = tx->task;

	s->tx = tx->next;
	if (!s->tx)
		s->tx_tail = &s->tx;
	tx->queued = false;
	if (!task) {
		s->ping_count--;
		free(tx);
	} else if (task->answered) {
		iscsi_task_answered(s, task);
	} else {
		iscsi_next_data_out(s, task);
	}
}

/* True: all that can be sent was; false: the session has failed. */
static bool send_some(struct iscsi_session *s)
{
	struct iovec iov[3 * TX_PDUS_PER_CALL];

	for (int calls = 0; s->tx && calls < CALLS_PER_SERVICE; calls++) {
		struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)gather(s, iov)};
		ssize_t sent = sendmsg(s->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (sent < 0)
			return iscsi_fail(s, false, "cannot send to the target", errno);
		s->bytes_sent += (uint64_t)sent;
		for (size_t left = (size_t)sent; left;) {
			size_t rest = tx_total(s->tx) - s->tx->sent;

			if (left < rest) {
				s->tx->sent += left;
				break;
			}
			left -= rest;
			tx_finished(s);
		}
	}
	return true;
}

/* ---- in ----------------------------------------------------------------------------------- */

static size_t buffered(const struct iscsi_rx *rx)
{
	return rx->end - rx->start;
}

/* Moves header bytes out of the buffer; once whole, checks the digest and hands it on. */
static bool consume_header(struct iscsi_session *s)
{
	struct iscsi_rx *rx = &s->rx;
	size_t want = rx->header_need - rx->header_have, summed;

	if (want > buffered(rx))
		want = buffered(rx);
	memcpy(rx->header + rx->header_have, rx->buffer + rx->start, want);
	rx->header_have += want;
	rx->start += want;
	if (rx->header_have < rx->header_need)
		return true;
	summed = ISCSI_BHS_LENGTH + rx->header[BHS_AHS_WORDS] * 4u;
	if (rx->header_need == ISCSI_BHS_LENGTH) {
		bool digest = s->phase == ISCSI_PHASE_FULL && s->params.header_digest;

		rx->header_need = summed + (digest ? ISCSI_DIGEST : 0);
		if (rx->header_have < rx->header_need)
			return true;
	}
	ISCSI_REQUIRE(s,
		      summed == rx->header_need ||
			      iscsi_digest_ok(rx->header + summed, rx->header, summed),
		      "header digest does not match");
	return iscsi_header_received(s);
}

static bool consume_data(struct iscsi_session *s)
{
	struct iscsi_rx *rx = &s->rx;
	size_t length = rx->data_left < buffered(rx) ? rx->data_left : buffered(rx);

	if (length) {
		memcpy(rx->dest, rx->buffer + rx->start, length);
		rx->dest += length;
	}
	rx->start += length;
	rx->data_left -= (uint32_t)length;
	if (rx->data_left)
		return true;
	length = rx->pad_left < buffered(rx) ? rx->pad_left : buffered(rx);
	rx->start += length;
	rx->pad_left -= (uint32_t)length;
	return rx->pad_left ? true : iscsi_pdu_received(s);
}

/* Takes apart everything in the buffer. */
static bool consume(struct iscsi_session *s)
{
	struct iscsi_rx *rx = &s->rx;
	bool ok = true;

	while (ok &&
	       (buffered(rx) || (rx->stage == ISCSI_RX_DATA && !rx->data_left && !rx->pad_left)))
		ok = rx->stage == ISCSI_RX_HEADER ? consume_header(s) : consume_data(s);
	rx->start = rx->end = 0;
	return ok;
}

static bool receive_some(struct iscsi_session *s)
{
	struct iscsi_rx *rx = &s->rx;

	for (int calls = 0; calls < CALLS_PER_SERVICE; calls++) {
		bool direct = rx->stage == ISCSI_RX_DATA && rx->data_left;
		struct iovec iov[2] = {{rx->dest, direct ? rx->data_left : 0},
				       {rx->buffer, sizeof(rx->buffer)}};
		struct msghdr message = {.msg_iov = direct ? iov : iov + 1,
					 .msg_iovlen = direct ? 2 : 1};
		size_t room = iov[0].iov_len + iov[1].iov_len, to_dest;
		ssize_t got = recvmsg(s->fd, &message, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (got < 0)
			return iscsi_fail(s, false, "cannot receive from the target", errno);
		if (got == 0)
			return iscsi_fail(s, false, "the target closed the connection", 0);
		s->bytes_received += (uint64_t)got;
		to_dest = (size_t)got < iov[0].iov_len ? (size_t)got : iov[0].iov_len;
		if (to_dest) {
			rx->dest += to_dest;
			rx->data_left -= (uint32_t)to_dest;
		}
		rx->end = (size_t)got - to_dest;
		if (!consume(s))
			return false;
		if ((size_t)got < room)
			return true;
	}
	return true;
}

bool iscsi_service(struct iscsi_session *s)
{
	if (s->phase == ISCSI_PHASE_FAILED)
		return false;
	/* What arrived may open the window or ask for data, so try to send again afterwards. */
	return send_some(s) && receive_some(s) && send_some(s);
}
