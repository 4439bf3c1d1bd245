/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_set.c -- setting what is not just kept: the logical length, quotas, timestamp bypass.  Each
 * changes a record in the transaction and, once that has committed, what is in memory. */
#include "object/attr_rows.h"

#include <stdlib.h>

#include "base/util.h"
#include "wire/cursor.h"

/* ---- logical length ---------------------------------------------------------------------- */

/* effect: arg the object (owned reference), value the new length, generation what was charged for
 * it; id is set when this transaction made the object. */
static void run_length(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_object *object = effect->arg;

	osd_uncharge(txn->objects, effect->partition, effect->generation);
	if (committed)
		osd_object_truncate_after_commit(object, effect->value);
	else if (effect->id.object_id) /* its record never was */
		osd_cache_remove(txn->objects, object->id, atomic_load(&object->generation));
	osd_object_put(object);
}

/* The space is charged now, when it can still be refused, and again by the truncation. */
enum osd_status osd_txn_set_length(struct osd_txn *txn, uint64_t length)
{
	struct osd_object *object = osd_cache_adopt(txn);
	struct osd_effect *effect;
	uint64_t old_length, charged = 0;
	enum osd_status status = OSD_OK;

	if (!object)
		return OSD_E_NO_MEMORY;
	old_length = txn->length_set ? txn->record.length : atomic_load(&object->length);
	if (length > txn->record.max_length)
		status = OSD_E_QUOTA;
	else if (length > old_length)
		status = osd_charge(txn->objects, txn->partition, charged = length - old_length,
				    false);
	effect = status == OSD_OK ? osd_txn_effect(txn, run_length) : NULL;
	if (!effect) {
		if (status == OSD_OK)
			osd_uncharge(txn->objects, txn->partition, charged);
		osd_object_put(object);
		return status == OSD_OK ? OSD_E_NO_MEMORY : status;
	}
	effect->arg = object;
	effect->value = length;
	effect->generation = charged;
	if (osd_object_is_new(txn, txn->id))
		effect->id = txn->id;
	atomic_fetch_add(&txn->partition->references, 1);
	effect->partition = txn->partition;
	txn->record.length = txn->record.reserved_bytes = length;
	txn->record.flags |= OSD_REC_LENGTH_RULES | (length ? OSD_REC_HAS_FILES : 0);
	txn->length_set = txn->dirty = true;
	return OSD_OK;
}

/* ---- quotas and bypass ------------------------------------------------------------------- */

static void run_quotas(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	(void)txn;
	if (committed)
		osd_partition_apply_quotas(effect->partition, effect->arg);
	free(effect->arg);
}

static void change_quota(struct osd_partition_record *record, enum osd_value_source source,
			 uint64_t value)
{
	switch (source) {
	case OSD_V_QUOTA_LENGTH:
		record->quotas.max_length = value;
		break;
	case OSD_V_QUOTA_CAPACITY:
		record->quotas.capacity = value;
		break;
	case OSD_V_QUOTA_COUNT:
		record->quotas.object_count = value;
		break;
	case OSD_V_QUOTA_COLLECTIONS:
		record->quotas.collections = (uint32_t)value;
		break;
	case OSD_V_QUOTA_PARTITIONS:
		record->quotas.partition_count = value;
		break;
	default:
		record->bypass = (uint8_t)value;
		break;
	}
}

static enum osd_status set_root_quota(struct osd_txn *txn, enum osd_value_source source,
				      uint64_t value)
{
	struct osd_root_record root;
	enum osd_status status = osd_root_hold(txn, &root);

	if (status != OSD_OK)
		return status;
	change_quota(&root.common, source, value);
	return osd_root_store(txn, &root);
}

static enum osd_status set_partition_quota(struct osd_txn *txn, enum osd_value_source source,
					   uint64_t value)
{
	struct osd_partition_record record, *copy;
	struct osd_effect *effect;
	enum osd_status status = osd_partition_hold(txn, txn->partition, true, &record);

	if (status != OSD_OK)
		return status;
	change_quota(&record, source, value);
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
	atomic_fetch_add(&txn->partition->references, 1);
	effect->partition = txn->partition;
	effect->id = (struct osd_object_id){txn->id.partition_id, UINT64_MAX};
	return OSD_OK;
}

static void run_max_length(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_object *object;

	if (!committed)
		return;
	osd_cache_changed(txn->objects);
	object = osd_cache_find(txn->objects, effect->id);
	if (object)
		atomic_store(&object->max_length, effect->value);
	osd_object_put(object);
}

static enum osd_status set_max_length(struct osd_txn *txn, uint64_t value)
{
	struct osd_effect *effect = osd_txn_effect(txn, run_max_length);

	if (!effect)
		return OSD_E_NO_MEMORY;
	effect->id = txn->id;
	effect->value = value;
	txn->record.max_length = value;
	txn->dirty = true;
	return OSD_OK;
}

static enum osd_status set_quota(struct osd_txn *txn, enum osd_value_source source, uint64_t value)
{
	if (txn->id.partition_id == 0)
		return set_root_quota(txn, source, value);
	return txn->id.object_id == 0 ? set_partition_quota(txn, source, value)
				      : set_max_length(txn, value);
}

/* ---- set --------------------------------------------------------------------------------- */

static enum osd_status set_membership(struct osd_txn *txn, uint32_t number, const uint8_t *value,
				      size_t length)
{
	if (number == 0 || number > 0xffffff00u)
		return OSD_E_PARAM_FIELD;
	if (length == 0)
		return osd_membership_clear(txn, number);
	return length == 8 ? osd_membership_set(txn, number, osd_get_be(value, 8))
			   : OSD_E_PARAM_FIELD;
}

/* Attributes access: pairs of page and number. */
static bool has_whole_entries(enum osd_object_type type, uint32_t relative, size_t length)
{
	return type != OSD_PARTITION || relative != OSD_REL_COLLECTIONS || length % 8 == 0;
}

enum osd_status osd_std_set(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    const uint8_t *value, size_t length)
{
	enum osd_object_type type = osd_txn_type(txn);
	const struct osd_std_row *row = osd_std_find(type, relative, number);
	bool internal = txn->flags & OSD_TXN_INTERNAL;

	if (relative == OSD_REL_COLLECTIONS && type == OSD_USER_OBJECT)
		return set_membership(txn, number, value, length);
	if (!row || !(row->settable || (internal && row->source == OSD_V_STORED)))
		return OSD_E_PARAM_FIELD;
	if (length != 0 && (length < row->min_length || length > row->max_length))
		return OSD_E_PARAM_FIELD;
	if (row->source == OSD_V_STORED)
		return has_whole_entries(type, relative, length)
			       ? osd_attr_stored_set(txn, osd_page_base(type) + relative, number,
						     value, length)
			       : OSD_E_PARAM_FIELD;
	if (length == 0)
		return OSD_E_PARAM_FIELD; /* these always have a value */
	if (row->source == OSD_V_LENGTH)
		return osd_txn_set_length(txn, osd_get_be(value, 8));
	return set_quota(txn, row->source, osd_get_be(value, length));
}
