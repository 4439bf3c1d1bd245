/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_session.h -- for the session's test_*.c: calls of a script as hand-made frames, and their answers. */
#ifndef OSD_EXEC_SESSION_TEST_SESSION_H
#define OSD_EXEC_SESSION_TEST_SESSION_H

#include "base/test.h"
#include "exec/session/session.h"

static uint8_t shared[OSD_SHM_BYTES]; /* stands for a sandbox's memory */
static struct osd_answer answered;    /* the last answer */

static inline uint8_t *body(void)
{
	return shared + OSD_SHM_BODY_AT;
}

static inline enum osd_served serve(struct osd_session *session, const struct osd_call *call)
{
	osd_call_encode(call, shared + OSD_SHM_FRAME_AT);
	return osd_session_serve(session, shared + OSD_SHM_FRAME_AT, body(),
				 shared + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES, body());
}

/* The answer's code to a call that must be answered. */
static inline enum osd_answer_code ask(struct osd_session *session, struct osd_call call)
{
	CHECK(serve(session, &call) == OSD_SERVED);
	CHECK(osd_answer_decode(shared + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES, &answered));
	if (answered.code != OSD_ANSWER_OK)
		CHECK(answered.body_bytes > 0); /* the message */
	return answered.code;
}

#endif
