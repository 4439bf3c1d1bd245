/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandbox.h -- the sandboxes iosd-sandboxd has made for this target, and the connection to it
 * (design D17).
 *
 * Sandboxes are forked ahead of need; a job takes a READY one, uses it once, and another is asked
 * for in its place.  Every message names the sandbox by an id that is never used again, so a late
 * word about a dead one is recognised.
 *
 * Everything is guarded by exec->lock, except what the proxy that has taken a sandbox uses of it
 * (shared memory, job socket, pipes), which stays valid while the proxy holds its reference, and
 * `dead`, which is set before the sandbox's lines are kicked. */
#ifndef OSD_EXEC_SANDBOX_H
#define OSD_EXEC_SANDBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "wire/proxy_frame.h"
#include "wire/sandboxd_frame.h"

struct osd_exec;
struct osd_job;
struct osd_job_limits;
struct osd_pool;

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

struct osd_sandbox {
	struct osd_sandbox *next;
	uint64_t id;
	uint64_t asked_usec; /* since when iosd-sandboxd owes an answer, if it does; monotonic */
	enum osd_sandbox_state state;
	struct osd_pool *pool; /* constant */
	unsigned references; /* the list, a proxy, the output thread in passing */
	pid_t pid;	     /* in the target's pid namespace */
	int pidfd, job_fd, stdout_fd, stderr_fd; /* -1: none */
	struct osd_shm *shm;			 /* mapped until the last reference goes */
	_Atomic bool dead;			 /* its process is gone, or its service */
	bool service_lost;			 /* dead because iosd-sandboxd is */
	struct osd_sandbox_limits limits;	 /* in force */
	bool limits_asked, limits_refused;	 /* an answer is due; the answer was no */
	bool exit_known;
	struct osd_sandbox_exit exit;

	/* The monitor's: set by a proxy when the job is handed over. */
	struct osd_job *job;			  /* TAKEN; borrowed from the proxy */
	uint64_t wall_usec;			  /* deadline, monotonic; OSD_NEVER: none */
	uint64_t wall_first_usec;		  /* the same, not extended by starvation */
	/* starvation.h: as of the last sample, of the process since it began; of its job. */
	uint64_t sampled_usec, waited_usec, cpu_sampled_usec;
	_Atomic uint64_t starved_usec;
	uint64_t cpu_limit_usec;
	uint64_t cpu_before_usec, system_before_usec; /* used before the job; the latter its word */
	uint64_t ping_usec;			  /* next sample of its usage */
	bool pinged;				  /* the script has run for a while */
	uint64_t grace_usec;			  /* how long the script may clean up */
	bool answer_due;			  /* ENDING: FINISH is answered at let_go_usec */
	uint64_t let_go_usec;
	uint64_t nudge_usec, nudge_delay_usec;	  /* it is told to end again then; longer each time */
	uint64_t kill_usec; /* kill at; OSD_NEVER: not yet */
	bool kill_sent;
	uint64_t give_up_usec; /* after that: dead for us, if nothing was heard */
	bool given_up;

	/* Reuse (sandbox_keep.c). */
	unsigned jobs;             /* run so far, the present one included */
	char *principal;           /* kept for; owned; NULL: pristine */
	bool stale;                /* TAKEN: not for another job, its pool was recycled */
	bool ready_again;          /* KEPT, and has said READY after its last job */
	uint32_t calls_seen;       /* call line when its last job ended */
	uint64_t peak_first_bytes; /* before its first job */
};

struct osd_sandbox_pool {
	int fd;				       /* to iosd-sandboxd; -1: not connected */
	bool welcomed;			       /* and good enough (isolation) */
	bool isolation_refused;		       /* connected once, level below the one demanded */
	char unfit[128];		       /* why we cannot work with it; "": we have not tried */
	uint64_t retry_usec, retry_delay_usec; /* next attempt to connect */
	uint64_t next_id;
	char isolation[32]; /* level reached */
	struct osd_sandbox *list;
	unsigned alive_max; /* of all pools */
	/* What iosd-sandboxd was asked for last, and has agreed to; less when it keeps fewer. */
	unsigned asked, allowed;
};

/* The sandboxes of all pools, each with its own.  exec->lock held in all of these. */
void osd_pool_init(struct osd_exec *exec);
/* What iosd-sandboxd is to enforce for a job. */
struct osd_sandbox_limits osd_sandbox_limits_of(const struct osd_job_limits *limits);
/* Closes the connection and everything left; no thread uses a sandbox any more. */
void osd_pool_release(struct osd_exec *exec);
/* Connects if it is time to; sets *deadline to the next attempt if that is earlier. */
void osd_pool_connect(struct osd_exec *exec, uint64_t now_usec, uint64_t *deadline);
/* The pools may keep more sandboxes than iosd-sandboxd was asked for: asks again. */
void osd_service_resize(struct osd_exec *exec);
/* Asks how all pools are, whatever was told of them. */
void osd_service_ask(struct osd_exec *exec);
/* Closes the connection; every sandbox is dead with it. */
void osd_service_lost(struct osd_exec *exec);
/* Reads what iosd-sandboxd has sent. */
void osd_pool_receive(struct osd_exec *exec);
/* Asks for sandboxes until there are enough. */
void osd_pool_refill(struct osd_exec *exec);
/* Ends READY ones that nobody wants; the connection may be lost with that. */
void osd_pool_trim(struct osd_exec *exec, struct osd_pool *pool, uint64_t now_usec);
/* The same once the pool has been idle for as long as its config says; lowers *deadline to then. */
void osd_pool_rest(struct osd_exec *exec, struct osd_pool *pool, uint64_t now_usec,
		   uint64_t *deadline);
/* None that is there now gets another job: idle ones end, those at work when they have done it. */
void osd_pool_replace(struct osd_exec *exec, const struct osd_pool *pool);
/* Ends those that wait for another job of their principal (sandbox_keep.c). */
void osd_pool_drop_kept(struct osd_exec *exec, const struct osd_pool *pool);
/* How many of this pool wait for a job. */
unsigned osd_pool_ready(const struct osd_exec *exec, const struct osd_pool *pool);
/* A sandbox for this job, now TAKEN, with a reference: a KEPT one that fits (then osd_pool_renew
 * before anything else), or a READY one; NULL when there is none. */
struct osd_sandbox *osd_pool_take(struct osd_exec *exec, const struct osd_job *job);
/* The proxy is done with it: not used (back to READY) or used (ENDING). */
void osd_pool_give_back(struct osd_exec *exec, struct osd_sandbox *sandbox, bool used);

/* ---- reuse (sandbox_keep.c); exec->lock held --------------------------------------------- */

bool osd_pool_fits(const struct osd_sandbox *sandbox, const struct osd_job *job);
struct osd_sandbox *osd_pool_find_kept(struct osd_exec *exec, const struct osd_job *job);
/* Releases the lock for a moment.  False: the sandbox did not say READY again in time, and is given
 * back. */
bool osd_pool_renew(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* The same without waiting; false: keep it on. */
bool osd_pool_is_renewed(struct osd_sandbox *sandbox);
/* Instead of giving it back: FINISH is answered, and it is to make itself ready for another job of
 * this principal.  The reference goes. */
void osd_pool_keep(struct osd_exec *exec, struct osd_sandbox *sandbox, const char *principal);
/* A renewed one was not needed after all. */
void osd_pool_keep_on(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* At its kill_usec: false when its time is over, true when that has been put off. */
bool osd_pool_keeps_longer(struct osd_sandbox *sandbox, uint64_t now_usec);

/* ---- ends ------------------------------------------------------------------------------- */

/* A sandbox whose job is over may exit, once it is time to. */
void osd_pool_let_go(struct osd_sandbox *sandbox, uint64_t now_usec,
		     uint64_t *deadline);
/* Asks for other limits; false: the connection is gone.  The answer clears limits_asked. */
bool osd_pool_ask_limits(struct osd_exec *exec, struct osd_sandbox *sandbox,
			 const struct osd_sandbox_limits *limits);
void osd_pool_kill(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* It was to be killed long ago: its job ends without it. */
void osd_pool_give_up(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* The process is gone: wakes its proxy; unlinked once iosd-sandboxd has told how it ended. */
void osd_pool_died(struct osd_exec *exec, struct osd_sandbox *sandbox);
/* A word from a warming sandbox on its job socket. */
void osd_pool_heard(struct osd_exec *exec, struct osd_sandbox *sandbox);
struct osd_sandbox *osd_pool_find(struct osd_exec *exec, uint64_t id);
/* Processor time its process has used; 0 when it is gone. */
uint64_t osd_sandbox_cpu_usec(const struct osd_sandbox *sandbox);
void osd_sandbox_unref(struct osd_sandbox *sandbox);

/* What the monitor's epoll says an event is about: sandbox id << 2 | kind. */
enum osd_monitor_event { OSD_EVENT_OTHER, OSD_EVENT_PIDFD, OSD_EVENT_JOB_SOCKET };
#define OSD_EVENT_WAKE	  UINT64_C(0) /* eventfd */
#define OSD_EVENT_SERVICE UINT64_C(4) /* connection */

#endif
