/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy_client.h -- asks the proxy and waits for its answer, through the shared memory; receives
 * the descriptors that go with an answer.  One call at a time: callers hold the GIL from before
 * the call until they have copied the body out. */
#ifndef OSD_SANDBOX_PROXY_CLIENT_H
#define OSD_SANDBOX_PROXY_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/proxy_frame.h"

/* The shared memory and the job socket of this sandbox; both for good. */
void osd_proxy_attach(struct osd_shm *shm, int job_socket);

/* Whether there is a job whose calls are served; at first there is none. */
void osd_proxy_open(bool open);

/* call->body_bytes of body go along (copied).  On true *ret_answer is checked and *ret_body
 * points at ret_answer->body_bytes in shared memory, valid until the next call.  False: the
 * answer was malformed. */
bool osd_proxy_call(const struct osd_call *call, const void *body, struct osd_answer *ret_answer,
		    const uint8_t **ret_body);

/* WRITE or APPEND of any length, in pieces of at most OSD_AHEAD_BYTES: while the proxy serves one, the next is
 * copied.  call: as for the first piece, without a body.  *ret_written counts the bytes of those before
 * the first that failed; the answer is the first piece's.  Else as osd_proxy_call. */
bool osd_proxy_write(const struct osd_call *call, const uint8_t *data, size_t length,
		     struct osd_answer *ret_answer, const uint8_t **ret_body, size_t *ret_written);

/* Descriptors of the answer just received: the caller's.  Count, or -errno. */
int osd_proxy_receive_fds(int *fds, size_t capacity);

#endif
