/* SPDX-License-Identifier: GPL-2.0-or-later */
/* txn_store.c -- the store's transaction inside a transaction of this layer, this layer's own
 * transactions, and the effects that follow a commit. */
#include "object/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/util.h"
#include "object/value_index.h"

/* The number of store transactions that this thread has open: a second one could wait for the first for
 * ever. */
static _Thread_local unsigned open_transactions;

/* ---- the layer's own transactions -------------------------------------------------------- */

enum osd_status osd_own_begin(struct osd_objects *objects, enum osd_kv_access access,
			      struct osd_kv_txn **ret_kv)
{
	enum osd_status status;

	assert(open_transactions == 0);
	status = osd_kv_begin(objects->kv, access, ret_kv);
	if (status == OSD_OK)
		open_transactions++;
	return status;
}

enum osd_status osd_own_commit(struct osd_objects *objects, struct osd_kv_txn *kv, bool durable)
{
	enum osd_status status =
		osd_kv_commit(kv, durable ? OSD_KV_COMMIT_DURABLE : objects->commit);

	open_transactions--;
	return status;
}

void osd_own_abort(struct osd_kv_txn *kv)
{
	osd_kv_abort(kv);
	open_transactions--;
}

/* ---- records ---------------------------------------------------------------------------------- */

enum osd_status osd_record_load(struct osd_objects *objects, struct osd_kv_txn *kv,
				const struct osd_place *place, unsigned flags,
				struct osd_record *ret_record)
{
	const struct osd_key key = osd_key_object(place);
	uint8_t bytes[OSD_RECORD_BYTES];
	size_t length;
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_OBJECTS, osd_key_bytes(&key),
					    flags, bytes, sizeof(bytes), &length);

	return status == OSD_OK
		       ? osd_record_decode(bytes, OSD_MIN(length, sizeof(bytes)), ret_record)
		       : status;
}

enum osd_status osd_record_store(struct osd_kv_txn *kv, const struct osd_place *place,
				 const struct osd_record *record)
{
	const struct osd_key key = osd_key_object(place);
	uint8_t bytes[OSD_RECORD_BYTES];

	osd_record_encode(record, bytes);
	return osd_key_put(kv, OSD_KV_OBJECTS, &key, bytes, sizeof(bytes));
}

enum osd_status osd_record_is_there(struct osd_objects *objects, struct osd_kv_txn *kv,
				    enum osd_kv_table table, struct osd_bytes key, bool *ret_there)
{
	size_t length;
	enum osd_status status = osd_kv_get(objects->kv, kv, table, key, 0, NULL, 0, &length);

	*ret_there = status == OSD_OK;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

enum osd_status osd_attr_load(struct osd_objects *objects, struct osd_kv_txn *kv,
			      const struct osd_place *place, uint32_t page, uint32_t number,
			      uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	const struct osd_key key = osd_key_attribute(place, page, number);
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&key),
					    0, buffer, capacity, ret_length);

	if (status != OSD_OK)
		*ret_length = 0;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* ---- of a transaction ----------------------------------------------------------------------- */

enum osd_status osd_txn_lock_store(struct osd_txn *txn)
{
	enum osd_kv_access access = OSD_KV_CHANGE;
	enum osd_status status;

	if (txn->kv)
		return OSD_OK;
	if (txn->flags & OSD_TXN_READ_ONLY)
		access = txn->flags & OSD_TXN_NOWAIT ? OSD_KV_READ_NOWAIT : OSD_KV_READ;
	status = osd_own_begin(txn->objects, access, &txn->kv);
	if (status == OSD_OK && access == OSD_KV_CHANGE)
		osd_index_enter(txn);
	return status;
}

struct osd_effect *osd_txn_effect(struct osd_txn *txn,
				  void (*run)(struct osd_txn *txn, struct osd_effect *effect,
					      bool committed))
{
	struct osd_effect *effect = calloc(1, sizeof(*effect));

	if (!effect)
		return NULL;
	effect->run = run;
	*txn->last_effect = effect;
	txn->last_effect = &effect->next;
	return effect;
}

enum osd_status osd_txn_add_effect(struct osd_txn *txn, struct osd_effect effect)
{
	struct osd_effect *added = osd_txn_effect(txn, effect.run);

	if (!added)
		return OSD_E_NO_MEMORY;
	*added = effect;
	osd_partition_ref(effect.partition);
	return OSD_OK;
}

void osd_txn_release_reads(struct osd_txn *txn)
{
	if ((txn->flags & OSD_TXN_READ_ONLY) && txn->kv)
		osd_own_abort(OSD_STEAL(txn->kv));
}

static void run_callback(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	(void)txn;
	effect->fn(effect->arg, committed);
}

enum osd_status osd_txn_on_end(struct osd_txn *txn, void (*fn)(void *arg, bool committed),
			       void *arg)
{
	enum osd_status status = osd_txn_add_effect(
		txn, (struct osd_effect){.run = run_callback, .fn = fn, .arg = arg});

	if (status != OSD_OK)
		fn(arg, false);
	return status;
}
