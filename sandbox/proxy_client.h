/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy_client.h -- calls the proxy through the shared memory, waits for its answer, and receives the
 * descriptors of an answer.  One call at a time: callers hold the GIL from before the call until they
 * have copied the body out. */
#ifndef OSD_SANDBOX_PROXY_CLIENT_H
#define OSD_SANDBOX_PROXY_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/proxy_frame.h"

/* Sets the shared memory and the job socket of this sandbox, once. */
void osd_proxy_attach(struct osd_shm *shm, int job_socket);

/* Sets whether a job runs, whose calls are served.  At first none does. */
void osd_proxy_open(bool open);

/* Calls the proxy with call->body_bytes of body, which are copied.  True: *ret_answer is checked, and
 * *ret_body points at ret_answer->body_bytes in shared memory, valid until the next call.  False: the
 * answer was malformed. */
bool osd_proxy_call(const struct osd_call *call, const void *body, struct osd_answer *ret_answer,
		    const uint8_t **ret_body);

/* The call NEXT, after the job: the wait for its answer may be long.  Otherwise as osd_proxy_call. */
bool osd_proxy_next(const struct osd_call *call, struct osd_answer *ret_answer,
		    const uint8_t **ret_body);

/* WRITE, APPEND or RESULT of any length, in pieces of at most OSD_AHEAD_BYTES. While the proxy serves one
 * piece, the next is copied. call: that of the first piece, without a body.  *ret_written: the bytes
 * before the first failed piece.  The answer is that of the first piece.  Otherwise as osd_proxy_call. */
bool osd_proxy_write(const struct osd_call *call, const uint8_t *data, size_t length,
		     struct osd_answer *ret_answer, const uint8_t **ret_body, size_t *ret_written);

/* The room for texts and the result of a stage in the shared memory: OSD_SHM_PLACES_BYTES. */
uint8_t *osd_proxy_texts(void);

/* Receives the descriptors of this answer to SHARE, which the caller owns: the object's files, -1: there is none, and
 * the version page.  0, or -errno; -EPROTO: they are not those of the answer. */
struct osd_shared_fds {
	int head, tail, version;
};
int osd_proxy_receive_share(const struct osd_answer *answer, struct osd_shared_fds *ret_fds);

#endif
