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
	uint64_t handed_over_usec; /* 0: not yet */
	bool unasked;              /* nobody had asked it to end when it did */
};

/* exec->lock held. */
struct osd_run *osd_run_ref(struct osd_run *run);
void osd_run_unref(struct osd_run *run);
/* Put what is known of a running job now into a copy of its record: how long it runs, and the lengths
 * of what it has printed and returned. */
void osd_run_sample_lengths(struct osd_run *run, struct osd_job_record *record);
/* These, and what it has used, by a look at its clocks. */
void osd_run_sample(struct osd_run *run, struct osd_job_record *record);

/* proxy_end.c: the script is over, one way or another: decides how the job ended, writes it, tells
 * those who wait; or puts it back for another attempt. */
void osd_run_end(struct osd_run *run);

#endif
