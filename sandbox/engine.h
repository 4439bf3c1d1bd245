/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.h -- the interface of an engine, which runs the code of jobs.  All engines share the rest:
 * namespaces, control groups, the system-call filter, limits, the job socket, calls to the proxy.
 *
 * A zygote has one engine, named by its pool.  In the zygote: load, prepare, then fork for each sandbox.
 * In a sandbox, on its main thread: start, begin, then call for each job and clean between two jobs.  There is
 * no way to shut an engine down: the process ends with _exit. */
#ifndef OSD_SANDBOX_ENGINE_H
#define OSD_SANDBOX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine_names.h"
#include "step.h"
#include "wire/proxy_frame.h"

#define OSD_ENGINE_FOLDERS 4

/* The data from which the pool's zygote prepares sandboxes; strings are borrowed for good. */
struct osd_engine_setup {
	const char *support; /* folder of the engine's own files: Python's package osd */
	const char *pool;    /* name of the pool */
	const char *folder;  /* of the pool's package set */
	const char *set;     /* id of the package set; NULL: the pool has none */
	const char *preload; /* modules to load, separated by commas; "": those the set names */
	int statm_fd;	     /* /proc/self/statm; -1: none */
};

/* One job, as received; the bytes are borrowed.  run.code_slot is not 0: the engine may keep the code there, in
 * a form of its own, for later jobs, which then have code_kept and code NULL. */
struct osd_engine_job {
	struct osd_job_run run;
	const char *name, *method, *args, *code;
	const char *machine; /* run.machine_bytes, of an earlier compile; not to be trusted; NULL: none */
};

/* How a job ended.  The texts are the engine's and valid until clean. */
struct osd_engine_result {
	uint64_t exit_code;
	enum osd_finish_kind kind;
	const char *report, *line; /* for the job's author: all of it, and in one line */
	size_t report_bytes, line_bytes;
	bool kept_code; /* the job's code is in its slot */
	/* A result that was not sent in calls: 0 none, 1 bytes, 2 JSON; at most OSD_FINISH_RESULT_MAX bytes, unless it
	 * lies where osd_place_result (placed_result.h) has put it. */
	uint8_t form;
	const char *result;
	size_t result_bytes;
};

struct osd_engine {
	const char *name;
	/* Folders of the host with its programs and libraries; NULL ends the list.  Sandboxes have them
	 * at the same path, read-only. */
	const char *folders[OSD_ENGINE_FOLDERS];
	/* It compiles code: the filter lets memory become executable, if it is not writable then. */
	bool executable_memory;
	/* It calls osd_seccomp_narrow (seccomp_rules.h) before it runs code of a job. */
	bool narrows_filter;
	bool package_sets; /* its pools may have one */
	/* Threads that it has itself: a sandbox may have them beside those of the job's limit. */
	unsigned threads;

	/* Called first, in the zygote, while it still has the root of the host; NULL: nothing to do.
	 * library_fd: the engine's library, as the daemon's option names it; no regular file: the host has
	 * none.  False: text says why. */
	bool (*load)(int library_fd, char *text, size_t size);

	/* Called once, in the zygote: does the work that every sandbox would otherwise repeat, because
	 * a sandbox starts with a copy of this memory.  *ret_bytes: memory of the package set, which is
	 * not counted as a job's.  The process must still have one thread afterwards.  False: text says
	 * why.  NULL: nothing to do. */
	bool (*prepare)(const struct osd_engine_setup *setup, uint64_t *ret_bytes, char *text,
			size_t size);
	/* fork(2), with the engine's own preparations on both sides; -errno on failure.  NULL: it has none. */
	pid_t (*fork)(void);
	/* Called in a sandbox that has given up everything but the system calls that the filter denies:
	 * makes what the filter would deny.  memory_bytes: the limit of the process.  0, or -errno; NULL:
	 * nothing to do. */
	int (*start)(uint64_t memory_bytes, struct osd_step *step);
	/* Called in a confined sandbox, as the last step before it takes jobs: does the work that each
	 * process needs.  False: the engine does not work.  NULL: nothing to do. */
	bool (*begin)(void);
	/* Run the job to its end, successful or not. */
	void (*call)(const struct osd_engine_job *job, struct osd_engine_result *ret_result);
	/* Instead of call, if run.compile: the result is machine code, which later jobs with the same code get, also in
	 * other sandboxes of the host.  No code of the job runs.  NULL: the engine has none. */
	void (*compile)(const struct osd_engine_job *job, struct osd_engine_result *ret_result);
	/* Remove the traces of the job, before another one of the same principal (hygiene, not a
	 * boundary).  False: some remain, and the process must end.  NULL: traces of a job could remain that nothing
	 * finds. */
	bool (*clean)(void);
	/* The same between two calls of one function: it may leave to the next clean what is costly and what
	 * later jobs, other than such calls, would notice.  NULL: clean does it. */
	bool (*clean_lightly)(void);
	/* End the running job soon, so that it can still clean up.  A signal handler calls this. */
	void (*interrupt)(void);
};

#define X(name) extern const struct osd_engine osd_engine_##name;
OSD_ENGINES(X)
#undef X

/* NULL: there is none of this name. */
const struct osd_engine *osd_engine_find(const char *name);
pid_t osd_engine_fork(const struct osd_engine *engine);

#endif
