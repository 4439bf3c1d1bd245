/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unit_impl.h -- what the files of the unit share: its state.
 *
 *   unit.c       queue, workers, the way of a request
 *   unit_open.c  putting the parts of a target together, and taking them apart */
#ifndef OSD_UNIT_UNIT_IMPL_H
#define OSD_UNIT_UNIT_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/helper.h"
#include "base/lock.h"
#include "command/copies.h"
#include "command/dispatch.h"
#include "unit/unit.h"
#include "unit/queue.h"
#include "unit/task_list.h"

enum osd_worker_state { OSD_WORKER_FREE, OSD_WORKER_RUNNING, OSD_WORKER_ENDED /* to be joined */ };

struct osd_worker {
	struct osd_unit *unit;
	pthread_t thread;
	enum osd_worker_state state; /* under unit->lock */
};

struct osd_unit {
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	struct osd_nonces *nonces;
	struct osd_functions *functions;
	struct osd_exec *exec;
	struct osd_dispatcher *dispatcher;
	struct osd_follow *follow; /* NULL: there are no sandboxes */
	struct osd_figures *figures;
	struct osd_control *control; /* NULL: no control socket is configured */

	struct osd_lock lock;
	pthread_cond_t ready; /* the queue is not empty, or a worker may have to end */
	pthread_cond_t idle;  /* outstanding became 0, or a worker has ended */
	struct osd_queue queue; /* under lock */
	unsigned idle_workers;	/* under lock; waiting for work */
	unsigned running, running_of[OSD_SPANS]; /* under lock; requests that workers run */
	unsigned most_of[OSD_SPANS]; /* constant; most that run at a time; unused for short ones */
	bool waking;		/* under lock; one worker has been called, or started */
	unsigned queued; /* short requests; changed under lock, read without it: atomic */
	size_t outstanding;	/* under lock; requests submitted and not done, with parked ones */
	struct osd_tasks tasks; /* under lock; the same requests */
	struct osd_copies copies;
	char *hold;		/* owned */
	uint8_t token[OSD_SECURITY_TOKEN_BYTES];
	struct osd_helper urgent;
	struct osd_request *urgent_head, **urgent_tail; /* under lock */
	unsigned wanted; /* under lock; workers, as configured */
	unsigned threads; /* under lock; of workers[], those that run */
	struct osd_worker workers[OSD_WORKERS_MAX];
};

/* A request that was submitted waits for a worker, or for the thread of urgent ones. */
void osd_unit_queue(struct osd_unit *unit, const struct osd_command_def *def,
		    struct osd_request *request);
/* The request was dispatched to its end: calls done. */
void osd_unit_finish(struct osd_unit *unit, struct osd_request *request);
/* Submits a request again that was put aside (osd_copies.requeue). */
void osd_unit_requeue(struct osd_request *request);
/* The work of unit->urgent: runs all urgent requests. */
void osd_unit_urgent_work(void *unit);
/* Ends the workers.  No request is outstanding. */
void osd_unit_stop_workers(struct osd_unit *unit);

#endif
