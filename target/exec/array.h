/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array.h -- arrays of jobs: one submission, many jobs that differ in their index (design D11 tag
 * 19).
 *
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
 * the array's own, by index; only the head is in exec->queue, while a member may start, and stands
 * there for the first of them.  What limits how many run at once is therefore looked at once a
 * start and once an end, however many members there are.  The head's entry has the places of all
 * members that wait.
 *
 * Cancelling, killing and failing of whole arrays is written down in the head's record
 * (array.ending), then done member by member on the thread of after.h. */
#ifndef OSD_EXEC_ARRAY_H
#define OSD_EXEC_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/fair_queue.h"
#include "exec/job_record.h"
#include "wire/exec_param.h"
#include "wire/index_ranges.h"

struct osd_exec;
struct osd_job;

#define OSD_JOB_STATES_END (OSD_STATE_SANDBOX_LOST + 1)

/* Of a head, until its last reference goes; exec->lock guards it. */
struct osd_array {
	struct osd_job *head;
	struct osd_fair_queue waiting; /* members that may start, as far as they are concerned */
	struct osd_fair_entry anchor;  /* keeps the one principal of waiting */
	struct osd_job *prepared; /* members not in the table yet, by next_delayed, in order */
	size_t running;		  /* members between their start and their end, or another wait */
	size_t changing;	  /* members of which one a control change is under way */
	size_t counts[OSD_JOB_STATES_END]; /* by state; [0]: not in the table yet */
	size_t ended;
	uint8_t waits_as;	/* QUEUED if a member is, else HELD if one is, else what it was */
	uint16_t cancelled_for; /* the last reason a member ended CANCELLED for */
	uint16_t ending_next;	/* what record.array.ending becomes if head->pending commits */
	uint32_t cursor;	/* members before it have been asked to end */
	bool working;
	struct osd_array *next_working;
	struct osd_array *next_found; /* at restart */
	uint8_t *ranges;      /* owned: its indices (wire/index_ranges.h); NULL: all from the first on */
	size_t ranges_length; /* bytes */
	uint8_t states[];     /* in order of index */
};

/* Ids of what belongs to an array. */
static inline struct osd_object_id osd_array_member_id(const struct osd_job_record *head, uint32_t at)
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

/* ---- in the store, in the caller's transaction ----------------------------------------------- */

/* Of an array that has ended: its members from *at on, what they left, their records, at most so many;
 * *at is then the first that was not looked at.  OSD_E_CONFLICT: another job still waits to be told how
 * one of them ended. */
enum osd_status osd_array_remove_members(struct osd_exec *exec, struct osd_txn *txn,
					 const struct osd_job_record *head, size_t most,
					 uint32_t *at);
/* Whether the job is a member of an array that has not ended: it stays. */
bool osd_array_keeps(struct osd_exec *exec, const struct osd_job_record *record);
/* A control byte set on a head. */
enum osd_status osd_array_control(struct osd_exec *exec, struct osd_txn *txn, struct osd_job *head,
				  uint8_t control);

/* ---- attributes (array_pages.c), in the caller's transaction; no lock held --------------------- */

struct osd_wr;
void osd_array_put_place(struct osd_wr *w, const struct osd_job_array *place);
/* live: of one that has not ended. */
enum osd_status osd_array_put_counts(struct osd_txn *txn, const struct osd_job_record *record,
				     const size_t live[OSD_JOB_STATES_END], struct osd_wr *w);
/* Of one that has ended: a byte a member; *ret_length all of them, also when the buffer is too small. */
enum osd_status osd_array_get_states(struct osd_txn *txn, const struct osd_job_record *record,
				     uint8_t *buffer, size_t capacity, size_t *ret_length);
enum osd_status osd_array_each_states(struct osd_txn *txn, const struct osd_job_record *record,
				      uint32_t number, osd_attr_fn *fn, void *arg);
/* The list of its indices as stored; none if they have no gaps, or it is no array. */
enum osd_status osd_array_get_indices(struct osd_txn *txn, const struct osd_job_record *record,
				      uint8_t *buffer, size_t capacity, size_t *ret_length);
enum osd_status osd_array_each_indices(struct osd_txn *txn, const struct osd_job_record *record,
				       uint32_t number, osd_attr_fn *fn, void *arg);
/* exec->lock held.  How many members are in each state, and each one's: as txn sees them, which may be
 * about to hold or release all. */
void osd_array_view(const struct osd_array *array, const struct osd_txn *txn,
		    size_t counts[OSD_JOB_STATES_END], uint8_t *states);

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
/* Some of what is left to do for an array that was taken off exec->after.arrays; lets go of the lock
 * meanwhile. */
void osd_array_step(struct osd_exec *exec, struct osd_array *array);

#endif
