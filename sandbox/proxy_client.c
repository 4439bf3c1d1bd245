/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy_client.c -- see proxy_client.h. */
#include "proxy_client.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "base/fd_message.h"

#define FIRST_BYTES    (128u << 10) /* of the pieces of a long write */
#define BYTES_PER_NSEC 10	    /* speed of the page cache, about */

static struct osd_shm *shm;
static int job_socket = -1;
static uint32_t answers_seen[OSD_SHM_AREAS];
static bool is_open;

void osd_proxy_attach(struct osd_shm *memory, int socket)
{
	shm = memory;
	job_socket = socket;
	for (unsigned area = 0; area < OSD_SHM_AREAS; area++)
		answers_seen[area] = atomic_load(&memory->areas[area].answer.seq);
}

void osd_proxy_open(bool open)
{
	is_open = open;
}

static uint8_t *at(size_t offset)
{
	return (uint8_t *)shm + offset;
}

static void post(unsigned area, const struct osd_call *call, const void *body)
{
	if (call->body_bytes)
		memcpy(at(osd_shm_body_at(area)), body, call->body_bytes);
	osd_call_encode(call, at(osd_shm_frame_at(area)));
	osd_shm_post(&shm->areas[area].call);
}

static bool take_answer(unsigned area, struct osd_answer *ret_answer, const uint8_t **ret_body)
{
	if (!osd_answer_decode(at(osd_shm_frame_at(area) + OSD_FRAME_BYTES), ret_answer))
		return false;
	*ret_body = at(osd_shm_body_at(area));
	return true;
}

/* size: bytes of the call's body, which delay the answer. */
static bool wait_for_answer(unsigned area, size_t size, struct osd_answer *ret_answer,
			    const uint8_t **ret_body)
{
	osd_shm_await(&shm->areas[area].answer, &answers_seen[area],
		      OSD_SHM_SPIN_NSEC + size / BYTES_PER_NSEC);
	return take_answer(area, ret_answer, ret_body);
}

bool osd_proxy_call(const struct osd_call *call, const void *body, struct osd_answer *ret_answer,
		    const uint8_t **ret_body)
{
	if (!is_open || call->body_bytes > OSD_BODY_MAX)
		return false;
	post(0, call, body);
	return wait_for_answer(0, call->body_bytes, ret_answer, ret_body);
}

bool osd_proxy_next(const struct osd_call *call, struct osd_answer *ret_answer,
		    const uint8_t **ret_body)
{
	post(0, call, NULL);
	osd_shm_rest(&shm->areas[0].answer, &answers_seen[0], OSD_SHM_SPIN_NSEC);
	return take_answer(0, ret_answer, ret_body);
}

/* The first pieces are short, because the proxy is idle until it has one. */
static size_t piece_of(size_t done, size_t left)
{
	size_t piece = OSD_MIN(OSD_MAX(done, (size_t)FIRST_BYTES), (size_t)OSD_AHEAD_BYTES);

	return OSD_MIN(piece, left);
}

/* After a piece has failed, the proxy skips the next ones with the same answer.  They are sent
 * nevertheless, because the last piece must be the one without OSD_CALL_AHEAD. */
bool osd_proxy_write(const struct osd_call *first, const uint8_t *data, size_t length,
		     struct osd_answer *ret_answer, const uint8_t **ret_body, size_t *ret_written)
{
	size_t sizes[OSD_SHM_AREAS], sent = 0, done = 0;
	unsigned calls = 0, answers = 0;
	struct osd_call call = *first;
	struct osd_answer answer;
	bool fine = true;

	if (!is_open)
		return false;
	*ret_written = 0;
	while (done < length) {
		unsigned area = calls % OSD_SHM_AREAS;

		if (sent < length && calls < answers + OSD_SHM_AREAS) {
			sizes[area] = piece_of(sent, length - sent);
			call.body_bytes = (uint32_t)sizes[area];
			call.flags = sent + sizes[area] < length ? OSD_CALL_AHEAD : 0;
			post(area, &call, data + sent);
			sent += sizes[area];
			call.a += call.op == OSD_CALL_APPEND ? 0 : sizes[area];
			calls++;
			continue;
		}
		area = answers % OSD_SHM_AREAS;
		fine &= wait_for_answer(area, sizes[area], &answer, ret_body);
		done += sizes[area];
		if (fine && answer.code == OSD_ANSWER_OK)
			*ret_written = done;
		if (answers++ == 0 || *ret_written == 0)
			*ret_answer = answer;
	}
	return fine;
}

uint8_t *osd_proxy_texts(void)
{
	return at(OSD_SHM_TEXTS_AT);
}

int osd_proxy_receive_share(const struct osd_answer *answer, struct osd_shared_fds *ret_fds)
{
	bool head = answer->flags & 1, tail = answer->flags & 2;
	uint8_t header[OSD_JOB_HEADER];
	int fds[OSD_ANSWER_FDS];
	size_t count = 0;
	ssize_t length =
		osd_fd_receive(job_socket, header, sizeof(header), fds, OSD_ANSWER_FDS, &count);

	if (length < 0)
		return (int)length;
	if (length != OSD_JOB_HEADER || osd_get_be(header, 2) != OSD_PROXY_VERSION ||
	    osd_get_be(header + 2, 2) != OSD_JOB_SHARE || count != (size_t)head + tail + 1) {
		osd_fds_close(fds, count);
		return -EPROTO;
	}
	*ret_fds = (struct osd_shared_fds){.head = head ? fds[0] : -1,
					   .tail = tail ? fds[head] : -1,
					   .version = fds[count - 1]};
	return 0;
}
