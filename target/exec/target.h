/* SPDX-License-Identifier: GPL-2.0-or-later */
/* target.h -- joins all rooms of exec/: what osd_exec_open creates, with one part per room.  For
 * the files in exec/ itself and for tests; no room includes it. */
#ifndef OSD_EXEC_TARGET_H
#define OSD_EXEC_TARGET_H

#include "base/util.h"
#include "exec/exec.h"
#include "exec/flow/flow.h"
#include "exec/job/job.h"
#include "exec/pool/pool.h"
#include "exec/run/run.h"
#include "exec/sandbox/sandbox.h"
#include "exec/sandbox/script_turns.h"
#include "exec/session/session.h"
#include "exec/tell/tell.h"

struct osd_acceptance;
struct osd_remembered;

struct osd_target {
	struct osd_exec exec;	       /* the jobs, with pointers to the other parts */
	struct osd_exec_config config; /* constant after open, strings owned */
	struct osd_sandboxes sandboxes;
	struct osd_pools pools;
	struct osd_runs runs;
	struct osd_flow flow;
	struct osd_recent recent;
	struct osd_remembered *remembered; /* OSD_REMEMBERED_MAX places, under exec.lock */
	struct osd_page_provider pages[OSD_JOB_PAGES]; /* constant */
	struct osd_script_turns *turns; /* constant; the monitor sets it; NULL: none */
	pthread_t monitor_thread, output_thread;
	bool monitor_started, output_started; /* by open, for close */
};

/* The target that contains this osd_exec. */
static inline struct osd_target *osd_target_of(struct osd_exec *exec)
{
	return osd_container_of(exec, struct osd_target, exec);
}

/* surrogate.c: creates the surrogate of a job in this partition (0: the default one) and sets record->id.
 * Surrogates of an array's members follow it.  The jobs partition and its collection are created when
 * they are missing. */
enum osd_status osd_surrogate_create(struct osd_exec *exec, struct osd_txn *txn,
				     uint64_t partition_id, uint64_t requested_id,
				     struct osd_job_record *record);
/* remembered.c: earlier jobs whose results answer later submissions.  init: false: no memory.  osd_remember:
 * exec->lock held; a job has ended.  With no transaction open: find: whether an earlier job answers the
 * submission; then acceptance->existing, and its record.  answer: see struct osd_exec_ops. */
#define OSD_REMEMBERED_MAX 4096u
bool osd_remembered_init(struct osd_target *target);
void osd_remember(struct osd_exec *exec, const struct osd_job_record *record);
bool osd_remembered_find(struct osd_acceptance *acceptance);
bool osd_remembered_answer(struct osd_exec *exec, struct osd_job *job);
/* recover.c: takes up the jobs of the last run, before any thread starts. */
enum osd_status osd_exec_recover(struct osd_exec *exec);
/* monitor.c, output_thread.c: threads. */
void *osd_monitor_main(void *exec);
void *osd_output_main(void *exec);

#endif
