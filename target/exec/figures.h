/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures.h -- what is counted of pools, their jobs and sandboxes since the target started
 * (docs/control.md, "pools").  Plain numbers under exec->lock, which whoever counts holds anyway. */
#ifndef OSD_EXEC_FIGURES_H
#define OSD_EXEC_FIGURES_H

#include <stdbool.h>

#include "base/histogram.h"
#include "exec/job.h"
#include "wire/proxy_frame.h"

struct osd_exec;
struct osd_job;
struct osd_json;
struct osd_run;
struct osd_sandbox;

struct osd_pool_figures {
	uint64_t arrived, started, ended;	 /* jobs; started: attempts */
	uint64_t finished[OSD_JOB_REASON_COUNT]; /* by row of their reason */
	uint64_t cpu_usec;			 /* of jobs that have ended */
	struct osd_histogram queue, start, run, cancel;
};

/* Scripts' calls, which need the same things and so are measured together. */
#define OSD_CALL_KINDS(X)                                                                          \
	X(DATA, "data")                                                                            \
	X(ATTRIBUTES, "attributes")                                                                \
	X(LIST, "list")                                                                            \
	X(OTHER, "other")

enum osd_call_kind {
#define X(symbol, name) OSD_CALL_KIND_##symbol,
	OSD_CALL_KINDS(X)
#undef X
		OSD_CALL_KIND_COUNT
};

#define X(number, symbol) [number] = 0,
enum { OSD_CALL_OPS = sizeof((char[]){OSD_CALLS(X)}), OSD_ANSWER_CODES = OSD_ANSWER_CONFLICT + 1 };
#undef X
#define OSD_CALLS_PER_TIMED 8

/* Of all sessions; any thread, no lock. */
struct osd_call_figures {
	_Atomic uint64_t counts[OSD_CALL_OPS][OSD_ANSWER_CODES];
	struct osd_histogram seconds[OSD_CALL_KIND_COUNT]; /* of one call in OSD_CALLS_PER_TIMED */
};

void osd_figures_called(struct osd_exec *exec, uint16_t op, enum osd_answer_code code);
void osd_figures_call_took(struct osd_exec *exec, uint16_t op, uint64_t usec);

/* exec->lock held in these. */

/* Accepted: with its members, if it is an array. */
void osd_figures_arrived(struct osd_exec *exec, const struct osd_job *job);
/* A slot has it, started_usec is set. */
void osd_figures_started(const struct osd_job *job);
/* The sandbox has it. */
void osd_figures_handed_over(const struct osd_run *run);
void osd_figures_again(struct osd_exec *exec, uint16_t reason);
/* In memory as in record now. */
void osd_figures_ended(struct osd_exec *exec, const struct osd_job *job,
		       const struct osd_job_record *record);

/* Take exec->lock.  Whether a pool that serves has jobs that wait for a slot or a sandbox. */
bool osd_exec_jobs_wait(struct osd_exec *exec);
/* "jobs" and "pools" of an object that is open; nothing is written while it is held. */
void osd_exec_write_figures(struct osd_exec *exec, struct osd_json *json);

#endif
