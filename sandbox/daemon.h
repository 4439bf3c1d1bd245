/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon.h -- iosd-sandboxd: what its parts share.  One thread, one poll loop (sandboxd.c); the
 * target's messages (target_link.c); sandboxes by slot (slots.c); pools (pools.c); zygotes
 * (zygote_link.c); cgroup.c, layers.c, janitor.c.
 *
 * A sandbox:  FREE --SPAWN--> STARTING --zygote: SPAWNED--> LIVE --zygote: EXITED--> FREE
 *             STARTING --zygote: FAILED, or its end--> FREE (the target is told REFUSED)
 *             LIVE --its zygote's end--> FREE (the target is told EXITED, killed)
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

/* of one pool: one in use, the next warming up, older ones whose last sandboxes still run */
#define OSD_ZYGOTES 4
#define OSD_POOLS_CONFIGURED 16
#define OSD_POOLS_MAX 32 /* with those that were removed and still have sandboxes */
#define POOL_NAME_MAX 64u
#define SET_ID_MAX 64u

enum osd_slot_state { OSD_SLOT_FREE, OSD_SLOT_STARTING, OSD_SLOT_LIVE };

/* What the target gets with SPAWNED, in this order after the pidfd. */
enum osd_target_fd {
	TARGET_FD_SHM,
	TARGET_FD_JOB,
	TARGET_FD_STDOUT,
	TARGET_FD_STDERR,
	TARGET_FD_COUNT
};

struct osd_slot {
	enum osd_slot_state state;
	bool kill; /* asked for while it was still starting */
	uint64_t id;     /* the target's */
	uint64_t serial; /* ours */
	uint64_t asked_usec; /* STARTING: since when; monotonic */
	unsigned pool, zygote; /* indices */
	int pidfd;       /* while LIVE; -1 */
	pid_t pid;       /* in our process namespace */
	uint64_t job_partition, job_object; /* what it works for, for the log; 0: nobody has said */
	int target_fds[TARGET_FD_COUNT]; /* while STARTING; -1 */
	struct osd_sandbox_limits limits;
	bool resizing; /* the zygote has been asked for a scratch folder of the limits in `asked` */
	struct osd_sandbox_limits asked;
};

struct osd_zygote {
	pid_t pid; /* 0: no such zygote */
	int socket;
	unsigned forks;
	uint64_t born_usec; /* monotonic */
	uint64_t set_bytes; /* zygote_frame.h, ZYGOTE_READY */
	bool ready, retiring;
};

/* What the file or the options say of a pool; borrowed.  NULL: the key is not given. */
struct osd_pool_words {
	const char *name;
	const char *engine;   /* what runs its jobs: engine_names.h */
	const char *packages; /* folder of a package set */
	const char *set;      /* its id: a hash of its manifest */
	const char *preload;  /* modules, separated by commas; else what the manifest names */
};

/* A pool as this daemon sees it: what its sandboxes find imported.  Each has zygotes of its own, so
 * that none sees another's packages, and one that does not come up harms nobody else. */
struct osd_zygotes {
	char *name; /* as struct osd_pool_words; owned; NULL: no pool stands here */
	char *engine, *packages, *set, *preload;
	bool leaving; /* removed from the file */
	bool wanted;  /* the target has asked for a sandbox, and not said that it needs no more */
	bool rotate;  /* the target asked for another zygote */
	struct osd_zygote zygotes[OSD_ZYGOTES];
	enum osd_pool_state state;
	unsigned failed;     /* starts in a row that came to nothing */
	uint64_t retry_usec; /* next attempt, monotonic; 0: none is due */
	char why[ZYGOTE_TEXT_MAX]; /* it does not serve; "" when it does */
};

struct osd_daemon {
	/* options, constant after start */
	const char *socket_path, *package, *cgroup_parent, *pools_file;
	const struct osd_level *level;
	unsigned layers;   /* the level's; and users of their own wherever we may give them */
	char missing[512]; /* why the level is not full, "" when it is */
	unsigned max, uid_base, rotate_after;
	unsigned cpu_share; /* per cent; 0: what nobody else wants */
	uid_t peer; /* the target's user, who owns the socket; ours unless --uid names another */
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
	int alive_fd;  /* the janitor begins when nobody has this end of its pipe any more */
	bool stop;
};

/* ---- target_link.c --------------------------------------------------------------------------- */

/* Accept one connection and check who it is. */
void osd_target_accept(struct osd_daemon *daemon);
/* One message, or the end of the connection. */
void osd_target_serve(struct osd_daemon *daemon);
/* Send; a target that does not take its messages loses its connection.  No target: dropped. */
void osd_target_send(struct osd_daemon *daemon, enum osd_sandboxd_type type, uint64_t id,
		     const void *body, size_t length, const int *fds, size_t fd_count);
void osd_target_refuse(struct osd_daemon *daemon, uint64_t id, const char *text);
/* How this pool is, to a target that has said HELLO. */
void osd_target_tell_pool(struct osd_daemon *daemon, const struct osd_zygotes *pool);
/* Close the connection and kill everything that was made for it. */
void osd_target_drop(struct osd_daemon *daemon);

/* ---- slots.c --------------------------------------------------------------------------------- */

bool osd_slots_init(struct osd_daemon *daemon);
bool osd_slots_all_free(const struct osd_daemon *daemon);
struct osd_slot *osd_slot_by_id(struct osd_daemon *daemon, uint64_t id);
void osd_slot_spawn(struct osd_daemon *daemon, uint64_t id, struct osd_zygotes *pool,
		    const struct osd_sandbox_limits *limits);
void osd_slot_limit(struct osd_daemon *daemon, uint64_t id,
		    const struct osd_sandbox_limits *limits);
/* It works for this job, says the target. */
void osd_slot_name(struct osd_daemon *daemon, uint64_t id, uint64_t partition, uint64_t object);
void osd_slot_kill(struct osd_slot *sandbox);
void osd_slot_nudge(const struct osd_slot *sandbox);
void osd_slot_kill_all(struct osd_daemon *daemon);
/* What a zygote said about one of its sandboxes. */
void osd_slot_spawned(struct osd_daemon *daemon, const struct zygote_message *message, int pidfd);
void osd_slot_resized(struct osd_daemon *daemon, const struct zygote_message *message);
void osd_slot_failed(struct osd_daemon *daemon, const struct zygote_message *message);
void osd_slot_exited(struct osd_daemon *daemon, const struct zygote_message *message);
/* That zygote is gone, and all its sandboxes with it. */
void osd_slot_zygote_gone(struct osd_daemon *daemon, unsigned pool, unsigned zygote);

/* ---- zygote_launch.c ------------------------------------------------------------------------- */

/* Start a zygote in namespaces of its own: pid and socket.  -errno: *ret_what failed; some of it may be
 * there. */
int osd_zygote_launch(const struct osd_daemon *daemon, const struct osd_zygotes *pool,
		      struct osd_zygote *zygote, const char **ret_what);

/* ---- zygote_link.c --------------------------------------------------------------------------- */

/* No more of what there is: those that serve end with their last sandbox, others at once. */
void osd_zygotes_retire(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* Another one is to take over, soon; then the target is told ROTATED. */
void osd_zygote_rotate(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* Those that have none, and are not waiting for their next attempt. */
void osd_zygotes_start_missing(struct osd_daemon *daemon);
/* Start a zygote of this pool.  What fails is logged, kept in pool->why, and tried again later. */
void osd_zygote_start(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* The one to spawn from; NULL when there is none. */
struct osd_zygote *osd_zygote_current(struct osd_zygotes *pool);
bool osd_zygote_send(struct osd_zygote *zygote, const struct zygote_message *message,
		     const int *fds, size_t fd_count);
/* One message, or its end. */
void osd_zygote_serve(struct osd_daemon *daemon, struct osd_zygotes *pool, unsigned index);
/* A fork was asked of the current zygote: start its successor when it has done its share. */
void osd_zygote_count_fork(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* Start what is due to be started again; how many ms until the next is, -1: none. */
int osd_zygotes_retry(struct osd_daemon *daemon);
/* Kill and reap all. */
void osd_zygotes_stop(struct osd_daemon *daemon);

/* ---- share.c --------------------------------------------------------------------------------- */

/* Before the first zygote starts. */
void osd_share_init(struct osd_daemon *daemon);
/* The target says how much of the processor time that they want scripts get. */
void osd_share_heed(struct osd_daemon *daemon, uint64_t per_mille);
/* Gives the group a weight, or takes it away, as is due; how many ms until this is to be called again,
 * -1: whenever something has happened. */
int osd_share_wait(struct osd_daemon *daemon);

/* ---- pools.c --------------------------------------------------------------------------------- */

/* NULL: there is none of this name. */
struct osd_zygotes *osd_zygotes_find(struct osd_daemon *daemon, const char *name, size_t length);
/* NULL, or what is wrong. */
const char *osd_pool_words_check(const struct osd_pool_words *words);
/* Another one, or other words for the one of this name; false: there is no room. */
bool osd_zygotes_add(struct osd_daemon *daemon, const struct osd_pool_words *words);
/* The pools of daemon->pools_file instead of those there are; false: they are not as they should be,
 * which is logged, and nothing was changed.  New ones are to be started. */
bool osd_pools_load(struct osd_daemon *daemon);
/* If it is leaving and nobody wants it: its zygotes retire, and with the last it is forgotten. */
void osd_zygotes_leave(struct osd_daemon *daemon, struct osd_zygotes *pool);
/* There is no target any more. */
void osd_pools_unwanted(struct osd_daemon *daemon);
void osd_pools_release(struct osd_daemon *daemon);

/* ---- package_set.c --------------------------------------------------------------------------- */

/* Whether a package set's folder is there, and nobody but root and ourselves could have changed it;
 * else why says what is wrong.  Its content is checked by the zygote, before it imports any of it. */
bool osd_package_set_check(const char *folder, char why[ZYGOTE_TEXT_MAX]);

/* ---- janitor.c ------------------------------------------------------------------------------- */

/* Before anything else is started; false when it cannot be had. */
bool osd_janitor_start(struct osd_daemon *daemon);
/* Has it do its work, and waits for it: nothing runs in the groups any more. */
void osd_janitor_finish(struct osd_daemon *daemon);

#endif
