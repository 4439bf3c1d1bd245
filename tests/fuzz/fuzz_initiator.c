/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_initiator.c -- invariant: whatever a hostile target sends, the initiator writes only into
 * the buffers of its tasks and sends only what lies in them, and each task comes back once,
 * answered or not.
 *
 * Input: one byte of options (b0 header digest, b1 initial R2T, b2 immediate data, b3 small
 * segments), then the target's bytes. */
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "session.h"

#define TASKS     4
#define DATA_OUT  600u
#define DATA_IN   512u
#define SEGMENT   8192u
#define CHUNK_MAX 1024u

struct peer {
	int ours, theirs; /* the session's end, the target's end */
	struct iscsi_session session;
	bool back[TASKS];
};

/* Buffers of their exact size, so that the sanitizer sees an overrun. */
static struct iscsi_task *make_task(unsigned number)
{
	struct iscsi_task *task = calloc(1, sizeof(*task));

	HOLDS(task);
	task->opcode = number == 3 ? ISCSI_NOP_OUT : ISCSI_SCSI_COMMAND;
	task->cdb_length = 236;
	task->owner = (void *)(uintptr_t)number;
	if (number == 1 || number == 2) { /* a write, and a bidirectional command */
		task->data_out = calloc(1, DATA_OUT);
		task->data_out_length = DATA_OUT;
		HOLDS(task->data_out);
	}
	if (number == 0 || number == 2) {
		task->data_in = malloc(DATA_IN);
		task->data_in_capacity = DATA_IN;
		HOLDS(task->data_in);
	}
	return task;
}

static void check_done(struct peer *peer)
{
	struct iscsi_task *task;

	while ((task = iscsi_next_done(&peer->session)) != NULL) {
		uintptr_t number = (uintptr_t)task->owner;

		HOLDS(number < TASKS && !peer->back[number]);
		peer->back[number] = true;
		HOLDS(task->data_in_received <= task->data_in_capacity);
		HOLDS(task->data_out_requested <= task->data_out_length);
		touch(task->control, task->control_length);
		free((void *)task->data_out);
		free(task->data_in);
		iscsi_task_free(task);
	}
}

static void drain(int fd)
{
	uint8_t sink[4096];

	while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
		;
}

static void start(struct peer *peer, uint8_t options)
{
	struct iscsi_params params = {
		.max_send_segment = options & 8 ? 64 : SEGMENT,
		.max_recv_segment = SEGMENT,
		.max_burst = 256,
		.first_burst = 128,
		.immediate_data = options & 4,
		.initial_r2t = options & 2,
		.header_digest = options & 1,
	};

	iscsi_init(&peer->session, peer->ours, SEGMENT);
	iscsi_start(&peer->session, &params);
	peer->session.max_cmd_sn = TASKS; /* a window for all but what the target grants later */
	for (unsigned i = 0; i < TASKS; i++)
		HOLDS(iscsi_submit(&peer->session, make_task(i)));
}

static void play(struct peer *peer, const uint8_t *data, size_t size)
{
	bool well = iscsi_service(&peer->session);

	while (well && size) {
		size_t chunk = size < CHUNK_MAX ? size : CHUNK_MAX;
		ssize_t sent = send(peer->theirs, data, chunk, MSG_DONTWAIT | MSG_NOSIGNAL);

		HOLDS(sent > 0);
		data += sent;
		size -= (size_t)sent;
		well = iscsi_service(&peer->session);
		drain(peer->theirs);
		check_done(peer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct peer peer; /* the session's receive buffer is large */
	int pair[2];

	if (size == 0)
		return 0;
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	memset(&peer, 0, sizeof(peer));
	peer.ours = pair[0];
	peer.theirs = pair[1];
	start(&peer, data[0]);
	play(&peer, data + 1, size - 1);
	iscsi_release(&peer.session);
	check_done(&peer);
	for (unsigned i = 0; i < TASKS; i++)
		HOLDS(peer.back[i]);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
