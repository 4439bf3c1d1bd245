/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.h -- one job in one sandbox (struct osd_run): handed over, served until the script is over, ended.  This
 * room knows jobs, pools and sandboxes, and no array: job->kind says what stands behind the job in the queue.
 *
 * Inside: run.c (a run), start.c (a job that need not wait), proxy.c and threads.c (the proxy threads), end.c
 * (how a run ends), output.c (what the script prints), rights_sweep.c (rights that were revoked).
 *
 * Locking: the proxy thread makes a run and owns it; others hold references for a moment, counted under
 * exec->lock.  struct osd_output has a lock of its own, outside exec->lock. */
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

/* Its stdout pipe goes into the surrogate's data while it runs, its stderr pipe into memory (the first 20 and
 * the last 40 KiB), both read by the output thread and, at the end, by the proxy (design D13, D17). */
struct osd_output {
	struct osd_lock lock; /* guards what follows but the atomics; outside exec->lock */
	struct osd_objects *objects;
	struct osd_object_id surrogate;
	struct osd_object *object; /* opened at the first byte */
	uint64_t stdout_limit;
	enum osd_status status;		/* first failure to store */
	bool closed;			/* no more reading: the job is over */
	_Atomic uint64_t stdout_length; /* stored */
	_Atomic uint64_t stderr_length; /* seen */
	_Atomic bool over_limit;
	_Atomic uint16_t unstored; /* reason for the job's end once something could not be stored */
	/* A leaf, never held over a call into the store: stderr is read inside transactions, while
	 * `lock` is held by who waits for one. */
	struct osd_lock errors_lock;
	uint8_t *errors; /* OSD_JOB_STDERR_HEAD, then a ring of OSD_JOB_STDERR_TAIL */
	bool released;	 /* errors are in the store, or nowhere */
};

void osd_output_init(struct osd_output *output, struct osd_objects *objects,
		     struct osd_object_id surrogate, uint64_t stdout_limit);
/* After finish.  The locks stay, for other threads to find the output closed; osd_output_destroy
 * destroys them, when no other thread can come any more. */
void osd_output_release(struct osd_output *output);
void osd_output_destroy(struct osd_output *output);

/* Reads what is in both pipes now, at most about 1 MiB; true: there may be more. */
bool osd_output_drain(struct osd_output *output, int stdout_fd, int stderr_fd);
/* Reads what is in both pipes now and lets no other thread read any more. */
void osd_output_finish(struct osd_output *output, int stdout_fd, int stderr_fd);
/* What is kept of stderr up to now into buffer (OSD_JOB_PAYLOAD_MAX), its length, and how much there
 * was in all.  False: it has been released.  Any thread, also inside a transaction. */
bool osd_output_errors(struct osd_output *output, uint8_t *buffer, size_t *ret_length,
		       uint64_t *ret_total);

/* ---- all runs -------------------------------------------------------------------------------------- */

struct osd_runs {
	struct osd_sandboxes *sandboxes; /* constant */
	struct osd_call_gate gate;
	struct osd_session_host host;  /* constant */
	struct osd_call_figures calls; /* not under exec->lock */
	struct osd_proxy_thread *proxies;
	uint64_t handed_usec;	     /* when the last job was handed over */
	size_t limited_count;	     /* of the running, those with a capability, which may end */
	_Atomic bool policy_changed; /* since rights were swept last */
};

/* ---- a run (run.c) ----------------------------------------------------------------------------------- */

struct osd_run {
	unsigned references; /* exec->lock */
	struct osd_exec *exec;
	struct osd_job *job;	     /* reference held */
	struct osd_sandbox *sandbox; /* reference held */
	struct osd_session session;  /* the proxy thread's, but for its atomics */
	struct osd_output output;
	uint64_t handed_over_usec;	     /* 0: not yet */
	uint64_t policy_swept;		     /* the sweep's (rights.c), as session.policy_seen */
	bool unasked;			     /* nobody had asked it to end when it did */
	uint32_t calls_seen[OSD_SHM_AREAS];  /* the call lines before the job was handed over */
	struct osd_run *next_started;	     /* exec->lock; of its pool's */
	struct osd_fair_principal *occupant; /* started: whose job has the slot */
	bool sent;			     /* started: its sandbox has the job already */
	bool not_sent;			     /* started, but its sandbox did not take the job */
	bool unheard; /* iosd-sandboxd did not answer: no attempt of the job's */
};

/* exec->lock held. */
struct osd_run *osd_run_ref(struct osd_run *run);
void osd_run_unref(struct osd_run *run);
/* Put what is known of a running job now into a copy of its record: how long it runs, and the lengths
 * of what it has printed and returned. */
void osd_run_sample_lengths(struct osd_run *run, struct osd_job_record *record);
/* These, and what it has used, by a look at its clocks. */
void osd_run_sample(struct osd_run *run, struct osd_job_record *record);

/* Functions of struct osd_sandbox_ops: a sandbox's user is its run. */
enum osd_sandbox_work osd_run_work_of(const struct osd_sandbox *sandbox);
uint64_t osd_run_grace_of(const struct osd_sandbox *sandbox);
void osd_run_out_of_time(struct osd_sandbox *sandbox, bool cpu);

/* A run of no job yet; takes over the reference to the sandbox.  NULL: no memory. */
struct osd_run *osd_run_create(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* exec->lock held.  The job, whose reference it takes over, its record as it is: from now on it is the
 * run of that job. */
void osd_run_set_job(struct osd_run *run, struct osd_job *job);
/* exec->lock held.  RUNNING from now on, and the monitor looks after it; osd_run_send comes next. */
void osd_run_begin(struct osd_run *run);
/* No lock held.  The job goes to the sandbox; false: that does not take it. */
bool osd_run_send(struct osd_run *run, const struct osd_job_record *record, uint8_t *content);
/* iosd-sandboxd's log lines name the job, if its story is logged.  Before its sandbox gets it, which may end
 * at once; exec->lock not held. */
void osd_run_name_job(struct osd_run *run, struct osd_job *job,
		      const struct osd_job_record *record);
/* Logs that the job has started; names it where that was not done before. */
void osd_run_note_start(struct osd_run *run, const struct osd_job_record *record);
/* A message on the job socket, with descriptors; false: the sandbox does not take it. */
struct iovec;
bool osd_run_send_fds(struct osd_run *run, struct iovec *iov, size_t iov_count, const int *fds,
		      size_t fd_count);

/* start.c: a job that need not wait is handed over by who accepts it, so that neither its sandbox
 * waits until a proxy has woken up, nor the store is written to say that it has started: the record
 * is accepted in state STARTING.
 *
 * exec->lock held.  A run with a sandbox for a job that is being accepted, and the record as of its
 * start; NULL: it has to wait in the queue, and record is as it was. */
struct osd_run *osd_start_claim(struct osd_job *job, struct osd_job_record *record);
/* In the accepting transaction, once the surrogate has its id: the sandbox wakes up and runs the script while
 * the store writes.  Its calls are not served, and its output is not looked at, before osd_start_begin,
 * so that nothing is seen of a job that comes to nothing. */
void osd_start_send_ahead(struct osd_run *run, struct osd_job *job,
			  const struct osd_job_record *record);
/* exec->lock held.  It is not to start after all: a sandbox that has the job is killed. */
void osd_start_give_back(struct osd_run *run, struct osd_pool *pool);
/* The same, and the record is as it was before: it has to wait in the queue. */
void osd_start_undo(struct osd_run *run, struct osd_pool *pool, struct osd_job_record *record);
/* exec->lock held; the job is in the table.  Then, without the lock, osd_start_send. */
void osd_start_begin(struct osd_run *run, struct osd_job *job);
void osd_start_send(struct osd_run *run);
/* exec->lock held.  A started run for a proxy of the pool to serve; NULL: none. */
struct osd_run *osd_start_take(struct osd_pool *pool);

/* proxy.c.  exec->lock held, released meanwhile: a job and a sandbox brought together, and served to
 * the end.  False: there was nothing to do. */
bool osd_proxy_work(struct osd_pool *pool);

/* rights_sweep.c: on the output thread, when a policy has changed, and every OSD_RIGHTS_SWEEP_USEC while a job
 * with a capability runs: asks those to end that must.  False: it could not find out all; call it again. */
#define OSD_RIGHTS_SWEEP_USEC 50000
bool osd_rights_sweep(struct osd_exec *exec);
/* osd_objects_watch_policies' function; arg: struct osd_exec. */
void osd_rights_policy_changed(void *arg);

/* end.c: the script is over, one way or another: decides how the job ended, writes it, tells
 * those who wait; or puts it back for another attempt. */
void osd_run_end(struct osd_run *run);

/* Threads (threads.c).  exec->lock held, once there are threads: so many of this pool, at least; those it does
 * not need end by themselves.  OSD_E_NO_MEMORY. */
enum osd_status osd_proxies_start(struct osd_pool *pool, unsigned count);
/* All have been told to stop; no lock held. */
void osd_proxies_join(struct osd_exec *exec);

#endif
