/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job.h -- jobs in memory: all unfinished jobs, their states and ends; the commands that wait for a
 * job; the records of the jobs that ended last.  This room knows no arrays, no pool queues, no
 * sandboxes and no runs.  It reaches them through the operations of the job's kind (struct
 * osd_job_kind), which flow/ registers.
 *
 * Inside: job.c (references, table, transitions), table.h (the table, pure), control.c (cancel,
 * kill, hold, release, expiry), end.c (the terminal transaction), charge.c (bytes in the store),
 * wait.c (synchronous EXECs), ended.c (jobs that ended last), due.c (when the sweep runs next),
 * story.c (a job's lines in the log).
 *
 * Locking: exec->lock guards everything below, and the other rooms' data about jobs, unless a
 * comment says otherwise.  Lock order, outermost first: the lock of struct osd_output > a
 * transaction or a data call of object/ > exec->lock.  So no function of object/ is called while
 * exec->lock is held.  Page providers run inside transactions and may take exec->lock, and the
 * locks below it: stored->lock, errors_lock of struct osd_output, the gate's own.
 *
 * Threads: any number of callers (commands), a proxy for each job that runs and one that waits
 * (run/threads.c), the monitor (monitor.c), the output thread (output_thread.c), the two threads of
 * flow/ while they have work (flow/thread.c). */
#ifndef OSD_EXEC_JOB_JOB_H
#define OSD_EXEC_JOB_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/alarm.h"
#include "base/lock.h"
#include "base/places.h"
#include "exec/job/table.h"
#include "exec/queue/queue.h"
#include "exec/record/record.h"
#include "object/txn_run.h"

struct osd_exec;
struct osd_exec_data_ops;
struct osd_function_code;
struct osd_job;

/* ---- a job --------------------------------------------------------------------------------------- */

struct osd_job {
	struct osd_job_node node;
	struct osd_exec *exec;		 /* constant */
	const struct osd_job_kind *kind; /* constant */
	struct osd_fair_entry entry;
	struct osd_job_record record;
	struct osd_pool *pool; /* constant, never NULL */
	unsigned references;   /* held by the table, a proxy, a pending change */
	bool in_table;
	bool forget; /* The stored record no longer describes this job: do not write it again. */
	struct osd_job *head;	 /* the array of a member, with a reference; NULL: none */
	struct osd_after *after; /* flow's, owned: the jobs it names; NULL: none */
	struct osd_array *array; /* flow's: the array that it is the head of; NULL: none */
	bool reads_once;	 /* constant; osd_exec_submission.reads_once */
	bool args_follow; /* constant; osd_exec_submission.fill_args: they come after its sandbox */
	bool takes_turn;	 /* flow's: a member that counts as running */
	bool stored;		 /* flow's: a member that may have a record of its own */
	uint8_t *content;	 /* arguments and code, if small; else they are read at the start */
	struct osd_function_code *code; /* of a call without a record, whose content are the arguments; constant,
					 * a reference; NULL: none */
	char *audience; /* owned; constant: of a stage, the only user who may see its report; NULL: all may */
	uint64_t accepted_usec, started_usec; /* monotonic */
	uint64_t ready_usec;	      /* when it was last queued: it waits for no other job then */
	bool starving_known;	      /* run's: record.starved_usec is all of its starving */
	double slowdown;	      /* pool's: by the jobs that ran when it got its slot */
	struct osd_job *next_delayed; /* of the jobs that wait until not_before_usec for another
				       * attempt */
	uint64_t not_before_usec;
	uint16_t end_reason; /* why it was asked to end, set before COMPLETING; 0: it was not */
	uint64_t end_asked_usec;
	struct osd_run *run; /* while a proxy has it */
	/* A control change in a transaction that has not ended.  Meanwhile the job is out of the
	 * queue, and only that transaction sees the new state. */
	struct {
		struct osd_txn *txn; /* NULL: none */
		uint8_t state;
		uint16_t reason;
	} pending;
	_Atomic unsigned char told; /* enum osd_told */
	bool recorded;		    /* its last record is fixed: later changes are not shown */
	/* Progress that is not in the record yet: when it came, the last progress was less than
	 * OSD_JOB_PROGRESS_USEC old. */
	bool progress_waits;
	uint16_t progress_next;
	char message_next[OSD_JOB_MESSAGE_MAX + 1];
	uint64_t progress_usec;
};

/* The contents of a job's status page. */
struct osd_job_view {
	const struct osd_job_record *record; /* own, or borrowed */
	size_t ahead;
	size_t waits_for; /* the number of jobs it waits for; the first is: */
	struct osd_object_id awaited;
	size_t counts[OSD_JOB_STATES_END]; /* members of an unfinished array, by state */
	char engine[OSD_EXEC_WORD_MAX + 1]; /* of its pool; "": the pool is not known any more */
	char why[OSD_JOB_WHY_MAX];	   /* why its pool cannot serve, or "" */
	struct osd_job_record own;	   /* a copy of the present record; unset if `record` is
					    * borrowed */
	size_t members;			   /* of an unfinished array; the state of each follows */
	uint8_t states[];
};

/* A kind of job: plain, head of an array, member of an array.  exec->lock is held in all operations
 * except control. */
struct osd_job_kind {
	/* The last reference goes: frees job->array. */
	void (*release)(struct osd_job *job);
	/* Queues a QUEUED job that waits for no other job any more. */
	enum osd_status (*enqueue)(struct osd_job *job);
	void (*unqueue)(struct osd_job *job);
	/* Gives back the job's place in the queue, if it has one. */
	void (*unplace)(struct osd_job *job);
	/* Whether it waits for other jobs. */
	bool (*waits)(const struct osd_job *job);
	/* Called after its state has changed, or after it was put into the table. */
	void (*changed)(struct osd_job *job);
	/* Called when it stops running to wait for another attempt. */
	void (*paused)(struct osd_job *job);
	/* Called after it was put into the table; after it has left it. */
	void (*entered)(struct osd_job *job);
	void (*left)(struct osd_job *job);
	/* Its end could not be stored; the next start finds it again. */
	void (*unended)(struct osd_job *job);
	/* Ends the job by ending all its parts, for this reason; NULL: the kind has no parts. */
	void (*end_parts)(struct osd_job *job, uint16_t reason);
	/* Handles a control byte; drops the reference to job.  NULL: control.c does it. */
	enum osd_status (*control)(struct osd_txn *txn, struct osd_job *job, uint8_t control);
	/* Whether a control change of its array is under way; a control change of the job alone
	 * begins; it ends. */
	bool (*is_changing)(const struct osd_job *job);
	void (*change_begins)(struct osd_job *job);
	void (*change_ended)(struct osd_job *job);
	/* Whether the job may start as soon as it is accepted. */
	bool (*may_start)(const struct osd_job *job);
	/* first: the entry is first in its queue; returns the job to start.  take: the same, and
	 * takes the job out to start it. */
	struct osd_job *(*first)(struct osd_job *job);
	/* How many jobs of the same array wait behind it for a start. */
	size_t (*behind)(const struct osd_job *job);
	struct osd_job *(*take)(struct osd_job *job);
	/* Fills in the status page beyond the record; the state of each part; whether a pending
	 * change is shown. */
	void (*view)(const struct osd_job *job, struct osd_job_view *view);
	void (*view_parts)(const struct osd_job *job, const struct osd_txn *txn,
			   struct osd_job_view *view);
	bool (*shows_pending)(const struct osd_job *job, const struct osd_job_view *view);
};

/* ---- all jobs ------------------------------------------------------------------------------------ */

/* A synchronous EXEC that waits.  It is in exec->waits until its end is decided.  The thread that
 * takes it out calls done and frees it. */
struct osd_exec_wait {
	void (*done)(void *arg, const struct osd_exec_outcome *outcome);
	void *arg;
	const bool *aborted; /* the submitter's, atomic; valid until done is called; NULL: never */
	bool end_on_abort;
	bool plain; /* the job ends when the wait does */

	struct osd_exec_wait *next;
	struct osd_object_id job;
	uint64_t deadline_usec;
	bool was_aborted;		 /* why it is among exec->late */
	struct osd_place_holder *holder; /* the owner of its place, until it is taken out */
};

#define OSD_STORED_BUCKETS 256u

/* The bytes that principals use in the jobs partition. */
struct osd_stored {
	struct osd_lock lock;
	struct osd_stored_bytes *buckets[OSD_STORED_BUCKETS]; /* owned; under its lock */
	uint64_t most;					      /* of one; constant */
};

#define OSD_ENDED_KEPT 1024

/* Given at start. */
struct osd_exec_ops {
	const struct osd_job_kind *(*kind_of)(const struct osd_job_record *record);
	/* Called when a job has ended with this record; exec->lock held.  outcome: of a plain call; else NULL. */
	void (*ended)(struct osd_exec *exec, const struct osd_job *job,
		      const struct osd_job_record *record,
		      const struct osd_exec_outcome *outcome);
	/* With no lock: ends a job that has been taken from the queue, if an earlier job answers it. */
	bool (*answer)(struct osd_exec *exec, struct osd_job *job);
};

/* The jobs of a target, and the link between the rooms: a room above this one has its part here, as
 * a pointer that only that room may follow. */
struct osd_exec {
	struct osd_lock lock;
	pthread_cond_t changed;		/* a sandbox or a job changed state */
	const struct osd_exec_ops *ops; /* constant */
	struct osd_objects *objects;	/* constant */
	struct osd_keyring *keyring;	/* constant; NULL: no job has a capability */
	struct osd_functions *functions; /* constant; NULL: there are none */
	uint64_t opened_usec;		/* monotonic, constant */

	struct osd_sandboxes *sandboxes; /* these are constant */
	struct osd_pools *pools;
	struct osd_runs *runs;
	struct osd_flow *flow;
	struct osd_recent *recent;

	struct osd_job_table table;
	struct osd_job *delayed;
	struct osd_stored stored; /* under its own lock */
	uint64_t next_sequence;
	struct osd_exec_wait *waits;
	struct osd_exec_wait *reserved; /* not started yet */
	struct osd_exec_wait *late;	/* timed out or aborted; the output thread delivers them */
	struct osd_places wait_places;
	size_t held_count, running_count;
	const struct osd_exec_data_ops *data_ops; /* NULL: not set yet */
	size_t passing; /* uses of data that pass through functions, by scripts */
	size_t accepting; /* submissions whose job may be in the store but not yet in the table */
	_Atomic bool ends_fail; /* the last job's end could not be stored (end.c) */
	/* When the output thread checks for expired records next, and when it did last. */
	uint64_t sweep_usec, swept_usec;
	uint64_t begin_msec; /* the earliest begin of a held job, or earlier */
	uint64_t idle_msec;  /* the earliest expiry of a held or waiting job, or earlier */
	bool quiescing, stopping, formatting;

	struct osd_alarm monitor; /* of the monitor thread */
	int output_wake;	  /* event descriptor of the output thread; constant */

	struct osd_job_record ended[OSD_ENDED_KEPT]; /* last, by id; object 0: none */
};

/* ---- jobs (job.c); exec->lock held unless said otherwise ------------------------------------------- */

/* Creates a job with one reference, not in the table.  NULL: no memory.  No lock needed. */
struct osd_job *osd_job_create(struct osd_exec *exec, const struct osd_job_record *record,
			       struct osd_pool *pool);
struct osd_job *osd_job_ref(struct osd_job *job);
/* Drops a reference; the last frees the job.  NULL is fine. */
void osd_job_unref(struct osd_job *job);
/* The array of a member, which has the arguments, code and expiry; else the job itself. */
static inline struct osd_job *osd_job_whole(const struct osd_job *job)
{
	return job->head ? job->head : (struct osd_job *)job;
}
/* Finds a job in the table; borrowed while the lock is held.  NULL: it is not there. */
struct osd_job *osd_exec_find(struct osd_exec *exec, struct osd_object_id id);
/* All jobs in the table, as osd_job_table_next. */
struct osd_job *osd_exec_next_job(const struct osd_exec *exec, const struct osd_job *job);
/* Copies the record of a job in the table; false: it is not there.  A member of an array may have no record in the
 * store. */
bool osd_exec_copy_record(struct osd_exec *exec, struct osd_object_id id,
			  struct osd_job_record *ret_record);
/* Puts the job into the table (one more reference), and into the queue if QUEUED. */
void osd_exec_admit(struct osd_exec *exec, struct osd_job *job);
/* Removes it from the table and from all counts. */
void osd_exec_forget(struct osd_exec *exec, struct osd_job *job);
/* Puts a QUEUED job (back) into the queue and wakes a proxy, unless it still waits for other
 * jobs. */
void osd_exec_enqueue(struct osd_exec *exec, struct osd_job *job);
#define OSD_NO_MEMORY_USEC 100000 /* until the queue is tried again */
/* Queues it after this delay. */
void osd_exec_delay(struct osd_exec *exec, struct osd_job *job, uint64_t usec);
/* Queues the delayed jobs whose time has come, and lowers *deadline to the earliest of the
 * others. */
void osd_exec_check_delayed(struct osd_exec *exec, uint64_t now_usec, uint64_t *deadline);
/* Applies a permitted transition to the record in memory.  A forbidden transition is a bug: it is
 * logged and ignored. */
bool osd_job_apply(struct osd_exec *exec, struct osd_job *job, enum osd_job_event event,
		   uint16_t reason);
/* A visible change: counts it, after progress that is due. */
void osd_job_touch(struct osd_job *job);
/* Reads the record as it is to be seen now, with progress that is due.  Changes nothing. */
void osd_job_seen(const struct osd_job *job, struct osd_job_record *ret_record);
/* Writes the record of a STARTING or RUNNING job from memory.  Concurrent callers may each have
 * added flags: the last commit has all of them.  Takes exec->lock. */
enum osd_status osd_job_write_live(struct osd_exec *exec, struct osd_txn *txn, struct osd_job *job);
/* Asks a STARTING or RUNNING job to end; the first reason stays.  The monitor ends it. */
void osd_exec_request_end(struct osd_exec *exec, struct osd_job *job, uint16_t reason);
/* A script reports progress.  It is due once the last progress is OSD_JOB_PROGRESS_USEC old. */
void osd_job_set_progress(struct osd_job *job, uint16_t progress, const uint8_t *message,
			  size_t length);
/* Progress that waits is due now: the job ends. */
void osd_job_show_progress(struct osd_job *job);

/* ---- waits (wait.c) --------------------------------------------------------------------------------- */

/* exec->lock held.  Take waits out of exec->waits: those of a job (NULL: all), or those that have
 * timed out or whose command was aborted.  The second function lowers *deadline to the earliest of
 * the others.  Then call osd_exec_deliver without the lock. */
struct osd_exec_wait *osd_exec_take_waits(struct osd_exec *exec, const struct osd_job *job);
struct osd_exec_wait *osd_exec_take_late_waits(struct osd_exec *exec, uint64_t now_usec,
					       uint64_t *deadline);
/* Calls done of each wait with the id of its job, and frees it; no lock held. */
void osd_exec_deliver(struct osd_exec_wait *waits, struct osd_exec_outcome outcome);
/* exec->lock held.  Reserves a place for a wait: OSD_E_QUEUE_FULL if the principal has used its
 * share (base/places.h).  wanted: its first fields are copied.  usec: how long it waits; 0: as long as
 * usual.  Start the wait once the job has an id.  Take it out if the job has ended by then, or drop
 * it. */
enum osd_status osd_exec_wait_reserve(struct osd_exec *exec, const struct osd_exec_wait *wanted,
				      const char *principal, uint64_t usec,
				      struct osd_exec_wait **ret_wait);
void osd_exec_wait_start(struct osd_exec *exec, struct osd_exec_wait *wait,
			 struct osd_object_id job);
void osd_exec_wait_take(struct osd_exec *exec, struct osd_exec_wait *wait);
void osd_exec_wait_drop(struct osd_exec *exec, struct osd_exec_wait *wait);
/* ---- when the sweep must look again (due.c); exec->lock held -------------------------------------------- */

#define OSD_SWEEP_USEC UINT64_C(60000000) /* it runs at least this often */

/* Makes the sweep run at this time of day, when a record expires. */
void osd_exec_sweep_by(struct osd_exec *exec, uint64_t expiry_msec);
/* Notes a job that is held, or waits for other jobs: the sweep ends it when it expires. */
void osd_exec_note_idle(struct osd_exec *exec, const struct osd_job *job);
/* A job that has not started, and may never start: a client holds it, or it waits for jobs that may
 * be held.  Members that wait with their array count with the array. */
bool osd_job_is_idle(const struct osd_job *job);
uint64_t osd_job_idle_expiry(const struct osd_job *job);
/* Makes the sweep release the job at its begin time. */
void osd_exec_note_begin(struct osd_exec *exec, const struct osd_job *job);
/* Whether it is held until a begin time.  Members begin with their array. */
bool osd_job_begins_later(const struct osd_job *job);

/* ---- ends (end.c); no lock held ---------------------------------------------------------- */

/* The output of a script for the terminal transaction to store. */
struct osd_job_remains {
	const uint8_t *result, *stderr_bytes, *traceback;
	uint8_t **owned_result; /* the owner of result, which need not keep it; NULL: it does */
	size_t result_length, stderr_stored, traceback_length;
	const uint8_t *states; /* of an array's members */
	size_t states_length;
	bool listed;	     /* used has all objects that the job used */
	const uint8_t *used; /* kept if there is room; NULL: it used none */
	size_t used_length;
};

/* Fills in the terminal fields (state, reason, end, expiry) of a record. */
void osd_job_record_end(struct osd_job_record *record, enum osd_job_state state, uint16_t reason);
/* Writes the end of a job that leaves nothing, in the caller's transaction: stores record and
 * expiry, drops the code and unmarks the surrogate. */
enum osd_status osd_job_write_end(struct osd_exec *exec, struct osd_txn *txn,
				  const struct osd_job_record *record);
/* Writes the end and the payloads in a transaction of its own, with retries.  Then updates memory,
 * waits and table. */
void osd_exec_finish(struct osd_exec *exec, struct osd_job *job,
		     const struct osd_job_record *record, const struct osd_job_remains *remains);
/* exec->lock held.  True: the job has not started and is out of the queue, and the caller must end
 * it with osd_exec_end_claimed, without the lock.  False: the caller has nothing to do.  A started job
 * was asked to end, or another thread is ending or changing the job. */
bool osd_exec_claim(struct osd_exec *exec, struct osd_job *job, uint16_t reason);
void osd_exec_end_claimed(struct osd_exec *exec, struct osd_job *job, uint16_t reason);
/* Whether the target is being closed, which waits for the threads of this folder.  For loops over many jobs. */
bool osd_exec_stops(struct osd_exec *exec);
/* Ends one job if it has not started, or asks it to end. */
void osd_exec_end_one(struct osd_exec *exec, struct osd_object_id id, uint16_t reason);
/* Ends the jobs that pick selects, with this reason: at once if they have not started, else by
 * asking them to end.  It leaves jobs as they are once exec->stopping is set. */
void osd_exec_end_matching(struct osd_exec *exec,
			   bool (*pick)(const struct osd_job *job, const void *arg),
			   const void *arg, uint16_t reason);
/* ---- control (control.c): one control byte set inside a transaction ---------------------------------------- */

enum osd_job_control_byte {
	OSD_CONTROL_CANCEL = 1,
	OSD_CONTROL_KILL = 2,
	OSD_CONTROL_HOLD = 3,
	OSD_CONTROL_RELEASE = 4
};
enum osd_status osd_job_control(struct osd_exec *exec, struct osd_txn *txn, struct osd_object_id id,
				uint8_t control);
enum osd_status osd_job_set_expiry(struct osd_exec *exec, struct osd_txn *txn,
				   struct osd_object_id id, uint64_t expiry_msec);

/* ---- jobs that ended last (ended.c) -------------------------------------------------------------------------- */

/* exec->lock held.  The job's final record is in the store. */
void osd_exec_note_ended(struct osd_exec *exec, const struct osd_job *job);
/* exec->lock held until the caller has read the record.  The record of an ended job; NULL: read the
 * store. */
const struct osd_job_record *osd_exec_find_ended(struct osd_exec *exec, struct osd_object_id id);
/* Called in the transaction that changes or removes the record of an ended job; takes
 * exec->lock. */
void osd_exec_forget_ended(struct osd_exec *exec, struct osd_object_id id);

/* ---- what a job occupies in the store (charge.c) --------------------------------------------------------------- */

/* The space of a job, without its output: the record; code and arguments until its end (or longer,
 * see osd_job_charge_keeps); tags, result, stderr, traceback.  It is charged to the surrogate's
 * partition, as data is.  The jobs partition usually has no quota, so there it is charged to the
 * principal as well (docs/limits.md). */
#define OSD_JOB_BASE_BYTES 1024u      /* for a job's record, and for each member of an array */
#define OSD_JOB_KEEP_MAX   (2u << 20) /* code and arguments kept after the end of the job */

/* Charges an accepted job with so many bytes of payloads: OSD_E_QUOTA, OSD_E_NO_SPACE.  Sets
 * record->charged. */
enum osd_status osd_job_charge_accepted(struct osd_exec *exec, struct osd_txn *txn,
					struct osd_job_record *record, size_t payload_bytes);
/* Whether code and arguments are kept for a retry after this end.  They are if the job did not
 * complete and they have at most OSD_JOB_KEEP_MAX bytes.  In the jobs partition the principal must
 * also have used at most half of its quota. */
bool osd_job_charge_keeps(struct osd_exec *exec, const struct osd_job_record *record);
/* Adjusts the charge at the end of a job.  Code and arguments go, unless OSD_JOB_CODE_KEPT is set; the
 * remains are added (NULL: none).  limited: the quota applies, as above; else it is ignored.
 * *ret_charged is for the record to be stored. */
enum osd_status osd_job_charge_ended(struct osd_exec *exec, struct osd_txn *txn,
				     const struct osd_job_record *record,
				     const struct osd_job_remains *remains, bool limited,
				     uint64_t *ret_charged);
/* Calls osd_job_record_delete and ends the charge. */
enum osd_status osd_job_forget(struct osd_exec *exec, struct osd_txn *txn,
			       const struct osd_job_record *record);

/* ---- at the start ---------------------------------------------------------------------------- */

/* The charge of a stored job; computed if its record does not have it. */
enum osd_status osd_job_charge_count(struct osd_txn *txn, const struct osd_job_record *record,
				     uint64_t *ret_bytes);

void osd_stored_init(struct osd_stored *stored, uint64_t most);
/* Frees the counts.  No other thread uses them. */
void osd_stored_clear(struct osd_stored *stored);
/* At the start: charges the stored job to its principal.  False: no memory. */
bool osd_stored_found(struct osd_stored *stored, const struct osd_job_record *record,
		      uint64_t bytes);

/* ---- what the log says of a job (story.c) ------------------------------------------------------------------------ */

/* The log lines of a job: accepted, started, asked to end, another attempt, ended.  Each line names
 * the job, its pool and sandbox (docs/logs.md).  A job is logged completely or not at all, as
 * decided at its first line: at level info a limited number of jobs per second, at debug all.  A
 * job that is lost, or fails because of the host, always gets a line at its end.
 *
 * Any thread.  These functions do nothing if the job is not logged; record is that of the job at
 * the event. */
enum osd_told { OSD_TOLD_UNDECIDED, OSD_TOLD, OSD_UNTOLD };

/* Called before another thread can see the job. */
void osd_story_accepted(struct osd_job *job, const struct osd_job_record *record);
/* Whether the job's story is logged. */
bool osd_story_is_told(struct osd_job *job);
void osd_story_started(struct osd_job *job, const struct osd_job_record *record, uint64_t sandbox,
		       pid_t pid);
void osd_story_asked(struct osd_job *job, unsigned reason);
void osd_story_again(struct osd_job *job, uint64_t delay_usec);
void osd_story_ended(struct osd_job *job, const struct osd_job_record *record);
/* Logs a job that was lost with the target's last run. */
void osd_story_lost(const struct osd_job_record *record);

#endif
