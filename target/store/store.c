/* SPDX-License-Identifier: GPL-2.0-or-later */
/* store.c -- the checked wrappers of store.h: preconditions are asserted here, once for every
 * store. */
#include "store/store.h"

#include <assert.h>

#include "base/clock.h"
#include "store/freeze.h"
#include "store/stand_in.h"

const struct osd_stand_ins *osd_stand_ins;

void osd_kv_close(struct osd_kv *kv)
{
	if (kv)
		kv->ops->close(kv);
}

enum osd_status osd_kv_begin(struct osd_kv *kv, enum osd_kv_access access,
			     struct osd_kv_txn **ret_txn)
{
	enum osd_status status;

	/* No transaction may be open in a frozen store, so this one waits before it begins. */
	if (access == OSD_KV_CHANGE)
		osd_freeze_enter(kv->freeze);
	status = kv->ops->begin(kv, access, ret_txn);
	if (status != OSD_OK && access == OSD_KV_CHANGE)
		osd_freeze_leave(kv->freeze);
	if (status == OSD_OK) {
		(*ret_txn)->began_usec = access == OSD_KV_CHANGE ? osd_monotonic_usec() : 0;
		(*ret_txn)->failed = OSD_OK;
		(*ret_txn)->nowait = access == OSD_KV_READ_NOWAIT;
	}
	return status;
}

static enum osd_kv_abort abort_kind(enum osd_status failed)
{
	switch (failed) {
	case OSD_OK:
		return OSD_KV_ABORTED_CALLER;
	case OSD_E_CONFLICT:
		return OSD_KV_ABORTED_DEADLOCK;
	case OSD_E_NO_SPACE:
		return OSD_KV_ABORTED_NO_SPACE;
	default:
		return OSD_KV_ABORTED_FAILURE;
	}
}

static void note_end(struct osd_kv *kv, uint64_t began_usec, bool committed, enum osd_status failed)
{
	if (!began_usec)
		return;
	osd_freeze_leave(kv->freeze);
	osd_histogram_add(&kv->figures.seconds, osd_monotonic_usec() - began_usec);
	if (!committed)
		atomic_fetch_add_explicit(&kv->figures.aborted[abort_kind(failed)], 1,
					  memory_order_relaxed);
}

/* Returns the status; txn NULL is fine.  In a transaction that may not wait, every lock conflict
 * counts as lost. */
static enum osd_status note_call(struct osd_kv_txn *txn, enum osd_status status)
{
	/* Whether a key is there is an answer: the transaction goes on, and may still commit. */
	if (!txn || status == OSD_OK || status == OSD_E_NO_OBJECT || status == OSD_E_EXISTS)
		return status;
	txn->failed = status;
	return status == OSD_E_CONFLICT && txn->nowait ? OSD_E_WOULD_BLOCK : status;
}

/* A transaction that lost a deadlock can only be aborted.  Berkeley DB would answer every other call with
 * EINVAL, which is no conflict to a caller that continues after the first answer. */
static bool is_lost(const struct osd_kv_txn *txn)
{
	return txn && txn->failed == OSD_E_CONFLICT;
}

enum osd_status osd_kv_commit(struct osd_kv_txn *txn, enum osd_kv_commit how)
{
	struct osd_kv *kv = txn->kv;
	uint64_t began_usec = txn->began_usec;
	enum osd_status status;

	if (is_lost(txn)) {
		osd_kv_abort(txn);
		return OSD_E_CONFLICT;
	}
	status = kv->ops->commit(txn, how);
	note_end(kv, began_usec, status == OSD_OK, status);
	return status;
}

void osd_kv_abort(struct osd_kv_txn *txn)
{
	struct osd_kv_txn ended;

	if (!txn)
		return;
	/* The abort frees txn. */
	ended = *txn;
	ended.kv->ops->abort(txn);
	note_end(ended.kv, ended.began_usec, false, ended.failed);
}

enum osd_status osd_kv_get(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			   struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			   size_t *ret_length)
{
	assert(table < OSD_KV_TABLES && key.length > 0 && key.length <= UINT16_MAX);
	assert(!txn || txn->kv == kv);
	assert(txn || !(flags & OSD_KV_RMW));
	return note_call(txn, is_lost(txn) ? OSD_E_CONFLICT
					   : kv->ops->get(kv, txn, table, key, flags, buffer,
							  capacity, ret_length));
}

enum osd_status osd_kv_put(struct osd_kv_txn *txn, enum osd_kv_table table, struct osd_bytes key,
			   struct osd_bytes value, unsigned flags)
{
	assert(table < OSD_KV_TABLES && key.length > 0 && key.length <= UINT16_MAX);
	/* Lengths in Berkeley DB have 32 bits. */
	if (value.length > UINT32_MAX / 2)
		return OSD_E_NO_SPACE;
	return note_call(txn, is_lost(txn) ? OSD_E_CONFLICT
					   : txn->kv->ops->put(txn, table, key, value, flags));
}

enum osd_status osd_kv_remove(struct osd_kv_txn *txn, enum osd_kv_table table, struct osd_bytes key)
{
	assert(table < OSD_KV_TABLES && key.length > 0 && key.length <= UINT16_MAX);
	return note_call(txn, is_lost(txn) ? OSD_E_CONFLICT
					   : txn->kv->ops->remove(txn, table, key));
}

enum osd_status osd_kv_scan(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			    struct osd_bytes from, size_t prefix_length, osd_kv_scan_fn *fn,
			    void *arg)
{
	assert(table < OSD_KV_TABLES && prefix_length <= from.length);
	assert(!txn || txn->kv == kv);
	return note_call(txn, is_lost(txn) ? OSD_E_CONFLICT
					   : kv->ops->scan(kv, txn, table, from, prefix_length, fn,
							   arg));
}

enum osd_status osd_kv_flush(struct osd_kv *kv)
{
	return kv->ops->flush(kv);
}

enum osd_status osd_kv_checkpoint(struct osd_kv *kv, bool force)
{
	/* A checkpoint writes files.  The freeze has made one, and upkeep makes the next. */
	return osd_freeze_is_on(kv->freeze) ? OSD_OK : kv->ops->checkpoint(kv, force);
}

void osd_kv_stats(struct osd_kv *kv, struct osd_kv_stats *ret_stats)
{
	kv->ops->stats(kv, ret_stats);
}

void osd_data_close(struct osd_data *data)
{
	if (data)
		data->ops->close(data);
}

/* Reports that the device has no room. */
static enum osd_status note_room(struct osd_data *data, enum osd_status status)
{
	if (status == OSD_E_NO_SPACE && data->full.fn)
		data->full.fn(data->full.arg, data);
	return status;
}

enum osd_status osd_data_open_file(struct osd_data *data, const struct osd_data_name *name,
				   unsigned flags, struct osd_data_file **ret_file)
{
	unsigned without = flags & ~(unsigned)OSD_DATA_CREATE;
	enum osd_status status = OSD_E_NO_OBJECT;

	/* Opening a file that is there changes nothing, so it does not wait for the freeze. */
	if (flags != without && osd_freeze_holds(data->freeze)) {
		status = data->ops->open_file(data, name, without, ret_file);
		if (status == OSD_E_NO_OBJECT)
			osd_freeze_pass(data->freeze);
	}
	if (status == OSD_E_NO_OBJECT)
		status = data->ops->open_file(data, name, flags, ret_file);
	return note_room(data, status);
}

void osd_data_close_file(struct osd_data_file *file)
{
	if (file)
		file->data->ops->close_file(file);
}

/* Offsets beyond off_t, which the system calls use, cannot be in any file. */
static bool in_range(uint64_t offset, uint64_t length)
{
	return offset <= INT64_MAX && length <= INT64_MAX - offset;
}

/* A read that returned because it may not wait is not counted. */
static enum osd_status note_data(struct osd_data *data, _Atomic uint64_t *count,
				 enum osd_status status)
{
	if (status == OSD_E_WOULD_BLOCK)
		return status;
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	if (status == OSD_OK)
		return OSD_OK;
	atomic_fetch_add_explicit(&data->figures.errors, 1, memory_order_relaxed);
	return note_room(data, status);
}

void osd_data_note(struct osd_data *data, bool is_write, enum osd_status status)
{
	note_data(data, is_write ? &data->figures.writes : &data->figures.reads, status);
}

enum osd_status osd_data_read(struct osd_data_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read)
{
	if (!in_range(offset, length))
		return OSD_E_BEYOND_END;
	return note_data(file->data, &file->data->figures.reads,
			 file->data->ops->read(file, offset, buffer, length, flags, ret_read));
}

enum osd_status osd_data_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
			       size_t length)
{
	if (!in_range(offset, length))
		return OSD_E_NO_SPACE;
	osd_freeze_pass(file->data->freeze);
	return note_data(file->data, &file->data->figures.writes,
			 file->data->ops->write(file, offset, bytes, length));
}

enum osd_status osd_data_truncate(struct osd_data_file *file, uint64_t size)
{
	if (!in_range(size, 0))
		return OSD_E_NO_SPACE;
	osd_freeze_pass(file->data->freeze);
	return note_room(file->data, file->data->ops->truncate(file, size));
}

enum osd_status osd_data_zero(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	if (!in_range(offset, length))
		return OSD_E_NO_SPACE;
	/* fallocate(2) refuses a length of 0. */
	if (length == 0)
		return OSD_OK;
	osd_freeze_pass(file->data->freeze);
	return note_room(file->data, file->data->ops->zero(file, offset, length));
}

enum osd_status osd_data_stat(struct osd_data_file *file, struct osd_data_stat *ret_stat)
{
	while (!file->data->ops->stat)
		file = file->inner;
	return file->data->ops->stat(file, ret_stat);
}

enum osd_status osd_data_next_extent(struct osd_data_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end)
{
	if (!in_range(offset, 0))
		return OSD_E_BEYOND_END;
	while (!file->data->ops->next_extent)
		file = file->inner;
	return file->data->ops->next_extent(file, offset, ret_start, ret_end);
}

enum osd_status osd_data_copy(struct osd_data_file *from, uint64_t from_offset,
			      struct osd_data_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags)
{
	if (!in_range(from_offset, length) || !in_range(to_offset, length))
		return OSD_E_NO_SPACE;
	osd_freeze_pass(to->data->freeze);
	return note_room(to->data,
			 to->data->ops->copy(from, from_offset, to, to_offset, length, flags));
}

enum osd_status osd_data_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	osd_freeze_pass(to->data->freeze);
	return note_room(to->data, to->data->ops->clone(from, to));
}

bool osd_data_can_clone(struct osd_data *data)
{
	while (!data->ops->can_clone)
		data = data->inner;
	return data->ops->can_clone(data);
}

enum osd_status osd_data_sync(struct osd_data_file *file)
{
	struct osd_data *data = file->data;

	while (!file->data->ops->sync)
		file = file->inner;
	return note_room(data, file->data->ops->sync(file));
}

enum osd_status osd_data_share(struct osd_data_file *file, int *ret_fd)
{
	return file->data->ops->share(file, ret_fd);
}

enum osd_status osd_data_set_modified(struct osd_data_file *file, uint64_t modified_ms)
{
	osd_freeze_pass(file->data->freeze);
	return file->data->ops->set_modified ? file->data->ops->set_modified(file, modified_ms)
					     : osd_data_set_modified(file->inner, modified_ms);
}

enum osd_status osd_data_sync_directories(struct osd_data *data, const struct osd_data_name *name)
{
	while (!data->ops->sync_directories)
		data = data->inner;
	return data->ops->sync_directories(data, name);
}

enum osd_status osd_data_link(struct osd_data *data, const struct osd_data_name *from,
			      const struct osd_data_name *to)
{
	if (!data->ops->link)
		return OSD_E_UNSUPPORTED;
	osd_freeze_pass(data->freeze);
	return data->ops->link(data, from, to);
}

enum osd_status osd_data_remove(struct osd_data *data, const struct osd_data_name *name)
{
	osd_freeze_pass(data->freeze);
	return data->ops->remove(data, name);
}

enum osd_status osd_data_remove_partition(struct osd_data *data, uint64_t partition_id,
					  uint32_t incarnation)
{
	osd_freeze_pass(data->freeze);
	return data->ops->remove_partition
		       ? data->ops->remove_partition(data, partition_id, incarnation)
		       : osd_data_remove_partition(data->inner, partition_id, incarnation);
}

enum osd_status osd_data_sync_all(struct osd_data *data)
{
	while (!data->ops->sync_all)
		data = data->inner;
	return data->ops->sync_all(data);
}

enum osd_status osd_data_capacity(struct osd_data *data, uint64_t *ret_total, uint64_t *ret_free)
{
	while (!data->ops->capacity)
		data = data->inner;
	return data->ops->capacity(data, ret_total, ret_free);
}
