/* SPDX-License-Identifier: GPL-2.0-or-later */
/* linger.c -- the thread that has handed a short call over waits for its end (run.h).  Then no proxy wakes up beside
 * the sandbox, on the processor that the sandbox needs, and the answer needs no other thread.
 *
 * It serves FINISH alone: of a call without a record that is done in memory.  Any other call of the function could
 * wait, as could the end of a sandbox that must be killed: both are a proxy's. */
#include <string.h>

#include "exec/run/run.h"

#define LINGER_NSEC UINT64_C(180000)

bool osd_run_is_alone(const struct osd_run *run)
{
	struct osd_exec *exec = run->exec;
	bool alone;

	osd_lock(&exec->lock);
	alone = exec->running_count == 1 && run->job->pool->queue.entry_count == 0;
	osd_unlock(&exec->lock);
	return alone;
}

/* The frame is copied, because the sandbox may change it meanwhile. */
static bool await_finish(struct osd_run *run, uint8_t frame[OSD_FRAME_BYTES])
{
	struct osd_shm *shm = run->sandbox->shm;
	uint32_t seen = run->calls_seen[0];
	struct osd_call call;

	if (!osd_shm_watch(&shm->areas[0].call, &seen, LINGER_NSEC, &shm->areas[0].answer,
			   &run->sandbox->dead))
		return false;
	memcpy(frame, (uint8_t *)shm + osd_shm_frame_at(0), OSD_FRAME_BYTES);
	return osd_call_decode(frame, &call) && call.op == OSD_CALL_FINISH;
}

/* False: it broke the protocol. */
static bool serve_finish(struct osd_run *run, const uint8_t frame[OSD_FRAME_BYTES])
{
	uint8_t *shared = (uint8_t *)run->sandbox->shm, *body = shared + osd_shm_body_at(0);

	if (osd_session_init(&run->session) != OSD_OK)
		return false;
	return osd_session_serve(&run->session, frame, body,
				 shared + osd_shm_frame_at(0) + OSD_FRAME_BYTES,
				 body) == OSD_SERVED_LAST &&
	       !run->session.fault;
}

static void end(struct osd_run *run)
{
	struct osd_pool *pool = run->job->pool;
	struct osd_fair_principal *occupant = run->occupant;
	struct osd_exec *exec = run->exec;

	osd_run_end(run);
	osd_lock(&exec->lock);
	osd_pool_vacate(pool, occupant);
	osd_proxies_call_next(exec);
	osd_unlock(&exec->lock);
}

bool osd_run_linger(struct osd_run *run)
{
	struct osd_kept_codes *codes = &run->sandbox->codes;
	uint8_t frame[OSD_FRAME_BYTES];
	bool finished;

	if (!run->lingers || !run->code_slot || !osd_kept_codes_are_short(codes, run->code_slot) ||
	    !osd_run_is_alone(run))
		return false;
	finished = await_finish(run, frame);
	osd_kept_codes_waited(codes, run->code_slot, !finished);
	if (!finished || !serve_finish(run, frame))
		return false;
	end(run);
	return true;
}
