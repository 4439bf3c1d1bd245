/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon.h -- what the parts of iosd-sandboxd share.  It has one thread and one poll loop (sandboxd.c).
 * target_link.c serves the target's messages, pools.c the pools, zygote_link.c their zygotes, slots.c the
 * sandboxes, send.c sends.  Each calls only those after it in this list.
 *
 * A sandbox:  FREE --SPAWN--> STARTING --zygote: SPAWNED--> LIVE --zygote: EXITED--> FREE
 *             STARTING --zygote: FAILED, or its end--> FREE (sends REFUSED to the target)
 *             LIVE --its zygote's end--> FREE (sends EXITED, killed)
 * A slot is used again only after its process has been reaped: uid, control group and slot are
 * one. */
#ifndef OSD_SANDBOX_DAEMON_H
#define OSD_SANDBOX_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cgroup.h"
#include "engine_names.h"
#include "layers.h"
#include "wire/sandboxd_frame.h"
#include "zygote_frame.h"

/* of one pool: the current one, its successor that is starting, older ones with sandboxes that still run */
#define OSD_ZYGOTES 4
#define OSD_POOLS_CONFIGURED 16
#define OSD_POOLS_MAX 32 /* including removed pools that still have sandboxes */
#define POOL_NAME_MAX 64u
#define SET_ID_MAX 64u

enum osd_slot_state { OSD_SLOT_FREE, OSD_SLOT_STARTING, OSD_SLOT_LIVE };

/* The descriptors of a SPAWNED message, in this order after the pidfd. */
enum osd_target_fd {
	TARGET_FD_SHM,
	TARGET_FD_JOB,
	TARGET_FD_STDOUT,
	TARGET_FD_STDERR,
	TARGET_FD_COUNT
};

/* A slot, and the sandbox in it. */
struct osd_slot {
	enum osd_slot_state state;
	bool kill; /* STARTING: kill it as soon as it is LIVE */
	uint64_t id;     /* given by the target */
	uint64_t serial; /* given by the daemon */
	uint64_t asked_usec; /* STARTING or resizing: when the zygote was asked, monotonic */
	unsigned pool, zygote; /* indices */
	int pidfd;       /* while LIVE; -1 */
	pid_t pid;       /* in our process namespace */
	uint64_t job_partition, job_object; /* its job, for the log; 0: not known */
	int target_fds[TARGET_FD_COUNT]; /* while STARTING; -1 */
	struct osd_sandbox_limits limits;
	bool resizing; /* the zygote is changing the scratch folder to the limits in `asked` */
	struct osd_sandbox_limits asked;
};

struct osd_zygote {
	pid_t pid; /* 0: no such zygote */
	int socket;
	unsigned forks;
	uint64_t born_usec; /* monotonic */
	uint64_t set_bytes; /* zygote_frame.h, ZYGOTE_READY */
	unsigned threads;   /* the same */
	bool ready, retiring;
	bool explained; /* it has said why it ends before it is ready */
};

/* The keys of a pool in the file or the options; borrowed.  NULL: the key is not given. */
struct osd_pool_words {
	const char *name;
	const char *engine;   /* its engine: engine_names.h */
	const char *packages; /* folder of a package set */
	const char *set;      /* its id: a hash of its manifest */
	const char *preload;  /* modules, separated by commas; NULL: those the manifest names */
};

/* A pool.  Each has zygotes of its own, so that it cannot see the packages of another pool, and a zygote
 * that does not start stops its own pool only. */
struct osd_zygotes {
	char *name; /* as struct osd_pool_words; owned; NULL: this place is free */
	char *engine, *packages, *set, *preload;
	bool leaving; /* removed from the file */
	bool wanted;  /* the target has asked for a sandbox, and has not sent FORGET since */
	bool rotate;  /* the target asked for another zygote */
	struct osd_zygote zygotes[OSD_ZYGOTES];
	enum osd_pool_state state;
	unsigned failed;     /* starts in a row that failed */
	uint64_t retry_usec; /* next attempt, monotonic; 0: none is due */
	char why[ZYGOTE_TEXT_MAX]; /* the reason why it does not serve; "" when it does */
	unsigned cpu_share;	   /* percent of the processors; 0: no bound */
	bool unbounded;		   /* this host cannot enforce it: the pool does not serve */
};

struct osd_daemon {
	/* options, constant after start */
	const char *socket_path, *package, *cgroup_parent, *pools_file;
	const char *wasmtime; /* library of the engine wasm; NULL: this host has none */
	const struct osd_level *level;
	unsigned layers;   /* those of the level, and OSD_LAYER_UID wherever the host allows it */
	char missing[512]; /* why the level is not full, "" when it is */
	unsigned max, uid_base, rotate_after;
	unsigned cpu_share; /* percent; 0: only time that nothing else uses */
	/* the target's user, which owns the socket; the daemon's own unless --uid names another */
	uid_t peer;
	/* state */
	struct osd_cgroups cgroups;
	struct osd_slot *sandboxes; /* max of them, by slot; owned */
	struct osd_zygotes pools[OSD_POOLS_MAX]; /* the first is `default` */
	int listen_fd, target_fd; /* -1: none */
	bool greeted;             /* the target has said HELLO */
	unsigned allowed;         /* sandboxes the target asked for in HELLO */
	uint64_t last_serial;
	/* share.c: the group has a weight until then; raises: 0: it is idle, else how often its weight was
	 * raised, last at share_raised_usec */
	uint64_t share_until_usec, share_raised_usec;
	unsigned share_raises;
	pid_t janitor; /* 0: none */
	int alive_fd;  /* the janitor starts its work when this end of its pipe is closed */
	bool stop;
};

/* ---- target_link.c --------------------------------------------------------------------------- */

/* Accept one connection and check its user. */
void osd_target_accept(struct osd_daemon *daemon);
/* Serve one message, or the end of the connection. */
void osd_target_serve(struct osd_daemon *daemon);
/* Close the connection, if it is not closed yet, and kill everything that was made for it. */
void osd_target_drop(struct osd_daemon *daemon);

/* ---- send.c ---------------------------------------------------------------------------------- */

/* Send a message.  Without a target it is dropped; if the target does not read, its connection is closed. */
void osd_target_send(struct osd_daemon *daemon, enum osd_sandboxd_type type, uint64_t id,
		     const void *body, size_t length, const int *fds, size_t fd_count);
void osd_target_refuse(struct osd_daemon *daemon, uint64_t id, const char *text);
/* Report the state of this pool to the target, if it has sent HELLO. */
void osd_target_tell_pool(struct osd_daemon *daemon, const struct osd_zygotes *pool);
extern const char osd_no_bound[]; /* why an unbounded pool does not serve */
bool osd_zygote_send(struct osd_zygote *zygote, const struct zygote_message *message,
		     const int *fds, size_t fd_count);

/* ---- slots.c --------------------------------------------------------------------------------- */

bool osd_slots_init(struct osd_daemon *daemon);
bool osd_slots_all_free(const struct osd_daemon *daemon);
/* Ask this zygote of the pool for a sandbox.  NULL, or the reason why not. */
const char *osd_slot_spawn(struct osd_daemon *daemon, uint64_t id, const struct osd_zygotes *pool,
			   struct osd_zygote *zygote, const struct osd_sandbox_limits *limits);
void osd_slot_limit(struct osd_daemon *daemon, uint64_t id,
		    const struct osd_sandbox_limits *limits);
/* The target names the job that this sandbox runs. */
void osd_slot_name(struct osd_daemon *daemon, uint64_t id, uint64_t partition, uint64_t object);
void osd_slot_kill(struct osd_daemon *daemon, uint64_t id);
/* Have the sandbox read its control line (wire/proxy_frame.h). */
void osd_slot_nudge(struct osd_daemon *daemon, uint64_t id);
void osd_slot_kill_all(struct osd_daemon *daemon);
/* Messages of a zygote about one of its sandboxes. */
void osd_slot_spawned(struct osd_daemon *daemon, const struct zygote_message *message, int pidfd);
void osd_slot_resized(struct osd_daemon *daemon, const struct zygote_message *message);
void osd_slot_failed(struct osd_daemon *daemon, const struct zygote_message *message);
void osd_slot_exited(struct osd_daemon *daemon, const struct zygote_message *message);
/* A zygote has ended, and all its sandboxes with it. */
void osd_slot_zygote_gone(struct osd_daemon *daemon, unsigned pool, unsigned zygote);

/* ---- zygote_launch.c ------------------------------------------------------------------------- */

/* Start a zygote in namespaces of its own; sets its pid and socket. -errno: the step *ret_what failed,
 * and some of these may be set. */
int osd_zygote_launch(const struct osd_daemon *daemon, const struct osd_zygotes *pool,
		      struct osd_zygote *zygote, const char **ret_what);

/* ---- zygote_link.c --------------------------------------------------------------------------- */

/* End all zygotes of this pool: those that serve with their last sandbox, others at once. */
void osd_zygotes_retire(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* Start a successor; when it serves, send ROTATED to the target. */
void osd_zygote_rotate(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* Start a zygote for each pool that has none and no attempt due. */
void osd_zygotes_start_missing(struct osd_daemon *daemon);
/* Start a zygote of this pool.  A failure is logged, kept in pool->why, and tried again later. */
void osd_zygote_start(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* The zygote to spawn from; NULL: there is none. */
struct osd_zygote *osd_zygote_current(struct osd_zygotes *pool);
/* Serve one message of a zygote, or its end. */
void osd_zygote_serve(struct osd_daemon *daemon, struct osd_zygotes *pool, unsigned index);
/* The current zygote was asked for a fork: after rotate_after of them, start its successor. */
void osd_zygote_count_fork(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* Start the zygotes whose next attempt is due.  Returns the ms until the next one is; -1: none. */
int osd_zygotes_retry(struct osd_daemon *daemon);
/* Kill and reap all. */
void osd_zygotes_stop(struct osd_daemon *daemon);

/* ---- share.c --------------------------------------------------------------------------------- */

/* Before the first zygote starts. */
void osd_share_init(struct osd_daemon *daemon);
/* The target reports the part of the needed CPU time that scripts get. */
void osd_share_heed(struct osd_daemon *daemon, uint64_t per_mille);
/* Set the weight of the group, or remove it, as is due.  Returns the ms until the next call; -1: call it
 * after the next event. */
int osd_share_wait(struct osd_daemon *daemon);

/* ---- pools.c --------------------------------------------------------------------------------- */

/* NULL: there is none of this name. */
struct osd_zygotes *osd_zygotes_find(struct osd_daemon *daemon, const char *name, size_t length);
/* NULL, or what is wrong. */
const char *osd_pool_words_check(const struct osd_pool_words *words);
/* Add a pool, or replace the words of the pool of this name; false: there is no room. */
bool osd_zygotes_add(struct osd_daemon *daemon, const struct osd_pool_words *words);
/* Replace the pools by those of daemon->pools_file; false: the file is wrong, which is logged, and nothing
 * was changed.  The caller starts the zygotes of new pools. */
bool osd_pools_load(struct osd_daemon *daemon);
/* Retire the zygotes of pools that are leaving and that the target does not want; forget a pool with its last one. */
void osd_pools_leave(struct osd_daemon *daemon);
/* Bounds the processor time of the pool's next sandboxes, and reports the pool. */
void osd_zygotes_bound(struct osd_daemon *daemon, struct osd_zygotes *pool, unsigned percent);
/* There is no target any more. */
void osd_pools_unwanted(struct osd_daemon *daemon);
void osd_pools_release(struct osd_daemon *daemon);

/* ---- package_set.c --------------------------------------------------------------------------- */

/* Whether a package set's folder exists and only root and our user could have changed it; else why says
 * what is wrong; otherwise why stays as it was.  The zygote checks the content, before it imports any of it. */
bool osd_package_set_check(const char *folder, char why[ZYGOTE_TEXT_MAX]);

/* ---- janitor.c ------------------------------------------------------------------------------- */

/* Call this before anything else is started; false: it cannot be started. */
bool osd_janitor_start(struct osd_daemon *daemon);
/* Have it remove the groups, and wait for that.  No process runs in them any more. */
void osd_janitor_finish(struct osd_daemon *daemon);

#endif
