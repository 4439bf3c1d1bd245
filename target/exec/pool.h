/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool.h -- pools: an administrator's kinds of sandboxes, each with slots, a queue, limits and a
 * package set of its own.  `default` is always there; a job says which it wants (EXEC parameter 20).
 * A pool that cannot serve (its package set was changed, say) keeps its jobs waiting and costs the
 * others nothing.
 *
 * What a pool is configured as can be changed while it runs (admin.h), but for its name: so all of it
 * is under exec->lock. */
#ifndef OSD_EXEC_POOL_H
#define OSD_EXEC_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/admin.h"
#include "exec/fair_queue.h"
#include "exec/figures.h"
#include "exec/job.h"
#include "exec/reuse.h"
#include "wire/sandboxd_frame.h"

struct osd_exec;
struct osd_run;
struct osd_exec_text;

#define OSD_POOL_DEFAULT "default"
#define OSD_POOLS_MAX	 16
#define OSD_POOLS_EVER	 256 /* with those that are gone */
#define OSD_POOL_WHY_MAX 240
#define OSD_POOL_USERS_MAX 511

struct osd_pool_config {
	char name[OSD_JOB_POOL_MAX + 1];
	char set[OSD_JOB_SET_MAX + 1]; /* id of its package set; "": none */
	uint64_t min, max;	       /* slots: warm even when idle; at most */
	uint64_t spares;	       /* sandboxes kept warm beyond those */
	uint64_t idle_usec;	       /* without a job: it keeps min sandboxes, and no spares */
	uint64_t queue_max;	       /* jobs waiting; BUSY beyond */
	enum osd_reuse reuse;
	uint64_t sandbox_jobs; /* of one sandbox, where it is used again */
	char users[OSD_POOL_USERS_MAX + 1]; /* principals who may use it, by commas; "": anybody */
	struct osd_job_limits standard; /* what a job gets that asks for nothing; cpu 0: as wall */
	struct osd_job_limits maximum;	/* and what it may ask for */
};

/* A target's pools as configured (pool_config.c). */
struct osd_pool_table {
	struct osd_pool_config *pools; /* owned; the first is `default` */
	size_t count;
	uint64_t budget_bytes; /* memory all jobs together may have; 0: not declared */
};

/* The pools of a file, or `default` alone where path is NULL; slots and reuse are default's, if the
 * file says nothing of it.  OSD_E_PARAM_FIELD: message says what is wrong in which line, or that the
 * memory of all pools is more than the budget, with the numbers. */
enum osd_status osd_pool_table_load(const char *path, unsigned slots, enum osd_reuse reuse,
				    char message[256], struct osd_pool_table *ret_table);
void osd_pool_table_release(struct osd_pool_table *table);
/* The same from the text of such a file, which is changed. */
enum osd_status osd_pool_table_parse(char *text, unsigned slots, enum osd_reuse reuse,
				     char message[256], struct osd_pool_table *ret_table);
/* Whether these pools can be served together: slots, sandboxes, the budget's memory.
 * OSD_E_PARAM_FIELD: message has the numbers. */
enum osd_status osd_pool_table_check(const struct osd_pool_table *table, char message[256]);

/* What admin.h's osd_exec_pool_set may change of a pool. */
struct osd_pool_change {
	struct osd_pool_config config;
	uint64_t active;
	enum osd_pool_mode mode;
};
/* As words say, which are changed: "key=value;..."; active follows where max goes.
 * OSD_E_PARAM_FIELD: message says what is wrong. */
enum osd_status osd_pool_change_parse(char *words, char message[256],
				      struct osd_pool_change *change);
/* What a key of such words has now; false: there is no such key. */
bool osd_pool_change_value(const struct osd_pool_change *change, const char *key,
			   char value[OSD_POOL_VALUE_MAX]);
/* What is different, "key before -> after" each, as a text. */
void osd_pool_config_diff(const struct osd_pool_config *before,
			  const struct osd_pool_config *after, char *text, size_t size);
const char *osd_pool_mode_name(enum osd_pool_mode mode);

/* Whether a principal may use the pool. */
bool osd_pool_admits(const struct osd_pool_config *config, const char *principal);
/* Bytes of memory that a job may ask for: the pool's maximum, and no more than the host has. */
uint64_t osd_pool_memory_most(const struct osd_pool_config *config);
/* Replaces zeros by the pool's defaults; false when one is beyond its maximum. */
bool osd_pool_settle_limits(const struct osd_pool_config *config, struct osd_job_limits *limits);

/* Sandboxes it has at most: at work, waiting, and as many that are just ending. */
static inline uint64_t osd_pool_alive_max(const struct osd_pool_config *config)
{
	return 2 * config->max + config->spares + 1;
}

struct osd_pool {
	struct osd_pool *next; /* pools are only added, at the end */
	struct osd_exec *exec; /* constant */
	struct osd_pool_config config;
	enum osd_pool_mode mode;
	bool gone;    /* not configured; jobs of an earlier run still name it */
	bool leaving; /* not configured any more: gone once its jobs have ended */
	struct osd_sandbox_limits usual; /* of sandboxes forked ahead */
	unsigned alive_max;		 /* at work, waiting, and just ending */
	struct osd_fair_queue queue;
	pthread_cond_t work;	 /* a proxy of this pool may find something to do */
	unsigned proxies;	 /* threads of it (proxy_threads.c) */
	unsigned active;	 /* slots that may work now; more are at work after it was lowered */
	unsigned busy;		 /* slots at work */
	uint64_t used_usec;	 /* when a job last took or left a sandbox, or the pool was changed */
	struct osd_run *started; /* handed over, waiting for a proxy to serve them (start.c) */
	struct osd_pool_told {	 /* by iosd-sandboxd, on the present connection */
		bool heard;
		enum osd_pool_state state;
		char set[OSD_JOB_SET_MAX + 1];
		char why[OSD_POOL_WHY_MAX];
	} told;
	bool recycling; /* iosd-sandboxd was asked for another zygote */
	bool serving;	/* iosd-sandboxd makes sandboxes for it */
	bool failed;	/* and cannot, see why */
	char why[OSD_POOL_WHY_MAX];
	char lacking[OSD_POOL_WHY_MAX]; /* why the last sandbox asked for did not come up; "": it did */
	uint64_t calm_usec, calm_delay_usec; /* then: no new SPAWN before this; how long that was */
	uint64_t linger_usec; /* after a job: no SPAWN before this, if enough are READY */
	struct osd_pool_figures figures;
};

/* Before any thread starts.  Takes what it wants of the table. */
enum osd_status osd_pools_open(struct osd_exec *exec, const struct osd_pool_table *table);
/* No thread uses them any more; their queues are empty. */
void osd_pools_close(struct osd_exec *exec);

/* exec->lock held in all of these. */

/* NULL: none of this name is configured.  No name: `default`. */
struct osd_pool *osd_pool_find_named(struct osd_exec *exec, const void *name, size_t length);
/* For a job found in the store: one that is gone is kept as such.  NULL: no memory. */
struct osd_pool *osd_pool_of_record(struct osd_exec *exec, const struct osd_job_record *record);
/* Whether another job may start in it now. */
bool osd_pool_starts(const struct osd_pool *pool);
/* A job has come to its queue: wakes a proxy, and whoever watches when there is no slot for it. */
void osd_pool_has_work(struct osd_pool *pool);
/* A slot is taken by a job of this principal; for vacate, when it is free again. */
struct osd_fair_principal *osd_pool_occupy(struct osd_pool *pool, const char *principal);
void osd_pool_vacate(struct osd_pool *pool, struct osd_fair_principal *principal);
/* After its config has changed, or at first. */
void osd_pool_settle(struct osd_pool *pool);
/* What follows from what it is configured as and what iosd-sandboxd has told of it. */
void osd_pool_judge(struct osd_pool *pool);
/* It is not configured any more: gone once its jobs have ended. */
void osd_pool_leave(struct osd_pool *pool);
/* One that is not configured yet.  NULL: no memory, or too many have come and gone. */
struct osd_pool *osd_pool_create(struct osd_exec *exec, const char *name);
/* Of any kind; NULL: there is none. */
struct osd_pool *osd_pool_find_any(struct osd_exec *exec, const char *name);
/* Whether it, or the target, has not that many places left. */
bool osd_pool_is_full(const struct osd_pool *pool, size_t count);
/* Places in the pool's queue for so many jobs; OSD_E_QUEUE_FULL when it, the target or the principal has no
 * more, unless forced. */
enum osd_status osd_pool_reserve(struct osd_pool *pool, const char *principal, size_t count,
				 bool force, struct osd_fair_entry *entry);
/* Why no sandbox can be had now, though iosd-sandboxd is there; NULL: one can, or soon.  Valid while
 * exec->lock is held. */
const char *osd_pool_lacks(const struct osd_exec *exec, const struct osd_pool *pool);
/* Whether a job may start before long: else nobody should wait for one. */
bool osd_pool_may_run(const struct osd_exec *exec, const struct osd_pool *pool);
/* Jobs that have places, in all pools. */
size_t osd_pools_places(const struct osd_exec *exec);
/* What iosd-sandboxd says of a pool; none of a name we do not know. */
void osd_pool_news(struct osd_exec *exec, const struct osd_pool_news *news);
/* Its sandboxes come from another zygote from now on. */
void osd_pool_rotated(struct osd_exec *exec, const void *name, size_t length);
/* The connection is gone. */
void osd_pools_unserved(struct osd_exec *exec);
/* All proxies look around. */
void osd_pools_wake(struct osd_exec *exec);

#endif
