/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandbox.h -- the sandboxes that iosd-sandboxd has made for this target, and the connection to it.
 * This room knows no job and no pool: the owner of a sandbox answers for it (struct osd_sandbox_ops).
 *
 * Sandboxes are forked ahead of need.  A job takes a READY one, uses it once, and another is asked for in
 * its place.  With reuse (docs/security.md, section 5) a sandbox is KEPT for other jobs of the same principal: for its
 * scripts, or for its calls of the same function.
 * Every message names a sandbox by an id that is never used again, so a late message about a dead one is
 * recognised.
 *
 * Inside: link.c (the connection) and service.c (its messages).  stock.c (the number of sandboxes), sandbox.c
 * (one of them), life.c (its birth and end), keep.c and reuse.c (more than one job in it).  watch.c and
 * starvation.c (deadlines, on the monitor thread), script_turns.c (time slices of scripts).
 *
 * Locking: the target's lock guards everything and is held in every function.  There are two exceptions.  The
 * proxy that has taken a sandbox uses its shared memory, job socket and pipes without the lock; they stay
 * valid while it holds its reference.  Any thread reads `dead`, which is set before the call lines are
 * kicked.  Nothing here waits, except osd_sandbox_renew. */
#ifndef OSD_EXEC_SANDBOX_SANDBOX_H
#define OSD_EXEC_SANDBOX_SANDBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/alarm.h"
#include "base/lock.h"
#include "base/status.h"
#include "exec/sandbox/reuse.h"
#include "object/object.h"
#include "wire/proxy_frame.h"
#include "wire/sandboxd_frame.h"

struct osd_sandbox;
struct osd_sandboxes;

/* ---- what is counted ------------------------------------------------------------------------- */

/* How a sandbox's process ended. */
#define OSD_SANDBOX_EXITS(X)                                                                       \
	X(DONE, "done")	      /* by itself, its job over */                                        \
	X(KILLED, "killed")   /* killed by the target */                                           \
	X(SIGNAL, "signal")   /* by another signal */                                              \
	X(MEMORY, "memory")   /* by the kernel, which had no more for it */                        \
	X(SERVICE, "service") /* with iosd-sandboxd */                                             \
	X(STUCK, "stuck")     /* it was killed, and iosd-sandboxd did not report its end */

/* Why a sandbox was not used again. */
#define OSD_SANDBOX_RECYCLINGS(X)                                                                  \
	X(USED, "used") /* the pool runs one job in each */                                        \
	X(WORN, "worn") /* not fit for another job: limits, or how its job ended */                \
	X(IDLE, "idle") /* unused for long, or the pool was made smaller */                        \
	X(ASKED, "asked")

enum osd_sandbox_exit_kind {
#define X(symbol, name) OSD_SANDBOX_EXIT_##symbol,
	OSD_SANDBOX_EXITS(X)
#undef X
		OSD_SANDBOX_EXIT_COUNT
};

enum osd_sandbox_recycling {
#define X(symbol, name) OSD_RECYCLED_##symbol,
	OSD_SANDBOX_RECYCLINGS(X)
#undef X
		OSD_RECYCLED_COUNT
};

/* ---- a supply -------------------------------------------------------------------------------- */

#define OSD_SUPPLY_WHY_MAX 240

/* Sandboxes of one kind, which is one pool of the target.  The owner sets the first part, and calls
 * osd_supply_changed when it has changed a number there. */
struct osd_supply {
	const char *name;		 /* iosd-sandboxd knows it by this name; constant */
	struct osd_sandbox_limits usual; /* of sandboxes forked ahead */
	unsigned min, max, spares; /* kept even when idle; jobs at a time; kept beyond these */
	unsigned alive_max;	   /* at work, waiting, and just ending */
	uint64_t idle_usec;	   /* after so long without a job it keeps min, and no spares */
	enum osd_reuse reuse;
	uint64_t sandbox_jobs; /* at most, of one sandbox that is used again */
	/* Percent of the processors that all together may use; OSD_CPU_SHARE_WHOLE: all. */
	unsigned cpu_share;
	bool serving;	       /* iosd-sandboxd makes sandboxes for it */
	unsigned active;       /* jobs that may run now; more do after it was lowered */
	unsigned busy;	       /* jobs that have taken a sandbox, or are about to */
	unsigned lent;	       /* of them, so many wait for others, which may run beside those that are active */
	uint64_t used_usec;    /* when a job last took or left a sandbox */
	const size_t *waiting; /* jobs that wait for a sandbox */

	/* This room's. */
	struct osd_supply *next;
	unsigned cpu_share_sent; /* that iosd-sandboxd enforces; 0: that of a new pool */
	char lacking[OSD_SUPPLY_WHY_MAX]; /* why the last one asked for did not start; "": it did */
	uint64_t calm_usec, calm_delay_usec; /* then: no new SPAWN before this; how long that was */
	uint64_t linger_usec; /* after a job: no SPAWN before this, if enough are READY */
	struct osd_supply_figures {
		uint64_t starts;
		uint64_t exits[OSD_SANDBOX_EXIT_COUNT];
		uint64_t recycled[OSD_RECYCLED_COUNT];
		uint64_t warm_usec; /* from asking for a sandbox to its READY; lately */
	} figures;
};

/* ---- a sandbox ------------------------------------------------------------------------------- */

/* SPAWNING -> WARMING -> READY -> TAKEN -> ENDING; any -> GONE (unlinked, freed with its last
 * reference).  With reuse also TAKEN -> KEPT -> TAKEN or ENDING. */
enum osd_sandbox_state {
	OSD_SANDBOX_SPAWNING, /* asked for */
	OSD_SANDBOX_WARMING,  /* descriptors are here, READY is not */
	OSD_SANDBOX_READY,
	OSD_SANDBOX_TAKEN,  /* a proxy has it */
	OSD_SANDBOX_KEPT,   /* waits, or will in a moment, for another job of its principal */
	OSD_SANDBOX_ENDING, /* its job is over: it exits, or is killed at kill_usec */
	OSD_SANDBOX_GONE,
};

/* The codes of functions that a sandbox says it keeps, compiled (codes.c).  Nothing depends on its word but its
 * own jobs, which are all of one principal and one function. */
struct osd_kept_codes {
	struct osd_kept_code {
		bool kept;
		uint8_t sha256[32];
		char name[OSD_RUN_NAME_MAX + 1]; /* that tracebacks show */
		uint8_t prove;	/* so many short calls before a submitter waits for one */
		uint8_t missed; /* times in a row that one has waited in vain; at most 6 */
	} slots[OSD_CODE_SLOTS];
	unsigned next; /* the slot to fill next */
};

/* The slot of a code, 1 to OSD_CODE_SLOTS.  *ret_kept: it is there; otherwise it is to be sent, and replaces what
 * was there. */
uint8_t osd_kept_codes_place(struct osd_kept_codes *codes, const uint8_t sha256[32], const char *name,
			     bool *ret_kept);
/* Whether it is in this slot. */
bool osd_kept_codes_holds(const struct osd_kept_codes *codes, uint8_t slot, const uint8_t sha256[32],
			  const char *name);
/* The sandbox says, at the end of the job, that it keeps the code of this slot.  cpu_usec: that the job has used. */
void osd_kept_codes_note(struct osd_kept_codes *codes, uint8_t slot, uint64_t cpu_usec);
/* Whether the next call will most likely be so short that its submitter should wait for it (run/linger.c); and
 * whether that was so. */
bool osd_kept_codes_are_short(const struct osd_kept_codes *codes, uint8_t slot);
void osd_kept_codes_waited(struct osd_kept_codes *codes, uint8_t slot, bool in_vain);

struct osd_sandbox {
	struct osd_sandbox *next;
	uint64_t id;
	uint64_t asked_usec; /* since when iosd-sandboxd owes an answer, if it does; monotonic */
	enum osd_sandbox_state state;
	struct osd_supply *supply; /* constant */
	unsigned references;	   /* the list, a proxy, the output thread in passing */
	pid_t pid;		   /* in the target's pid namespace */
	int pidfd, job_fd, stdout_fd, stderr_fd; /* -1: none */
	struct osd_shm *shm;			 /* mapped until the last reference goes */
	_Atomic bool dead;			 /* its process is gone, or its service */
	bool service_lost;			 /* dead because iosd-sandboxd is */
	struct osd_sandbox_limits limits;	 /* in force */
	bool limits_asked, limits_refused;	 /* an answer is due; the answer was no */
	bool exit_known;
	struct osd_sandbox_exit exit;

	/* Set by the thread that has taken it, for watch.c. */
	void *user;		  /* what osd_sandbox_ops know it by; NULL: nothing runs in it */
	uint64_t wall_usec;	  /* deadline, monotonic; OSD_NEVER: none */
	uint64_t wall_first_usec; /* the same, not extended by starvation */
	uint64_t wall_limit_usec; /* how long the job may run */
	uint64_t cpu_limit_usec;
	uint64_t cpu_before_usec, system_before_usec; /* used before the job; the latter its word */
	uint64_t ping_usec;			      /* next sample of its usage */
	bool pinged;				      /* the script has run for a while */
	uint64_t grace_usec;			      /* how long the script may clean up */
	/* starvation.c: as of the last sample, of the process since it began; of its job. */
	uint64_t sampled_usec, waited_usec, cpu_sampled_usec;
	bool was_ready; /* it ran or waited for a processor then */
	bool measured;	/* its waits are known since the job began */
	_Atomic uint64_t starved_usec;
	bool answer_due; /* ENDING: FINISH is answered at let_go_usec */
	uint64_t let_go_usec;
	uint64_t nudge_usec, nudge_delay_usec; /* it is asked again to end then; longer each time */
	uint64_t kill_usec;		       /* kill at; OSD_NEVER: not yet */
	bool kill_sent;
	uint64_t give_up_usec; /* it is treated as dead then, whatever iosd-sandboxd reports */
	bool given_up;

	/* Reuse (keep.c). */
	unsigned jobs;		   /* run so far, the present one included */
	char *principal;	   /* kept for; owned; NULL: pristine */
	struct osd_object_id function; /* kept for its calls; object 0: for scripts */
	uint8_t function_sha256[32];   /* of its code then */
	bool stale;		   /* TAKEN: not for another job: its pool has changed */
	bool ready_again;	   /* KEPT or TAKEN, and waits in NEXT after its last job */
	uint64_t look_usec;	   /* KEPT: the next look at its processor time */
	uint64_t idle_cpu_usec;	   /* KEPT: what it had used at the last look; 0: there was none */
	uint32_t calls_seen;	   /* call line when its last job ended */
	struct osd_kept_codes codes; /* used by the thread that has taken it, without the lock */
	uint8_t last_slot;	     /* where the code of its last job is; 0: nowhere */
	uint8_t light_slot;	     /* cleaned lightly, for a call of the function whose code is there; 0: wholly */
	unsigned light_count;	     /* times since it was cleaned wholly */
	uint64_t peak_first_bytes; /* before its first job */
};

/* ---- all of them ----------------------------------------------------------------------------- */

enum osd_sandbox_work {
	OSD_WORK_NONE,	 /* nothing runs in it (any more) */
	OSD_WORK_RUNS,	 /* a script runs */
	OSD_WORK_TO_END, /* a script runs, and is to end */
};

/* Questions and reports of this room to the target.  Given at start; called with the lock held. */
struct osd_sandbox_ops {
	/* Of a sandbox with a user. */
	enum osd_sandbox_work (*work_of)(const struct osd_sandbox *sandbox);
	/* How long its script may clean up. */
	uint64_t (*grace_of)(const struct osd_sandbox *sandbox);
	/* The script has used more time than it may: cpu, or by the clock. */
	void (*out_of_time)(struct osd_sandbox *sandbox, bool cpu);
	/* A sandbox has become READY, or is kept for another job: a job may take it. */
	void (*ready)(void *arg);
	/* iosd-sandboxd reports on a pool; or that it has replaced the zygote of a pool. */
	void (*news)(void *arg, const struct osd_pool_news *news);
	void (*rotated)(void *arg, const void *name, size_t length);
	/* The connection is gone, and with it what was reported. */
	void (*unserved)(void *arg);
};

struct osd_sandboxes {
	/* Set before osd_sandboxes_init; constant, and borrowed, but for stopping. */
	struct osd_lock *lock;
	pthread_cond_t *changed;      /* broadcast when a sandbox has changed its state */
	struct osd_alarm *alarm;      /* of the thread that watches sandboxes */
	int watch_epoll, pipes_epoll; /* that thread's; of the thread that reads their pipes */
	const char *path;	      /* socket of iosd-sandboxd; NULL: none */
	const char *demanded;	      /* least level of isolation; "best": any */
	const struct osd_sandbox_ops *ops;
	void *arg;
	bool stopping;

	struct osd_supply *supplies;
	struct osd_sandbox *list;		       /* the youngest first */
	void (*lost)(struct osd_sandboxes *sandboxes); /* what follows the end of the connection */
	int fd;					       /* to iosd-sandboxd; -1: not connected */
	bool welcomed;				       /* and good enough (isolation) */
	bool isolation_refused; /* connected once, level below the one demanded */
	char unfit[128];	/* why the target cannot work with it; "": not tried */
	uint64_t retry_usec, retry_delay_usec; /* next attempt to connect; 0: the first */
	uint64_t hello_usec;		       /* when the last HELLO was sent */
	uint64_t next_id;
	uint64_t sampled_usec; /* when starvation.c sampled the sandboxes last */
	char isolation[32];    /* level reached */
	unsigned alive_max;    /* of all supplies */
	/* Sandboxes that iosd-sandboxd was last asked to allow, and that it allows; it may allow fewer. */
	unsigned asked, allowed;
	const struct osd_supply *called; /* of the last call after which another of its function is expected; or NULL */
};

void osd_sandboxes_init(struct osd_sandboxes *sandboxes);
/* Closes the connection and everything left; no thread uses a sandbox any more. */
void osd_sandboxes_release(struct osd_sandboxes *sandboxes);

/* ---- supplies (stock.c) ---------------------------------------------------------------------- */

/* Supplies are only added. */
void osd_supply_add(struct osd_sandboxes *sandboxes, struct osd_supply *supply);
/* Its numbers have changed. */
void osd_supply_changed(struct osd_sandboxes *sandboxes);
/* Asks for sandboxes until all supplies have enough. */
void osd_sandboxes_refill(struct osd_sandboxes *sandboxes);
/* Ends READY ones that are not needed; the connection may be lost with that. */
void osd_supply_trim(struct osd_sandboxes *sandboxes, struct osd_supply *supply, uint64_t now_usec);
/* None of the present sandboxes gets another job: idle ones end, those at work after their job. */
void osd_supply_replace(struct osd_sandboxes *sandboxes, const struct osd_supply *supply);
/* How many wait for a job. */
unsigned osd_supply_ready(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply);
/* The oldest that waits for a job; NULL: none. */
struct osd_sandbox *osd_supply_find_ready(const struct osd_sandboxes *sandboxes,
					  const struct osd_supply *supply);
/* Why no sandbox is available now, though iosd-sandboxd is there; NULL: one is, or will be soon.  Valid
 * while the lock is held. */
const char *osd_supply_lacks(const struct osd_sandboxes *sandboxes,
			     const struct osd_supply *supply);
/* Whether a sandbox waits for a job, if perhaps for one of a certain principal. */
bool osd_supply_has_unused(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply);
/* Whether a job may get a sandbox before long. */
bool osd_supply_has_any(const struct osd_sandboxes *sandboxes, const struct osd_supply *supply);

/* ---- one sandbox (sandbox.c) ------------------------------------------------------------------ */

struct osd_sandbox *osd_sandbox_find(struct osd_sandboxes *sandboxes, uint64_t id);
void osd_sandbox_unref(struct osd_sandbox *sandbox);
/* Processor time its process has used; 0 when it is gone. */
uint64_t osd_sandbox_cpu_usec(const struct osd_sandbox *sandbox);
void osd_sandbox_kill(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox);
/* Asks for other limits; false: the connection is gone.  The answer clears limits_asked. */
bool osd_sandbox_ask_limits(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
			    const struct osd_sandbox_limits *limits);
/* iosd-sandboxd's log lines name this job from now on. */
void osd_sandbox_name_job(struct osd_sandboxes *sandboxes, const struct osd_sandbox *sandbox,
			  uint64_t partition_id, uint64_t object_id);
/* The output thread watches the pipes of a sandbox from its READY to its last job's end, so that no job
 * waits for these system calls.  operation: of epoll_ctl(2); EPOLL_CTL_MOD: what came before the sandbox
 * had a job is read now. */
void osd_sandbox_watch_pipes(struct osd_sandboxes *sandboxes, const struct osd_sandbox *sandbox,
			     int operation);

/* ---- its life (life.c) ------------------------------------------------------------------------ */

/* The proxy is done with it: not used (back to READY) or used (ENDING).  The reference goes. */
void osd_sandbox_give_back(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox, bool used);
/* Messages: SPAWNED (takes the descriptors it needs, leaving -1), EXITED, REFUSED, LIMITS_SET. */
enum { SPAWNED_PIDFD, SPAWNED_SHM, SPAWNED_JOB, SPAWNED_STDOUT, SPAWNED_STDERR, OSD_SPAWNED_FDS };
void osd_sandbox_spawned(struct osd_sandboxes *sandboxes, uint64_t id, pid_t pid,
			 int fds[OSD_SPAWNED_FDS]);
void osd_sandbox_exited(struct osd_sandboxes *sandboxes, uint64_t id,
			const struct osd_sandbox_exit *status);
void osd_sandbox_refused(struct osd_sandboxes *sandboxes, uint64_t id, const char *why);
void osd_sandbox_limits_set(struct osd_sandboxes *sandboxes, uint64_t id);
/* The first message of a WARMING sandbox on its job socket. */
void osd_sandbox_heard(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox);
/* The process is gone: wakes its proxy; unlinked once iosd-sandboxd has reported how it ended. */
void osd_sandbox_died(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox);

/* ---- more than one job (keep.c) ---------------------------------------------------------------- */

/* The sandbox that a job needs. */
struct osd_sandbox_order {
	struct osd_supply *supply;
	const char *principal;
	struct osd_sandbox_limits limits;
	/* Of a job that calls a function: its id, its code, and the name that tracebacks show.  NULL: it is a script. */
	struct osd_object_id function;
	const uint8_t *code_sha256;
	const char *code_name;
};

/* Takes a sandbox for a job: a KEPT one of its principal, function and limits, else a READY one.  Returns a reference, or
 * NULL: there is none.  Call osd_sandbox_renew first on one that was KEPT. */
struct osd_sandbox *osd_sandbox_take(struct osd_sandboxes *sandboxes,
				     const struct osd_sandbox_order *order);
bool osd_sandbox_fits(const struct osd_sandbox *sandbox, const struct osd_sandbox_order *order);
/* Waits until it has cleaned up for the job, and releases the lock meanwhile: nothing of the order is used after
 * that.  False: the sandbox did not call NEXT in time, and is given back. */
bool osd_sandbox_renew(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
		       const struct osd_sandbox_order *order);
/* The same without waiting; false: keep it on. */
bool osd_sandbox_is_renewed(struct osd_sandbox *sandbox, const struct osd_sandbox_order *order);
/* Wakes up the kept sandbox that a call most likely gets, if its last job was a short call. */
void osd_sandbox_rouse(struct osd_sandboxes *sandboxes);
/* Instead of giving it back: FINISH is answered, and the sandbox prepares for another job.  order: of the job that it has
 * run; no job of another principal or function gets it.  A script could wait there for the code of a function, and a
 * function for what its access class denies it.  same_slot: the next job is most likely a call of the function whose
 * code is there; 0: of no such function.  The reference goes. */
void osd_sandbox_keep(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
		      const struct osd_sandbox_order *order, uint8_t same_slot);
/* One that was taken has run nothing: a pristine one is READY again, a renewed one is KEPT, and one that has ended
 * meanwhile, or is stale, ends.  The reference goes. */
void osd_sandbox_put_back(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox);
/* At its kill_usec: false when its time is over, true when that has been put off. */
bool osd_sandbox_keeps_longer(struct osd_sandbox *sandbox, uint64_t now_usec);
/* False: it is kept, and computes all the same, which is charged to no job. */
bool osd_sandbox_rests(struct osd_sandbox *sandbox, uint64_t now_usec, uint64_t *deadline);
/* Ends those that wait for another job of their principal, and those that have such a job after it. */
void osd_supply_drop_kept(struct osd_sandboxes *sandboxes, const struct osd_supply *supply);

/* ---- the connection (link.c, service.c) --------------------------------------------------------- */

/* Connects if it is time to; lowers *deadline to the next attempt. */
void osd_service_connect(struct osd_sandboxes *sandboxes, uint64_t now_usec, uint64_t *deadline);
/* Reads what iosd-sandboxd has sent. */
void osd_service_receive(struct osd_sandboxes *sandboxes);
/* Closes the connection; every sandbox is dead with it. */
void osd_service_lost(struct osd_sandboxes *sandboxes);
/* Whether it has not answered yet, but will before long: the target has just started. */
bool osd_service_is_due(const struct osd_sandboxes *sandboxes);
/* False: no connection (any more). */
bool osd_service_send(struct osd_sandboxes *sandboxes, enum osd_sandboxd_type type, uint64_t id,
		      const void *body, size_t length);
/* HELLO: the target keeps at most so many sandboxes. */
void osd_service_hello(struct osd_sandboxes *sandboxes, unsigned most);
/* The supplies may have more sandboxes than iosd-sandboxd was asked for: asks again. */
void osd_service_resize(struct osd_sandboxes *sandboxes);
/* Has iosd-sandboxd enforce the supply's cpu_share, unless it does already.  In vain for a pool that it does not know
 * yet: call it again when that is reported. */
void osd_service_bound(struct osd_sandboxes *sandboxes, struct osd_supply *supply);
/* Asks for the state of all pools, whatever was reported of them. */
void osd_service_ask(struct osd_sandboxes *sandboxes);
/* Has the sandbox read its control line; in vain while iosd-sandboxd is behind or stopped, for other
 * messages must find room in the socket.  Never loses the connection. */
void osd_service_nudge(struct osd_sandboxes *sandboxes, uint64_t id);
/* Reports how much of the processor time that they need scripts get; in vain as above. */
void osd_service_report_share(struct osd_sandboxes *sandboxes, unsigned per_mille);

/* ---- processor time that scripts did not get (starvation.c) -------------------------------------- */

/* Each running sandbox is sampled some times a second.  A job's wall limit is extended, within bounds, by
 * the time in which it could not run: ten times its wall limit, but at most this much longer.  When all
 * scripts together get little, or the end of one comes late, iosd-sandboxd is told, and gives them and their
 * zygotes their least share. */
#define OSD_STARVED_TIMES     9u
#define OSD_STARVED_MOST_USEC UINT64_C(60000000)

/* By how much a wall limit is extended for a job that waited so long for a processor. */
uint64_t osd_starved_extension(uint64_t wall_usec, uint64_t starved_usec);
/* A job is handed over: its waits count from here on. */
void osd_starvation_begin(struct osd_sandbox *sandbox, uint64_t now_usec);
/* After that, for a job whose waits must be known however short it is; and at its end, while the process lives.  False:
 * they are not. */
void osd_starvation_measure(struct osd_sandbox *sandbox);
bool osd_starvation_end(struct osd_sandbox *sandbox, uint64_t now_usec);
/* Whether the sandbox's job is past its wall limit, with what it has waited for a processor taken into
 * account; moves sandbox->wall_usec when it is not. */
bool osd_starvation_is_late(struct osd_sandbox *sandbox, uint64_t now_usec);
/* Whether a job that has used up its processor time ends for its wall limit.  By default both limits are
 * the same, and a starved job reaches both at about the same moment, as one of them was extended. */
bool osd_starvation_was_wall(const struct osd_sandbox *sandbox, uint64_t now_usec);
/* Samples all sandboxes when it is time to; *deadline: no later than the next time. */
void osd_starvation_check(struct osd_sandboxes *sandboxes, uint64_t now_usec, uint64_t *deadline);

/* ---- on the thread that watches (watch.c) --------------------------------------------------------- */

/* The events of its epoll: sandbox id << 2 | kind. */
enum osd_watch_event { OSD_EVENT_OTHER, OSD_EVENT_PIDFD, OSD_EVENT_JOB_SOCKET };
#define OSD_EVENT_WAKE	  UINT64_C(0) /* its eventfd, which is the caller's */
#define OSD_EVENT_SERVICE UINT64_C(4) /* the connection */

/* An event that is not OSD_EVENT_WAKE. */
void osd_sandboxes_event(struct osd_sandboxes *sandboxes, uint64_t event);
/* Every deadline of every sandbox and supply; lowers *deadline to the earliest that is left. */
void osd_sandboxes_check(struct osd_sandboxes *sandboxes, uint64_t now_usec, uint64_t *deadline);
/* Whether a script has run for a while. */
bool osd_sandboxes_compute(const struct osd_sandboxes *sandboxes);

#endif
