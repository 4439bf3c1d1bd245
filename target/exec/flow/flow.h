/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flow.h -- when jobs start, and what follows their ends: jobs that wait for others (EXEC parameter AFTER), arrays
 * of jobs (tag 19), begin times, expiry.  This room registers the kinds of jobs (job/job.h): plain jobs, heads
 * of arrays, members.  Above it only the top of exec/ knows that there are arrays.
 *
 * Inside: kinds.c (the operations of each kind), after.c (AFTER), array.c, array_control.c and array_store.c (arrays),
 * flow.c (both, as an acceptance needs them), thread.c (the thread "iosd-after"), begin.c, sweep.c.
 *
 * AFTER.  A job that has not started holds an edge to each job it names.  Edges hang on a node per job that
 * is waited for, which exists as long as one of them is not settled: met and cut, or, when that job ended
 * otherwise than asked, kept until the end of the one that waited is in the store.  While there is a node the
 * record of its job cannot be removed, so a restart that finds such a job gone knows that it ended as asked.
 * Nothing else has to be written when a job ends.  What follows from an end is done by a thread of its own in
 * steps of bounded length: thousands of jobs may wait for one.
 *
 * Arrays.  One submission, many jobs that differ in their index (design D11).
 * An array is a job of its own, its *head*, that never runs: its surrogate is what EXEC returns, its
 * state follows from its members', and it ends when the last of them has ended.  The members'
 * surrogates follow the head's, in order of index: object id = head's + 1 + place.  The place is
 * index - first index, unless the indices have gaps: then the head has a list of their ranges.
 *
 * In the store code, arguments, tags, key and the jobs to wait for are the head's alone.  A member
 * has no record until something happens to it alone; without one it is as the head's record says:
 * QUEUED or HELD.  So an array is accepted, held and released by writing one record.
 *
 * In memory every unfinished member is a job in the table.  Those that may start wait in a heap of
 * the array's own, by index; only the head is in its pool's queue, while a member may start, and stands
 * there for the first of them.  What limits how many run at once is therefore looked at once a
 * start and once an end, however many members there are.  The head's entry has the places of all
 * members that wait.
 *
 * Cancelling, killing and failing of whole arrays is written down in the head's record
 * (array.ending), then done member by member on the thread of this room. *
 * Locking: exec->lock guards everything. */
#ifndef OSD_EXEC_FLOW_FLOW_H
#define OSD_EXEC_FLOW_FLOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/job/job.h"
#include "exec/pool/pool.h"
#include "exec/queue/queue.h"
#include "wire/exec_param.h"
#include "wire/index_ranges.h"

struct osd_after_node;

/* ---- AFTER ------------------------------------------------------------------------------------------- */

struct osd_after_edge {
	struct osd_after_edge *next, **link; /* among the node's; link NULL: cut */
	struct osd_after_node *node;
	struct osd_job *job; /* that waits */
	struct osd_job_predecessor on;
	uint8_t found; /* how it had ended when the accepting transaction looked; 0: it had not */
	uint8_t ended; /* how it ended while the edge was there */
};

/* Of a job that names others, until its last reference goes. */
struct osd_after {
	size_t left;		       /* edges not met, and one while the job is being accepted */
	struct osd_after_edge *failed; /* the first that cannot be met any more; NULL: none */
	struct osd_job *next_failed;
	size_t count;
	struct osd_after_edge edges[];
};

struct osd_flow {
	struct osd_exec *exec;		 /* constant */
	struct osd_job_table awaited;	 /* nodes, by the job they stand for */
	struct osd_after_node *settling; /* its job has ended: edges to look at */
	struct osd_job *failed;		 /* to be ended, a reference each */
	struct osd_array *arrays;	 /* with something to do, a reference to each's head */
	pthread_cond_t work;		 /* the thread may find something to do */
};

enum osd_status osd_after_init(struct osd_flow *flow);
/* No job names another any more. */
void osd_after_release(struct osd_flow *flow);

/* What the parameters name; *ret_after NULL: nothing.  OSD_E_NO_MEMORY. */
enum osd_status osd_after_create(const struct osd_exec_after *named, size_t count,
				 struct osd_after **ret_after);
/* The jobs that one waits for, as stored: at most OSD_EXEC_AFTER_MAX. */
enum osd_status osd_job_after_get(struct osd_txn *txn, struct osd_object_id id,
				  struct osd_job_predecessor list[], size_t *ret_count);
/* What the store says of a job that named others, in *ret_after. */
enum osd_status osd_after_load(struct osd_txn *txn, struct osd_object_id id,
			       struct osd_after **ret_after);

/* exec->lock held: edges to what job->after names.  From here on no end is missed. */
enum osd_status osd_after_watch(struct osd_exec *exec, struct osd_job *job);
/* The record of a job of the same principal as the one being submitted (by), from memory where a member has
 * none in the store yet.  OSD_E_CDB_FIELD: it is no job, or another principal's, or in a partition that
 * demands more than the submission has. */
enum osd_status osd_exec_find_own(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, const struct osd_job_record *by,
				  struct osd_job_record *ret_record);
/* In the accepting transaction: OSD_E_CDB_FIELD as above. */
enum osd_status osd_after_check(struct osd_exec *exec, struct osd_txn *txn, struct osd_after *after,
				const struct osd_job_record *by);
enum osd_status osd_after_put(struct osd_txn *txn, struct osd_object_id id,
			      const struct osd_after *after);
/* exec->lock held: the job is in the table and may be released, or ended. */
void osd_after_admitted(struct osd_exec *exec, struct osd_job *job);
/* Jobs found at restart, all of them in the table; before any thread starts. */
enum osd_status osd_after_recover(struct osd_exec *exec);

/* exec->lock held in what follows. */

/* A job leaves the table. */
void osd_after_ended(struct osd_exec *exec, struct osd_job *job);
/* Cuts all its edges. */
void osd_after_drop(struct osd_exec *exec, struct osd_job *job);
/* Whether a job that has ended still decides about others: its record must stay. */
bool osd_after_awaited(const struct osd_exec *exec, struct osd_object_id id);
/* The end of the job could not be stored and is found again at the next start: until then the jobs
 * that decide about it stay. */
void osd_after_pin(struct osd_job *job);
/* How many jobs it still waits for, and the first of them. */
size_t osd_after_waits_for(const struct osd_job *job, struct osd_object_id *ret_first);
/* A change of the job that was under way is over. */
void osd_after_changed(struct osd_exec *exec, const struct osd_job *job);
/* Whether the job has just ended, and others that wait for it are still to be told.  Then this waits for that,
 * a moment at most.  Takes exec->lock. */
bool osd_after_await_decision(struct osd_exec *exec, struct osd_object_id id);
/* exec->lock held, released meanwhile: some of what is left to do; *ret_pause: let others have the lock first.
 * False: nothing is left. */
bool osd_after_step(struct osd_exec *exec, bool *ret_pause);
/* The thread stops: the jobs that were to be ended are found again at the next start. */
void osd_after_drop_failed(struct osd_exec *exec);

/* ---- arrays ------------------------------------------------------------------------------------------ */

/* Of a head, until its last reference goes; exec->lock guards it. */
struct osd_array {
	struct osd_job *head;
	struct osd_fair_queue waiting; /* members that may start, as far as they are concerned */
	struct osd_fair_entry anchor;  /* keeps the one principal of waiting */
	struct osd_job *prepared;      /* members not in the table yet, by next_delayed, in order */
	size_t running;	 /* members between their start and their end, or another wait */
	size_t changing; /* members of which one a control change is under way */
	size_t counts[OSD_JOB_STATES_END]; /* by state; [0]: not in the table yet */
	size_t ended;
	uint8_t waits_as;	/* QUEUED if a member is, else HELD if one is, else what it was */
	uint16_t cancelled_for; /* the last reason a member ended CANCELLED for */
	uint16_t ending_next;	/* what record.array.ending becomes if head->pending commits */
	uint32_t cursor;	/* members before it have been asked to end */
	bool working;
	struct osd_array *next_working;
	struct osd_array *next_found; /* at restart */
	uint8_t *ranges; /* owned: its indices (wire/index_ranges.h); NULL: all from the first on */
	size_t ranges_length; /* bytes */
	uint8_t states[];     /* in order of index */
};

/* Ids of what belongs to an array. */
static inline struct osd_object_id osd_array_member_id(const struct osd_job_record *head,
						       uint32_t at)
{
	return (struct osd_object_id){head->id.partition_id, head->id.object_id + 1 + at};
}

/* The record of a member that has none of its own yet. */
void osd_array_member_record(const struct osd_job_record *head, uint32_t at, uint32_t index,
			     struct osd_job_record *ret_record);

/* Where a member stands in the array: its indices may have gaps, the ids of the surrogates have none. */
static inline uint32_t osd_array_at(const struct osd_job_record *member)
{
	return (uint32_t)(member->id.object_id - member->array.object_id - 1);
}

/* ---- no lock needed -------------------------------------------------------------------------- */

/* Makes job, whose record says how many members it has, a head.  OSD_E_NO_MEMORY. */
enum osd_status osd_array_create(struct osd_job *job);
/* Memory for all members, so that nothing can fail once the array is accepted. */
enum osd_status osd_array_prepare(struct osd_array *array, const struct osd_exec_text *ranges);
/* Gives the prepared members their records, from this one of their head. */
void osd_array_fill(struct osd_array *array, const struct osd_job_record *head);
/* NULL is fine. */
void osd_array_free(struct osd_array *array);
/* At restart, before the members are admitted: the indices as stored, if they have gaps. */
enum osd_status osd_array_load(struct osd_txn *txn, struct osd_array *array);
/* At restart: a member that has ended. */
void osd_array_note_ended(struct osd_array *array, const struct osd_job_record *member);

#define OSD_REMOVED_AT_ONCE 512 /* members of an array, in one transaction */

/* ---- in the store, in the caller's transaction ----------------------------------------------- */

/* Of an array that has ended: its members from *at on, what they left, their records, at most so many;
 * *at is then the first that was not looked at.  OSD_E_CONFLICT: another job still waits to be told how
 * one of them ended. */
enum osd_status osd_array_remove_members(struct osd_exec *exec, struct osd_txn *txn,
					 const struct osd_job_record *head, size_t most,
					 uint32_t *at);
/* The same of all its members, in transactions of its own.  After a failure, as after a crash, some are gone and
 * the rest and the array are there. */
enum osd_status osd_array_remove_all(struct osd_exec *exec, struct osd_object_id id);
/* Whether the job is a member of an array that has not ended: it stays. */
bool osd_array_keeps(struct osd_exec *exec, const struct osd_job_record *record);
/* A control byte set on a head; the reference to it goes. */
enum osd_status osd_array_control(struct osd_txn *txn, struct osd_job *head, uint8_t control);

/* ---- exec->lock held ------------------------------------------------------------------------- */

/* Puts the prepared members into the table; the head is there. */
void osd_array_admit(struct osd_exec *exec, struct osd_array *array);
/* At restart: members that have no record.  OSD_E_NO_MEMORY. */
enum osd_status osd_array_admit_rest(struct osd_exec *exec, struct osd_array *array);
/* A place for a member that waits (again). */
enum osd_status osd_array_place(struct osd_job *member);
void osd_array_unplace(struct osd_job *member);
/* Something changed that may let members start, or not: the head is queued accordingly. */
void osd_array_settle(struct osd_exec *exec, struct osd_array *array);
/* The member the head stands for in the queue; it is queued. */
struct osd_job *osd_array_first(const struct osd_array *array);
/* Takes it out, it starts. */
struct osd_job *osd_array_take(struct osd_exec *exec, struct osd_job *head);
/* It does not run any more. */
void osd_array_yield(struct osd_exec *exec, struct osd_job *member);
/* The member's state may have changed. */
void osd_array_note(struct osd_exec *exec, struct osd_job *member);
/* How many members of it start before this one, about. */
size_t osd_array_ahead(const struct osd_job *member);
/* What the head shows. */
uint8_t osd_array_state(const struct osd_array *array);
/* Ends all members: those that have not started; with any other reason than OSD_REASON_CANCELLED
 * the others too.  The first reason stands, but that a kill goes further than a cancel. */
void osd_array_end(struct osd_exec *exec, struct osd_job *head, uint16_t reason);
/* There may be something to do for osd_array_step: members from at on are to be looked at. */
void osd_array_work(struct osd_exec *exec, struct osd_array *array, uint32_t at);
/* Ends the array if all its members have ended; lets go of the lock meanwhile. */
void osd_array_end_if_over(struct osd_exec *exec, struct osd_array *array);
/* Some of what is left to do for an array that was taken off flow->arrays; lets go of the lock
 * meanwhile. */
void osd_array_step(struct osd_exec *exec, struct osd_array *array);
/* exec->lock held.  How many members are in each state, and each one's: as txn sees them, which may be
 * about to hold or release all. */
void osd_array_view(const struct osd_array *array, const struct osd_txn *txn,
		    size_t counts[OSD_JOB_STATES_END], uint8_t *states);

/* ---- a job that is being accepted (flow.c) ------------------------------------------------------------- */

/* What the parameters say that it waits for, and its members.  No lock held. */
struct osd_flow_request {
	const struct osd_exec_after *after;
	size_t after_count;
	struct osd_exec_text ranges; /* of an array's indices, if they have gaps */
};
enum osd_status osd_flow_prepare(struct osd_job *job, const struct osd_flow_request *request);
/* The record is final; no lock held. */
void osd_flow_fill(struct osd_job *job, const struct osd_job_record *record);
/* exec->lock held: the job is in the table. */
void osd_flow_admitted(struct osd_job *job);

/* ---- kinds, times, the thread --------------------------------------------------------------------------- */

extern const struct osd_job_kind osd_kind_plain, osd_kind_head, osd_kind_member;
const struct osd_job_kind *osd_flow_kind_of(const struct osd_job_record *record);
void *osd_flow_main(void *flow);
/* begin.c, on the output thread: releases the jobs whose time has come. */
void osd_flow_begin_due(struct osd_exec *exec);
/* sweep.c, on the output thread: records of jobs that have ended are removed when they expire; jobs that
 * nobody starts end then. */
void osd_flow_sweep(struct osd_exec *exec);

#endif
