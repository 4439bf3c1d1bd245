/* SPDX-License-Identifier: GPL-2.0-or-later */
/* freeze.c -- see freeze.h.
 *
 * Order: transactions stop first, because an open one may still write data before it commits.
 * Data calls stop when none is open.  A checkpoint follows; after it the database's cache has no
 * page that it would have to write. */
#include "store/freeze.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/util.h"

struct osd_freeze {
	struct osd_kv *kv;	      /* borrowed */
	struct osd_data *head, *tail; /* borrowed; NULL: none */
	_Atomic uint64_t changing;    /* transactions that change something */
	_Atomic bool on;	      /* changed under lock */
	_Atomic bool held;	      /* the same: data calls wait, too */
	struct osd_lock lock;
	pthread_cond_t over;	/* on is false again, or no transaction is open */
	uint64_t deadline_usec; /* monotonic; under lock */
};

/* ---- the gate ---------------------------------------------------------------------------- */

static void let_go(struct osd_freeze *freeze)
{
	osd_assert_held(&freeze->lock);
	atomic_store(&freeze->held, false);
	atomic_store(&freeze->on, false);
	pthread_cond_broadcast(&freeze->over);
}

/* Returns when the store is not frozen.  The first caller to reach the deadline ends the freeze. */
static void wait_for_end(struct osd_freeze *freeze)
{
	osd_lock(&freeze->lock);
	while (atomic_load(&freeze->on)) {
		struct timespec until = osd_timespec(freeze->deadline_usec);

		if (osd_monotonic_usec() >= freeze->deadline_usec)
			let_go(freeze);
		else
			osd_cond_timedwait(&freeze->over, &freeze->lock, &until);
	}
	osd_unlock(&freeze->lock);
}

void osd_freeze_enter(struct osd_freeze *freeze)
{
	if (!freeze)
		return;
	atomic_fetch_add(&freeze->changing, 1);
	while (atomic_load(&freeze->on)) {
		osd_freeze_leave(freeze);
		wait_for_end(freeze);
		atomic_fetch_add(&freeze->changing, 1);
	}
}

void osd_freeze_leave(struct osd_freeze *freeze)
{
	if (!freeze || atomic_fetch_sub(&freeze->changing, 1) != 1 || !atomic_load(&freeze->on))
		return;
	osd_lock(&freeze->lock);
	pthread_cond_broadcast(&freeze->over);
	osd_unlock(&freeze->lock);
}

bool osd_freeze_is_on(struct osd_freeze *freeze)
{
	return freeze && atomic_load(&freeze->on);
}

bool osd_freeze_holds(const struct osd_freeze *freeze)
{
	return freeze && atomic_load(&freeze->held);
}

void osd_freeze_pass(struct osd_freeze *freeze)
{
	if (osd_freeze_holds(freeze))
		wait_for_end(freeze);
}

/* ---- freezing ---------------------------------------------------------------------------- */

/* False: transactions are still open at until_usec. */
static bool drain(struct osd_freeze *freeze, uint64_t until_usec)
{
	struct timespec until = osd_timespec(until_usec);

	osd_assert_held(&freeze->lock);
	while (atomic_load(&freeze->changing) > 0)
		if (osd_cond_timedwait(&freeze->over, &freeze->lock, &until) == ETIMEDOUT)
			return atomic_load(&freeze->changing) == 0;
	return true;
}

static enum osd_status begin_locked(struct osd_freeze *freeze, uint64_t wait_usec,
				    uint64_t freeze_usec)
{
	uint64_t now = osd_monotonic_usec();

	osd_assert_held(&freeze->lock);
	if (atomic_load(&freeze->on) && now < freeze->deadline_usec)
		return OSD_E_BUSY;
	let_go(freeze);
	freeze->deadline_usec = now + freeze_usec;
	atomic_store(&freeze->on, true);
	if (!drain(freeze, now + OSD_MIN(wait_usec, freeze_usec)) || !atomic_load(&freeze->on)) {
		let_go(freeze);
		return OSD_E_BUSY;
	}
	atomic_store(&freeze->held, true);
	return OSD_OK;
}

enum osd_status osd_freeze_begin(struct osd_freeze *freeze, uint64_t wait_usec,
				 uint64_t freeze_usec)
{
	enum osd_status status;

	osd_lock(&freeze->lock);
	status = begin_locked(freeze, wait_usec, freeze_usec);
	osd_unlock(&freeze->lock);
	if (status != OSD_OK)
		return status;
	status = freeze->kv->ops->checkpoint(freeze->kv, true);
	if (status != OSD_OK)
		osd_freeze_end(freeze);
	return status;
}

bool osd_freeze_end(struct osd_freeze *freeze)
{
	bool lasted;

	osd_lock(&freeze->lock);
	lasted = atomic_load(&freeze->on) && osd_monotonic_usec() < freeze->deadline_usec;
	let_go(freeze);
	osd_unlock(&freeze->lock);
	return lasted;
}

static void attach(struct osd_freeze *freeze, struct osd_freeze *with)
{
	freeze->kv->freeze = with;
	if (freeze->head)
		freeze->head->freeze = with;
	if (freeze->tail)
		freeze->tail->freeze = with;
}

enum osd_status osd_freeze_open(struct osd_kv *kv, struct osd_data *head, struct osd_data *tail,
			      struct osd_freeze **ret_freeze)
{
	struct osd_freeze *freeze = calloc(1, sizeof(*freeze));

	if (!freeze)
		return OSD_E_NO_MEMORY;
	osd_lock_init(&freeze->lock, OSD_RANK_FREEZE);
	osd_cond_init(&freeze->over);
	freeze->kv = kv;
	freeze->head = head;
	freeze->tail = tail;
	attach(freeze, freeze);
	*ret_freeze = freeze;
	return OSD_OK;
}

void osd_freeze_close(struct osd_freeze *freeze)
{
	if (!freeze)
		return;
	osd_freeze_end(freeze);
	attach(freeze, NULL);
	pthread_cond_destroy(&freeze->over);
	osd_lock_destroy(&freeze->lock);
	free(freeze);
}
