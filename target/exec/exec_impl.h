/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec_impl.h -- what the files of exec/ share: struct osd_exec, struct osd_job, and who may touch
 * what.
 *
 * Threads: any number of callers (commands), one proxy per slot (proxy.c), the monitor (monitor.c),
 * the output thread (job_output.c).
 *
 * Lock order, outermost first: struct osd_output's lock > a transaction or a data call of object/ >
 * exec->lock.  So nothing of object/ is called while holding exec->lock; page providers, which run
 * inside transactions, may take it, and the leaves below it: errors_lock of struct osd_output and
 * the gate's own (call_gate.h).  exec->lock guards everything below unless a comment says otherwise. */
#ifndef OSD_EXEC_EXEC_IMPL_H
#define OSD_EXEC_EXEC_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "base/places.h"
#include "exec/after.h"
#include "exec/array.h"
#include "exec/call_gate.h"
#include "exec/exec.h"
#include "exec/fair_queue.h"
#include "exec/job_charge.h"
#include "exec/job_record.h"
#include "exec/job_table.h"
#include "exec/pool.h"
#include "exec/principals.h"
#include "exec/recent.h"
#include "exec/sandbox.h"
#include "object/page_provider.h"
#include "object/txn_run.h"

struct osd_run;

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
	bool was_aborted; /* why it is among exec->late */
	struct osd_place_holder *holder; /* whose place it has, until it is taken out */
};

struct osd_job {
	struct osd_job_node node;
	struct osd_fair_entry entry;
	struct osd_job_record record;
	struct osd_pool *pool; /* constant, never NULL */
	unsigned references;   /* the table, a proxy, a pending change */
	bool in_table;
	bool forget;		 /* what is stored of it is, or was to be, another record or none */
	struct osd_after *after; /* names other jobs; NULL: none (after.h) */
	struct osd_array *array; /* it stands for an array; NULL: it does not (array.h) */
	struct osd_job *head;	 /* the array it is a member of, a reference; NULL: none */
	bool takes_turn;	 /* member: counted among those that run */
	bool stored;		 /* member: it may have a record of its own */
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
	_Atomic unsigned char told; /* enum osd_told (story.h) */
	bool recorded; /* its last record is fixed: what changes from here on is not shown */
	/* Progress not yet shown, because the last update is less than OSD_JOB_PROGRESS_USEC
	 * old. */
	bool progress_waits;
	uint16_t progress_next;
	char message_next[OSD_JOB_MESSAGE_MAX + 1];
	uint64_t progress_usec;
};

/* Why a submission was answered BUSY. */
enum osd_refusal {
	OSD_REFUSAL_QUEUE,     /* the queue of the pool, or all together, is full */
	OSD_REFUSAL_PRINCIPAL, /* the principal's share of it is */
	OSD_REFUSAL_WAITS,     /* too many commands wait for a job */
	OSD_REFUSAL_SERVICE,   /* synchronous, and no sandbox can be had */
	OSD_REFUSAL_PAUSED,    /* synchronous, and the pool starts none */
	OSD_REFUSAL_DRAINING,
	OSD_REFUSAL_SHED,
	OSD_REFUSAL_COUNT
};
const char *osd_refusal_name(enum osd_refusal refusal);

/* One of the jobs that ended last (job_poll.c). */
#define OSD_ENDED_KEPT 1024
struct osd_ended {
	struct osd_job_record record; /* object 0: none */
};

struct osd_exec {
	struct osd_lock lock;
	pthread_cond_t changed;	       /* a sandbox or a job changed state */
	struct osd_exec_config config; /* constant after open, strings owned */
	struct osd_objects *objects;   /* constant */
	struct osd_pool *pools;	       /* the first is `default` (pool.h) */
	uint64_t budget_bytes;	       /* memory of all jobs together; 0: not declared */
	struct osd_principals principals;
	struct osd_stored stored;
	uint64_t opened_usec; /* monotonic, constant */
	bool shedding;	      /* new jobs are refused (admin.h) */
	uint64_t refused[OSD_REFUSAL_COUNT];
	uint64_t retried[OSD_JOB_REASON_COUNT]; /* by row of the reason */
	struct osd_call_figures calls;		/* not under lock */
	struct osd_recent recent;

	struct osd_job_table table;
	struct osd_job *delayed;
	struct osd_after_work after;
	uint64_t next_sequence;
	struct osd_exec_wait *waits;
	struct osd_exec_wait *reserved; /* not started yet */
	struct osd_exec_wait *late;  /* over by the clock or an abort; the output thread delivers */
	uint64_t handed_usec;	     /* when the last job was handed over */
	uint64_t sampled_usec;	     /* when starvation.h sampled the sandboxes last */
	uint64_t monitor_usec;	     /* when the monitor looks around again by itself */
	bool monitor_looks;	     /* it does now, and need not be woken up */
	struct osd_places wait_places;
	size_t held_count, running_count;
	size_t limited_count; /* of the running, those with a capability, which may end (rights.h) */
	_Atomic bool policy_changed; /* since rights were swept last */
	size_t accepting; /* submissions whose job may be in the store and not yet in the table */
	uint64_t accepted, finished, lost;
	_Atomic bool ends_fail; /* the last job's end could not be stored (job_end.c) */
	/* When the output thread looks for expired records again, and when it did. */
	uint64_t sweep_usec, swept_usec;
	uint64_t begin_msec; /* no job that is held until its begin begins before this */
	uint64_t idle_msec; /* no job that is held or waits for others expires before this */
	bool quiescing, stopping, formatting;

	struct osd_sandbox_pool pool;
	int monitor_epoll, monitor_wake; /* constant */
	int output_epoll, output_wake;	 /* constant */
	struct osd_script_turns *turns;	 /* constant; the monitor sets it; NULL: none */
	pthread_t monitor_thread, output_thread;
	struct osd_proxy_thread *proxies;     /* proxy_threads.c */
	bool monitor_started, output_started; /* by open, for close */

	struct osd_call_gate gate;

	struct osd_page_provider pages[4];	/* constant */
	struct osd_ended ended[OSD_ENDED_KEPT]; /* by id (job_poll.c) */
};

/* ---- jobs in memory (job_memory.c); exec->lock held unless said otherwise -------------------- */

/* A job with one reference, not in the table.  NULL: no memory.  No lock needed. */
struct osd_job *osd_job_create(const struct osd_job_record *record, struct osd_pool *pool);
struct osd_job *osd_job_ref(struct osd_job *job);
/* Drops a reference; the last frees the job.  NULL is fine. */
void osd_job_unref(struct osd_job *job);
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

/* ---- waits (exec_wait.c) --------------------------------------------------------------------- */

/* Take out of exec->waits, exec->lock held: those of a job (NULL: all), those whose time is over or
 * whose command was aborted.  The latter lowers *deadline to the earliest of the others.  Then,
 * without the lock, osd_exec_deliver or osd_exec_deliver_late. */
struct osd_exec_wait *osd_exec_take_waits(struct osd_exec *exec, const struct osd_job *job);
struct osd_exec_wait *osd_exec_take_late_waits(struct osd_exec *exec, uint64_t now_usec,
					       uint64_t *deadline);
/* Calls done of each, with its own job's id, and frees them; no lock held. */
void osd_exec_deliver(struct osd_exec_wait *waits, struct osd_exec_outcome outcome);
/* Those that are over before their job; may wait for the store. */
void osd_exec_deliver_late(struct osd_exec *exec, struct osd_exec_wait *waits);
/* A place among the waits, exec->lock held: OSD_E_QUEUE_FULL when the principal has its share (base/places.h).
 * Started once the job has an id, or taken out when that has ended by then, or dropped. */
enum osd_status osd_exec_wait_reserve(struct osd_exec *exec,
				      const struct osd_exec_submission *submission,
				      struct osd_exec_wait **ret_wait);
void osd_exec_wait_start(struct osd_exec *exec, struct osd_exec_wait *wait,
			 struct osd_object_id job);
void osd_exec_wait_take(struct osd_exec *exec, struct osd_exec_wait *wait);
void osd_exec_wait_drop(struct osd_exec *exec, struct osd_exec_wait *wait);

/* ---- ends (job_end.c); no lock held ---------------------------------------------------------- */

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

/* submit.c: what a BUSY tells the client to wait; exec->lock held. */
uint32_t osd_exec_retry_after(const struct osd_pool *pool);

/* ---- the rest -------------------------------------------------------------------------------- */

/* surrogate.c: makes the surrogate of record->zone in partition (0: the usual one), with the jobs
 * partition and collection it needs, and those of its members behind it; sets record->id. */
enum osd_status osd_surrogate_create(struct osd_exec *exec, struct osd_txn *txn,
				     uint64_t partition_id, uint64_t requested_id,
				     struct osd_job_record *record);
/* job_pages.c: pages 2000_0001h, 2000_0002h (job_payload.c), 2000_0003h and B000_0001h. */
void osd_job_pages_add(struct osd_exec *exec);
#define OSD_JOB_STATUS_VERSION 1
/* What of page 2000_0001h a poll is told: its fixed form, or where there is a writer the attributes in
 * list, all of which osd_exec_is_polled. */
struct osd_job_answer {
	struct osd_attr_list list;
	struct osd_attr_writer *writer;
	uint8_t *form; /* OSD_PAGE_FORM_MAX bytes */
	size_t form_length;
};
/* Of a job in the table, exec->lock held; of an ended one's record. */
void osd_job_tell_live(struct osd_exec *exec, struct osd_job *job, struct osd_job_answer *answer);
void osd_job_tell_ended(const struct osd_job_record *record, struct osd_job_answer *answer);
/* root_page.c: the functions of the provider of page B000_0001h. */
enum osd_status osd_root_page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				  uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				  size_t *ret_length);
enum osd_status osd_root_page_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, osd_attr_fn *fn, void *arg);
/* job_poll.c.  exec->lock held: the job's record is that of its end, and in the store. */
void osd_exec_note_ended(struct osd_exec *exec, const struct osd_job *job);
/* exec->lock held, as long as the record is looked at.  Of a job that has ended; NULL: the store has to
 * be asked. */
const struct osd_job_record *osd_exec_find_ended(struct osd_exec *exec, struct osd_object_id id);
/* In the transaction that changes or removes the record of an ended job; takes exec->lock. */
void osd_exec_forget_ended(struct osd_exec *exec, struct osd_object_id id);
/* job_payload.c: page 2000_0002h, the functions of struct osd_page_provider; and one payload, whose
 * absence is no error: length 0. */
enum osd_status osd_payload_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				size_t *ret_length);
enum osd_status osd_payload_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				 uint32_t page, osd_attr_fn *fn, void *arg);
enum osd_status osd_job_payload_any(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, uint8_t *buffer, size_t capacity,
				    size_t *ret_length);
/* job_control.c: one control byte set inside a transaction. */
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
/* exec.c: whether the job has just ended, and others that wait for it are still to be told: then this
 * waits a moment. */
bool osd_exec_still_decides(struct osd_exec *exec, struct osd_object_id id);
/* recover.c: removes a user object; one that is gone is fine. */
enum osd_status osd_remove_if_there(struct osd_txn *txn, struct osd_object_id id);
/* recover.c: jobs of the last run, before any thread starts. */
enum osd_status osd_exec_recover(struct osd_exec *exec);
/* expiry.c: what has expired goes; now and then. */
void osd_exec_sweep(struct osd_exec *exec);
/* exec->lock held.  The job is held, or waits for other jobs, which it does not do for ever: the sweep
 * ends it when it expires (expiry.c). */
void osd_exec_note_idle(struct osd_exec *exec, const struct osd_job *job);
/* begin.c.  exec->lock held: it is released in time.  Then, without the lock, on the output thread:
 * releases the jobs whose time has come. */
void osd_exec_note_begin(struct osd_exec *exec, const struct osd_job *job);
void osd_exec_begin_due(struct osd_exec *exec);
/* A record will expire at this time of day: it is looked for then (job_output.c); exec->lock held. */
void osd_exec_sweep_by(struct osd_exec *exec, uint64_t expiry_msec);

/* exec.c: what the file of pools says now; no lock held.  As osd_pool_table_load. */
struct osd_pool_table;
enum osd_status osd_exec_read_pools(const struct osd_exec *exec, char message[256],
				    struct osd_pool_table *ret_table);
/* admin.c; exec->lock held.  What of this pool counts towards slots and budget with this config: slots
 * that were taken away until their jobs have ended, and jobs' memory as they were accepted. */
struct osd_pool_config osd_pool_claim(const struct osd_pool *pool,
				      const struct osd_pool_config *config);
/* admin.c; exec->lock held.  The pool is as that says from now on. */
void osd_pool_apply(struct osd_pool *pool, const struct osd_pool_change *change);

/* Threads; start after open has set up everything they use. */
/* proxy_threads.c.  exec->lock held, once there are threads: so many of this pool, at least; those
 * it does not need go by themselves.  OSD_E_NO_MEMORY. */
enum osd_status osd_proxies_start(struct osd_pool *pool, unsigned count);
/* All have been told to stop; no lock held. */
void osd_proxies_join(struct osd_exec *exec);
void *osd_monitor_main(void *exec);
void *osd_output_main(void *exec);
void osd_wake(int eventfd);
/* The monitor looks around at this time at the latest; exec->lock held. */
void osd_monitor_by(struct osd_exec *exec, uint64_t usec);

#endif
