/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_unread_shares.c -- a script that is passed descriptors and receives none.  The kernel counts those in
 * transit for the target's user, so the descriptors of one SHARE at a time lie in a job's socket.  The test plays
 * the sandbox. */
#include "base/fd_message.h"
#include "exec/run/test_start.h"

static uint64_t id;
static uint32_t seen; /* answers */

static void make_object(void)
{
	struct osd_txn *txn;

	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_user_object_create(txn, PARTITION, 0, 1, &id), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
}

static void start_job(void)
{
	const struct osd_exec_submission submission = {
		.zone = {PARTITION, 0},
		.principal = "addr:a",
		.code = (const uint8_t *)"pass",
		.code_length = 4,
	};
	struct osd_exec_refusal refusal;
	struct osd_object_id job;
	struct osd_job_run run;
	uint8_t bytes[4096];

	CHECK_EQ(osd_exec_submit(exec, &submission, &job, &refusal), OSD_OK);
	CHECK(recv(peer, bytes, sizeof(bytes), 0) > 0);
	CHECK(osd_job_run_decode(bytes, &run));
}

/* Answered by the proxy. */
static enum osd_answer_code call(uint16_t op)
{
	const struct osd_call call = {.op = op, .partition_id = PARTITION, .object_id = id};
	uint8_t *shared = (uint8_t *)sandbox->shm;
	struct osd_answer answer;

	osd_call_encode(&call, shared + OSD_SHM_FRAME_AT);
	osd_shm_post(&sandbox->shm->areas[0].call);
	CHECK_EQ(osd_shm_wait(&sandbox->shm->areas[0].answer, &seen, OSD_SHM_FOREVER, NULL),
		 OSD_SHM_POSTED);
	CHECK(osd_answer_decode(shared + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES, &answer));
	return answer.code;
}

static void receive(void)
{
	uint8_t header[OSD_JOB_HEADER];
	int fds[OSD_ANSWER_FDS];
	size_t count;

	CHECK_EQ(osd_fd_receive(peer, header, sizeof(header), fds, OSD_ANSWER_FDS, &count),
		 OSD_JOB_HEADER);
	CHECK(count > 0);
	osd_fds_close(fds, count);
}

int main(void)
{
	uint8_t byte;

	start();
	make_object();
	start_job();
	CHECK_EQ(call(OSD_CALL_SHARE), OSD_ANSWER_OK);
	CHECK_EQ(call(OSD_CALL_UNSHARE), OSD_ANSWER_OK);
	CHECK_EQ(call(OSD_CALL_SHARE), OSD_ANSWER_IO); /* as what may only be read by calls */
	receive();
	CHECK(recv(peer, &byte, 1, MSG_DONTWAIT) < 0);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(call(OSD_CALL_SHARE), OSD_ANSWER_OK);
		receive();
		CHECK_EQ(call(OSD_CALL_UNSHARE), OSD_ANSWER_OK);
	}
	stop();
	return 0;
}
