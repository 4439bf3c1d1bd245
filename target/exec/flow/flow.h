/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flow.h -- when jobs start, and what their ends cause: jobs that wait for others (EXEC parameter
 * AFTER), arrays of jobs (tag 19), begin times, expiry.  This room registers the kinds of jobs
 * (job/job.h): plain jobs, heads of arrays, members.  Of the code above it, only the top of exec/
 * knows of arrays.
 *
 * Inside: kinds.c (the operations of each kind), after.c and after_store.c (AFTER), array.c,
 * array_control.c, array_end.c and array_store.c (arrays), thread.c (the thread "iosd-after"),
 * call.c (wakes it), sweep.c (the thread "iosd-sweep").
 *
 * AFTER.  A job that has not started has an edge to each job that it names.  Each job that is
 * waited for has a node, which lists the edges to it.  An edge whose condition is met is cut.  If
 * the job ended otherwise than asked, the edge stays until the end of the waiting job is in the
 * store.  The node exists as long as it has edges.  While it exists, the record of its job cannot
 * be removed.  So if a restart finds that such a record is gone, that job ended as asked, and the
 * end of a job needs no other write.  The thread of this room settles the edges, in steps of
 * bounded length, because thousands of jobs may wait for one.
 *
 * Arrays.  An array is one submission of many jobs that differ in their index.  It is
 * a job of its own, the *head*, which never runs.  EXEC returns the head's surrogate.  The head's
 * state follows from the states of its members, and it ends when the last of them has ended.  The
 * surrogates of the members follow the head's in order of index: object id = head's + 1 + place.
 * The place is index - first index, unless the indices have gaps; then the head has a list of their
 * ranges.
 *
 * In the store, only the head has code, arguments, tags, key and the jobs to wait for.  A member
 * gets a record of its own only when it changes alone.  Until then its state is that of the head's
 * record: QUEUED or HELD.  So one record is written to accept, hold or release an array.
 *
 * In memory every unfinished member is a job in the table.  Members that may start wait in the
 * array's own heap, by index.  Only the head is in its pool's queue, on behalf of the first of
 * them, as long as a member may start.  The limit on running members is therefore checked once per
 * start and once per end, whatever the number of members.  The head's queue entry holds the places
 * of all waiting members.  The cancel, kill or failure of a whole array is first stored in the
 * head's record (array.ending).  The thread of this room then applies it to one member after the
 * other.
 *
 * Locking: exec->lock guards everything. */
#ifndef OSD_EXEC_FLOW_FLOW_H
#define OSD_EXEC_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/helper.h"
#include "base/status.h"
#include "exec/job/job.h"
#include "exec/pool/pool.h"
#include "exec/queue/queue.h"
#include "object/txn_run.h"
#include "wire/exec_param.h"
#include "wire/index_ranges.h"

struct osd_after_node;

/* ---- AFTER ------------------------------------------------------------------------------------------- */

struct osd_after_edge {
	struct osd_after_edge *next, **link; /* in the node's list; link NULL: cut */
	struct osd_after_node *node;
	struct osd_job *job; /* that waits */
	struct osd_job_predecessor on;
	uint8_t found; /* how the job had ended at acceptance; 0: it had not */
	uint8_t ended; /* how the job ended while the edge existed */
};

/* The jobs that a job names; exists until the job's last reference is dropped. */
struct osd_after {
	size_t left;		       /* edges not met, plus one while the job is being accepted */
	struct osd_after_edge *failed; /* the first that can never be met; NULL: none */
	struct osd_job *next_failed;
	size_t count;
	struct osd_after_edge edges[];
};

struct osd_flow {
	struct osd_exec *exec;		 /* constant */
	struct osd_job_table awaited;	 /* nodes, by the id of their job */
	struct osd_after_node *settling; /* nodes whose job has ended: edges to settle */
	struct osd_job *failed;		 /* jobs to be ended, with a reference each */
	struct osd_array *arrays;	 /* arrays with work to do, with a reference to each head */
	struct osd_helper helper;	 /* the thread "iosd-after" */
	struct osd_helper sweeper;	 /* the thread "iosd-sweep" */
	bool started;			 /* there may be such a thread */
	bool uncalled;			 /* it could not be started: the monitor calls again */
};

/* Called when no job names another any more. */
void osd_after_release(struct osd_flow *flow);

struct osd_after *osd_after_allocate(size_t count); /* NULL: no memory */
/* Parses the jobs that the parameters name; *ret_after NULL: none.  OSD_E_NO_MEMORY. */
enum osd_status osd_after_create(const struct osd_exec_after *named, size_t count,
				 struct osd_after **ret_after);
/* The stored list of the jobs that a job waits for: at most OSD_EXEC_AFTER_MAX. */
enum osd_status osd_job_after_get(struct osd_txn *txn, struct osd_object_id id,
				  struct osd_job_predecessor list[], size_t *ret_count);
/* At restart.  arg: a job that named others; loads the stored list. */
osd_txn_fn osd_after_load;

/* exec->lock held.  Adds edges to all jobs that job->after names.  From here on no end is
 * missed. */
enum osd_status osd_after_watch(struct osd_exec *exec, struct osd_job *job);
/* Finds the record of a job of the submitting principal (by).  It comes from memory if a member has
 * none in the store yet.  OSD_E_CDB_FIELD: it is not a job, belongs to another principal, or is in
 * a partition that requires more than the submission has. */
enum osd_status osd_exec_find_own(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, const struct osd_job_record *by,
				  struct osd_job_record *ret_record);
/* Called in the accepting transaction.  OSD_E_CDB_FIELD: as above. */
enum osd_status osd_after_check(struct osd_exec *exec, struct osd_txn *txn, struct osd_after *after,
				const struct osd_job_record *by);
enum osd_status osd_after_put(struct osd_txn *txn, struct osd_object_id id,
			      const struct osd_after *after);
/* exec->lock held.  The job is in the table: if it names others, releases it if it waits for nothing, or ends it. */
void osd_after_admitted(struct osd_job *job);
/* Takes up the jobs found at a restart.  All are in the table, and no thread runs yet. */
enum osd_status osd_after_recover(struct osd_exec *exec);

/* exec->lock held in the functions that follow. */

/* A job leaves the table. */
void osd_after_ended(struct osd_job *job);
/* Cuts all its edges. */
void osd_after_drop(struct osd_exec *exec, struct osd_job *job);
/* Whether a job that has ended still decides about other jobs: its record must stay. */
bool osd_after_awaited(const struct osd_exec *exec, struct osd_object_id id);
/* The end of the job could not be stored, so the next start decides it again.  Until then the
 * records of the jobs that it depends on stay. */
void osd_after_pin(struct osd_job *job);
/* The number of jobs it still waits for, and the first of them. */
size_t osd_after_waits_for(const struct osd_job *job, struct osd_object_id *ret_first);
/* A change of the job has ended. */
void osd_after_changed(struct osd_job *job);
/* Whether the job has just ended and the jobs that wait for it are not notified yet.  If so, waits
 * for that, a moment at most.  Takes exec->lock. */
bool osd_after_await_decision(struct osd_exec *exec, struct osd_object_id id);
/* exec->lock held, released meanwhile.  Does one step of the remaining work; *ret_pause: let others
 * have the lock first.  False: no work is left. */
bool osd_after_step(struct osd_exec *exec, bool *ret_pause);
/* Called when the thread stops.  The next start finds the jobs to be ended again. */
void osd_after_drop_failed(struct osd_exec *exec);

/* ---- arrays ------------------------------------------------------------------------------------------ */

/* The state of an array; exists until the head's last reference is dropped.  exec->lock guards
 * it. */
struct osd_array {
	struct osd_job *head;
	struct osd_fair_queue waiting; /* members that may start, subject to the array's own
				        * limits */
	struct osd_fair_entry anchor;  /* keeps the one principal in `waiting` */
	struct osd_job *prepared;      /* members not in the table yet, linked by next_delayed, in
				        * order */
	size_t running;	 /* members that have started and neither ended nor gone back to waiting */
	size_t changing; /* members with a control change of their own under way */
	size_t counts[OSD_JOB_STATES_END]; /* by state; [0]: not in the table yet */
	size_t ended;
	uint8_t waits_as;	/* QUEUED if any member is, else HELD if any is, else unchanged */
	uint16_t cancelled_for; /* the reason of the last member that ended CANCELLED */
	uint16_t ending_next;	/* what record.array.ending becomes if head->pending commits */
	uint32_t cursor;	/* all members before it have been asked to end */
	bool working;
	struct osd_array *next_working;
	struct osd_array *next_found; /* at restart */
	uint8_t *ranges;      /* owned: its indices (wire/index_ranges.h); NULL: contiguous */
	size_t ranges_length; /* bytes */
	uint64_t reuse_usec;  /* constant: greatest age of jobs that may answer its members */
	uint8_t states[];     /* in order of index */
};

/* Ids of what belongs to an array. */
static inline struct osd_object_id osd_array_member_id(const struct osd_job_record *head,
						       uint32_t at)
{
	return (struct osd_object_id){head->id.partition_id, head->id.object_id + 1 + at};
}

/* The record of a member without a record of its own. */
void osd_array_member_record(const struct osd_job_record *head, uint32_t at, uint32_t index,
			     struct osd_job_record *ret_record);

/* The place of a member in the array.  Indices may have gaps, the ids of the surrogates have
 * none. */
static inline uint32_t osd_array_at(const struct osd_job_record *member)
{
	return (uint32_t)(member->id.object_id - member->array.object_id - 1);
}

/* ---- no lock needed -------------------------------------------------------------------------- */

/* Makes job a head; its record has the number of members.  OSD_E_NO_MEMORY. */
enum osd_status osd_array_create(struct osd_job *job);
/* Allocates all members, so that nothing can fail once the array is accepted. */
enum osd_status osd_array_prepare(struct osd_array *array, const struct osd_exec_text *ranges);
/* Derives the records of the prepared members from this record of the head, which is final. */
void osd_array_fill(struct osd_array *array, const struct osd_job_record *head);
/* NULL is fine. */
void osd_array_free(struct osd_array *array);
/* At restart, before the members are admitted.  arg: an array whose indices have gaps; loads them. */
osd_txn_fn osd_array_load;
/* Counts a member, whose state has changed.  At restart: one that has ended. */
void osd_array_count(struct osd_array *array, const struct osd_job_record *member);

/* ---- in the store, in the caller's transaction ----------------------------------------------- */

/* Removes the record of a job that has ended.  OSD_E_CONFLICT: its end still decides about another job. */
enum osd_status osd_flow_forget(struct osd_exec *exec, struct osd_txn *txn,
				const struct osd_job_record *record);
/* The same.  If it is an array, also removes its members, with their surrogates and results.  When they are too
 * many for one transaction, they are removed first (osd_txn_first), in several.  After a failure or a crash,
 * some members are gone, and the other members and the array are still there. */
enum osd_status osd_flow_forget_all(struct osd_exec *exec, struct osd_txn *txn,
				    const struct osd_job_record *record);
/* The same.  Also removes the job's surrogate and its result, if they are there. */
enum osd_status osd_flow_remove(struct osd_exec *exec, struct osd_txn *txn,
				const struct osd_job_record *record);
/* Whether the job is a member of an unfinished array: its record must stay. */
bool osd_array_keeps(struct osd_exec *exec, const struct osd_job_record *record);
/* Handles a control byte set on a head; drops the reference to the head. */
enum osd_status osd_array_control(struct osd_txn *txn, struct osd_job *head, uint8_t control);

/* ---- exec->lock held ------------------------------------------------------------------------- */

/* Puts the prepared members into the table.  The head is already there. */
void osd_array_admit(struct osd_array *array);
/* At restart: admits the members without a record.  OSD_E_NO_MEMORY. */
enum osd_status osd_array_admit_rest(struct osd_array *array);
/* Gives a place to a member that waits (again). */
enum osd_status osd_array_place(struct osd_job *member);
void osd_array_unplace(struct osd_job *member);
/* Called after a change that affects whether members may start.  Puts the head into the queue, or
 * removes it. */
void osd_array_settle(struct osd_array *array);
/* The member that the queued head stands for. */
struct osd_job *osd_array_first(struct osd_job *head);
/* Takes that member out of the heap to start it. */
struct osd_job *osd_array_take(struct osd_job *head);
/* The member no longer runs. */
void osd_array_yield(struct osd_job *member);
/* The member's state may have changed. */
void osd_array_note(struct osd_job *member);
/* About how many members of the array start before this one. */
size_t osd_array_ahead(const struct osd_job *member);
/* The view of the head. */
uint8_t osd_array_state(const struct osd_array *array);
/* Ends all members that have not started.  With any reason except OSD_REASON_CANCELLED, ends the
 * started ones, too.  The first reason stays, but a kill overrides a cancel. */
void osd_array_end(struct osd_job *head, uint16_t reason);
/* call.c.  Queues work for osd_array_step: visit the members from at on. */
void osd_array_work(struct osd_array *array, uint32_t at);
/* Ends the array if all its members have ended; releases the lock meanwhile. */
void osd_array_end_if_over(struct osd_array *array);
/* Does one step of the work for an array that was taken off flow->arrays; releases the lock
 * meanwhile. */
void osd_array_step(struct osd_array *array);
/* Fills in the number of members in each state, and the state of each.  The result is as txn sees it,
 * including a hold or release that txn is about to commit. */
void osd_array_view(const struct osd_job *head, const struct osd_txn *txn,
		    struct osd_job_view *view);

/* ---- a job that is being accepted ---------------------------------------------------------------------- */

/* Parses the jobs to wait for and the members from the parameters.  No lock held. */
struct osd_flow_request {
	const struct osd_exec_after *after;
	size_t after_count;
	struct osd_exec_text ranges; /* the indices of an array, if they have gaps */
	uint64_t reuse_usec;	     /* of an array */
};
enum osd_status osd_flow_prepare(struct osd_job *job, const struct osd_flow_request *request);

/* ---- kinds, times, the thread --------------------------------------------------------------------------- */

extern const struct osd_job_kind osd_kind_plain, osd_kind_head, osd_kind_member;
const struct osd_job_kind *osd_flow_kind_of(const struct osd_job_record *record);
/* thread.c.  init before the other functions of this room; start once all jobs are recovered; stop
 * once exec->stopping is set.  call.c: call, with exec->lock held: the thread may find something to
 * do. */
void osd_flow_init(struct osd_flow *flow);
void osd_flow_start(struct osd_flow *flow);
void osd_flow_stop(struct osd_flow *flow);
void osd_flow_call(struct osd_flow *flow);
/* sweep.c: removes the records of ended jobs that have expired, ends jobs that were not started by their expiry, and
 * releases jobs whose begin time has come.
 * One user may have many thousands of these: a thread of its own does it, or the caller if there can be none. */
void osd_flow_call_sweep(struct osd_flow *flow);
void osd_flow_sweep(void *exec);

#endif
