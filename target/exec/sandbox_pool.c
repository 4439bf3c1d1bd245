/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandbox_pool.c -- the sandboxes of this target and their states (sandbox.h).  Everything under
 * exec->lock; nothing here waits.  Not here: the connection (sandboxd_client.c), when to kill
 * (monitor.c), what a sandbox asks (proxy.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/job_output.h"
#include "exec/sandboxd_client.h"

#define FORKS_AT_ONCE	  2	  /* more only disturb each other (measured) */
/* A sandbox whose job is over exits in this time, or is killed, which takes nothing from anybody.
 * Short, because a script that has said it is over may go on, at no job's expense. */
#define EXIT_USEC	  100000
#define WARM_USEC	  10000000
/* A job whose sandbox does not die in this time, because iosd-sandboxd is stopped, ends all the same:
 * its calls are not answered any more. */
#define DYING_USEC	  1000000
/* Before another is asked for where one could not be made: so long, doubled each time. */
#define CALM_FIRST_USEC	  200000
#define CALM_MOST_USEC	  5000000
#define ANSWER_USEC	  1000000 /* iosd-sandboxd answers a SPAWN in this time, or is stuck */
/* Exit and fork take a processor for a millisecond each, part of it unpreemptible, just when the
 * answer to a waiting client is on its way through several threads; so they wait for so long when
 * others are READY. */
#define LINGER_USEC 1000

void osd_pool_init(struct osd_exec *exec)
{
	exec->pool = (struct osd_sandbox_pool){.fd = -1, .next_id = 1};
	for (const struct osd_pool *pool = exec->pools; pool; pool = pool->next)
		exec->pool.alive_max += pool->alive_max;
}

struct osd_sandbox_limits osd_sandbox_limits_of(const struct osd_job_limits *limits)
{
	return (struct osd_sandbox_limits){
		.memory_bytes = limits->memory_bytes,
		.cpu_seconds = (uint32_t)(limits->cpu_usec / 1000000 +
					  2), /* only the net below the exact one */
		.processes = (uint32_t)limits->processes,
		.open_files = (uint32_t)limits->open_files,
	};
}

struct osd_sandbox *osd_pool_find(struct osd_exec *exec, uint64_t id)
{
	struct osd_sandbox *sandbox = exec->pool.list;

	while (sandbox && sandbox->id != id)
		sandbox = sandbox->next;
	return sandbox;
}

void osd_sandbox_unref(struct osd_sandbox *sandbox)
{
	if (--sandbox->references > 0)
		return;
	osd_closep(&sandbox->pidfd);
	osd_closep(&sandbox->job_fd);
	osd_closep(&sandbox->stdout_fd);
	osd_closep(&sandbox->stderr_fd);
	if (sandbox->shm)
		munmap(sandbox->shm, OSD_SHM_BYTES);
	free(sandbox->principal);
	free(sandbox);
}

static void unlink_sandbox(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	struct osd_sandbox **link = &exec->pool.list;

	while (*link != sandbox)
		link = &(*link)->next;
	*link = sandbox->next;
	osd_figures_exited(sandbox);
	sandbox->state = OSD_SANDBOX_GONE;
	pthread_cond_broadcast(&exec->changed);
	osd_sandbox_unref(sandbox);
}

/* ---- asking for sandboxes -------------------------------------------------------------------- */

static bool spawn(struct osd_exec *exec, struct osd_pool *pool)
{
	struct osd_sandbox *sandbox = calloc(1, sizeof(*sandbox));
	uint8_t body[OSD_SANDBOX_LIMITS_BYTES + OSD_JOB_POOL_MAX];
	size_t length = osd_sandbox_limits_encode(&pool->usual, body, sizeof(body));
	size_t name = strlen(pool->config.name);

	if (!sandbox)
		return false;
	*sandbox = (struct osd_sandbox){
		.next = exec->pool.list,
		.pool = pool,
		.id = exec->pool.next_id++,
		.asked_usec = osd_monotonic_usec(),
		.state = OSD_SANDBOX_SPAWNING,
		.references = 1,
		.pidfd = -1,
		.job_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.limits = pool->usual,
		.wall_usec = OSD_NEVER,
		.sampled_usec = osd_monotonic_usec(),
		.kill_usec = osd_monotonic_usec() + WARM_USEC,
	};
	exec->pool.list = sandbox;
	memcpy(body + length, pool->config.name, name);
	return osd_service_send(exec, OSD_SANDBOXD_SPAWN, sandbox->id, body, length + name);
}

struct census {
	unsigned alive, useful, taken, warming, ready;
};

static struct census count(const struct osd_exec *exec, const struct osd_pool *pool)
{
	struct census census = {0};

	for (const struct osd_sandbox *s = exec->pool.list; s; s = s->next) {
		if (s->pool != pool)
			continue;
		census.alive++;
		if (s->kill_sent)
			continue;
		census.useful += s->state <= OSD_SANDBOX_TAKEN && !s->dead;
		census.taken += s->state == OSD_SANDBOX_TAKEN && !s->dead;
		census.warming += s->state <= OSD_SANDBOX_WARMING;
		census.ready += s->state == OSD_SANDBOX_READY;
	}
	return census;
}

unsigned osd_pool_ready(const struct osd_exec *exec, const struct osd_pool *pool)
{
	return count(exec, pool).ready;
}

/* Nobody has wanted anything of it for long. */
static bool is_idle(const struct osd_pool *pool, uint64_t now)
{
	return pool->busy == 0 && pool->queue.entry_count == 0 &&
	       now >= pool->used_usec + pool->config.idle_usec;
}

/* As many as the work at hand asks for, min at least, and the spares. */
static unsigned wanted_of(const struct osd_pool *pool, const struct census *census, uint64_t now)
{
	unsigned wanted = OSD_MAX((unsigned)pool->config.min, census->taken);

	if (is_idle(pool, now))
		return wanted;
	wanted += OSD_MIN((unsigned)pool->queue.entry_count, pool->active);
	return OSD_MIN(wanted, pool->active) + (unsigned)pool->config.spares;
}

/* *left: how many more all pools may have.  False: no connection. */
static bool refill(struct osd_exec *exec, struct osd_pool *pool, uint64_t now, unsigned *left)
{
	struct census census = count(exec, pool);
	unsigned wanted = wanted_of(pool, &census, now);

	if (now < pool->linger_usec &&
	    census.ready >= OSD_MAX((unsigned)pool->config.min, census.taken)) {
		osd_monitor_by(exec, pool->linger_usec);
		return true;
	}
	for (; census.useful < wanted && census.warming < FORKS_AT_ONCE &&
	       census.alive < pool->alive_max && *left > 0;
	     census.useful++, census.warming++, census.alive++, --*left)
		if (!spawn(exec, pool))
			return false;
	return true;
}

void osd_pool_refill(struct osd_exec *exec)
{
	uint64_t now = osd_monotonic_usec();
	unsigned left = exec->pool.allowed;

	if (!exec->pool.welcomed || exec->stopping)
		return;
	for (const struct osd_sandbox *s = exec->pool.list; s && left > 0; s = s->next)
		left--;
	for (struct osd_pool *pool = exec->pools; pool; pool = pool->next)
		if (pool->serving && now >= pool->calm_usec && !refill(exec, pool, now, &left))
			return;
}

static struct osd_sandbox *find_ready(const struct osd_exec *exec, const struct osd_pool *pool)
{
	struct osd_sandbox *found = NULL;

	/* The oldest: the list has the youngest first. */
	for (struct osd_sandbox *sandbox = exec->pool.list; sandbox; sandbox = sandbox->next)
		if (sandbox->pool == pool && sandbox->state == OSD_SANDBOX_READY && !sandbox->dead)
			found = sandbox;
	return found;
}

void osd_pool_trim(struct osd_exec *exec, struct osd_pool *pool, uint64_t now)
{
	struct census census = count(exec, pool);
	unsigned wanted = wanted_of(pool, &census, now);

	for (; census.ready > 0 && census.useful > wanted; census.ready--, census.useful--) {
		osd_pool_kill(exec, find_ready(exec, pool));
		if (exec->pool.fd < 0)
			return; /* the connection was lost, and all sandboxes with it */
	}
}

void osd_pool_replace(struct osd_exec *exec, const struct osd_pool *pool)
{
	struct osd_sandbox *next;

	for (struct osd_sandbox *sandbox = exec->pool.list; sandbox && exec->pool.fd >= 0;
	     sandbox = next) {
		next = sandbox->next;
		if (sandbox->pool != pool)
			continue;
		sandbox->stale = true;
		if (sandbox->state != OSD_SANDBOX_TAKEN && sandbox->state != OSD_SANDBOX_ENDING)
			osd_pool_kill(exec, sandbox);
	}
}

void osd_pool_rest(struct osd_exec *exec, struct osd_pool *pool, uint64_t now, uint64_t *deadline)
{
	uint64_t idle_from = pool->used_usec + pool->config.idle_usec;

	if (pool->leaving)
		osd_pool_leave(pool);
	if (!pool->serving || pool->busy > 0)
		return;
	if (now < idle_from)
		*deadline = OSD_MIN(*deadline, idle_from);
	else
		osd_pool_trim(exec, pool, now);
}

static bool map_shared(struct osd_sandbox *sandbox, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;
	void *shm;

	/* Unsealed, the sandbox could shrink it under us. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &status) < 0 ||
	    status.st_size < (off_t)OSD_SHM_BYTES)
		return false;
	shm = mmap(NULL, OSD_SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shm == MAP_FAILED)
		return false;
	sandbox->shm = shm;
	return sandbox->shm->magic == OSD_SHM_MAGIC;
}

static void watch(struct osd_exec *exec, int fd, uint64_t id, enum osd_monitor_event kind)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = id << 2 | kind};

	epoll_ctl(exec->monitor_epoll, EPOLL_CTL_ADD, fd, &event);
}

void osd_pool_spawned(struct osd_exec *exec, uint64_t id, pid_t pid, int fds[OSD_SPAWNED_FDS])
{
	struct osd_sandbox *sandbox = osd_pool_find(exec, id);

	if (!sandbox || sandbox->state != OSD_SANDBOX_SPAWNING)
		return;
	sandbox->state = OSD_SANDBOX_WARMING;
	sandbox->pid = pid;
	sandbox->pidfd = fds[SPAWNED_PIDFD];
	sandbox->job_fd = fds[SPAWNED_JOB];
	sandbox->stdout_fd = fds[SPAWNED_STDOUT];
	sandbox->stderr_fd = fds[SPAWNED_STDERR];
	fds[SPAWNED_PIDFD] = fds[SPAWNED_JOB] = fds[SPAWNED_STDOUT] = fds[SPAWNED_STDERR] = -1;
	fcntl(sandbox->stdout_fd, F_SETFL, O_NONBLOCK);
	fcntl(sandbox->stderr_fd, F_SETFL, O_NONBLOCK);
	watch(exec, sandbox->pidfd, id, OSD_EVENT_PIDFD);
	watch(exec, sandbox->job_fd, id, OSD_EVENT_JOB_SOCKET);
	if (!map_shared(sandbox, fds[SPAWNED_SHM])) {
		osd_error("the shared memory of sandbox %llu is not as agreed",
			  (unsigned long long)id);
		osd_pool_kill(exec, sandbox); /* may lose the connection, and the sandbox with it */
	}
}

/* A sandbox did not come up: no other is asked for in a while.  Told once for each cause. */
static void lacks(struct osd_pool *pool, const char *why)
{
	if (strncmp(pool->lacking, why, sizeof(pool->lacking) - 1) != 0)
		osd_warning("no sandbox for pool %s: %s", pool->config.name, why);
	snprintf(pool->lacking, sizeof(pool->lacking), "%s", why);
	pool->calm_delay_usec =
		OSD_MIN(OSD_MAX(2 * pool->calm_delay_usec, CALM_FIRST_USEC), CALM_MOST_USEC);
	pool->calm_usec = osd_monotonic_usec() + pool->calm_delay_usec;
}

/* To a SPAWN, or how it ended. */
static bool answer_is_due(const struct osd_sandbox *sandbox)
{
	return sandbox->state == OSD_SANDBOX_SPAWNING || (sandbox->dead && !sandbox->exit_known);
}

const char *osd_pool_lacks(const struct osd_exec *exec, const struct osd_pool *pool)
{
	uint64_t now = osd_monotonic_usec();

	if (pool->lacking[0])
		return pool->lacking;
	for (const struct osd_sandbox *s = exec->pool.list; s; s = s->next)
		if (s->pool == pool && answer_is_due(s) && now > s->asked_usec + ANSWER_USEC)
			return "iosd-sandboxd does not answer";
	return NULL;
}

void osd_pool_heard(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	uint8_t bytes[1024];
	enum osd_job_message type;
	const uint8_t *body;
	size_t body_length;
	char quoted[256];
	ssize_t length = recv(sandbox->job_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (length < 0 && errno == EAGAIN)
		return;
	epoll_ctl(exec->monitor_epoll, EPOLL_CTL_DEL, sandbox->job_fd, NULL);
	if (length > 0 &&
	    osd_job_message_decode(bytes, (size_t)length, &type, &body, &body_length) &&
	    sandbox->state == OSD_SANDBOX_WARMING) {
		if (type == OSD_JOB_READY && body_length == 0 && sandbox->shm) {
			sandbox->state = OSD_SANDBOX_READY;
			sandbox->kill_usec = OSD_NEVER;
			osd_output_watch(exec, sandbox);
			osd_figures_warm(sandbox);
			sandbox->pool->lacking[0] = '\0';
			sandbox->pool->calm_delay_usec = 0;
			pthread_cond_signal(&sandbox->pool->work);
			osd_pool_refill(exec);
			return;
		}
		osd_log_quote(quoted, sizeof(quoted), (const char *)body, body_length);
		lacks(sandbox->pool, quoted);
	}
	osd_pool_kill(exec, sandbox);
}

void osd_pool_refused(struct osd_exec *exec, uint64_t id, const char *why)
{
	struct osd_sandbox *sandbox = osd_pool_find(exec, id);

	if (!sandbox)
		return;
	if (sandbox->state != OSD_SANDBOX_SPAWNING) {
		osd_warning("iosd-sandboxd refused limits: %s", why);
		sandbox->limits_asked = false;
		sandbox->limits_refused = true;
		pthread_cond_broadcast(&exec->changed);
		return;
	}
	lacks(sandbox->pool, why);
	unlink_sandbox(exec, sandbox);
}

/* ---- use ------------------------------------------------------------------------------------- */

bool osd_pool_may_run(const struct osd_exec *exec, const struct osd_pool *pool)
{
	if (!exec->pool.welcomed || pool->failed || pool->mode == OSD_POOL_PAUSED)
		return false;
	return !osd_pool_lacks(exec, pool) || find_ready(exec, pool);
}

struct osd_sandbox *osd_pool_take(struct osd_exec *exec, const struct osd_job *job)
{
	struct osd_sandbox *found = osd_pool_find_kept(exec, job);

	if (!found)
		found = find_ready(exec, job->pool);
	if (found) {
		found->state = OSD_SANDBOX_TAKEN;
		found->references++;
	}
	return found;
}

void osd_pool_give_back(struct osd_exec *exec, struct osd_sandbox *sandbox, bool used)
{
	sandbox->job = NULL;
	sandbox->wall_usec = OSD_NEVER;
	/* A used one is not READY for just anybody. */
	used = used || sandbox->principal || sandbox->stale;
	if (sandbox->state == OSD_SANDBOX_TAKEN && !used && !sandbox->dead) {
		sandbox->state = OSD_SANDBOX_READY;
		sandbox->kill_usec = OSD_NEVER;
		pthread_cond_signal(&sandbox->pool->work);
	} else if (sandbox->state == OSD_SANDBOX_TAKEN) {
		uint64_t now = osd_monotonic_usec();

		osd_figures_recycled(sandbox, sandbox->pool->config.reuse == OSD_REUSE_NEVER
						      ? OSD_RECYCLED_USED
						      : OSD_RECYCLED_WORN);
		sandbox->state = OSD_SANDBOX_ENDING;
		sandbox->let_go_usec = sandbox->pool->linger_usec = now + LINGER_USEC;
		sandbox->kill_usec = OSD_MIN(sandbox->kill_usec, now + EXIT_USEC);
		osd_monitor_by(exec, sandbox->let_go_usec);
		if (sandbox->dead && sandbox->exit_known)
			unlink_sandbox(exec, sandbox);
	}
	osd_sandbox_unref(sandbox);
	osd_pool_refill(exec);
}

void osd_pool_let_go(struct osd_sandbox *sandbox, uint64_t now_usec,
		     uint64_t *deadline)
{
	bool hurry = sandbox->pool->queue.entry_count > 0; /* the slot in iosd-sandboxd is wanted */

	if (!sandbox->answer_due || sandbox->state != OSD_SANDBOX_ENDING)
		return;
	if (now_usec < sandbox->let_go_usec && !hurry) {
		*deadline = OSD_MIN(*deadline, sandbox->let_go_usec);
		return;
	}
	sandbox->answer_due = false;
	osd_shm_post(&sandbox->shm->areas[0].answer);
}

bool osd_pool_ask_limits(struct osd_exec *exec, struct osd_sandbox *sandbox,
			 const struct osd_sandbox_limits *limits)
{
	uint8_t body[64];
	size_t length = osd_sandbox_limits_encode(limits, body, sizeof(body));

	sandbox->limits_asked = true;
	sandbox->limits = *limits;
	return osd_service_send(exec, OSD_SANDBOXD_LIMITS, sandbox->id, body, length);
}

void osd_pool_limits_set(struct osd_exec *exec, uint64_t id)
{
	struct osd_sandbox *sandbox = osd_pool_find(exec, id);

	if (!sandbox)
		return;
	sandbox->limits_asked = false;
	pthread_cond_broadcast(&exec->changed);
}

void osd_pool_kill(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	if (sandbox->kill_sent || sandbox->dead)
		return;
	sandbox->kill_sent = true;
	sandbox->kill_usec = OSD_NEVER;
	sandbox->give_up_usec = osd_monotonic_usec() + DYING_USEC;
	if (sandbox->state == OSD_SANDBOX_KEPT || sandbox->state == OSD_SANDBOX_READY) {
		osd_figures_recycled(sandbox, sandbox->stale ? OSD_RECYCLED_ASKED
							 : OSD_RECYCLED_IDLE);
		sandbox->state = OSD_SANDBOX_ENDING;
	}
	osd_service_send(exec, OSD_SANDBOXD_KILL, sandbox->id, NULL, 0);
}

/* ---- ends ------------------------------------------------------------------------------------ */

void osd_pool_give_up(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	osd_warning("sandbox %llu does not die: iosd-sandboxd does not answer",
		    (unsigned long long)sandbox->id);
	sandbox->given_up = true;
	osd_pool_died(exec, sandbox);
}

void osd_pool_died(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	if (sandbox->dead)
		return;
	atomic_store(&sandbox->dead, true);
	sandbox->asked_usec = osd_monotonic_usec(); /* how it ended */
	sandbox->kill_usec = OSD_NEVER;
	if (sandbox->pidfd >= 0)
		epoll_ctl(exec->monitor_epoll, EPOLL_CTL_DEL, sandbox->pidfd, NULL);
	if (sandbox->state == OSD_SANDBOX_WARMING)
		epoll_ctl(exec->monitor_epoll, EPOLL_CTL_DEL, sandbox->job_fd, NULL);
	for (unsigned area = 0; sandbox->shm && area < OSD_SHM_AREAS; area++)
		osd_shm_kick(&sandbox->shm->areas[area].call);
	pthread_cond_broadcast(&exec->changed);
	if (sandbox->exit_known && sandbox->state != OSD_SANDBOX_TAKEN)
		unlink_sandbox(exec, sandbox);
	osd_pool_refill(exec);
}

void osd_pool_exited(struct osd_exec *exec, uint64_t id, const struct osd_sandbox_exit *status)
{
	struct osd_sandbox *sandbox = osd_pool_find(exec, id);

	if (!sandbox || sandbox->exit_known)
		return;
	sandbox->exit = *status;
	sandbox->exit_known = true;
	pthread_cond_broadcast(&exec->changed);
	if (!sandbox->dead)
		osd_pool_died(exec, sandbox);
	else if (sandbox->state != OSD_SANDBOX_TAKEN)
		unlink_sandbox(exec, sandbox);
}

void osd_pool_service_lost(struct osd_exec *exec)
{
	for (struct osd_sandbox *sandbox = exec->pool.list, *next; sandbox; sandbox = next) {
		next = sandbox->next;
		sandbox->service_lost = !sandbox->exit_known;
		sandbox->exit_known = true; /* nobody will tell any more */
		if (!sandbox->dead)
			osd_pool_died(exec, sandbox);
		else if (sandbox->state != OSD_SANDBOX_TAKEN)
			unlink_sandbox(exec, sandbox);
	}
}

void osd_pool_release(struct osd_exec *exec)
{
	osd_service_lost(exec);
	while (exec->pool.list)
		unlink_sandbox(exec, exec->pool.list);
}
