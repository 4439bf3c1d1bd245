/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_output.h -- what a script prints: its stdout pipe goes into the surrogate's data while it
 * runs, its stderr pipe into memory (the first 20 and the last 40 KiB), both read by the output
 * thread and, at the end, by the proxy (design D13, D17). */
#ifndef OSD_EXEC_JOB_OUTPUT_H
#define OSD_EXEC_JOB_OUTPUT_H

#include <stdatomic.h>

#include "base/lock.h"
#include "exec/job.h"

struct osd_exec;
struct osd_sandbox;

struct osd_output {
	struct osd_lock lock; /* guards what follows but the atomics; outside exec->lock */
	struct osd_objects *objects;
	struct osd_object_id surrogate;
	struct osd_object *object; /* opened at the first byte */
	uint64_t stdout_limit;
	enum osd_status status; /* first failure to store */
	bool closed;		/* no more reading: the job is over */
	_Atomic uint64_t stdout_length; /* stored */
	_Atomic uint64_t stderr_length; /* seen */
	_Atomic bool over_limit;
	_Atomic uint16_t unstored; /* reason for the job's end once something could not be stored */
	/* A leaf, never held over a call into the store: stderr is read inside transactions, while
	 * `lock` is held by who waits for one. */
	struct osd_lock errors_lock;
	uint8_t *errors; /* OSD_JOB_STDERR_HEAD, then a ring of OSD_JOB_STDERR_TAIL */
	bool released;   /* errors are in the store, or nowhere */
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

/* The output thread watches the pipes of a sandbox from when it is READY, so that no job waits for these
 * system calls, to its last job's end. */
void osd_output_watch(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* What came before the sandbox had a job is looked at now. */
void osd_output_watch_again(struct osd_exec *exec, struct osd_sandbox *sandbox);
void osd_output_unwatch(struct osd_exec *exec, struct osd_sandbox *sandbox);

#endif
