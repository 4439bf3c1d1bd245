/* SPDX-License-Identifier: GPL-2.0-or-later */
/* call_gate.h -- scripts' calls at a time, and that they let ordinary commands go first (design D22).
 *
 * A call that finds commands waiting for a worker, even once it has waited for those before it, gives way
 * to them; not for ever: after OSD_GATE_STEPS short sleeps it goes on.  Any thread; the lock is a
 * leaf. */
#ifndef OSD_EXEC_CALL_GATE_H
#define OSD_EXEC_CALL_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

#define OSD_GATE_STEPS 20

struct osd_call_gate {
	unsigned (*commands_queued)(void *context); /* any thread; NULL: there are none */
	void *context;
	struct osd_lock lock;
	pthread_cond_t free;
	unsigned inside, most;	/* under lock; most: constant */
	unsigned waiting;	/* under lock; calls that are not steps of a long one */
	_Atomic uint64_t given; /* calls that gave way */
};

void osd_call_gate_init(struct osd_call_gate *gate, unsigned most,
			unsigned (*commands_queued)(void *context), void *context);
void osd_call_gate_release(struct osd_call_gate *gate);
void osd_call_gate_enter(struct osd_call_gate *gate);
/* For a step of a long call: calls that wait for a place go first, as commands do.  False: there was no
 * place in time.  Then the step is done without one, for the call may hold an object that those inside wait
 * for. */
bool osd_call_gate_enter_step(struct osd_call_gate *gate);
void osd_call_gate_leave(struct osd_call_gate *gate);

#endif
