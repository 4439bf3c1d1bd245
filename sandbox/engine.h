/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.h -- the interface of an engine, which runs the code of jobs.  All engines share the rest:
 * namespaces, control groups, the system-call filter, limits, the job socket, calls to the proxy.
 *
 * A zygote has one engine, named by its pool.  In the zygote: load, prepare, then fork for each sandbox.
 * In a sandbox, on its main thread: begin, then call for each job and clean between two jobs.  There is
 * no way to shut an engine down: the process ends with _exit. */
#ifndef OSD_SANDBOX_ENGINE_H
#define OSD_SANDBOX_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine_names.h"
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

/* One job, as received over the job socket; the bytes are borrowed. */
struct osd_engine_job {
	struct osd_job_run run;
	const char *name, *method, *args, *code;
};

/* How a job ended.  The texts are the engine's and valid until clean. */
struct osd_engine_result {
	uint64_t exit_code;
	enum osd_finish_kind kind;
	const char *report, *line; /* for the job's author: all of it, and in one line */
	size_t report_bytes, line_bytes;
};

struct osd_engine {
	const char *name;
	/* Folders of the host with its programs and libraries; NULL ends the list.  Sandboxes have them
	 * at the same path, read-only. */
	const char *folders[OSD_ENGINE_FOLDERS];
	/* It compiles code: the filter lets memory become executable, if it is not writable then. */
	bool executable_memory;

	/* Called first, in the zygote, while it still has the root of the host; NULL: nothing to do.
	 * library_fd: the engine's library, as the daemon's option names it; no regular file: the host has
	 * none.  False: text says why. */
	bool (*load)(int library_fd, char *text, size_t size);

	/* Called once, in the zygote: does the work that every sandbox would otherwise repeat, because
	 * a sandbox starts with a copy of this memory.  *ret_bytes: memory of the package set, which is
	 * not counted as a job's.  The process must still have one thread afterwards.  False: text says
	 * why. */
	bool (*prepare)(const struct osd_engine_setup *setup, uint64_t *ret_bytes, char *text,
			size_t size);
	/* fork(2), with the engine's own preparations on both sides; -errno on failure. */
	pid_t (*fork)(void);
	/* Called in a confined sandbox, as the last step before it takes jobs: does the work that each
	 * process needs.  False: the engine does not work. */
	bool (*begin)(void);
	/* Run the job to its end, successful or not. */
	void (*call)(const struct osd_engine_job *job, struct osd_engine_result *ret_result);
	/* Remove the traces of the job, before another one of the same principal (hygiene, not a
	 * boundary).  False: some remain, and the process must end. */
	bool (*clean)(void);
	/* End the running job soon, so that it can still clean up.  A signal handler calls this. */
	void (*interrupt)(void);
};

#define X(name) extern const struct osd_engine osd_engine_##name;
OSD_ENGINES(X)
#undef X

/* NULL: there is none of this name. */
const struct osd_engine *osd_engine_find(const char *name);

#endif
