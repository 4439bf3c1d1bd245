/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nonce.c -- see nonce.h.  A nonce is used if it is in a window's set, or if its time is in one of
 * the window's spans of refused times.
 *
 * The store has spans that cover the times of all nonces taken, and one second beyond the newest.
 * So only a few nonces cost a commit; a timer extends the spans while nonces arrive.  After a
 * restart, all covered times are refused.  There are several spans, not one highest time, because a
 * clock may run a year ahead for a while: the times of today are still good afterwards, and those
 * of next year are still used.
 *
 * Locks, in this order: nonces->lock (read held while a window is in use), window->writing (held
 * during a commit), window->lock (held for a few instructions, or while the set is rebuilt). */
#include "security/nonce.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/timer.h"
#include "base/util.h"
#include "object/txn_run.h"
#include "security/nonce_set.h"
#include "wire/cursor.h"

#define BUCKETS	   64
#define AHEAD_MS   1000u
#define TICK_MS	   250u
#define REST_MS	   30000u /* between two checks while no nonces come */
#define IDLE_TICKS 20u	  /* ticks without a nonce; then the writer rests */

struct window {
	struct window *next;
	uint64_t partition_id;
	struct osd_lock writing, lock;
	struct osd_nonce_set set; /* under lock, as are these */
	struct osd_nonce_spans refused, used;
	struct osd_nonce_spans durable; /* in the store */
	uint64_t newest;		/* time of the last nonce; 0: none since the last tick */
	uint64_t quiet_after;		/* clock at which all of the set is outside the limits */
	uint64_t oldest_ms;		/* the lower limit at the last nonce */
	bool changed;			/* nonces were taken */
};

struct osd_nonces {
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	struct osd_rwlock lock;
	struct window *buckets[BUCKETS]; /* under lock */

	struct osd_timer writer;
	unsigned quiet;	    /* the writer's: ticks without a nonce, in a row */
	_Atomic bool awake; /* the writer checks again at its next tick */
};

/* ---- records ----------------------------------------------------------------------------- */

struct spans_record {
	uint64_t partition_id;
	const struct osd_nonce_spans *spans;
};

static enum osd_status put_spans(struct osd_txn *txn, void *arg)
{
	const struct spans_record *record = arg;

	return osd_nonce_spans_put(txn, record->partition_id, record->spans);
}

static enum osd_status write_spans(struct osd_nonces *nonces, uint64_t partition_id,
				   const struct osd_nonce_spans *spans)
{
	return osd_txn_run(nonces->objects, OSD_TXN_INTERNAL | OSD_TXN_NO_TIMESTAMPS, put_spans,
			   &(struct spans_record){partition_id, spans});
}

static enum osd_status read_spans(struct osd_nonces *nonces, uint64_t partition_id,
				  struct osd_nonce_spans *ret_spans)
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	enum osd_status status =
		osd_txn_begin(nonces->objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, &txn);

	return status == OSD_OK ? osd_nonce_spans_get(txn, partition_id, ret_spans) : status;
}

/* Extends the stored spans to cover time and one second beyond. */
static enum osd_status write_ahead(struct osd_nonces *nonces, struct window *window, uint64_t time)
{
	struct osd_nonce_spans spans;
	enum osd_status status = OSD_OK;

	osd_lock(&window->writing);
	osd_lock(&window->lock);
	spans = window->durable;
	osd_unlock(&window->lock);
	/* Another thread may have extended them meanwhile. */
	if (osd_spans_after(&spans, time) <= time + TICK_MS) {
		osd_spans_add(&spans, time, time + AHEAD_MS);
		status = write_spans(nonces, window->partition_id, &spans);
		if (status == OSD_OK) {
			osd_lock(&window->lock);
			window->durable = spans;
			osd_unlock(&window->lock);
		}
	}
	osd_unlock(&window->writing);
	return status;
}

/* ---- windows ----------------------------------------------------------------------------- */

static struct window **bucket_of(struct osd_nonces *nonces, uint64_t partition_id)
{
	return &nonces->buckets[(partition_id * UINT64_C(0x9e3779b97f4a7c15) >> 32) % BUCKETS];
}

static struct window *find(struct osd_nonces *nonces, uint64_t partition_id)
{
	struct window *window = *bucket_of(nonces, partition_id);

	osd_assert_rw_held(&nonces->lock);
	while (window && window->partition_id != partition_id)
		window = window->next;
	return window;
}

static void free_window(struct window *window)
{
	osd_nonce_set_release(&window->set);
	osd_lock_destroy(&window->lock);
	osd_lock_destroy(&window->writing);
	free(window);
}

static enum osd_status add_window(struct osd_nonces *nonces, uint64_t partition_id)
{
	struct osd_nonce_spans spans;
	struct window *window;
	enum osd_status status = OSD_OK;

	osd_write_lock(&nonces->lock);
	if (!find(nonces, partition_id))
		status = read_spans(nonces, partition_id, &spans);
	if (status == OSD_OK && !find(nonces, partition_id)) {
		window = calloc(1, sizeof(*window));
		status = window ? OSD_OK : OSD_E_NO_MEMORY;
		if (window) {
			window->partition_id = partition_id;
			window->refused = window->used = window->durable = spans;
			osd_lock_init(&window->lock, OSD_RANK_WINDOW);
			osd_lock_init(&window->writing, OSD_RANK_WINDOW_WRITING);
			window->next = *bucket_of(nonces, partition_id);
			*bucket_of(nonces, partition_id) = window;
		}
	}
	osd_rw_unlock(&nonces->lock);
	return status;
}

static void partition_gone(void *arg, uint64_t partition_id)
{
	struct osd_nonces *nonces = arg;
	struct window **link = bucket_of(nonces, partition_id), *window;

	osd_write_lock(&nonces->lock);
	while (*link && (*link)->partition_id != partition_id)
		link = &(*link)->next;
	window = *link;
	if (window)
		*link = window->next;
	osd_rw_unlock(&nonces->lock);
	if (window)
		free_window(window);
}

/* ---- taking ------------------------------------------------------------------------------ */

struct nonce {
	uint64_t time, random;
	const struct osd_policy *policy;
};

/* Under window->lock.  OSD_E_WOULD_BLOCK: the store must cover its time first. */
static enum osd_status take(struct window *window, const struct nonce *nonce)
{
	const struct osd_policy *policy = nonce->policy;
	enum osd_status status;

	osd_assert_held(&window->lock);
	if (osd_nonce_set_has(&window->set, nonce->time, nonce->random))
		return OSD_E_NONCE_REPEAT;
	if (osd_spans_cover(&window->refused, nonce->time))
		return OSD_E_NONCE_TIME;
	if (!osd_spans_cover(&window->durable, nonce->time))
		return OSD_E_WOULD_BLOCK;
	status = osd_nonce_set_add(&window->set, nonce->time, nonce->random, policy->oldest_ms,
				   &window->refused);
	if (status != OSD_OK)
		return status;
	osd_spans_add(&window->used, nonce->time, nonce->time);
	window->newest = OSD_MAX(window->newest, nonce->time);
	window->quiet_after = OSD_MAX(window->quiet_after, nonce->time + policy->oldest_ms);
	window->oldest_ms = policy->oldest_ms;
	window->changed = true;
	return OSD_OK;
}

static enum osd_status take_or_write(struct osd_nonces *nonces, struct window *window,
				     const struct nonce *nonce, bool nowait)
{
	enum osd_status status;

	for (;;) {
		osd_lock(&window->lock);
		status = take(window, nonce);
		osd_unlock(&window->lock);
		if (status != OSD_E_WOULD_BLOCK || nowait)
			return status;
		status = write_ahead(nonces, window, nonce->time);
		if (status != OSD_OK)
			return status;
	}
}

static void wake_writer(struct osd_nonces *nonces)
{
	if (!atomic_exchange(&nonces->awake, true))
		osd_timer_set(osd_objects_timers(nonces->objects), &nonces->writer, 0);
}

/* With nonces->lock held for reading, unless it fails. */
static enum osd_status lock_window(struct osd_nonces *nonces, uint64_t partition_id, bool nowait,
				   struct window **ret_window)
{
	enum osd_status status = OSD_OK;

	/* The thread that adds a window holds it while it reads the store. */
	if (nowait && !osd_try_read_lock(&nonces->lock))
		return OSD_E_WOULD_BLOCK;
	if (!nowait)
		osd_read_lock(&nonces->lock);
	while (status == OSD_OK && !(*ret_window = find(nonces, partition_id))) {
		osd_rw_unlock(&nonces->lock);
		status = nowait ? OSD_E_WOULD_BLOCK : add_window(nonces, partition_id);
		if (status == OSD_OK)
			osd_read_lock(&nonces->lock);
	}
	return status;
}

enum osd_status osd_nonces_take(struct osd_nonces *nonces, uint64_t partition_id,
				const uint8_t nonce[OSD_NONCE_LENGTH], uint64_t now_ms, bool nowait)
{
	struct osd_policy policy;
	struct nonce wanted = {osd_get_be(nonce, 6), osd_get_be(nonce + 6, 6), &policy};
	enum osd_status status = osd_keyring_policy(nonces->keyring, partition_id, nowait, &policy);
	struct window *window;

	if (status != OSD_OK)
		return status;
	if (wanted.time + policy.oldest_ms < now_ms || wanted.time > now_ms + policy.newest_ms)
		return OSD_E_NONCE_TIME;
	status = lock_window(nonces, partition_id, nowait, &window);
	if (status != OSD_OK)
		return status;
	status = take_or_write(nonces, window, &wanted, nowait);
	osd_rw_unlock(&nonces->lock);
	if (status == OSD_OK)
		wake_writer(nonces);
	return status;
}

uint64_t osd_nonces_clock(struct osd_nonces *nonces, uint64_t partition_id, uint64_t now_ms)
{
	struct window *window;
	uint64_t clock = now_ms;

	osd_read_lock(&nonces->lock);
	window = find(nonces, partition_id);
	if (window) {
		osd_lock(&window->lock);
		clock = osd_spans_after(&window->refused, now_ms);
		osd_unlock(&window->lock);
	}
	osd_rw_unlock(&nonces->lock);
	return clock;
}

/* ---- the writer -------------------------------------------------------------------------- */

/* Serves one window.  True: nonces came since the last tick.  *ret_keeps: it has nonces that can be
 * forgotten later. */
static bool serve_window(struct osd_nonces *nonces, struct window *window, bool *ret_keeps)
{
	uint64_t newest;

	osd_lock(&window->lock);
	newest = window->newest;
	window->newest = 0;
	if (!newest && window->set.count && window->quiet_after < osd_wall_msec())
		(void)osd_nonce_set_forget(&window->set, UINT64_MAX - 1, window->oldest_ms,
					   &window->refused); /* it is tried again */
	*ret_keeps = *ret_keeps || window->set.count;
	osd_unlock(&window->lock);
	if (newest)
		(void)write_ahead(nonces, window, newest); /* on failure, the next nonce tries
							    * again */
	return newest != 0;
}

/* The timer's function.  It does nothing until the next nonce once no window keeps any. */
static uint64_t write_all(void *arg)
{
	struct osd_nonces *nonces = arg;
	bool busy = false, keeps = false;

	/* A nonce that comes after this and finds the writer not awake makes it run again. */
	atomic_store(&nonces->awake, nonces->quiet + 1 < IDLE_TICKS);
	osd_read_lock(&nonces->lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct window *window = nonces->buckets[i]; window; window = window->next)
			busy = serve_window(nonces, window, &keeps) || busy;
	osd_rw_unlock(&nonces->lock);
	nonces->quiet = busy ? 0 : nonces->quiet + 1;
	if (nonces->quiet < IDLE_TICKS)
		return osd_monotonic_usec() + TICK_MS * 1000;
	return keeps ? osd_monotonic_usec() + REST_MS * 1000 : OSD_NEVER;
}

/* ---- opening and closing ----------------------------------------------------------------- */

enum osd_status osd_nonces_open(struct osd_objects *objects, struct osd_keyring *keyring,
				struct osd_nonces **ret_nonces)
{
	struct osd_nonces *nonces = calloc(1, sizeof(*nonces));

	if (!nonces)
		return OSD_E_NO_MEMORY;
	nonces->objects = objects;
	nonces->keyring = keyring;
	osd_rwlock_init(&nonces->lock, OSD_RANK_NONCES);
	nonces->writer = (struct osd_timer){write_all, nonces, OSD_NEVER, NULL};
	osd_timer_add(osd_objects_timers(objects), &nonces->writer);
	osd_objects_watch_partitions(objects, partition_gone, nonces);
	*ret_nonces = nonces;
	return OSD_OK;
}

/* Cuts the spans to the times that were used: after an orderly restart no initiator has to wait for
 * the extra second. */
void osd_nonces_close(struct osd_nonces *nonces)
{
	if (!nonces)
		return;
	osd_timer_remove(osd_objects_timers(nonces->objects), &nonces->writer);
	for (size_t i = 0; i < BUCKETS; i++) {
		while (nonces->buckets[i]) {
			struct window *window = nonces->buckets[i];

			nonces->buckets[i] = window->next;
			if (window->changed)
				(void)write_spans(nonces, window->partition_id, &window->used);
			free_window(window);
		}
	}
	osd_rwlock_destroy(&nonces->lock);
	free(nonces);
}
