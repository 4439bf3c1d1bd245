/* SPDX-License-Identifier: GPL-2.0-or-later */
/* quota.c -- charges bytes and objects to accounts, within their limits.  A partition has
 * an account for its data, and one for jobs that stand apart.  Used bytes are the objects' lengths.
 * Charged bytes are these plus the charges for attributes and jobs; the capacity quota and the store's
 * capacity limit them.  All counters are in memory and exact at any time.  So a limit is checked before a
 * byte is written, without a transaction.
 *
 * The removal of a partition subtracts all its charges from the totals at once (partition.c), with
 * partitions_lock held for writing.  Every charge holds that lock for reading: it comes before the
 * removal, or finds the partition removed. */
#include "base/util.h"
#include "object/internal.h"

#define JOB_RESERVE_PERCENT 1 /* of the capacity: kept for jobs' output */

/* Adds to the counter unless the sum would exceed the limit. */
static bool add_below(_Atomic uint64_t *counter, uint64_t delta, uint64_t limit)
{
	uint64_t before = atomic_load(counter);

	do {
		if (delta > limit || before > limit - delta)
			return false;
	} while (!atomic_compare_exchange_weak(counter, &before, before + delta));
	return true;
}

/* account NULL: the root. */
static enum osd_status charge(struct osd_objects *objects, struct osd_charge_account *account,
			      uint64_t delta, bool use_reserve)
{
	uint64_t capacity = atomic_load(&objects->capacity_bytes);
	uint64_t quota = use_reserve || !account ? OSD_NO_LIMIT
						   : atomic_load(&account->capacity);

	if (account && atomic_load(&account->removed))
		return OSD_E_NO_PARTITION;
	if (!use_reserve) {
		if (atomic_load(&objects->disk_full)) {
			osd_space_refused(objects, OSD_SPACE_MAIN);
			return OSD_E_NO_SPACE;
		}
		capacity -= capacity / 100 * JOB_RESERVE_PERCENT;
	}
	if (account)
		atomic_fetch_add(&account->charges, 1);
	if (account && !add_below(&account->charged_bytes, delta, quota))
		return OSD_E_QUOTA;
	if (add_below(&objects->charged_bytes, delta, capacity))
		return OSD_OK;
	if (account)
		atomic_fetch_sub(&account->charged_bytes, delta);
	osd_space_refused(objects, OSD_SPACE_CAPACITY);
	return OSD_E_NO_SPACE;
}

/* The objects' lengths. */
static void add_used(struct osd_objects *objects, struct osd_charge_account *account,
		     uint64_t delta)
{
	atomic_fetch_add(&account->used_bytes, delta);
	atomic_fetch_add(&objects->used_bytes, delta);
}

enum osd_status osd_charge(struct osd_objects *objects, struct osd_charge_account *account,
			   uint64_t delta, bool use_reserve)
{
	enum osd_status status;

	if (delta == 0)
		return OSD_OK;
	osd_read_lock(&objects->partitions_lock);
	status = charge(objects, account, delta, use_reserve);
	if (status == OSD_OK)
		add_used(objects, account, delta);
	osd_rw_unlock(&objects->partitions_lock);
	return status;
}

void osd_charge_committed(struct osd_objects *objects, struct osd_charge_account *account,
			  uint64_t delta)
{
	osd_read_lock(&objects->partitions_lock);
	if (!atomic_load(&account->removed)) {
		atomic_fetch_add(&account->charges, 1);
		atomic_fetch_add(&account->charged_bytes, delta);
		atomic_fetch_add(&objects->charged_bytes, delta);
		add_used(objects, account, delta);
	}
	osd_rw_unlock(&objects->partitions_lock);
}

/* All arithmetic is modulo 2^64. */
void osd_uncharge(struct osd_objects *objects, struct osd_charge_account *account, uint64_t delta)
{
	osd_charge_committed(objects, account, 0 - delta);
}

/* ---- attributes and records ---------------------------------------------------------------- */

static _Atomic uint64_t *counter_of(struct osd_charge_account *account, enum osd_charge_for what)
{
	return what == OSD_CHARGE_ATTRIBUTES ? &account->attribute_bytes
					     : &account->record_bytes;
}

/* delta is modulo 2^64. */
static void add_other(struct osd_objects *objects, struct osd_charge_account *account,
		      enum osd_charge_for what, uint64_t delta)
{
	osd_assert_rw_held(&objects->partitions_lock);
	if (account && atomic_load(&account->removed))
		return;
	if (account) {
		atomic_fetch_add(&account->charges, 1);
		atomic_fetch_add(&account->charged_bytes, delta);
		atomic_fetch_add(counter_of(account, what), delta);
	}
	atomic_fetch_add(&objects->charged_bytes, delta);
}

void osd_charge_found(struct osd_objects *objects, struct osd_charge_account *account,
		      enum osd_charge_for what, uint64_t bytes)
{
	osd_read_lock(&objects->partitions_lock);
	add_other(objects, account, what, bytes);
	osd_rw_unlock(&objects->partitions_lock);
}

/* effect: value is the bytes taken, which an abort gives back; generation the bytes to give back after
 * the commit; head_on the enum osd_charge_for; arg the account. */
static void run_charged(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	uint64_t back = committed ? effect->generation : effect->value;

	osd_read_lock(&txn->objects->partitions_lock);
	if (back)
		add_other(txn->objects, effect->arg, effect->head_on, 0 - back);
	osd_rw_unlock(&txn->objects->partitions_lock);
}

static bool is_charge(const struct osd_effect *effect, const struct osd_charge_account *account,
		      enum osd_charge_for what)
{
	return effect->run == run_charged && effect->arg == account && effect->head_on == what;
}

/* The effect that collects the transaction's charges to that account; NULL: out of memory. */
static struct osd_effect *charge_of(struct osd_txn *txn, struct osd_partition *partition,
				    struct osd_charge_account *account, enum osd_charge_for what)
{
	struct osd_effect *effect = txn->charge;

	if (effect && is_charge(effect, account, what))
		return effect;
	for (effect = txn->charge ? txn->effects : NULL; effect; effect = effect->next)
		if (is_charge(effect, account, what))
			return txn->charge = effect;
	effect = osd_txn_effect(txn, run_charged);
	if (!effect)
		return NULL;
	effect->partition = osd_partition_ref(partition);
	effect->arg = account;
	effect->head_on = what;
	return txn->charge = effect;
}

/* The transaction may take again the bytes that it gives back. */
static enum osd_status take_more(struct osd_txn *txn, struct osd_effect *effect, uint64_t delta,
				 bool limited)
{
	uint64_t own = OSD_MIN(delta, effect->generation);
	struct osd_charge_account *account = effect->arg;
	enum osd_status status = OSD_OK;

	delta -= own;
	osd_read_lock(&txn->objects->partitions_lock);
	if (delta && limited)
		status = charge(txn->objects, account, delta, false);
	if (delta && limited && status == OSD_OK && account)
		atomic_fetch_add(counter_of(account, effect->head_on), delta);
	if (delta && !limited)
		add_other(txn->objects, account, effect->head_on, delta);
	osd_rw_unlock(&txn->objects->partitions_lock);
	if (status != OSD_OK)
		return status;
	effect->generation -= own;
	effect->value += delta;
	return OSD_OK;
}

enum osd_status osd_charge_in(struct osd_txn *txn, struct osd_partition *partition,
			      struct osd_charge_account *account, enum osd_charge_for what,
			      uint64_t before, uint64_t after, bool limited)
{
	struct osd_effect *effect;

	if (before == after)
		return OSD_OK;
	effect = charge_of(txn, partition, account, what);
	if (!effect)
		return OSD_E_NO_MEMORY;
	if (after > before)
		return take_more(txn, effect, after - before, limited);
	effect->generation += before - after;
	return OSD_OK;
}

/* Each job has a surrogate, and only jobs that stand apart have ids of that range. */
static struct osd_charge_account *account_of_job(struct osd_partition *partition,
						 struct osd_object_id job)
{
	return osd_account_of(partition, job.object_id, OSD_REC_SURROGATE);
}

enum osd_status osd_txn_charge_records(struct osd_txn *txn, struct osd_object_id job,
				       uint64_t before, uint64_t after, bool limited)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status;

	if (before == after)
		return OSD_OK;
	status = osd_partition_get(txn->objects, txn, job.partition_id, &partition);
	if (status == OSD_E_NO_PARTITION && after < before)
		return OSD_OK;
	if (status != OSD_OK)
		return status;
	return osd_charge_in(txn, partition, account_of_job(partition, job), OSD_CHARGE_RECORDS,
			     before, after, limited);
}

void osd_objects_charge_records(struct osd_objects *objects, struct osd_object_id job,
				uint64_t bytes)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;

	if (osd_partition_get(objects, NULL, job.partition_id, &partition) == OSD_OK)
		osd_charge_found(objects, account_of_job(partition, job), OSD_CHARGE_RECORDS,
				 bytes);
}

/* ---- counts ---------------------------------------------------------------------------------- */

static enum osd_status add_count(struct osd_objects *objects, struct osd_charge_account *account,
				 uint64_t count, bool limited)
{
	uint64_t limit = limited ? atomic_load(&account->count_limit) : OSD_NO_LIMIT;

	if (atomic_load(&account->removed))
		return OSD_E_NO_PARTITION;
	atomic_fetch_add(&account->charges, 1);
	if (!add_below(&account->object_count, count, limit))
		return OSD_E_QUOTA;
	atomic_fetch_add(&objects->object_count, count);
	return OSD_OK;
}

enum osd_status osd_count_add(struct osd_objects *objects, struct osd_charge_account *account,
			      uint64_t count, bool limited)
{
	enum osd_status status;

	osd_read_lock(&objects->partitions_lock);
	status = add_count(objects, account, count, limited);
	osd_rw_unlock(&objects->partitions_lock);
	return status;
}

void osd_count_drop(struct osd_objects *objects, struct osd_charge_account *account,
		    uint64_t count)
{
	osd_read_lock(&objects->partitions_lock);
	if (!atomic_load(&account->removed)) {
		atomic_fetch_add(&account->charges, 1);
		atomic_fetch_sub(&account->object_count, count);
		atomic_fetch_sub(&objects->object_count, count);
	}
	osd_rw_unlock(&objects->partitions_lock);
}

enum osd_status osd_partitions_add(struct osd_objects *objects, uint64_t limit)
{
	return add_below(&objects->partition_count, 1, limit) ? OSD_OK : OSD_E_QUOTA;
}
