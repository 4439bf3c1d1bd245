/* SPDX-License-Identifier: GPL-2.0-or-later */
/* py_host.h -- CPython up, user code in, how it ended out.
 *
 * In the zygote: osd_host_start, then osd_host_fork for each sandbox.  In a sandbox, on its main
 * thread: osd_host_prewarm, osd_host_run; the process then leaves with _exit (there is no way
 * down: a new interpreter is a new process), unless its proxy asks for another run after
 * osd_host_clean. */
#ifndef OSD_SANDBOX_PY_HOST_H
#define OSD_SANDBOX_PY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/proxy_frame.h"

/* One job, as it came over the job socket; the bytes are borrowed. */
struct osd_host_job {
	struct osd_job_run run;
	const char *name, *args, *code;
};

/* What scripts find beside the standard library; strings borrowed. */
struct osd_host_packages {
	const char *osd;     /* directory of the package osd */
	const char *pool;    /* whose sandboxes these are */
	const char *folder;  /* of the pool's package set */
	const char *set;     /* its id; NULL: there is none */
	const char *preload; /* modules to import, by commas; "": those its manifest names */
	int statm_fd;	     /* /proc/self/statm; -1: none */
};

/* Interpreter, allowed modules, package osd, the pool's package set; text on failure.
 * *ret_set_bytes: data of the set's modules, which every sandbox has and no job asked for. */
bool osd_host_start(const struct osd_host_packages *packages, uint64_t *ret_set_bytes, char *text,
		    size_t size);

/* fork(2) with the interpreter's and the C library's own preparations; -errno on failure. */
pid_t osd_host_fork(void);

/* Run a trivial script the way jobs run, so that the first job finds its pages in place. */
bool osd_host_prewarm(void);

/* Run the job and report FINISH to the proxy, whatever the script did.  True: the proxy wants to
 * run another one here.  *ret_code is the exit code otherwise. */
bool osd_host_run(const struct osd_host_job *job, int *ret_code);

/* Forget the job as far as that can be done (hygiene, not a boundary); false: it cannot. */
bool osd_host_clean(void);

#endif
