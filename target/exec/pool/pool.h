/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool.h -- pools: kinds of sandboxes that an administrator defines.  Each pool has its own slots,
 * queue, limits and package set.  The pool `default` always exists.  A job names its pool in EXEC
 * parameter 20.  If a pool cannot serve, for instance because its package set was changed, its jobs
 * wait and the other pools are not affected.  This room joins queues to supplies of sandboxes.  It
 * knows the kinds by which jobs are counted, but no arrays and no scripts.
 *
 * Inside: config.c (the file of pools), limits.c (of a job), pool.c (the pools of a running target), admin.c
 * and reload.c (changes, exec/admin.h), principals.c (accounts and shares), figures.c (counting),
 * offload.c (jobs that are given back to their clients).
 *
 * Locking: exec->lock guards everything, also the configuration of a pool, which can change while
 * the target runs; only its name is constant.  The caller holds it in all functions from
 * osd_pools_open on, unless one says otherwise. */
#ifndef OSD_EXEC_POOL_POOL_H
#define OSD_EXEC_POOL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/pace.h"
#include "base/status.h"
#include "exec/admin.h"
#include "exec/advice/advice.h"
#include "exec/job/job.h"
#include "exec/queue/queue.h"
#include "exec/sandbox/sandbox.h"
#include "wire/exec_param.h"
#include "wire/sandboxd_frame.h"

struct osd_exec;
struct osd_run;

#define OSD_POOL_DEFAULT   "default"
#define OSD_POOL_ENGINE	   "python" /* of a pool that names none */
#define OSD_POOL_NATIVE	   "native" /* runs signed functions only, each in a sandbox of its own */
#define OSD_POOLS_MAX	   16
#define OSD_POOLS_EVER	   256 /* including those that are gone */
#define OSD_POOL_WHY_MAX   OSD_SUPPLY_WHY_MAX
#define OSD_POOL_USERS_MAX 511
#define OSD_POOL_LEAST_MEMORY (UINT64_C(32) << 20) /* the interpreter needs at least this */

struct osd_pool_config {
	char name[OSD_JOB_POOL_MAX + 1];
	char set[OSD_JOB_SET_MAX + 1]; /* id of its package set; "": none */
	char engine[OSD_EXEC_WORD_MAX + 1]; /* of its sandboxes */
	uint64_t min, max;	       /* slots: min are prestarted even when idle */
	uint64_t spares;	       /* prestarted sandboxes beyond those */
	uint64_t idle_usec;	       /* without a job: then it keeps min sandboxes, and no
				        * spares */
	uint64_t queue_max;	       /* jobs waiting; BUSY beyond */
	enum osd_reuse reuse;
	uint64_t sandbox_jobs;		    /* jobs that one sandbox may run, if it is reused */
	char users[OSD_POOL_USERS_MAX + 1]; /* principals that may use it, by commas; "": all */
	struct osd_job_limits standard;	    /* limits of a job that names none; cpu 0: as wall */
	struct osd_job_limits maximum;	    /* the highest limits that a job may name */
	/* The share of the host for all its jobs together; the last two: 0: no bound. */
	uint64_t cpu_share;	/* percent of the processors; 100: no bound */
	uint64_t bandwidth;	/* bytes per second that scripts read and write */
	uint64_t deadline_usec; /* from the submission of a job to its end */
};

/* A target's pools as configured (config.c). */
struct osd_pool_table {
	struct osd_pool_config *pools; /* owned; the first is `default` */
	size_t count;
	uint64_t budget_bytes; /* memory for all jobs together; 0: not declared */
};

/* Loads the pools of a file; path NULL: `default` alone.  slots and reuse apply to `default` if the
 * file does not set them.  OSD_E_PARAM_FIELD: message names the line and the mistake, or gives the
 * memory of all pools and the budget that it exceeds. */
enum osd_status osd_pool_table_load(const char *path, unsigned slots, enum osd_reuse reuse,
				    char message[256], struct osd_pool_table *ret_table);
void osd_pool_table_release(struct osd_pool_table *table);
const struct osd_pool_config *osd_pool_table_find(const struct osd_pool_table *table,
						  const char *name); /* NULL: none */
/* The same from the text of such a file, which it overwrites. */
enum osd_status osd_pool_table_parse(char *text, unsigned slots, enum osd_reuse reuse,
				     char message[256], struct osd_pool_table *ret_table);
/* Whether these pools can be served together: slots, sandboxes, memory within the budget.
 * OSD_E_PARAM_FIELD: message has the numbers. */
enum osd_status osd_pool_table_check(const struct osd_pool_table *table, char message[256]);

/* The settings of a pool that osd_exec_pool_set (exec/admin.h) may change. */
struct osd_pool_change {
	struct osd_pool_config config;
	uint64_t active;
	enum osd_pool_mode mode;
};
/* Parses words, "key=value;...", and overwrites it; active follows max.  OSD_E_PARAM_FIELD: message
 * names the mistake. */
enum osd_status osd_pool_change_parse(char *words, char message[256],
				      struct osd_pool_change *change);
/* The present value of such a key; false: there is no such key. */
bool osd_pool_change_value(const struct osd_pool_change *change, const char *key,
			   char value[OSD_POOL_VALUE_MAX]);
/* The differences as text, "key before -> after" each. */
void osd_pool_config_diff(const struct osd_pool_config *before, const struct osd_pool_config *after,
			  char *text, size_t size);
const char *osd_pool_mode_name(enum osd_pool_mode mode);

/* Whether a principal may use the pool. */
bool osd_pool_admits(const struct osd_pool_config *config, const char *principal);
/* The most memory that a job may ask for, in bytes: the pool's maximum, at most that of the
 * host. */
uint64_t osd_pool_memory_most(const struct osd_pool_config *config);
/* Replaces zeros by the pool's defaults; false if a limit exceeds the pool's maximum. */
bool osd_pool_settle_limits(const struct osd_pool_config *config, struct osd_job_limits *limits);

/* The most sandboxes it can have: working, waiting, and as many that are just ending. */
static inline uint64_t osd_pool_alive_max(const struct osd_pool_config *config)
{
	return 2 * config->max + config->spares + 1;
}

/* The fewest slots in use that a pool with this configuration can have. */
static inline uint64_t osd_pool_active_least(const struct osd_pool_config *config)
{
	return config->min ? config->min : 1;
}
/* The slots in use after a change of the configuration that does not name them: all of them, if all were. */
static inline uint64_t osd_pool_active_then(const struct osd_pool_config *before, uint64_t active,
					    const struct osd_pool_config *config)
{
	uint64_t least = osd_pool_active_least(config), wanted = active > least ? active : least;

	return active == before->max || wanted > config->max ? config->max : wanted;
}

/* The counters of a pool and its jobs since the target started (docs/control.md, "pools"). */
struct osd_pool_figures {
	uint64_t arrived, started, ended;	 /* jobs; started: attempts */
	uint64_t finished[OSD_JOB_REASON_COUNT]; /* by row of their reason */
	uint64_t pushed[OSD_ADVICE_REASONS];	 /* jobs given back, by why */
	uint64_t cpu_usec;			 /* of jobs that have ended */
	struct osd_histogram queue, start, run, cancel;
};

/* For estimates of the time that a job would wait. */
struct osd_pool_load {
	uint64_t running;      /* jobs */
	uint64_t started_usec; /* the sum of their starts */
	uint64_t run_usec;     /* mean of jobs that have ended, later ones count more; 0: none has */
};

struct osd_pool {
	struct osd_pool *next; /* pools are only added, at the end */
	struct osd_exec *exec; /* constant */
	struct osd_pool_config config;
	enum osd_pool_mode mode;
	bool gone;		  /* not configured; kept for jobs of an earlier run that name it */
	bool leaving;		  /* not configured any more: gone once its jobs have ended */
	struct osd_supply supply; /* its sandboxes and slots */
	unsigned lenders;	  /* jobs that wait for a stage */
	struct osd_fair_queue queue;
	size_t jobs;		 /* accepted and not ended; members of arrays each */
	struct osd_run *started; /* handed over; they wait for a proxy to serve them
				  * (run/start.c) */
	struct osd_pool_told {	 /* reported by iosd-sandboxd on the present connection */
		bool heard;
		enum osd_pool_state state;
		char set[OSD_JOB_SET_MAX + 1];
		char why[OSD_POOL_WHY_MAX];
	} told;
	bool recycling; /* iosd-sandboxd was asked to replace the zygote */
	bool failed;	/* iosd-sandboxd cannot make sandboxes for it, see why */
	char why[OSD_POOL_WHY_MAX];
	struct osd_pool_figures figures;
	struct osd_pool_load load;
	struct osd_pace pace; /* the bandwidth; not under exec->lock */
};

/* ---- principals (principals.c) ------------------------------------------------------------------ */

/* The use of each principal, and the settings made for it.  There is one account per principal, and
 * a bounded number of accounts.  An account that is not needed makes room for another: its counts
 * are added to those of the common account "others". */
#define OSD_PRINCIPALS_MAX	  1024 /* with an account of their own */
#define OSD_PRINCIPALS_SHARED_MAX 512  /* with settings of their own */
#define OSD_PRINCIPALS_OTHERS	  "(others)"

struct osd_account;

struct osd_principals {
	struct osd_account **accounts; /* by name */
	size_t count, shared;
	struct osd_principal_usage others; /* the common account; name NULL: there is none */
};

/* ---- all of them ------------------------------------------------------------------------------- */

/* Why a submission was answered with BUSY. */
#define OSD_REFUSALS(X)                                                                            \
	X(QUEUE, "queue-full")	       /* that of the pool, or of all pools together */            \
	X(PRINCIPAL, "principal-full") /* the principal has used its share of the queue */         \
	X(WAITS, "too-many-waits")     /* too many commands wait for a job */                      \
	X(SERVICE, "no-sandboxes")     /* synchronous, and no sandbox is available */              \
	X(PAUSED, "paused")	       /* synchronous, and the pool starts none */                 \
	X(DRAINING, "draining")                                                                    \
	X(SHED, "shed")

enum osd_refusal {
#define X(symbol, name) OSD_REFUSAL_##symbol,
	OSD_REFUSALS(X)
#undef X
		OSD_REFUSAL_COUNT
};

struct osd_pools {
	/* Set at start; constant and borrowed. */
	const char *file; /* configures the pools; NULL: `default` alone */
	unsigned slots;	  /* of `default`, if the file does not set them */
	enum osd_reuse reuse;
	size_t queue_principal; /* jobs one principal may have in a pool's queue */
	/* A job may start now: a proxy looks for it.  exec->lock held. */
	void (*work)(struct osd_exec *exec);
	/* Called when jobs begin to wait, even for a moment; may be NULL. */
	void (*jobs_wait)(void *context);
	void *context;
	unsigned processors; /* that the target may use */

	struct osd_advice advice;
	struct osd_histogram advice_error; /* by how much predicted times near the data were wrong */
	struct osd_pool *first; /* `default` */
	uint64_t budget_bytes;	/* memory for all jobs together; 0: not declared */
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
/* Enters all settings of principals into a new pool, too.  False: no memory. */
bool osd_principals_enter(struct osd_exec *exec, struct osd_pool *pool);

/* ---- pools (pool.c) ------------------------------------------------------------------------------ */

/* Called before any thread starts.  Takes over the parts of the table that it needs. */
enum osd_status osd_pools_open(struct osd_exec *exec, const struct osd_pool_table *table);
/* Called when no thread uses the pools any more and their queues are empty. */
void osd_pools_close(struct osd_exec *exec);

/* The caller holds exec->lock in all functions that follow. */

/* NULL: no configured pool has this name.  An empty name: `default`. */
struct osd_pool *osd_pool_find_named(struct osd_exec *exec, const void *name, size_t length);
/* Whether its engine is OSD_POOL_NATIVE. */
bool osd_pool_is_native(const struct osd_pool_config *config);

/* The pool for an engine: the named one, if it has this engine; without a name, the first with this engine.  No
 * engine: any.  NULL: there is none. */
struct osd_pool *osd_pool_find_engine(struct osd_exec *exec, struct osd_pool *named,
				      const void *engine, size_t length);
/* The pool of a job found in the store.  If it is not configured, an entry marked gone is made.
 * NULL: no memory. */
struct osd_pool *osd_pool_of_record(struct osd_exec *exec, const struct osd_job_record *record);
/* A job of the pool waits for a stage of data that it reads or writes (docs/views.md), and takes its slot back
 * then.  Meanwhile a stage may run in its place: a stage waits for nothing, so all of them end.  If the memory of
 * all jobs is bounded, one stage at a time runs beside the slots of a pool. */
void osd_pool_lend(struct osd_pool *pool);
void osd_pool_take_back(struct osd_pool *pool);
/* Whether another job may start in it now; lendable: one that may take a lent slot. */
bool osd_pool_starts(const struct osd_pool *pool, bool lendable);
/* The entry of its queue that may start now.  It stays in the queue.  NULL: none. */
struct osd_fair_entry *osd_pool_next(const struct osd_pool *pool);
/* A job was added to its queue: wakes a proxy, or the monitor if no slot is free. */
void osd_pool_has_work(struct osd_pool *pool);
/* The job of an entry of its queue takes a slot.  Pass the result to vacate once the slot is free again. */
struct osd_fair_principal *osd_pool_occupy(struct osd_pool *pool,
					   const struct osd_fair_entry *entry);
void osd_pool_vacate(struct osd_pool *pool, struct osd_fair_principal *principal);
/* Applies the configuration, at first and after each change. */
void osd_pool_settle(struct osd_pool *pool);
/* Decides whether the pool can serve, from its configuration and the reports of iosd-sandboxd. */
void osd_pool_judge(struct osd_pool *pool);
/* Whether a job of it is being accepted, or has not ended: also one that is held or waits for another attempt. */
static inline bool osd_pool_has_jobs(const struct osd_pool *pool)
{
	return pool->supply.busy > 0 || pool->queue.place_count > 0 || pool->jobs > 0;
}
/* The pool is not configured any more: it is gone once its jobs have ended. */
void osd_pool_leave(struct osd_pool *pool);
/* Creates a pool that is not configured yet.  NULL: no memory, or too many pools have been
 * created. */
struct osd_pool *osd_pool_create(struct osd_exec *exec, const char *name);
/* Finds a pool by name, configured or not; NULL: there is none. */
struct osd_pool *osd_pool_find_any(struct osd_exec *exec, const void *name, size_t length);
/* Whether the pool, or the target, has fewer free places than this. */
bool osd_pool_is_full(const struct osd_pool *pool, size_t count);
/* Reserves places in the pool's queue for so many jobs.  OSD_E_QUEUE_FULL if the pool, the target
 * or the principal has too few, unless forced. */
enum osd_status osd_pool_reserve(struct osd_pool *pool, const char *principal, size_t count,
				 bool force, struct osd_fair_entry *entry);
/* Whether a job may start soon: otherwise no command should wait for one. */
bool osd_pool_may_run(const struct osd_pool *pool);
/* The number of jobs that have places, in all pools. */
size_t osd_pools_places(const struct osd_exec *exec);
/* A report of iosd-sandboxd about a pool; ignored if the name is unknown. */
void osd_pool_news(void *exec, const struct osd_pool_news *news);
/* The pool's sandboxes come from a new zygote from now on. */
void osd_pool_rotated(void *exec, const void *name, size_t length);
/* The connection is gone. */
void osd_pools_unserved(void *exec);
/* The limits that iosd-sandboxd enforces for a job. */
struct osd_sandbox_limits osd_sandbox_limits_of(const struct osd_job_limits *limits);
/* The sandbox that a job needs; borrows from it. */
struct osd_sandbox_order osd_pool_order(const struct osd_job *job);
/* How long a client should wait after BUSY. */
uint32_t osd_pool_retry_after(const struct osd_pool *pool);

/* ---- changes (admin.c) --------------------------------------------------------------------------- */

/* The slots and memory that this pool uses with this config.  Removed slots count until their jobs
 * have ended, and jobs count with the memory they were accepted with. */
struct osd_pool_config osd_pool_claim(const struct osd_pool *pool,
				      const struct osd_pool_config *config);
/* Sets the configuration of the pool from now on. */
void osd_pool_apply(struct osd_pool *pool, const struct osd_pool_change *change);

/* ---- counting (figures.c) ------------------------------------------------------------------------ */

/* Counts an accepted job, with all members of an array. */
void osd_figures_arrived(struct osd_exec *exec, const struct osd_job *job);
/* Counts a job that has got a slot; started_usec is set. */
void osd_figures_started(struct osd_job *job);
/* Counts a job that has ended, with this record. */
void osd_figures_ended(struct osd_exec *exec, const struct osd_job *job,
		       const struct osd_job_record *record);

/* ---- work that its client can do (offload.c) ----------------------------------------------------- */

/* A submission with this record: whether it is left to its client, which is then noted.  Sets the numbers
 * of record->offload. */
bool osd_pool_refuses_work(struct osd_pool *pool, struct osd_job_record *record);
/* The same of a queued job that could start now.  The caller notes it, once no other thread ends or starts the job. */
bool osd_pool_returns_work(struct osd_job *job);
void osd_pool_work_returned(const struct osd_job *job);
/* A submission with this record, after osd_pool_refuses_work: whether the pool's deadline would pass before the job
 * ends, as far as is known.  It is then noted. */
bool osd_pool_would_be_late(struct osd_pool *pool, struct osd_job_record *record);
/* Whether it is too late to start a queued job. */
bool osd_pool_is_late(const struct osd_job *job, uint64_t now_usec);
/* The job waits for a slot from now on: the sweep ends it in time (flow/sweep.c). */
void osd_pool_note_deadline(struct osd_job *job);
/* A job gets a slot; it has ended, with this record. */
void osd_pool_work_starts(struct osd_job *job);
void osd_pool_work_ended(const struct osd_job *job, const struct osd_job_record *record);

#endif
