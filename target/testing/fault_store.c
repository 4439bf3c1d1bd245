/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fault_store.c -- wraps a store and fails, or dies at, the n-th call of the plan.  For tests: a
 * sweep over n = 1, 2, ... until nothing fires shows that every failure is survived and reported.
 */
#include "testing/stores.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/util.h"

struct fault_kv {
	struct osd_kv base;
	struct osd_kv *inner; /* owned */
	struct osd_fault_plan *plan;
};

struct fault_txn {
	struct osd_kv_txn base;
	struct osd_kv_txn *inner; /* owned */
};

struct fault_data {
	struct osd_data base;
	struct osd_fault_plan *plan;
};

static bool hit(struct osd_fault_plan *plan)
{
	uint64_t call = atomic_fetch_add(&plan->calls, 1) + 1, fail_at = atomic_load(&plan->fail_at);

	if (plan->goes_on ? call < fail_at : call != fail_at)
		return false;
	if (plan->kill)
		raise(SIGKILL);
	return true;
}

/* The call of the store below, unless the plan has it fail. */
#define UNLESS_HIT(plan, call) (hit(plan) ? (plan)->status : (call))

static struct fault_kv *to_kv(struct osd_kv *kv)
{
	return osd_container_of(kv, struct fault_kv, base);
}

static struct osd_kv_txn *inner_txn(struct osd_kv_txn *txn)
{
	return txn ? osd_container_of(txn, struct fault_txn, base)->inner : NULL;
}

/* ---- records ----------------------------------------------------------------------------- */

static void kv_close(struct osd_kv *kv)
{
	osd_kv_close(to_kv(kv)->inner);
	free(to_kv(kv));
}

static enum osd_status kv_begin(struct osd_kv *kv, enum osd_kv_access access,
				struct osd_kv_txn **ret_txn)
{
	struct fault_txn *txn;
	enum osd_status status;

	if (hit(to_kv(kv)->plan))
		return to_kv(kv)->plan->status;
	txn = calloc(1, sizeof(*txn));
	if (!txn)
		return OSD_E_NO_MEMORY;
	status = osd_kv_begin(to_kv(kv)->inner, access, &txn->inner);
	if (status != OSD_OK) {
		free(txn);
		return status;
	}
	txn->base.kv = kv;
	*ret_txn = &txn->base;
	return OSD_OK;
}

static void kv_abort(struct osd_kv_txn *base)
{
	osd_kv_abort(inner_txn(base));
	free(osd_container_of(base, struct fault_txn, base));
}

static enum osd_status kv_commit(struct osd_kv_txn *base, enum osd_kv_commit how)
{
	struct osd_fault_plan *plan = to_kv(base->kv)->plan;
	enum osd_status status;

	if (hit(plan)) {
		kv_abort(base);
		return plan->status;
	}
	status = osd_kv_commit(inner_txn(base), how);
	free(osd_container_of(base, struct fault_txn, base));
	return status;
}

static enum osd_status kv_get(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			      struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			      size_t *ret_length)
{
	return UNLESS_HIT(to_kv(kv)->plan, osd_kv_get(to_kv(kv)->inner, inner_txn(txn), table, key,
						      flags, buffer, capacity, ret_length));
}

static enum osd_status kv_put(struct osd_kv_txn *txn, enum osd_kv_table table, struct osd_bytes key,
			      struct osd_bytes value, unsigned flags)
{
	return UNLESS_HIT(to_kv(txn->kv)->plan,
			  osd_kv_put(inner_txn(txn), table, key, value, flags));
}

static enum osd_status kv_remove(struct osd_kv_txn *txn, enum osd_kv_table table,
				 struct osd_bytes key)
{
	return UNLESS_HIT(to_kv(txn->kv)->plan, osd_kv_remove(inner_txn(txn), table, key));
}

static enum osd_status kv_scan(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			       struct osd_bytes from, size_t prefix_length, osd_kv_scan_fn *fn,
			       void *arg)
{
	return UNLESS_HIT(to_kv(kv)->plan, osd_kv_scan(to_kv(kv)->inner, inner_txn(txn), table,
						       from, prefix_length, fn, arg));
}

static enum osd_status kv_flush(struct osd_kv *kv)
{
	return UNLESS_HIT(to_kv(kv)->plan, osd_kv_flush(to_kv(kv)->inner));
}

static enum osd_status kv_checkpoint(struct osd_kv *kv, bool force)
{
	return UNLESS_HIT(to_kv(kv)->plan, osd_kv_checkpoint(to_kv(kv)->inner, force));
}

static void kv_stats(struct osd_kv *kv, struct osd_kv_stats *ret_stats)
{
	osd_kv_stats(to_kv(kv)->inner, ret_stats);
}

static const struct osd_kv_ops kv_ops = {
	.close = kv_close,
	.begin = kv_begin,
	.commit = kv_commit,
	.abort = kv_abort,
	.get = kv_get,
	.put = kv_put,
	.remove = kv_remove,
	.scan = kv_scan,
	.flush = kv_flush,
	.checkpoint = kv_checkpoint,
	.stats = kv_stats,
};

enum osd_status osd_fault_kv_wrap(struct osd_kv *inner, struct osd_fault_plan *plan,
				  struct osd_kv **ret_kv)
{
	struct fault_kv *fault = calloc(1, sizeof(*fault));

	if (!fault) {
		osd_kv_close(inner);
		return OSD_E_NO_MEMORY;
	}
	*fault = (struct fault_kv){{.ops = &kv_ops}, inner, plan};
	*ret_kv = &fault->base;
	return OSD_OK;
}

/* ---- data -------------------------------------------------------------------------------- */

static struct fault_data *to_data(struct osd_data *data)
{
	return osd_container_of(data, struct fault_data, base);
}

static struct osd_fault_plan *plan_of(struct osd_data_file *file)
{
	return to_data(file->data)->plan;
}

static void data_close(struct osd_data *data)
{
	osd_data_close(data->inner);
	free(to_data(data));
}

static enum osd_status data_open_file(struct osd_data *data, const struct osd_data_name *name,
				      unsigned flags, struct osd_data_file **ret_file)
{
	struct osd_data_file *file;
	enum osd_status status;

	if (hit(to_data(data)->plan))
		return to_data(data)->plan->status;
	file = calloc(1, sizeof(*file));
	if (!file)
		return OSD_E_NO_MEMORY;
	status = osd_data_open_file(data->inner, name, flags, &file->inner);
	if (status != OSD_OK) {
		free(file);
		return status;
	}
	file->data = data;
	*ret_file = file;
	return OSD_OK;
}

static void data_close_file(struct osd_data_file *file)
{
	osd_data_close_file(file->inner);
	free(file);
}

static enum osd_status data_read(struct osd_data_file *file, uint64_t offset, void *buffer,
				 size_t length, unsigned flags, size_t *ret_read)
{
	return UNLESS_HIT(plan_of(file),
			  osd_data_read(file->inner, offset, buffer, length, flags, ret_read));
}

/* A failing write leaves half of it behind, as a disk may. */
static enum osd_status data_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
				  size_t length)
{
	if (!hit(plan_of(file)))
		return osd_data_write(file->inner, offset, bytes, length);
	osd_data_write(file->inner, offset, bytes, length / 2);
	return plan_of(file)->status;
}

static enum osd_status data_truncate(struct osd_data_file *file, uint64_t size)
{
	return UNLESS_HIT(plan_of(file), osd_data_truncate(file->inner, size));
}

static enum osd_status data_zero(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	return UNLESS_HIT(plan_of(file), osd_data_zero(file->inner, offset, length));
}

static enum osd_status data_stat(struct osd_data_file *file, struct osd_data_stat *ret_stat)
{
	return UNLESS_HIT(plan_of(file), osd_data_stat(file->inner, ret_stat));
}

static enum osd_status data_next_extent(struct osd_data_file *file, uint64_t offset,
					uint64_t *ret_start, uint64_t *ret_end)
{
	return UNLESS_HIT(plan_of(file),
			  osd_data_next_extent(file->inner, offset, ret_start, ret_end));
}

/* A failing copy leaves half of it behind, too. */
static enum osd_status data_copy(struct osd_data_file *from, uint64_t from_offset,
				 struct osd_data_file *to, uint64_t to_offset, uint64_t length,
				 unsigned flags)
{
	if (!hit(plan_of(to)))
		return osd_data_copy(from->inner, from_offset, to->inner, to_offset, length, flags);
	osd_data_copy(from->inner, from_offset, to->inner, to_offset, length / 2, flags);
	return plan_of(to)->status;
}

static enum osd_status data_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	return UNLESS_HIT(plan_of(to), osd_data_clone(from->inner, to->inner));
}

static enum osd_status data_sync(struct osd_data_file *file)
{
	return UNLESS_HIT(plan_of(file), osd_data_sync(file->inner));
}

static enum osd_status data_share(struct osd_data_file *file, int *ret_fd)
{
	return UNLESS_HIT(plan_of(file), osd_data_share(file->inner, ret_fd));
}

static enum osd_status data_set_modified(struct osd_data_file *file, uint64_t modified_ms)
{
	return UNLESS_HIT(plan_of(file), osd_data_set_modified(file->inner, modified_ms));
}

static enum osd_status data_sync_directories(struct osd_data *data,
					     const struct osd_data_name *name)
{
	return UNLESS_HIT(to_data(data)->plan, osd_data_sync_directories(data->inner, name));
}

static enum osd_status data_link(struct osd_data *data, const struct osd_data_name *from,
				 const struct osd_data_name *to)
{
	return UNLESS_HIT(to_data(data)->plan, osd_data_link(data->inner, from, to));
}

static enum osd_status data_remove(struct osd_data *data, const struct osd_data_name *name)
{
	return UNLESS_HIT(to_data(data)->plan, osd_data_remove(data->inner, name));
}

static enum osd_status data_remove_partition(struct osd_data *data, uint64_t partition_id,
					     uint32_t incarnation)
{
	return UNLESS_HIT(to_data(data)->plan,
			  osd_data_remove_partition(data->inner, partition_id, incarnation));
}

static enum osd_status data_sync_all(struct osd_data *data)
{
	return UNLESS_HIT(to_data(data)->plan, osd_data_sync_all(data->inner));
}

static enum osd_status data_capacity(struct osd_data *data, uint64_t *ret_total, uint64_t *ret_free)
{
	return UNLESS_HIT(to_data(data)->plan, osd_data_capacity(data->inner, ret_total, ret_free));
}

static const struct osd_data_ops data_ops = {
	.close = data_close,
	.open_file = data_open_file,
	.close_file = data_close_file,
	.read = data_read,
	.write = data_write,
	.truncate = data_truncate,
	.zero = data_zero,
	.stat = data_stat,
	.next_extent = data_next_extent,
	.copy = data_copy,
	.clone = data_clone,
	.sync = data_sync,
	.share = data_share,
	.set_modified = data_set_modified,
	.sync_directories = data_sync_directories,
	.link = data_link,
	.remove = data_remove,
	.remove_partition = data_remove_partition,
	.sync_all = data_sync_all,
	.capacity = data_capacity,
};

enum osd_status osd_fault_data_wrap(struct osd_data *inner, struct osd_fault_plan *plan,
				    struct osd_data **ret_data)
{
	struct fault_data *fault = calloc(1, sizeof(*fault));

	if (!fault) {
		osd_data_close(inner);
		return OSD_E_NO_MEMORY;
	}
	*fault = (struct fault_data){{.ops = &data_ops, .inner = inner}, plan};
	*ret_data = &fault->base;
	return OSD_OK;
}
