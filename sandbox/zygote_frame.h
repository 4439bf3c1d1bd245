/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zygote_frame.h -- messages between iosd-sandboxd and iosd-zygote.  Both are built together, so these
 * are plain structs.  Sandboxes never have this socket. */
#ifndef OSD_SANDBOX_ZYGOTE_FRAME_H
#define OSD_SANDBOX_ZYGOTE_FRAME_H

#include <stdint.h>

#include "wire/sandboxd_frame.h"

/* Descriptors the zygote is started with. */
enum zygote_fd {
	ZYGOTE_FD_CONTROL = 3,
	ZYGOTE_FD_PACKAGE = 4, /* O_PATH: the directory of package osd */
	ZYGOTE_FD_SET = 5,     /* O_PATH: the pool's package set; /dev/null: it has none */
	ZYGOTE_FD_LIBRARY = 6, /* the library of the pool's engine; /dev/null: it has none */
};

enum zygote_message_type {
	ZYGOTE_SPAWN = 1, /* with the descriptors of enum zygote_spawn_fd */
	ZYGOTE_RETIRE,    /* no more spawns will come: exit when the last sandbox has ended */
	ZYGOTE_RESIZE, /* with other limits: the sandbox of this slot gets a scratch folder of their size */
	ZYGOTE_READY,
	ZYGOTE_SPAWNED, /* with a pidfd */
	ZYGOTE_EXITED,
	ZYGOTE_RESIZED, /* its answer; text: why not */
	ZYGOTE_FAILED, /* to start (serial 0), or to spawn */
};

/* Order of a SPAWN's descriptors; cgroup.procs files follow, as many as there are. */
enum zygote_spawn_fd {
	SPAWN_FD_SHM,
	SPAWN_FD_JOB,
	SPAWN_FD_STDOUT,
	SPAWN_FD_STDERR,
	SPAWN_FD_CGROUPS
};

#define ZYGOTE_TEXT_MAX 512

struct zygote_message {
	uint32_t type;
	uint32_t slot;
	uint64_t serial; /* which sandbox; never used twice in the daemon's life */
	union {
		struct osd_sandbox_limits limits; /* SPAWN, RESIZE */
		struct osd_sandbox_exit status;   /* EXITED */
		char text[ZYGOTE_TEXT_MAX];       /* FAILED, RESIZED */
		struct { /* READY */
			/* data of the package set's modules, not counted as a job's by RLIMIT_DATA */
			uint64_t set_bytes;
			uint32_t threads; /* of the engine, beside those of a job */
		};
	};
};

#endif
