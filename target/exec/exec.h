/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec.h -- code next to data: jobs are accepted, wait in a fair queue, run in sandboxes, and leave
 * a surrogate object that describes their end.
 *
 * Order: call osd_exec_open right after osd_objects_open, before any other thread uses the objects,
 * because it adds attribute pages.  Call osd_exec_quiesce when no new command comes.  Call
 * osd_exec_close when no command is under way any more, before osd_objects_close.  All other
 * functions may be called from any thread in between.  Without iosd-sandboxd, jobs are accepted and
 * queued; synchronous ones are refused as BUSY. */
#ifndef OSD_EXEC_EXEC_H
#define OSD_EXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/advice/advice.h"
#include "exec/record/record.h"
#include "exec/sandbox/reuse.h"
#include "object/object.h"
#include "wire/exec_param.h"

struct osd_exec;
struct osd_function_code;
struct osd_json;
struct osd_keyring;

struct osd_exec_config {
	struct osd_objects *objects; /* borrowed */
	struct osd_keyring *keyring; /* borrowed; NULL: no job has a capability */
	struct osd_functions *functions; /* borrowed; NULL: scripts call none */
	const char *sandboxd;	     /* socket of iosd-sandboxd; NULL: none */
	const char *isolation;	     /* full, no-cgroup, no-userns, minimal; best: any */
	const char *pools;    /* file that configures the pools (pool/config.c); NULL: `default`
			       * alone */
	enum osd_reuse reuse; /* of default's sandboxes; zeroed: never */
	bool allow_bytecode;  /* code may be a .pyc file, which is trusted like native code */
	unsigned turn_usec;   /* time slice of scripts (sandbox/script_turns.h); 0: the kernel's */
	uint64_t stored_principal; /* bytes of one in the jobs partition; 0: the default */
	size_t queue_principal; /* jobs one principal may have in a pool's queue; 0: the default */
	unsigned slots; /* of default, at most OSD_EXEC_SLOTS_MAX; 0: as many as processors */
	/* Ordinary commands that wait for a worker now; proxies let them go first.
	 * May be NULL. */
	unsigned (*commands_queued)(void *context);
	/* Whether ordinary commands have arrived lately.  May be NULL if turn_usec is 0. */
	bool (*commands_come)(void *context);
	/* Called with exec->lock held when jobs begin to wait, even for a moment.  May be NULL. */
	void (*jobs_wait)(void *context);
	/* Called around a script's PUNCH, before the object is locked and after it is unlocked.
	 * Commands on the object are put aside meanwhile, so that they occupy no worker.  Both may
	 * be NULL. */
	void *(*hold_object)(void *context, struct osd_object_id id);
	void (*release_object)(void *context, void *hold);
	void *context;
};

/* Restores the jobs found in the store and starts the threads.  On failure, message gives the
 * reason. */
enum osd_status osd_exec_open(const struct osd_exec_config *config, char message[256],
			      struct osd_exec **ret_exec);
/* Ends all waits (status OSD_E_STILL_RUNNING) and accepts no new ones; jobs continue.  Plain calls have failed
 * (405), and so have scripts' uses of data that pass through functions. */
void osd_exec_quiesce(struct osd_exec *exec);
/* The next open treats jobs that are still running as after a crash.  NULL is fine. */
void osd_exec_close(struct osd_exec *exec);

/* ---- data that pass through functions --------------------------------------------------------- */

/* Called once, with what exec/ needs of command/ for scripts.  Jobs of an earlier run that need it wait for it.  ops
 * is constant. */
void osd_exec_set_data_ops(struct osd_exec *exec, const struct osd_exec_data_ops *ops);

/* ---- submitting ------------------------------------------------------------------------------ */

/* The parameters of a submission, borrowed during the call.  A field that is 0 or empty was not
 * given, and has its default. */
struct osd_exec_submission {
	/* 0/0, partition/0, partition/collection, partition/user object */
	struct osd_object_id zone;
	const struct osd_grant *grant; /* of the command; NULL, or open: it needs none */
	const char *principal;	       /* the principal that is charged and shares fairly
				        * (security/security.h) */
	const char *payer;   /* of a stage: shares the queue and holds places instead; NULL: the principal does */
	/* Of a stage: the principal whose data it sees.  If a capability names that user, nobody else may see the report of a
	 * failure.  NULL: not known. */
	const char *audience;
	const char *definer; /* of a stage: the pool must admit this principal instead; NULL: it is no stage */

	/* What runs. */
	struct osd_exec_text engine; /* that the pool must have; without a pool, the first with it */
	const uint8_t *code;
	size_t code_length;
	/* The function whose code this is: a call without a record keeps a reference instead of a copy.  NULL: it
	 * is the code of a script. */
	struct osd_function_code *function_code;
	bool has_args;		/* otherwise a submission without code gets its predecessor's */
	uint16_t args_encoding; /* enum osd_args_encoding */
	struct osd_exec_text args;
	struct osd_object_id predecessor; /* the job whose code runs again */
	struct osd_job_function function; /* that the code is of; object 0: it is a script */
	bool plain;			  /* a call without a record: needs done, and the next: */
	enum osd_object_type zone_type;	  /* of zone, which exists */
	/* A plain call by the target itself: the arguments, and the result, are data of an object, of up to
	 * OSD_STAGE_DATA_MAX bytes.  The function has no access, so it needs no rights. */
	bool stage;
	/* A stage: done reads the result once, before it returns.  Then its bytes may be in memory that the sandbox
	 * can change. */
	bool reads_once;
	/* A stage, but the code does not run: the result is its machine code.  Any pool takes it. */
	bool compile;
	/* A plain call: args.bytes, if they are owned and malloc'd; taken in place of a copy.  NULL: args are copied. */
	uint8_t **owned_args;
	/* A stage: writes args.length bytes, in place of those at args.bytes, to where the sandbox gets them.  The
	 * sandbox may change them at once.  Called before osd_exec_submit returns, once at most; a status other than
	 * OSD_OK is that of the submission.  NULL: args.bytes are there. */
	enum osd_status (*fill_args)(void *arg, uint8_t *args);
	bool lingers;	 /* a plain call: the submitting thread may wait a moment for its end */
	bool for_script; /* a stage: a script waits for it, so it is accepted also when the queue is full or closed */
	uint32_t flags;			  /* enum osd_exec_flags */
	/* It changes no objects, and its client can run it too (exec/advice/advice.h). */
	bool pure;
	uint64_t home_usec, home_bytes; /* what it takes there, and reads; 0: not known */

	/* With what, and when. */
	struct osd_exec_text pool;
	struct osd_job_limits limits;
	uint64_t grace_usec; /* the time the script has to clean up when it is ended */
	int16_t priority;
	uint64_t begin_msec;
	const struct osd_exec_after *after; /* jobs that it waits for */
	size_t after_count;
	struct {
		uint32_t first, at_once;     /* index; the most members that run at a time, 0:
					      * all */
		uint32_t members;	     /* 0: it is not an array */
		struct osd_exec_text ranges; /* of indices with gaps (wire/index_ranges.h) */
	} array;

	/* How it is found. */
	struct osd_exec_text name, key; /* key: of an earlier submission of the same */
	const struct osd_exec_text *tags;
	size_t tag_count;
	uint64_t surrogate_partition, surrogate_id;
	uint64_t keep_usec; /* how long its record is kept after its end */
	/* Not 0: the submitter promises that the result depends on what the job reads alone.  An earlier job
	 * that ended no longer ago may answer (remembered.c); then *cached is set, before done is called. */
	uint64_t reuse_usec;
	bool *cached; /* NULL: not of interest */

	/* Whether the command waits. */
	uint64_t sync_wait_usec;
	/* Synchronous when not NULL.  Called exactly once if the submission returned OSD_PENDING,
	 * from any thread, possibly before osd_exec_submit has returned. */
	void (*done)(void *arg, const struct osd_exec_outcome *outcome);
	void *arg;
	/* Used with done: atomic, and read until done is called.  True: the waiting command was
	 * aborted (osd_exec_look_at_aborted).  NULL: never. */
	const bool *aborted;
};

/* Whether so many processors run no job. */
bool osd_exec_has_processors(struct osd_exec *exec, unsigned count);

/* Whether a pool has this engine; arg: struct osd_exec. */
bool osd_exec_has_engine(void *arg, const char *engine);

struct osd_exec_refusal { /* for the sense data */
	uint64_t queue_depth;
	uint32_t retry_after_msec;
	struct osd_object_id job; /* in the way */
	struct osd_advice_numbers numbers; /* of OSD_E_PUSHED_BACK and OSD_E_LATE */
	uint64_t deadline_usec;		   /* of OSD_E_LATE */
};

/* Whether it has code, and gets the arguments of its predecessor. */
static inline bool osd_exec_takes_args(const struct osd_exec_submission *submission)
{
	return submission->flags & OSD_EXEC_PREDECESSOR_ARGS && !submission->has_args;
}

/* For a submission without code, or one that takes arguments: gets what it lacks of the code and the arguments of the
 * predecessor that it names, a job of the same principal.  The caller frees *ret_content in any case.
 * OSD_E_CDB_FIELD: there is no such job, or its code and arguments are not kept any more. */
enum osd_status osd_exec_take_content(struct osd_exec *exec, struct osd_exec_submission *submission,
				      uint8_t **ret_content);

/* Accepts a job.  OSD_OK: the job is accepted and durable.  *ret_job is its surrogate, or that of the
 * earlier job with the same key.  OSD_PENDING: the same, and done will be called.
 *
 * After any other status nothing was made.  OSD_E_CDB_FIELD: a parameter is not supported, or names no job
 * of this principal.  Others: OSD_E_QUEUE_FULL, OSD_E_ISOLATION, OSD_E_BYTECODE, OSD_E_POOL_ACCESS,
 * OSD_E_JOB_KEY_CLASH, OSD_E_NO_PARTITION, OSD_E_NO_OBJECT, OSD_E_EXISTS, OSD_E_PUSHED_BACK, OSD_E_LATE, those of
 * fill_args. */
enum osd_status osd_exec_submit(struct osd_exec *exec, const struct osd_exec_submission *submission,
				struct osd_object_id *ret_job,
				struct osd_exec_refusal *ret_refusal);
/* For the thread of a front end, which must not wait: an earlier job answers a synchronous submission with
 * reuse_usec, if all that is compared is in memory.  done has been called then.  OSD_E_WOULD_BLOCK: submit it. */
enum osd_status osd_exec_answer_at_once(struct osd_exec *exec,
					const struct osd_exec_submission *submission);
/* Called when some *aborted may have become true.  For those waits, done is called soon on a thread
 * of exec, with OSD_E_TASK_ABORTED, unless it has been called already.  The job continues, unless
 * it was submitted to end with its command.  Does not wait for the store. */
void osd_exec_look_at_aborted(struct osd_exec *exec);

/* A submission with lingers set may follow at once: the sandbox that most likely gets it wakes up.  Does not wait. */
void osd_exec_expect_call(struct osd_exec *exec);

/* ---- what other commands must ask or tell ---------------------------------------------------- */

/* The principal that submitted the job of this surrogate, as its capability names it.  A sender with
 * the same AUDIT value that might EXEC in the job's zone may follow the job.  OSD_E_NO_OBJECT: no
 * such job, or it was submitted without a capability.  Not inside a transaction; nowait: from
 * memory, or OSD_E_WOULD_BLOCK. */
enum osd_status osd_exec_owner(struct osd_exec *exec, struct osd_object_id id, bool nowait,
			       struct osd_job_owner *ret_owner);
/* The same in a transaction; exec NULL: there are no jobs. */
enum osd_status osd_exec_owner_in(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, struct osd_job_owner *ret_owner);
/* Called before REMOVE PARTITION: OSD_E_JOB_IN_WAY with the first unfinished job of the
 * partition.  Plain calls prevent no removal: they end when the partition has been removed. */
enum osd_status osd_exec_check_partition(struct osd_exec *exec, uint64_t partition_id,
					 struct osd_object_id *ret_job);
/* Whether a call of this active function is under way: accepted, and not ended.  Object 0: of any active function of
 * the partition.  *ret_job: one that has a record; 0/0: there are plain calls alone. */
bool osd_exec_uses_function(struct osd_exec *exec, struct osd_object_id id,
			    struct osd_object_id *ret_job);
/* The calls of a function under way: lines "PID/OID PRINCIPAL", or "call PRINCIPAL" for one without a record, as far as
 * capacity goes.  Returns the length.  arg: struct osd_exec. */
size_t osd_exec_list_users(void *arg, struct osd_object_id id, char *text, size_t capacity);
/* Called in the transaction in which a script, or the acceptance of a job, creates a partition:
 * gives it the keys of a new partition. */
enum osd_status osd_exec_partition_made(struct osd_exec *exec, struct osd_txn *txn,
					uint64_t partition_id);
/* The removal hook of object/ (osd_objects_watch_removals), which osd_exec_open sets; arg is exec.  Forgets the finished
 * jobs whose surrogates are removed: the job of a user object, with all members if it is an array, or
 * all jobs of a partition.  OSD_E_CONFLICT: jobs that wait for one of them have not been notified of its
 * end.  OSD_E_JOB_IN_WAY: the object is a member of an unfinished array, or a job has been accepted in
 * the partition since osd_exec_check_partition.  OSD_E_FUNCTION_IN_USE: osd_exec_uses_function. */
enum osd_status osd_exec_removed(void *arg, struct osd_txn *txn, struct osd_object_id id);
/* Called after a collection was removed: ends the jobs that have it as their zone (FAILED 605). */
void osd_exec_collection_removed(struct osd_exec *exec, struct osd_object_id id);
/* Called before FORMAT OSD: ends all jobs (CANCELLED 106), and waits for them up to 2 s. */
void osd_exec_end_jobs(struct osd_exec *exec);
/* Called after FORMAT OSD: forgets all jobs if it succeeded.  Jobs may be submitted again. */
enum osd_status osd_exec_formatted(struct osd_exec *exec, bool succeeded);

/* ---- figures --------------------------------------------------------------------------------- */

struct osd_exec_stats {
	size_t queued, held, running;
	uint64_t accepted, finished, lost;
	uint32_t retry_after_msec; /* the delay that a BUSY now would name */
	bool service_connected;
	char isolation[32]; /* level reached; "" while not connected */
};
void osd_exec_stats(struct osd_exec *exec, struct osd_exec_stats *ret_stats);
/* Whether a pool that serves has jobs that wait for a slot or a sandbox. */
bool osd_exec_jobs_wait(struct osd_exec *exec);
/* Writes the counters of pools, their jobs and sandboxes since the target started, "jobs" and "pools", into an open
 * object (docs/control.md, "pools"); does not write while it holds exec->lock. */
void osd_exec_write_figures(struct osd_exec *exec, struct osd_json *json);

/* The jobs that an administrator's overview shows: running, waiting, and ended last.  Bounded, in memory; the
 * store has all jobs.  An array counts as one job: its members are not shown. */
#define OSD_RECENT_ALIVE     32 /* running jobs first, then the newest waiting ones */
#define OSD_RECENT_ENDED     32
#define OSD_RECENT_PRINCIPAL 128 /* bytes kept of a principal's name */

struct osd_recent_job {
	struct osd_object_id id;
	uint8_t state;
	uint16_t reason;
	uint32_t members; /* of an array; 0: it is none */
	uint64_t submitted_msec, started_msec, ended_msec;
	uint64_t sequence;
	char name[OSD_JOB_NAME_MAX + 1];
	char principal[OSD_RECENT_PRINCIPAL + 1];
	char pool[OSD_JOB_POOL_MAX + 1];
};

/* Unfinished jobs first, then ended ones, the newest first in both; returns how many. */
unsigned osd_exec_recent(struct osd_exec *exec,
			 struct osd_recent_job jobs[OSD_RECENT_ALIVE + OSD_RECENT_ENDED]);

#endif
