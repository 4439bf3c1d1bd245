/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy_client.c -- see proxy_client.h. */
#include "proxy_client.h"

#include <errno.h>
#include <string.h>

#include "fd_message.h"

static struct osd_shm *shm;
static int job_socket = -1;
static uint32_t answer_seen;
static bool is_open;

void osd_proxy_attach(struct osd_shm *memory, int socket)
{
	shm = memory;
	job_socket = socket;
	answer_seen = atomic_load(&memory->answer.seq);
}

void osd_proxy_open(bool open)
{
	is_open = open;
}

static uint8_t *at(size_t offset)
{
	return (uint8_t *)shm + offset;
}

bool osd_proxy_call(const struct osd_call *call, const void *body, struct osd_answer *ret_answer,
		    const uint8_t **ret_body)
{
	if (!is_open || call->body_bytes > OSD_BODY_MAX)
		return false;
	if (call->body_bytes)
		memcpy(at(OSD_SHM_BODY_AT), body, call->body_bytes);
	osd_call_encode(call, at(OSD_SHM_FRAME_AT));
	osd_shm_post(&shm->call);
	osd_shm_wait(&shm->answer, &answer_seen, OSD_SHM_FOREVER, NULL);
	if (!osd_answer_decode(at(OSD_SHM_FRAME_AT + OSD_FRAME_BYTES), ret_answer))
		return false;
	*ret_body = at(OSD_SHM_BODY_AT);
	return true;
}

int osd_proxy_receive_fds(int *fds, size_t capacity)
{
	uint8_t header[OSD_JOB_HEADER];
	size_t count = 0;
	ssize_t length = osd_fd_receive(job_socket, header, sizeof(header), fds, capacity, &count);

	if (length < 0)
		return (int)length;
	if (length != OSD_JOB_HEADER || osd_get_be(header, 2) != OSD_PROXY_VERSION ||
	    osd_get_be(header + 2, 2) != OSD_JOB_SHARE) {
		osd_fds_close(fds, count);
		return -EPROTO;
	}
	return (int)count;
}
