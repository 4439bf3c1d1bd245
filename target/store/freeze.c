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

#define STORES 2u

/* One data store: its functions, and those it has while the store is frozen. */
struct frozen_data {
	struct osd_data *data; /* borrowed; NULL: none */
	const struct osd_data_ops *own;
	struct osd_data_ops ops;
};

struct osd_freeze {
	struct osd_kv *kv; /* borrowed */
	struct frozen_data stores[STORES];
	_Atomic uint64_t changing; /* transactions that change something */
	_Atomic bool on;	   /* changed under lock */
	struct osd_lock lock;
	pthread_cond_t over;	/* on is false again, or no transaction is open */
	uint64_t deadline_usec; /* monotonic; under lock */
};

/* ---- the gate ---------------------------------------------------------------------------- */

static void let_go(struct osd_freeze *freeze)
{
	osd_assert_held(&freeze->lock);
	for (size_t i = 0; i < STORES; i++)
		if (freeze->stores[i].data)
			freeze->stores[i].data->ops = freeze->stores[i].own;
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

/* ---- data calls of a frozen store -------------------------------------------------------- */

static const struct frozen_data *cold_of(const struct osd_data *data)
{
	const struct osd_freeze *freeze = data->freeze;

	return &freeze->stores[freeze->stores[0].data == data ? 0 : 1];
}

/* Waits for the end of the freeze.  Returns the store's own functions. */
static const struct osd_data_ops *own_ops(struct osd_data *data)
{
	wait_for_end(data->freeze);
	return cold_of(data)->own;
}

static enum osd_status frozen_open(struct osd_data *data, const struct osd_data_name *name,
				 unsigned flags, struct osd_data_file **ret_file)
{
	const struct osd_data_ops *own = cold_of(data)->own;
	enum osd_status status = own->open_file(data, name, flags & ~(unsigned)OSD_DATA_CREATE,
						ret_file);

	if (status != OSD_E_NO_OBJECT || !(flags & OSD_DATA_CREATE))
		return status;
	return own_ops(data)->open_file(data, name, flags, ret_file);
}

static enum osd_status frozen_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
				  size_t length)
{
	return own_ops(file->data)->write(file, offset, bytes, length);
}

static enum osd_status frozen_truncate(struct osd_data_file *file, uint64_t size)
{
	return own_ops(file->data)->truncate(file, size);
}

static enum osd_status frozen_zero(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	return own_ops(file->data)->zero(file, offset, length);
}

static enum osd_status frozen_copy(struct osd_data_file *from, uint64_t from_offset,
				 struct osd_data_file *to, uint64_t to_offset, uint64_t length,
				 unsigned flags)
{
	return own_ops(to->data)->copy(from, from_offset, to, to_offset, length, flags);
}

static enum osd_status frozen_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	return own_ops(to->data)->clone(from, to);
}

static enum osd_status frozen_set_modified(struct osd_data_file *file, uint64_t modified_ms)
{
	const struct osd_data_ops *ops;

	wait_for_end(file->data->freeze);
	ops = OSD_FILE_OPS(set_modified, file);
	return ops->set_modified(file, modified_ms);
}

static enum osd_status frozen_link(struct osd_data *data, const struct osd_data_name *from,
				 const struct osd_data_name *to)
{
	return own_ops(data)->link(data, from, to);
}

static enum osd_status frozen_remove(struct osd_data *data, const struct osd_data_name *name)
{
	return own_ops(data)->remove(data, name);
}

static enum osd_status frozen_remove_partition(struct osd_data *data, uint64_t partition_id,
					     uint32_t incarnation)
{
	const struct osd_data_ops *ops;

	wait_for_end(data->freeze);
	ops = OSD_DATA_OPS(remove_partition, data);
	return ops->remove_partition(data, partition_id, incarnation);
}

/* Functions that change nothing stay the store's own.  Without plain_fd no write bypasses these. */
static void prepare(struct osd_freeze *freeze, struct frozen_data *cold, struct osd_data *data)
{
	cold->data = data;
	if (!data)
		return;
	cold->own = data->ops;
	cold->ops = *cold->own;
	cold->ops.open_file = frozen_open;
	cold->ops.write = frozen_write;
	cold->ops.truncate = frozen_truncate;
	cold->ops.zero = frozen_zero;
	cold->ops.copy = frozen_copy;
	cold->ops.clone = frozen_clone;
	cold->ops.set_modified = frozen_set_modified;
	cold->ops.link = cold->own->link ? frozen_link : NULL;
	cold->ops.remove = frozen_remove;
	cold->ops.remove_partition = frozen_remove_partition;
	cold->ops.plain_fd = NULL;
	data->freeze = freeze;
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
	for (size_t i = 0; i < STORES; i++)
		if (freeze->stores[i].data)
			freeze->stores[i].data->ops = &freeze->stores[i].ops;
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

enum osd_status osd_freeze_open(struct osd_kv *kv, struct osd_data *head, struct osd_data *tail,
			      struct osd_freeze **ret_freeze)
{
	struct osd_freeze *freeze = calloc(1, sizeof(*freeze));

	if (!freeze)
		return OSD_E_NO_MEMORY;
	osd_lock_init(&freeze->lock, OSD_RANK_FREEZE);
	osd_cond_init(&freeze->over);
	freeze->kv = kv;
	kv->freeze = freeze;
	prepare(freeze, &freeze->stores[0], head);
	prepare(freeze, &freeze->stores[1], tail);
	*ret_freeze = freeze;
	return OSD_OK;
}

void osd_freeze_close(struct osd_freeze *freeze)
{
	if (!freeze)
		return;
	osd_freeze_end(freeze);
	freeze->kv->freeze = NULL;
	pthread_cond_destroy(&freeze->over);
	osd_lock_destroy(&freeze->lock);
	free(freeze);
}
