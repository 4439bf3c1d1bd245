/* SPDX-License-Identifier: GPL-2.0-or-later */
/* threads.c -- as many proxy threads as a pool has slots: started when it gets more, gone when
 * it has fewer and they have nothing to do.  What they do: proxy.c. */
#include <stdlib.h>

#include "base/thread.h"
#include "base/util.h"
#include "exec/run/run.h"

/* In exec->runs->proxies until it is joined. */
struct osd_proxy_thread {
	struct osd_proxy_thread *next;
	struct osd_pool *pool;
	pthread_t thread;
	bool done; /* from here on it only returns */
};

/* A job that is being accepted may have its slot already and get its proxy later. */
static bool is_needed(const struct osd_pool *pool)
{
	return pool->proxies <= OSD_MAX((unsigned)pool->config.max, pool->supply.busy);
}

static void *run(void *arg)
{
	struct osd_proxy_thread *self = arg;
	struct osd_pool *pool = self->pool;
	struct osd_exec *exec = pool->exec;

	osd_thread_take_long_turns(); /* calls may come one on the other */
	osd_lock(&exec->lock);
	while (pool->started || (!exec->stopping && is_needed(pool)))
		if (!osd_proxy_work(pool) && !exec->stopping && is_needed(pool))
			osd_cond_wait(&pool->work, &exec->lock);
	pool->proxies--;
	self->done = true;
	osd_unlock(&exec->lock);
	return NULL;
}

/* Those that have ended, or all. */
static void join(struct osd_exec *exec, bool all)
{
	for (struct osd_proxy_thread **link = &exec->runs->proxies; *link;) {
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

enum osd_status osd_proxies_start(struct osd_pool *pool, unsigned count)
{
	struct osd_exec *exec = pool->exec;

	join(exec, false);
	while (pool->proxies < count) {
		struct osd_proxy_thread *proxy = calloc(1, sizeof(*proxy));

		if (!proxy)
			return OSD_E_NO_MEMORY;
		proxy->pool = pool;
		if (!osd_thread_start(&proxy->thread, "iosd-proxy", run, proxy)) {
			free(proxy);
			return OSD_E_NO_MEMORY;
		}
		proxy->next = exec->runs->proxies;
		exec->runs->proxies = proxy;
		pool->proxies++;
	}
	return OSD_OK;
}

void osd_proxies_join(struct osd_exec *exec)
{
	join(exec, true);
}
