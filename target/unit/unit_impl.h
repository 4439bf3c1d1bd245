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
	unsigned index;
	enum osd_worker_state state; /* under unit->lock */
};

struct osd_unit {
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	struct osd_nonces *nonces;
	struct osd_exec *exec;
	struct osd_dispatcher *dispatcher;
	struct osd_figures *figures;
	struct osd_control *control; /* NULL: there is no such socket */

	struct osd_lock lock;
	pthread_cond_t ready; /* the queue is not empty, or a worker shall look whether to go */
	pthread_cond_t idle;  /* outstanding became 0 */
	struct osd_queue queue; /* under lock */
	unsigned idle_workers;	/* under lock; waiting for work */
	unsigned running, running_of[OSD_SPANS]; /* under lock; requests that workers are at */
	unsigned most_of[OSD_SPANS]; /* constant: at a time, whatever the workers; short ones: no bound */
	bool waking;		/* under lock; one of them has been called and is on its way */
	unsigned queued; /* short ones; changed under lock; atomic, read without it */
	size_t outstanding;	/* under lock; submitted and not done, parked ones too */
	struct osd_tasks tasks; /* under lock; the same */
	struct osd_copies copies;
	char *hold;		/* owned */
	uint8_t token[OSD_SECURITY_TOKEN_BYTES];
	pthread_t background;
	bool background_runs; /* by open, for close */
	struct osd_helper urgent;
	struct osd_request *urgent_head, **urgent_tail; /* under lock */
	unsigned wanted; /* under lock; threads with an index below threads_of(wanted) stay */
	struct osd_worker workers[OSD_WORKERS_MAX];
};

/* Submits again a request that waited aside (osd_copies.requeue). */
void osd_unit_requeue(struct osd_request *request);
/* unit->urgent: runs the urgent requests there are. */
void osd_unit_urgent_work(void *unit);
/* The thread of background commands; false: it could not be started. */
bool osd_unit_start_others(struct osd_unit *unit);
void osd_unit_stop_others(struct osd_unit *unit);
/* Ends the workers; nothing is outstanding. */
void osd_unit_stop_workers(struct osd_unit *unit);

#endif
