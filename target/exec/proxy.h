/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy.h -- one job in one sandbox (struct osd_run), as the proxy that serves it, the output
 * thread and the page providers see it.  The proxy thread makes it and owns it; others hold
 * references for a moment. */
#ifndef OSD_EXEC_PROXY_H
#define OSD_EXEC_PROXY_H

#include "exec/exec_impl.h"
#include "exec/job_output.h"
#include "exec/proxy_ops.h"

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

/* run.c.  exec->lock held. */
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

/* proxy_end.c: the script is over, one way or another: decides how the job ended, writes it, tells
 * those who wait; or puts it back for another attempt. */
void osd_run_end(struct osd_run *run);

#endif
