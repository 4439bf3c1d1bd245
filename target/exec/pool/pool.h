/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool.h -- pools: an administrator's kinds of sandboxes, each with slots, a queue, limits and a package set of
 * its own.  `default` is always there; a job says which it needs (EXEC parameter 20).  A pool that cannot
 * serve (its package set was changed, say) keeps its jobs waiting and costs the others nothing.
 *
 * This room joins queues to supplies of sandboxes.  It knows jobs by what they are counted as, and neither
 * arrays nor scripts.
 *
 * Inside: config.c (the file of pools), pool.c (the pools of a running target), admin.c and reload.c
 * (changes, exec/admin.h), principals.c (accounts and shares), figures.c (counting).
 *
 * Locking: exec->lock guards everything, also a pool's configuration, which can be changed while it runs, but
 * for its name.  It is held in all functions from osd_pools_open on, unless one says otherwise. */
#ifndef OSD_EXEC_POOL_POOL_H
#define OSD_EXEC_POOL_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/status.h"
#include "exec/admin.h"
#include "exec/job/job.h"
#include "exec/queue/queue.h"
#include "exec/sandbox/sandbox.h"
#include "wire/sandboxd_frame.h"

struct osd_exec;
struct osd_run;
struct osd_exec_text;

#define OSD_POOL_DEFAULT   "default"
#define OSD_POOLS_MAX	   16
#define OSD_POOLS_EVER	   256 /* with those that are gone */
#define OSD_POOL_WHY_MAX   OSD_SUPPLY_WHY_MAX
#define OSD_POOL_USERS_MAX 511

struct osd_pool_config {
	char name[OSD_JOB_POOL_MAX + 1];
	char set[OSD_JOB_SET_MAX + 1]; /* id of its package set; "": none */
	uint64_t min, max;	       /* slots: warm even when idle; at most */
	uint64_t spares;	       /* sandboxes kept warm beyond those */
	uint64_t idle_usec;	       /* without a job: it keeps min sandboxes, and no spares */
	uint64_t queue_max;	       /* jobs waiting; BUSY beyond */
	enum osd_reuse reuse;
	uint64_t sandbox_jobs;		    /* of one sandbox, where it is used again */
	char users[OSD_POOL_USERS_MAX + 1]; /* principals who may use it, by commas; "": anybody */
	struct osd_job_limits standard; /* what a job gets that asks for nothing; cpu 0: as wall */
	struct osd_job_limits maximum;	/* and what it may ask for */
};

/* A target's pools as configured (config.c). */
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

/* What osd_exec_pool_set (exec/admin.h) may change of a pool. */
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
void osd_pool_config_diff(const struct osd_pool_config *before, const struct osd_pool_config *after,
			  char *text, size_t size);
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

/* What is counted of a pool and its jobs since the target started (docs/control.md, "pools"). */
struct osd_pool_figures {
	uint64_t arrived, started, ended;	 /* jobs; started: attempts */
	uint64_t finished[OSD_JOB_REASON_COUNT]; /* by row of their reason */
	uint64_t cpu_usec;			 /* of jobs that have ended */
	struct osd_histogram queue, start, run, cancel;
};

struct osd_pool {
	struct osd_pool *next; /* pools are only added, at the end */
	struct osd_exec *exec; /* constant */
	struct osd_pool_config config;
	enum osd_pool_mode mode;
	bool gone;		  /* not configured; jobs of an earlier run still name it */
	bool leaving;		  /* not configured any more: gone once its jobs have ended */
	struct osd_supply supply; /* its sandboxes and slots */
	struct osd_fair_queue queue;
	pthread_cond_t work;	 /* a proxy of this pool may find something to do */
	unsigned proxies;	 /* threads of it (run/threads.c) */
	struct osd_run *started; /* handed over, waiting for a proxy to serve them (run/start.c) */
	struct osd_pool_told {	 /* by iosd-sandboxd, on the present connection */
		bool heard;
		enum osd_pool_state state;
		char set[OSD_JOB_SET_MAX + 1];
		char why[OSD_POOL_WHY_MAX];
	} told;
	bool recycling; /* iosd-sandboxd was asked for another zygote */
	bool failed;	/* iosd-sandboxd cannot make sandboxes for it, see why */
	char why[OSD_POOL_WHY_MAX];
	struct osd_pool_figures figures;
};

/* ---- principals (principals.c) ------------------------------------------------------------------ */

/* Who used how much, and what was set of whom: one account a principal, a bounded number of them.  An account
 * that is not needed makes room for another: what it has is added to that of all others like it. */
#define OSD_PRINCIPALS_MAX	  1024 /* with an account of their own */
#define OSD_PRINCIPALS_SHARED_MAX 512  /* of whom something was set */
#define OSD_PRINCIPALS_OTHERS	  "(others)"

struct osd_account;

struct osd_principals {
	struct osd_account **accounts; /* by name */
	size_t count, shared;
	struct osd_principal_usage others; /* name NULL: there are none */
};

/* ---- all of them ------------------------------------------------------------------------------- */

/* Why a submission was answered BUSY. */
enum osd_refusal {
	OSD_REFUSAL_QUEUE,     /* the queue of the pool, or all together, is full */
	OSD_REFUSAL_PRINCIPAL, /* the principal's share of it is */
	OSD_REFUSAL_WAITS,     /* too many commands wait for a job */
	OSD_REFUSAL_SERVICE,   /* synchronous, and no sandbox is available */
	OSD_REFUSAL_PAUSED,    /* synchronous, and the pool starts none */
	OSD_REFUSAL_DRAINING,
	OSD_REFUSAL_SHED,
	OSD_REFUSAL_COUNT
};
const char *osd_refusal_name(enum osd_refusal refusal);

struct osd_pools {
	/* Set at start; constant, and borrowed. */
	struct osd_sandboxes *sandboxes;
	const char *file; /* that configures the pools; NULL: `default` alone */
	unsigned slots;	  /* of default, where the file does not say */
	enum osd_reuse reuse;
	size_t queue_principal; /* jobs one principal may have in a pool's queue */
	/* Threads that run jobs: so many of this pool, at least.  OSD_E_NO_MEMORY. */
	enum osd_status (*start_threads)(struct osd_pool *pool, unsigned count);
	/* Jobs have begun to wait, if only for a moment; NULL: nobody asks. */
	void (*jobs_wait)(void *context);
	void *context;

	struct osd_pool *first; /* `default` */
	uint64_t budget_bytes;	/* memory of all jobs together; 0: not declared */
	bool shedding;		/* new jobs are refused (exec/admin.h) */
	struct osd_principals principals;
	uint64_t refused[OSD_REFUSAL_COUNT];
	uint64_t retried[OSD_JOB_REASON_COUNT]; /* by row of the reason */
	uint64_t accepted, finished, lost;
};

void osd_principals_release(struct osd_principals *principals);

void osd_principal_accepted(struct osd_exec *exec, const char *name, uint64_t jobs);
void osd_principal_refused(struct osd_exec *exec, const char *name);
void osd_principal_ended(struct osd_exec *exec, const struct osd_job_record *record);
/* What was set holds in a new pool, too.  False: no memory. */
bool osd_principals_enter(struct osd_exec *exec, struct osd_pool *pool);

/* ---- pools (pool.c) ------------------------------------------------------------------------------ */

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
/* Whether a job may start before long: else nobody should wait for one. */
bool osd_pool_may_run(const struct osd_pool *pool);
/* Jobs that have places, in all pools. */
size_t osd_pools_places(const struct osd_exec *exec);
/* What iosd-sandboxd says of a pool; none of a name we do not know. */
void osd_pool_news(void *exec, const struct osd_pool_news *news);
/* Its sandboxes come from another zygote from now on. */
void osd_pool_rotated(void *exec, const void *name, size_t length);
/* The connection is gone. */
void osd_pools_unserved(void *exec);
/* What iosd-sandboxd enforces for a job. */
struct osd_sandbox_limits osd_sandbox_limits_of(const struct osd_job_limits *limits);
/* What a job with these limits needs. */
struct osd_sandbox_order osd_pool_order(struct osd_pool *pool, const char *principal,
					const struct osd_job_limits *limits);
/* All proxies look around. */
void osd_pools_wake(struct osd_exec *exec);
/* What the file of pools says now; no lock held.  As osd_pool_table_load. */
enum osd_status osd_pools_read(const struct osd_pools *pools, char message[256],
			       struct osd_pool_table *ret_table);
/* How long a client that is answered BUSY should wait. */
uint32_t osd_pool_retry_after(const struct osd_pool *pool);

/* ---- changes (admin.c) --------------------------------------------------------------------------- */

/* What of this pool counts towards slots and budget with this config: slots that were taken away until their
 * jobs have ended, and jobs' memory as they were accepted. */
struct osd_pool_config osd_pool_claim(const struct osd_pool *pool,
				      const struct osd_pool_config *config);
/* The pool is as that says from now on. */
void osd_pool_apply(struct osd_pool *pool, const struct osd_pool_change *change);

/* ---- counting (figures.c) ------------------------------------------------------------------------ */

/* Accepted: with its members, if it is an array. */
void osd_figures_arrived(struct osd_exec *exec, const struct osd_job *job);
/* A slot has it, started_usec is set. */
void osd_figures_started(const struct osd_job *job);
/* The sandbox has it, at this time. */
void osd_figures_handed_over(const struct osd_job *job, uint64_t now_usec);
void osd_figures_again(struct osd_exec *exec, uint16_t reason);
/* In memory as in record now. */
void osd_figures_ended(struct osd_exec *exec, const struct osd_job *job,
		       const struct osd_job_record *record);

#endif
