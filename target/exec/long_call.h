/* SPDX-License-Identifier: GPL-2.0-or-later */
/* long_call.h -- calls of a script that may take as long as what they work on is large: PUNCH, and
 * others of the rows marked OP_LONG (proxy_ops.c).
 *
 * They hold no place in the call gate but for a bounded step, so that they delay no other job's calls;
 * between steps they charge what they move to the job's limit, and stop when the job is to end.  A call
 * that was under way when the job was asked to end stops at its next step; one that begins in the time
 * the script has to clean up stops when that is over. */
#ifndef OSD_EXEC_LONG_CALL_H
#define OSD_EXEC_LONG_CALL_H

#include "exec/proxy_ops.h"

/* Around any call: one that is not long has a place in the gate all the time, unless it waits for an object
 * that somebody else has locked. */
void osd_session_enter(struct osd_session *session, bool long_call);
void osd_session_leave(struct osd_session *session);

/* Before a step, which moves so many bytes: waits a moment for a place, and holds it until the next rest, or
 * the end.  False: the call must stop. */
bool osd_long_call_step(struct osd_session *session, uint64_t bytes);
/* Gives the place back: the call waits for something next. */
void osd_long_call_rest(struct osd_session *session);
/* For a transaction, which may go through many records.  Beyond OSD_LONG_RECORDS of them the call has no place
 * in the gate any more, for it could not pause without keeping others from what the transaction has locked.
 * The transaction ends with OSD_E_TASK_ABORTED when the sandbox is gone; that of a long call also when the
 * job is asked to end. */
void osd_long_call_watch(struct osd_session *session, struct osd_txn *txn);

/* A step limits what others wait for it: so many bytes, or so many pieces. */
#define OSD_LONG_STEP_BYTES  (UINT64_C(1) << 20)
#define OSD_LONG_STEP_PIECES 64u
#define OSD_LONG_RECORDS     1024u

#endif
