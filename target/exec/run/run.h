/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.h -- one job in one sandbox (struct osd_run), from the handover to the end of the script.
 * This room knows jobs, pools and sandboxes, but no arrays: job->kind has the operations that
 * differ.
 *
 * Inside: run.c (a run), start.c (a job that starts without waiting), linger.c (its submitter waits
 * for a short call), handover.c, proxy.c and threads.c (the proxy threads), pass.c (data that pass through
 * functions), end.c (how a run ends), output.c (the script's output), rights_sweep.c (revoked
 * rights).
 *
 * Locking: the proxy thread creates a run and owns it.  Other threads hold short references,
 * counted under exec->lock.  struct osd_output has its own lock, outside exec->lock. */
#ifndef OSD_EXEC_RUN_RUN_H
#define OSD_EXEC_RUN_RUN_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "exec/job/job.h"
#include "exec/pool/pool.h"
#include "exec/sandbox/sandbox.h"
#include "exec/session/session.h"

/* ---- what a script prints (output.c) --------------------------------------------------------------- */

/* The script's stdout goes into the surrogate's data while the script runs.  Its stderr goes into
 * memory: the first 20 and the last 40 KiB.  The output thread reads both pipes, and the proxy at
 * the end. */
struct osd_output {
	struct osd_lock lock; /* guards all fields below except the atomics; outside exec->lock */
	struct osd_objects *objects;
	struct osd_object_id surrogate;
	struct osd_object *object; /* opened at the first byte */
	uint64_t stdout_limit;
	enum osd_status status;		/* first failure to store */
	bool closed;			/* no more reading: the job is over */
	_Atomic uint64_t stdout_length; /* stored */
	_Atomic uint64_t stderr_length; /* seen */
	_Atomic bool over_limit;
	_Atomic uint16_t unstored; /* reason for the job's end once a write to the store failed */
	/* A leaf, never held across a call into the store.  Transactions read stderr, and a thread
	 * that waits for a transaction may hold `lock`. */
	struct osd_lock errors_lock;
	uint8_t *errors; /* OSD_JOB_STDERR_HEAD, then a ring of OSD_JOB_STDERR_TAIL */
	bool released;	 /* errors are in the store, or dropped */
};

/* Why a job ends whose output or result could not be stored. */
uint16_t osd_output_reason(enum osd_status status);
void osd_output_init(struct osd_output *output, struct osd_objects *objects,
		     struct osd_object_id surrogate, uint64_t stdout_limit);
/* Call it after finish.  The locks stay, because other threads may still come and find the output
 * closed.  osd_output_destroy destroys them once no other thread can come. */
void osd_output_release(struct osd_output *output);
void osd_output_destroy(struct osd_output *output);

/* Reads both pipes, at most about 1 MiB.  True: there may be more. */
bool osd_output_drain(struct osd_output *output, int stdout_fd, int stderr_fd);
/* Reads the rest of both pipes.  Afterwards no thread reads them any more. */
void osd_output_finish(struct osd_output *output, int stdout_fd, int stderr_fd);
/* Copies the stderr kept so far into buffer (OSD_JOB_PAYLOAD_MAX).  Also returns its length, and
 * the number of bytes written in all.  False: it has been released.  Any thread may call it, also
 * inside a transaction. */
bool osd_output_errors(struct osd_output *output, uint8_t *buffer, size_t *ret_length,
		       uint64_t *ret_total);

/* ---- all runs -------------------------------------------------------------------------------------- */

struct osd_runs {
	struct osd_call_gate gate;
	struct osd_session_host host;	      /* constant */
	struct osd_call_figures calls;	      /* not under exec->lock */
	bool (*serve)(struct osd_pool *pool); /* osd_proxy_work */
	struct osd_proxy_thread *proxies;
	pthread_cond_t work;	     /* a proxy may find something to do in a pool */
	unsigned idle;		     /* proxies that wait for that */
	bool starting;		     /* a proxy that has just been started looks for work soon */
	uint64_t handed_usec;	     /* when the last job was handed over */
	size_t limited_count;	     /* running jobs with a capability, which may expire */
	_Atomic bool policy_changed; /* since rights were swept last */
};

/* ---- a run (run.c) ----------------------------------------------------------------------------------- */

struct osd_run {
	unsigned references; /* exec->lock */
	struct osd_exec *exec;
	struct osd_job *job;	     /* reference held */
	struct osd_sandbox *sandbox; /* reference held */
	struct osd_session session;  /* used by the proxy thread alone, but for its atomics */
	struct osd_output output;
	uint64_t handed_over_usec;	     /* 0: not yet */
	uint64_t started_usec;		     /* as the pool's load knows it */
	uint64_t policy_swept;		     /* the sweep's copy of session.policy_seen
					      * (rights.c) */
	bool unasked;			     /* the job ended although nothing had asked it to */
	uint32_t calls_seen[OSD_SHM_AREAS];  /* the call lines before the job was handed over */
	bool lingers;			     /* its submitter may wait for its end (linger.c) */
	bool keeps_code;		     /* its sandbox may keep the code of its function */
	uint8_t code_slot;		     /* where; 0: it does not */
	uint8_t *placed_args;		     /* osd_run_place_args; NULL: the job has them */
	uint64_t cpu_usec; /* that its sandbox had used at the last sample; 0: not sampled, or it is gone */
	struct osd_run *next_started;	     /* exec->lock; of its pool's */
	struct osd_fair_principal *occupant; /* started: the principal that occupies the slot */
	bool sent;			     /* started: its sandbox has the job already */
	bool not_sent;			     /* started, but its sandbox did not take the job */
	bool unheard; /* iosd-sandboxd did not answer: does not count as an attempt */
};

/* exec->lock held. */
struct osd_run *osd_run_ref(struct osd_run *run);
void osd_run_unref(struct osd_run *run);
/* Puts the present figures of a running job into a copy of its record: its run time, and the
 * lengths of its output and result. */
void osd_run_sample_lengths(struct osd_run *run, struct osd_job_record *record);
/* The same, and the resources it has used, from the clocks of its process. */
void osd_run_sample(struct osd_run *run, struct osd_job_record *record);

/* Functions of struct osd_sandbox_ops: a sandbox's user is its run. */
enum osd_sandbox_work osd_run_work_of(const struct osd_sandbox *sandbox);
uint64_t osd_run_grace_of(const struct osd_sandbox *sandbox);
void osd_run_out_of_time(struct osd_sandbox *sandbox, bool cpu);

/* A run without a job; takes over the reference to the sandbox.  NULL: no memory. */
struct osd_run *osd_run_create(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* exec->lock held.  Gives the run its job and the job's present record; takes over the reference to
 * the job.  From now on job->run is this run. */
void osd_run_set_job(struct osd_run *run, struct osd_job *job);
/* exec->lock held.  The job is RUNNING, and the monitor watches it.  osd_run_send comes next. */
void osd_run_begin(struct osd_run *run);
/* The memory of the sandbox where it will find the arguments of a started job, which the caller writes there before
 * osd_run_send.  NULL: they have to be the job's content. */
uint8_t *osd_run_place_args(struct osd_run *run, const struct osd_job *job,
			    const struct osd_job_record *record);
/* Clears length bytes there, which were written for a job that does not start: the sandbox may get that of somebody
 * else. */
void osd_run_clear_args(struct osd_run *run, size_t length);
/* No lock held.  Sends the job to the sandbox; false: the sandbox does not accept it.  content: as that of the
 * job. */
bool osd_run_send(struct osd_run *run, const struct osd_job *job,
		  const struct osd_job_record *record, uint8_t *content);
/* Makes iosd-sandboxd's log lines name the job, if the job is logged.  Called before the sandbox
 * gets the job, because a job may end at once.  exec->lock not held. */
void osd_run_name_job(struct osd_run *run, struct osd_job *job,
		      const struct osd_job_record *record);
/* Logs the start of the job; names the job to iosd-sandboxd unless that was done before. */
void osd_run_note_start(struct osd_run *run, const struct osd_job_record *record);

/* start.c: the thread that accepts a job hands it over itself if the job need not wait.  Its
 * sandbox then waits for no proxy to wake up, and the start needs no write of its own: the record
 * is accepted in state STARTING.
 *
 * exec->lock held.  Returns a run with a sandbox for the job being accepted, and sets the record to
 * its start.  NULL: the job must wait in the queue, and the record is unchanged. */
struct osd_run *osd_start_claim(struct osd_job *job, struct osd_job_record *record);
/* Called in the accepting transaction, once the surrogate has its id.  The sandbox wakes up and
 * runs the script while the store writes.  Until osd_start_begin, its calls are not served and its
 * output is not read, so that a job that is not accepted after all has no effect. */
void osd_start_send_ahead(struct osd_run *run, struct osd_job *job,
			  const struct osd_job_record *record);
/* exec->lock held.  Cancels the start.  A sandbox that already has the job is killed. */
void osd_start_give_back(struct osd_run *run, struct osd_pool *pool);
/* The same, and restores the record: the job must wait in the queue. */
void osd_start_undo(struct osd_run *run, struct osd_pool *pool, struct osd_job_record *record);
/* exec->lock held; the job is in the table.  Call osd_start_send next, without the lock. */
void osd_start_begin(struct osd_run *run, struct osd_job *job);
void osd_start_send(struct osd_run *run);
/* linger.c.  No lock held; the sandbox has the job.  The submitter waits for a moment, and serves the end of a call
 * that comes by then.  False: a proxy must serve the run. */
bool osd_run_linger(struct osd_run *run);
/* No lock held.  Whether it is the only job that runs, and none of its pool waits. */
bool osd_run_is_alone(const struct osd_run *run);
/* exec->lock held.  A started run for a proxy of the pool to serve; NULL: none. */
struct osd_run *osd_start_take(struct osd_pool *pool);

/* handover.c; no lock held.  NOT_WANTED: the job is to end.  take_over: the rest, for a job that its submitter has
 * started (start.c). */
enum osd_handover {
	OSD_HANDED_OVER,
	OSD_NOT_WANTED,
	OSD_SANDBOX_BAD,
	OSD_LIMITS_BAD,
	OSD_STORE_BAD
};
enum osd_handover osd_run_hand_over(struct osd_run *run);
enum osd_handover osd_run_take_over(struct osd_run *run);

/* proxy.c.  exec->lock held, released meanwhile.  Takes a job and a sandbox, and serves the job to
 * its end.  False: there was nothing to do. */
bool osd_proxy_work(struct osd_pool *pool);

/* pass.c: the session's hook pass. */
enum osd_status osd_run_pass(void *arg, struct osd_exec_data *data);

/* rights_sweep.c: runs on the output thread when a policy has changed, and every
 * OSD_RIGHTS_SWEEP_USEC while a job with a capability runs.  Asks jobs without sufficient rights to
 * end.  False: the rights of some jobs could not be found out; call it again. */
#define OSD_RIGHTS_SWEEP_USEC 50000
bool osd_rights_sweep(struct osd_exec *exec);
/* osd_objects_watch_policies' function; arg: struct osd_exec. */
void osd_rights_policy_changed(void *arg);

/* end.c: the script is over.  Decides how the job ended, writes it and wakes up the waiting
 * commands, or queues the job for another attempt. */
void osd_run_end(struct osd_run *run);

/* Threads (threads.c).  Starts the first one; no lock held.  false: it cannot be started. */
bool osd_proxies_start(struct osd_exec *exec);
/* exec->lock held.  A proxy may find something to do: wakes one up, or starts one if none waits. */
void osd_proxies_call(struct osd_exec *exec);
/* The same in two parts.  True: signal exec->runs->work, with or without the lock. */
bool osd_proxies_prepare(struct osd_exec *exec);
/* exec->lock held.  Calls another proxy if there is work beyond what this one has just taken. */
void osd_proxies_call_next(struct osd_exec *exec);
/* No lock held.  Waits for all proxies, after exec->stopping was set. */
void osd_proxies_join(struct osd_exec *exec);

#endif
