/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_set.c -- setting a standard attribute, after the checks that its row requires.  Most are kept as
 * they are.  Others, such as logical length, quotas and timestamp bypass, change a record in the
 * transaction, and memory once that has committed. */
#include "object/attr_table.h"

#include <stdlib.h>

#include "wire/cursor.h"

/* ---- logical length ---------------------------------------------------------------------- */

/* effect: arg is the object (owned reference), value the new length, generation the bytes charged for
 * it. head_part and head_on are the size and the place of its head. id is set when this transaction
 * made the object. */
static void run_length(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	const struct osd_committed_length to = {effect->value, effect->head_part, effect->head_on,
						effect->version};
	struct osd_object *object = effect->arg;
	unsigned flags = txn->flags & OSD_TXN_NO_TIMESTAMPS ? OSD_DATA_NO_TIMESTAMPS : 0;

	if (committed) {
		osd_object_truncate_after_commit(object, &to, object == txn->changing, flags);
	} else if (effect->id.object_id) {
		/* The object was never recorded, and its data is charged elsewhere. */
		atomic_store(&object->length, 0);
		osd_cache_remove(txn->objects, object->id, atomic_load(&object->generation));
	}
	atomic_fetch_sub(&object->resizing, 1);
	osd_uncharge(txn->objects, object->account, effect->generation);
	osd_object_put(object);
}

/* *ret_charged: bytes. */
static enum osd_status charge_growth(struct osd_txn *txn, struct osd_object *object,
				     uint64_t length, uint64_t *ret_charged)
{
	uint64_t before = txn->length_set	    ? txn->record.length
			  : object == txn->changing ? txn->changing_length
						    : atomic_load(&object->length);
	enum osd_status untrimmed = atomic_load(&object->untrimmed);

	*ret_charged = 0;
	if (object->unmeasured)
		return OSD_E_MEDIUM;
	if (length <= before)
		return OSD_OK;
	if (length > txn->record.max_length)
		return OSD_E_QUOTA;
	if (untrimmed) /* bytes that could not be cut off would reappear */
		return untrimmed == OSD_E_NO_SPACE ? OSD_E_NO_SPACE : OSD_E_MEDIUM;
	*ret_charged = length - before;
	return osd_charge(txn->objects, object->account, *ret_charged, false);
}

/* Truncates or extends after the commit.  The space is charged now, when it can still be refused, and
 * given back when the truncation has charged what it needs. */
static enum osd_status set_length(struct osd_txn *txn, uint64_t length)
{
	struct osd_object *object = osd_cache_adopt(txn);
	struct osd_effect *effect;
	uint64_t charged;
	enum osd_status status;

	if (!object)
		return OSD_E_NO_MEMORY;
	status = charge_growth(txn, object, length, &charged);
	effect = status == OSD_OK ? osd_txn_effect(txn, run_length) : NULL;
	if (!effect) {
		if (status == OSD_OK)
			osd_uncharge(txn->objects, object->account, charged);
		osd_object_put(object);
		return status == OSD_OK ? OSD_E_NO_MEMORY : status;
	}
	atomic_fetch_add(&object->resizing, 1);
	effect->arg = object;
	effect->value = length;
	effect->generation = charged;
	effect->version = txn->length_version = osd_version_new(txn->objects);
	if (osd_object_is_new(txn, txn->id))
		effect->id = txn->id;
	effect->partition = osd_partition_ref(txn->partition);
	if (length && !(txn->record.flags & OSD_REC_HAS_FILES))
		osd_head_place(txn->objects, length, &txn->record);
	effect->head_part = txn->record.head_bytes;
	effect->head_on = txn->record.head_on;
	txn->record.length = txn->record.reserved_bytes = length;
	txn->record.version.counter = OSD_VERSION_STALE;
	if (osd_txn_hooks(txn) & OSD_HOOK_AFTER)
		txn->record.flags |= OSD_REC_DUE;
	txn->record.flags |= OSD_REC_LENGTH_RULES | (length ? OSD_REC_HAS_FILES : 0);
	osd_note_data_change(txn);
	txn->length_set = txn->dirty = true;
	return OSD_OK;
}

/* The object at hand may show the bytes of another one: then that one is cut. */
static enum osd_status empty(struct osd_txn *txn)
{
	struct osd_object_id id = txn->id, emptied;
	enum osd_status status = osd_stack_emptied(txn, &emptied);

	if (status == OSD_OK)
		status = osd_txn_take(txn, emptied, true);
	if (status == OSD_OK && !osd_same_id(id, emptied) && osd_txn_hooks(txn) & OSD_HOOK_WRITE)
		status = OSD_E_CHECK; /* nobody has asked the checks of that object */
	if (status == OSD_OK)
		status = set_length(txn, 0);
	return status == OSD_OK ? osd_txn_take(txn, id, true) : status;
}

/* Bytes that functions have made cannot be cut elsewhere than at the beginning. */
static enum osd_status set_plain_length(struct osd_txn *txn, uint64_t length)
{
	bool concerns = false;
	enum osd_status status;

	if (length == 0)
		return empty(txn);
	status = osd_stack_concerns(txn, &concerns);
	if (status == OSD_OK && concerns)
		status = OSD_E_PARAM_FIELD;
	return status == OSD_OK ? set_length(txn, length) : status;
}

/* ---- quotas and other fields of records -------------------------------------------------- */

static void run_quotas(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (committed)
		osd_partition_apply_quotas(txn->objects, effect->partition, effect->arg,
					   effect->value);
	free(effect->arg);
}

static void change_quota(struct osd_partition_record *record, const struct osd_std_row *row,
			 uint64_t value)
{
	if (row->source == OSD_V_QUOTA)
		*osd_std_quota(row, &record->quotas) = value;
	else if (row->source == OSD_V_USER_TAG)
		record->user_tag = (uint32_t)value;
	else
		record->bypass = (uint8_t)value;
}

static enum osd_status set_root_quota(struct osd_txn *txn, const struct osd_std_row *row,
				      uint64_t value)
{
	struct osd_root_record root;
	enum osd_status status = osd_root_hold(txn, &root);

	if (status != OSD_OK)
		return status;
	if (row->source == OSD_V_ISOLATION)
		root.isolation = (uint8_t)value;
	else
		change_quota(&root.common, row, value);
	return osd_root_store(txn, &root);
}

static enum osd_status set_partition_quota(struct osd_txn *txn, const struct osd_std_row *row,
					   uint64_t value)
{
	struct osd_partition_record record, *copy;
	struct osd_effect *effect;
	enum osd_status status = osd_partition_hold(txn, txn->partition, true, &record);

	if (status != OSD_OK)
		return status;
	change_quota(&record, row, value);
	status = osd_partition_store(txn, txn->partition, &record);
	if (status != OSD_OK)
		return status;
	copy = malloc(sizeof(*copy));
	effect = copy ? osd_txn_effect(txn, run_quotas) : NULL;
	if (!effect) {
		free(copy);
		return OSD_E_NO_MEMORY;
	}
	*copy = record;
	effect->arg = copy;
	effect->value = osd_record_change(txn->objects);
	effect->partition = osd_partition_ref(txn->partition);
	effect->id = (struct osd_object_id){txn->id.partition_id, UINT64_MAX};
	return OSD_OK;
}

static enum osd_status set_max_length(struct osd_txn *txn, uint64_t value)
{
	enum osd_status status = osd_txn_add_effect(
		txn, (struct osd_effect){.run = osd_cache_record_changed, .id = txn->id});

	if (status != OSD_OK)
		return status;
	txn->record.max_length = value;
	txn->dirty = true;
	return OSD_OK;
}

static enum osd_status set_quota(struct osd_txn *txn, const struct osd_std_row *row, uint64_t value)
{
	if (txn->id.partition_id == 0)
		return set_root_quota(txn, row, value);
	return txn->id.object_id == 0 ? set_partition_quota(txn, row, value)
				      : set_max_length(txn, value);
}

/* ---- set --------------------------------------------------------------------------------- */

static enum osd_status set_membership(struct osd_txn *txn, uint32_t number, const uint8_t *value,
				      size_t length)
{
	return length ? osd_membership_set(txn, number, osd_get_be(value, length))
		      : osd_membership_clear(txn, number);
}

/* The value is stored as its difference from the clock, so that it runs on. */
static enum osd_status set_clock(struct osd_txn *txn, uint64_t value)
{
	uint8_t bytes[8];

	osd_put_be(bytes, value - txn->now_ms, sizeof(bytes));
	return osd_attr_stored_set(txn, OSD_PAGE_ROOT_BASE | OSD_REL_SECURITY, OSD_SEC_CLOCK, bytes,
				   sizeof(bytes));
}

static void run_tag(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	osd_cache_record_changed(txn, effect, committed);
	if (committed)
		osd_note_policy_change(txn->objects);
}

static enum osd_status set_tag(struct osd_txn *txn, uint64_t value)
{
	uint32_t page = osd_page_base(osd_txn_type(txn)) + OSD_REL_SECURITY;
	enum osd_status status =
		osd_txn_add_effect(txn, (struct osd_effect){.run = run_tag, .id = txn->id});

	if (status != OSD_OK)
		return status;
	txn->record.policy_tag = (uint32_t)value;
	txn->dirty = true;
	return osd_attr_stored_set(txn, page, OSD_SEC_TAG, NULL, 0); /* the first release's */
}

static bool value_fits(const struct osd_std_row *row, const uint8_t *value, size_t length)
{
	switch (row->rule) {
	case OSD_RULE_METHOD:
		return value[0] < 16 && (OSD_SECURITY_METHODS >> value[0] & 1);
	case OSD_RULE_BYPASS:
		return value[0] == 0 || value[0] == OSD_TIMESTAMPS_BYPASS;
	case OSD_RULE_ISOLATION:
		return osd_isolation_supported(value[0]);
	case OSD_RULE_PAIRS:
		return length % 8 == 0;
	case OSD_RULE_NONCE_LIMIT:
		return osd_get_be(value, length) >= OSD_NONCE_LIMIT_LEAST &&
		       osd_get_be(value, length) <= OSD_NONCE_LIMIT_MOST;
	case OSD_RULE_ANY:
		break;
	}
	return true;
}

/* Length 0 restores the initial value. */
static enum osd_status set_nonce_limit(struct osd_txn *txn, uint32_t number, const uint8_t *value,
				       size_t length)
{
	uint32_t page = osd_page_base(osd_txn_type(txn)) + OSD_REL_SECURITY;
	uint64_t most = OSD_NONCE_LIMIT_MOST;
	enum osd_status status = OSD_OK;

	if (length && txn->id.partition_id != 0)
		status = osd_nonce_limit(txn, (struct osd_object_id){0, 0}, number, &most);
	if (status == OSD_OK && osd_get_be(value, length) > most)
		status = OSD_E_PARAM_FIELD;
	return status == OSD_OK ? osd_attr_stored_set(txn, page, number, value, length) : status;
}

static void run_policy(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	(void)effect;
	if (committed)
		osd_note_policy_change(txn->objects);
}

/* Policy/Security of a partition or the root, and the lists of ALLOWED ATTRIBUTES ACCESS. */
static bool is_policy(const struct osd_txn *txn, const struct osd_std_row *row)
{
	if (txn->id.object_id != 0)
		return false;
	return row->relative == OSD_REL_SECURITY ||
	       (row->relative == OSD_REL_COLLECTIONS && txn->id.partition_id != 0);
}

/* Length 0 makes a stored attribute undefined, or restores its initial value.  Other attributes always
 * have a value. */
static enum osd_status set_row(struct osd_txn *txn, const struct osd_std_row *row, uint32_t number,
			       const uint8_t *value, size_t length)
{
	if (is_policy(txn, row) && !osd_txn_effect(txn, run_policy))
		return OSD_E_NO_MEMORY;
	if (row->source == OSD_V_STORED)
		return osd_attr_stored_set(txn, osd_page_base(osd_txn_type(txn)) + row->relative,
					   number, value, length);
	if (row->source == OSD_V_NONCE_LIMIT)
		return set_nonce_limit(txn, number, value, length);
	if (row->source == OSD_V_MEMBERSHIP)
		return set_membership(txn, number, value, length);
	if (length == 0)
		return OSD_E_PARAM_FIELD;
	if (row->source == OSD_V_LENGTH)
		return set_plain_length(txn, osd_get_be(value, length));
	if (row->source == OSD_V_ADJUSTED_CLOCK)
		return set_clock(txn, osd_get_be(value, length));
	if (row->source == OSD_V_TAG)
		return set_tag(txn, osd_get_be(value, length));
	return set_quota(txn, row, osd_get_be(value, length));
}

enum osd_status osd_std_set(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    const uint8_t *value, size_t length)
{
	const struct osd_std_row *row = osd_std_find(osd_txn_type(txn), relative, number);
	bool internal = txn->flags & OSD_TXN_INTERNAL;

	if (!row || (row->settable == OSD_SET_NEVER && !(internal && row->source == OSD_V_STORED)))
		return OSD_E_PARAM_FIELD;
	if (length != 0 && (length < row->min_length || length > row->max_length ||
			    !value_fits(row, value, length)))
		return OSD_E_PARAM_FIELD;
	return set_row(txn, row, number, value, length);
}
