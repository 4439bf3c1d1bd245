/* SPDX-License-Identifier: GPL-2.0-or-later */
/* threads.c -- the proxy threads of a target.  Each looks for work in all pools.  One is started
 * when there is work and no proxy waits for it; it ends after it has waited for long.  One proxy
 * always stays.  So a job that comes to an idle target needs no new thread, and a target that can
 * start no thread still runs its jobs, one after the other.  proxy.c has the work of a proxy.
 *
 * No work is forgotten: a thread that makes work possible calls osd_proxies_call afterwards, and a
 * proxy that takes some of the work calls another one for the rest. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/util.h"
#include "exec/run/run.h"

#define LINGER_USEC UINT64_C(10000000)

/* In exec->runs->proxies until it is joined, or the target is closed. */
struct osd_proxy_thread {
	struct osd_proxy_thread *next;
	struct osd_exec *exec;
	pthread_t thread;
	bool done; /* from here on it only returns */
};

/* exec->lock held, released meanwhile. */
static bool find_work(struct osd_exec *exec)
{
	struct osd_pool *pool = exec->pools->first;

	while (pool && !exec->runs->serve(pool))
		pool = pool->next;
	return pool != NULL;
}

/* exec->lock held, released meanwhile.  False: it has waited for long, and another proxy still
 * waits. */
static bool wait_for_call(struct osd_exec *exec)
{
	struct osd_runs *runs = exec->runs;
	struct timespec until;
	int error = 0;

	osd_assert_held(&exec->lock);
	if (runs->idle++ == 0) {
		osd_cond_wait(&runs->work, &exec->lock);
	} else {
		until = osd_timespec(osd_monotonic_usec() + LINGER_USEC);
		error = osd_cond_timedwait(&runs->work, &exec->lock, &until);
	}
	runs->idle--;
	return error != ETIMEDOUT || runs->idle == 0;
}

static void *run(void *arg)
{
	struct osd_proxy_thread *self = arg;
	struct osd_exec *exec = self->exec;
	bool stays = true;

	osd_thread_take_long_turns(); /* calls of scripts may follow each other closely */
	osd_lock(&exec->lock);
	exec->runs->starting = false;
	for (;;) {
		if (find_work(exec))
			stays = true;
		else if (stays && !exec->stopping)
			stays = wait_for_call(exec);
		else
			break;
	}
	self->done = true;
	osd_unlock(&exec->lock);
	return NULL;
}

/* Joins those that have ended, or all. */
static void join(struct osd_proxy_thread **link, bool all)
{
	while (*link) {
		struct osd_proxy_thread *proxy = *link;

		if (!all && !proxy->done) {
			link = &proxy->next;
			continue;
		}
		*link = proxy->next;
		pthread_join(proxy->thread, NULL);
		free(proxy);
	}
}

static bool start(struct osd_exec *exec)
{
	struct osd_proxy_thread *proxy = calloc(1, sizeof(*proxy));

	join(&exec->runs->proxies, false);
	if (!proxy)
		return false;
	proxy->exec = exec;
	if (!osd_thread_start(&proxy->thread, "iosd-proxy", run, proxy)) {
		free(proxy);
		return false;
	}
	proxy->next = exec->runs->proxies;
	exec->runs->proxies = proxy;
	return exec->runs->starting = true;
}

bool osd_proxies_start(struct osd_exec *exec)
{
	bool started;

	osd_lock(&exec->lock);
	started = start(exec);
	osd_unlock(&exec->lock);
	return started;
}

static bool has_work(const struct osd_pool *pool)
{
	return pool->started || (pool->queue.entry_count && osd_pool_next(pool));
}

bool osd_proxies_prepare(struct osd_exec *exec)
{
	const struct osd_runs *runs = exec->runs;
	const struct osd_pool *pool = exec->pools->first;

	if (!runs->proxies)
		return false; /* the first one has not been started yet: it will find all work */
	osd_assert_held(&exec->lock);
	while (pool && !has_work(pool))
		pool = pool->next;
	if (!pool)
		return false; /* the proxies at work take it after their job */
	if (runs->idle)
		return true;
	if (!runs->starting && !exec->stopping)
		(void)start(exec);
	return false;
}

void osd_proxies_call(struct osd_exec *exec)
{
	if (osd_proxies_prepare(exec))
		pthread_cond_signal(&exec->runs->work);
}

void osd_proxies_call_next(struct osd_exec *exec)
{
	const struct osd_pool *pool = exec->pools->first;

	/* Without a sandbox there is nothing to do yet: the next one that is READY calls. */
	while (pool && !pool->started &&
	       !(has_work(pool) && osd_supply_has_unused(exec->sandboxes, &pool->supply)))
		pool = pool->next;
	if (pool)
		osd_proxies_call(exec);
}

void osd_proxies_join(struct osd_exec *exec)
{
	struct osd_proxy_thread *all;

	osd_lock(&exec->lock);
	all = OSD_STEAL(exec->runs->proxies);
	pthread_cond_broadcast(&exec->runs->work);
	osd_unlock(&exec->lock);
	join(&all, true);
}
