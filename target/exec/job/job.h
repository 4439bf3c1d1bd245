/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job.h -- jobs in memory: every unfinished one, its state, and how it ends; commands that wait for a job; the
 * records of the jobs that ended last.
 *
 * This room knows no array, no pool's queue, no sandbox and no run: what stands behind a job there it calls by
 * the operations of the job's kind (struct osd_job_kind), which flow/ registers.
 *
 * Inside: job.c (references, table, transitions), table.c (the table, pure), control.c (cancel, kill, hold,
 * release, expiry), end.c (the terminal transaction), charge.c (bytes in the store), wait.c (synchronous
 * EXECs), ended.c (jobs that ended last), due.c (when the sweep must look again), story.c (a job's lines in
 * the log).
 *
 * Locking: exec->lock guards everything below, and what the other rooms keep of jobs, unless a comment says
 * otherwise.  Nothing of object/ is called while exec->lock is held.  Page providers, which run inside
 * transactions, may take it, and locks that stand below it in target/README.md.
 *
 * Threads: any number of callers (commands), one proxy per slot (run/threads.c), the monitor (monitor.c), the
 * output thread (output_thread.c), the thread of flow/ (flow/thread.c). */
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
#include "exec/queue/queue.h"
#include "exec/record/record.h"
#include "object/txn_run.h"

struct osd_exec;
struct osd_job;

/* ---- the table (table.c) ------------------------------------------------------------------------- */

/* Pure: no locks, no I/O, no clock; the caller serialises.
 *
 *   QUEUED <-> HELD
 *   QUEUED -> STARTING -> RUNNING -> COMPLETING -> one terminal state
 *   QUEUED, HELD -> CANCELLED or FAILED without having run
 *   STARTING, RUNNING, COMPLETING -> QUEUED (another attempt)
 *   STARTING, RUNNING -> SANDBOX_LOST or CANCELLED (found so at a restart)
 *
 * Whatever the table below does not list is refused. */
/* What happens to a job. */
#define OSD_JOB_EVENTS(X)                                                                          \
	X(HOLD)	     /* asked for */                                                               \
	X(RELEASE)   /* asked for */                                                               \
	X(TAKE)	     /* a proxy took it from the queue */                                          \
	X(HAND_OVER) /* the sandbox has got it */                                                  \
	X(COLLECT)   /* the script is over, by itself or ended: output is being gathered */        \
	X(AGAIN)     /* another attempt */                                                         \
	X(COMPLETE)                                                                                \
	X(FAIL)                                                                                    \
	X(CANCEL)                                                                                  \
	X(TIME_OUT)                                                                                \
	X(RUN_OUT) /* of memory */                                                                 \
	X(EXCEED)  /* another limit */                                                             \
	X(LOSE)	   /* the sandbox */

enum osd_job_event {
#define X(symbol) OSD_JOB_EVENT_##symbol,
	OSD_JOB_EVENTS(X)
#undef X
		OSD_JOB_EVENT_COUNT
};

/* False: refused, *ret_state untouched. */
bool osd_job_transition(enum osd_job_state state, enum osd_job_event event,
			enum osd_job_state *ret_state);
/* The event that leads to a terminal state. */
enum osd_job_event osd_job_event_to(enum osd_job_state terminal);

/* Embedded in whatever the caller keeps per job. */
struct osd_job_node {
	struct osd_object_id id;
	struct osd_job_node *next; /* the table's */
};

struct osd_job_table {
	struct osd_job_node **buckets;
	size_t bucket_count; /* power of two */
	size_t count;
};

enum osd_status osd_job_table_init(struct osd_job_table *table);
/* The nodes are the caller's. */
void osd_job_table_release(struct osd_job_table *table);
/* The id must not be in the table.  Never fails: a table that cannot grow gets slower. */
void osd_job_table_insert(struct osd_job_table *table, struct osd_job_node *node);
void osd_job_table_remove(struct osd_job_table *table, struct osd_job_node *node);
struct osd_job_node *osd_job_table_find(const struct osd_job_table *table, struct osd_object_id id);
/* Until fn returns false; fn must not change the table. */
void osd_job_table_each(const struct osd_job_table *table,
			bool (*fn)(void *arg, struct osd_job_node *node), void *arg);

/* ---- a job --------------------------------------------------------------------------------------- */

struct osd_job {
	struct osd_job_node node;
	struct osd_exec *exec;		 /* constant */
	const struct osd_job_kind *kind; /* constant */
	struct osd_fair_entry entry;
	struct osd_job_record record;
	struct osd_pool *pool; /* constant, never NULL */
	unsigned references;   /* the table, a proxy, a pending change */
	bool in_table;
	bool forget; /* The stored record no longer describes this job: do not write it again. */
	struct osd_job *head;	 /* the array it is a member of, a reference; NULL: none */
	struct osd_after *after; /* flow's: names other jobs; NULL: none */
	struct osd_array *array; /* flow's: it stands for an array; NULL: it does not */
	bool takes_turn;	 /* flow's: a member, counted among those that run */
	bool stored;		 /* flow's: a member that may have a record of its own */
	uint8_t *content;	 /* arguments and code, if small; else read when it starts */
	uint64_t accepted_usec, started_usec; /* monotonic */
	struct osd_job *next_delayed; /* waiting for another attempt until not_before_usec */
	uint64_t not_before_usec;
	uint16_t end_reason; /* asked to end: decided before COMPLETING, 0 if not */
	uint64_t end_asked_usec;
	struct osd_run *run; /* while a proxy has it */
	/* A control change inside a transaction that has not ended: the job is out of the queue
	 * meanwhile, and only that transaction sees the new state. */
	struct {
		struct osd_txn *txn; /* NULL: none */
		uint8_t state;
		uint16_t reason;
	} pending;
	_Atomic unsigned char told; /* enum osd_told */
	bool recorded; /* its last record is fixed: what changes from here on is not shown */
	/* Progress not yet shown, because the last update is less than OSD_JOB_PROGRESS_USEC
	 * old. */
	bool progress_waits;
	uint16_t progress_next;
	char message_next[OSD_JOB_MESSAGE_MAX + 1];
	uint64_t progress_usec;
};

/* What a status page shows of a job. */
struct osd_job_view {
	const struct osd_job_record *record; /* own, or borrowed */
	size_t ahead;
	size_t waits_for; /* so many other jobs, and this is the first */
	struct osd_object_id awaited;
	size_t counts[OSD_JOB_STATES_END]; /* of an unfinished array's members, by state */
	char why[OSD_JOB_WHY_MAX];	   /* its pool does not serve; "" */
	struct osd_job_record own;	   /* as it is now; unset while another's is borrowed */
	size_t members;			   /* of an unfinished array, and the state of each */
	uint8_t states[];
};

/* A kind of jobs: plain ones, heads of arrays, members of arrays.  exec->lock is held in all but control. */
struct osd_job_kind {
	/* The last reference goes. */
	void (*release)(struct osd_job *job);
	/* Puts a QUEUED job where it waits, once no job it was submitted after is left. */
	enum osd_status (*enqueue)(struct osd_job *job);
	void (*unqueue)(struct osd_job *job);
	/* Gives its place back; it has one. */
	void (*unplace)(struct osd_job *job);
	/* Whether it waits for other jobs. */
	bool (*waits)(const struct osd_job *job);
	/* Its state has changed, or it has come into the table. */
	void (*changed)(struct osd_job *job);
	/* It does not run any more, and waits for another attempt. */
	void (*paused)(struct osd_job *job);
	/* It has left the table. */
	void (*left)(struct osd_job *job);
	/* Its end could not be stored, and is found again at the next start. */
	void (*unended)(struct osd_job *job);
	/* Ends it for this reason by ending all its parts; NULL: it has none. */
	void (*end_parts)(struct osd_job *job, uint16_t reason);
	/* A control byte; the reference to job goes.  NULL: control.c does it. */
	enum osd_status (*control)(struct osd_txn *txn, struct osd_job *job, uint8_t control);
	/* Whether a control of what it is a part of is under way; a control of it alone begins, is over. */
	bool (*is_changing)(const struct osd_job *job);
	void (*change_begins)(struct osd_job *job);
	void (*change_ended)(struct osd_job *job);
	/* Whether it may start as soon as it is accepted. */
	bool (*may_start)(const struct osd_job *job);
	/* It is first in its queue: the job that starts then; the same, taken out and about to start. */
	struct osd_job *(*first)(struct osd_job *job);
	struct osd_job *(*take)(struct osd_job *job);
	/* What it shows beyond its record; the state of each part; whether a pending change is shown. */
	void (*view)(const struct osd_job *job, struct osd_job_view *view);
	void (*view_parts)(const struct osd_job *job, const struct osd_txn *txn,
			   struct osd_job_view *view);
	bool (*shows_pending)(const struct osd_job *job, const struct osd_job_view *view);
};

/* ---- all jobs ------------------------------------------------------------------------------------ */

/* A synchronous EXEC that waits.  In exec->waits until its end is decided; whoever takes it out
 * there calls done and frees it. */
struct osd_exec_wait {
	struct osd_exec_wait *next;
	struct osd_object_id job;
	void (*done)(void *arg, const struct osd_exec_outcome *outcome);
	void *arg;
	const bool *aborted; /* the submitter's, atomic; alive until done is called; NULL: never */
	uint64_t deadline_usec;
	bool end_on_abort;
	bool was_aborted;		 /* why it is among exec->late */
	struct osd_place_holder *holder; /* whose place it has, until it is taken out */
};

#define OSD_STORED_BUCKETS 256u

/* Bytes of principals in the jobs partition. */
struct osd_stored {
	struct osd_stored_bytes *buckets[OSD_STORED_BUCKETS]; /* owned */
	uint64_t most;					      /* of one; constant */
};

/* One of the jobs that ended last. */
#define OSD_ENDED_KEPT 1024
struct osd_ended {
	struct osd_job_record record; /* object 0: none */
};

/* Given at start. */
struct osd_exec_ops {
	const struct osd_job_kind *(*kind_of)(const struct osd_job_record *record);
	/* A job has ended, as in record; exec->lock held. */
	void (*ended)(struct osd_exec *exec, const struct osd_job *job,
		      const struct osd_job_record *record);
};

/* The jobs of a target, and the way from one room to another: a room above this one finds its own part here,
 * and knows what is in it alone. */
struct osd_exec {
	struct osd_lock lock;
	pthread_cond_t changed;		/* a sandbox or a job changed state */
	const struct osd_exec_ops *ops; /* constant */
	struct osd_objects *objects;	/* constant */
	struct osd_keyring *keyring;	/* constant; NULL: no job has a capability */
	uint64_t opened_usec;		/* monotonic, constant */

	struct osd_sandboxes *sandboxes; /* these are constant */
	struct osd_pools *pools;
	struct osd_runs *runs;
	struct osd_flow *flow;
	struct osd_recent *recent;

	struct osd_job_table table;
	struct osd_job *delayed;
	struct osd_stored stored;
	uint64_t next_sequence;
	struct osd_exec_wait *waits;
	struct osd_exec_wait *reserved; /* not started yet */
	struct osd_exec_wait *late; /* over by the clock or an abort; the output thread delivers */
	struct osd_places wait_places;
	size_t held_count, running_count;
	size_t accepting; /* submissions whose job may be in the store and not yet in the table */
	_Atomic bool ends_fail; /* the last job's end could not be stored (end.c) */
	/* When the output thread looks for expired records again, and when it did. */
	uint64_t sweep_usec, swept_usec;
	uint64_t begin_msec; /* no job that is held until its begin begins before this */
	uint64_t idle_msec;  /* no job that is held or waits for others expires before this */
	bool quiescing, stopping, formatting;

	struct osd_alarm monitor; /* of the monitor thread */
	int output_wake;	  /* of the output thread; constant */

	struct osd_ended ended[OSD_ENDED_KEPT]; /* by id */
};

/* ---- jobs (job.c); exec->lock held unless said otherwise ------------------------------------------- */

/* A job with one reference, not in the table.  NULL: no memory.  No lock needed. */
struct osd_job *osd_job_create(struct osd_exec *exec, const struct osd_job_record *record,
			       struct osd_pool *pool);
struct osd_job *osd_job_ref(struct osd_job *job);
/* Drops a reference; the last frees the job.  NULL is fine. */
void osd_job_unref(struct osd_job *job);
/* What it is a member of, which has its arguments, code and expiry; or itself. */
static inline struct osd_job *osd_job_whole(const struct osd_job *job)
{
	return job->head ? job->head : (struct osd_job *)job;
}
/* In the table; borrowed as long as the lock is held.  NULL: it is not there. */
struct osd_job *osd_exec_find(struct osd_exec *exec, struct osd_object_id id);
/* Into the table (one more reference), and into the queue if QUEUED. */
void osd_exec_admit(struct osd_exec *exec, struct osd_job *job);
/* Out of the table and of all counts. */
void osd_exec_forget(struct osd_exec *exec, struct osd_job *job);
/* Puts a QUEUED job (back) into the queue and wakes a proxy; not before the jobs it waits for have
 * ended. */
void osd_exec_enqueue(struct osd_exec *exec, struct osd_job *job);
#define OSD_NO_MEMORY_USEC 100000 /* until the queue is tried again */
/* Takes it out of the queue, its place kept; nothing when it is not queued. */
void osd_exec_unqueue(struct osd_exec *exec, struct osd_job *job);
/* Gives its place back; nothing when it has none. */
void osd_exec_unplace(struct osd_job *job);
/* Puts it there after so long. */
void osd_exec_delay(struct osd_exec *exec, struct osd_job *job, uint64_t usec);
/* Puts those there whose time has come; lowers *deadline to the earliest of the others. */
void osd_exec_check_delayed(struct osd_exec *exec, uint64_t now_usec, uint64_t *deadline);
/* Applies a permitted transition to the record in memory; a refused one is a bug, logged and
 * ignored. */
bool osd_job_apply(struct osd_exec *exec, struct osd_job *job, enum osd_job_event event,
		   uint16_t reason);
/* A visible change. */
static inline void osd_job_touch(struct osd_job *job)
{
	job->record.generation += !job->recorded;
}
/* Writes the record of a STARTING or RUNNING job as it is in memory.  Callers at once may each have
 * added flags: what one commits last has all of them.  Takes exec->lock. */
enum osd_status osd_job_write_live(struct osd_exec *exec, struct osd_txn *txn, struct osd_job *job);
/* Asks a STARTING or RUNNING job to end; the first reason stands.  The monitor does the rest. */
void osd_exec_request_end(struct osd_exec *exec, struct osd_job *job, uint16_t reason);
/* Shows progress that has waited long enough. */
void osd_job_show_progress(struct osd_job *job, uint64_t now_usec, bool force);

/* ---- waits (wait.c) --------------------------------------------------------------------------------- */

/* What a synchronous submission asks for. */
struct osd_exec_wait_order {
	const char *principal;
	void (*done)(void *arg, const struct osd_exec_outcome *outcome);
	void *arg;
	const bool *aborted;
	uint64_t wait_usec; /* 0: as long as usual */
	bool end_on_abort;
};

/* Take out of exec->waits, exec->lock held: those of a job (NULL: all), those whose time is over or
 * whose command was aborted.  The latter lowers *deadline to the earliest of the others.  Then,
 * without the lock, osd_exec_deliver. */
struct osd_exec_wait *osd_exec_take_waits(struct osd_exec *exec, const struct osd_job *job);
struct osd_exec_wait *osd_exec_take_late_waits(struct osd_exec *exec, uint64_t now_usec,
					       uint64_t *deadline);
/* Calls done of each, with its own job's id, and frees them; no lock held. */
void osd_exec_deliver(struct osd_exec_wait *waits, struct osd_exec_outcome outcome);
/* A place among the waits, exec->lock held: OSD_E_QUEUE_FULL when the principal has its share (base/places.h).
 * Started once the job has an id, or taken out when that has ended by then, or dropped. */
enum osd_status osd_exec_wait_reserve(struct osd_exec *exec,
				      const struct osd_exec_wait_order *order,
				      struct osd_exec_wait **ret_wait);
void osd_exec_wait_start(struct osd_exec *exec, struct osd_exec_wait *wait,
			 struct osd_object_id job);
void osd_exec_wait_take(struct osd_exec *exec, struct osd_exec_wait *wait);
void osd_exec_wait_drop(struct osd_exec *exec, struct osd_exec_wait *wait);
/* ---- when the sweep must look again (due.c); exec->lock held -------------------------------------------- */

#define OSD_SWEEP_USEC UINT64_C(60000000) /* it looks as often as this anyway */

/* A record will expire at this time of day: it is looked for then. */
void osd_exec_sweep_by(struct osd_exec *exec, uint64_t expiry_msec);
/* The job is held, or waits for other jobs, which it does not do for ever: the sweep ends it when it
 * expires. */
void osd_exec_note_idle(struct osd_exec *exec, const struct osd_job *job);
/* A job that has not started and need not start by itself: a client holds it, or other jobs that are perhaps
 * held do.  Members that wait for the jobs their array waits for go with it. */
bool osd_job_is_idle(const struct osd_job *job);
uint64_t osd_job_idle_expiry(const struct osd_job *job);
/* It is released in time. */
void osd_exec_note_begin(struct osd_exec *exec, const struct osd_job *job);
/* It is held until a begin time.  Members begin with their array. */
bool osd_job_begins_later(const struct osd_job *job);

/* ---- ends (end.c); no lock held ---------------------------------------------------------- */

/* What the script left behind, for the terminal transaction. */
struct osd_job_remains {
	const uint8_t *result, *stderr_bytes, *traceback;
	size_t result_length, stderr_stored, traceback_length;
	const uint8_t *states; /* of an array's members */
	size_t states_length;
};

/* Fills in the terminal fields (state, reason, end, expiry) of a record. */
void osd_job_record_end(struct osd_job_record *record, enum osd_job_state state, uint16_t reason);
/* Writes that a job which left nothing behind has ended, in the caller's transaction: record, expiry;
 * drops its code and unmarks the surrogate. */
enum osd_status osd_job_write_end(struct osd_exec *exec, struct osd_txn *txn,
				  const struct osd_job_record *record);
/* The same, and payloads, in a transaction of its own, with retries; then memory, waits, table. */
void osd_exec_finish(struct osd_exec *exec, struct osd_job *job,
		     const struct osd_job_record *record, const struct osd_job_remains *remains);
/* exec->lock held.  True: the job has not started, is out of the queue, and is the caller's to end:
 * osd_exec_end_claimed, without the lock.  A started one is asked to end. */
bool osd_exec_claim(struct osd_exec *exec, struct osd_job *job, uint16_t reason);
void osd_exec_end_claimed(struct osd_exec *exec, struct osd_job *job, uint16_t reason);
/* Ends one job if it has not started, or asks it to end. */
void osd_exec_end_one(struct osd_exec *exec, struct osd_object_id id, uint16_t reason);
/* Ends jobs that have not started, for which pick says so, with this reason; asks started ones to
 * end. */
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

/* exec->lock held: the job's record is that of its end, and in the store. */
void osd_exec_note_ended(struct osd_exec *exec, const struct osd_job *job);
/* exec->lock held, as long as the record is read.  Of a job that has ended; NULL: the store has to be
 * asked. */
const struct osd_job_record *osd_exec_find_ended(struct osd_exec *exec, struct osd_object_id id);
/* In the transaction that changes or removes the record of an ended job; takes exec->lock. */
void osd_exec_forget_ended(struct osd_exec *exec, struct osd_object_id id);

/* ---- what a job occupies in the store (charge.c) --------------------------------------------------------------- */

/* Beside its output: the record, code and arguments until it ends (or longer, see osd_job_charge_keeps), tags,
 * result, stderr, traceback.  It is charged to the surrogate's partition, as data is; in the jobs partition,
 * which usually has no quota, to the principal as well (docs/limits.md). */
#define OSD_JOB_BASE_BYTES 1024u      /* for a job's record, and for each member of an array */
#define OSD_JOB_KEEP_MAX   (2u << 20) /* of code and arguments, beyond the end of the job */

/* ---- in transactions ------------------------------------------------------------------------- */

/* A job is accepted, with so many bytes of payloads: OSD_E_QUOTA, OSD_E_NO_SPACE.  Sets
 * record->charged. */
enum osd_status osd_job_charge_accepted(struct osd_exec *exec, struct osd_txn *txn,
					struct osd_job_record *record, size_t payload_bytes);
/* Whether code and arguments of a job that ends so are to be kept, for a retry: it did not complete,
 * they are no more than OSD_JOB_KEEP_MAX, and in the jobs partition the principal has used no more than
 * half of what it may. */
bool osd_job_charge_keeps(struct osd_exec *exec, const struct osd_job_record *record);
/* It ends: code and arguments go unless its flags say OSD_JOB_CODE_KEPT, what it leaves comes (NULL:
 * nothing).  limited: as above, else whatever the quota says.  *ret_charged is for the record that is
 * put. */
enum osd_status osd_job_charge_ended(struct osd_exec *exec, struct osd_txn *txn,
				     const struct osd_job_record *record,
				     const struct osd_job_remains *remains, bool limited,
				     uint64_t *ret_charged);
/* osd_job_record_delete, and the end of the charge. */
enum osd_status osd_job_forget(struct osd_exec *exec, struct osd_txn *txn,
			       const struct osd_job_record *record);

/* ---- at the start ---------------------------------------------------------------------------- */

/* What the stored job is charged; counted where its record does not say. */
enum osd_status osd_job_charge_count(struct osd_txn *txn, const struct osd_job_record *record,
				     uint64_t *ret_bytes);

void osd_stored_release(struct osd_stored *stored);
/* No other thread yet: what the job found in the store is charged to its principal.  False: no memory. */
bool osd_stored_found(struct osd_stored *stored, const struct osd_job_record *record,
		      uint64_t bytes);

/* ---- what the log says of a job (story.c) ------------------------------------------------------------------------ */

/* Accepted, started, asked to end, another attempt, ended; each line names the job, its pool and sandbox
 * (docs/logs.md).  A job's story is logged completely or not at all, which is decided where it begins: at
 * level info for so many jobs a second, at debug for all.  Jobs that are lost or fail because of the host get
 * a line at their end in any case.
 *
 * Any thread.  Each does nothing where the story is not logged; record is the job's as of then. */
enum osd_told { OSD_TOLD_UNDECIDED, OSD_TOLD, OSD_UNTOLD };

/* Before anybody else can see the job. */
void osd_story_accepted(struct osd_job *job, const struct osd_job_record *record);
/* Whether the job's story is logged. */
bool osd_story_is_told(struct osd_job *job);
void osd_story_started(struct osd_job *job, const struct osd_job_record *record, uint64_t sandbox,
		       pid_t pid);
void osd_story_asked(struct osd_job *job, unsigned reason);
void osd_story_again(struct osd_job *job, uint64_t delay_usec);
void osd_story_ended(struct osd_job *job, const struct osd_job_record *record);
/* Of one that was lost with the target's last run. */
void osd_story_lost(const struct osd_job_record *record);

#endif
