/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_charge.c -- what attributes are charged (docs/limits.md).  An attribute counts as its value and
 * OVERHEAD bytes, in units.  Pages 0h to 6h of each range are free: they are the standard's and hold
 * little.  The record of an object has the units of its attributes.  The records of the root and of
 * partitions have no such field, so theirs are counted when the store is opened. */
#include "object/internal.h"

#include "base/util.h"
#include "wire/cursor.h"

#define OVERHEAD 64u /* of a database record beside the value, about */

/* The same page of whatever type of object: relative to the begin of the type's range. */
static bool is_charged(uint32_t page)
{
	return page >= OSD_PAGE_ANY_BASE || page % OSD_PAGE_PARTITION_BASE > OSD_REL_RECOVERY;
}

uint32_t osd_attr_units(uint32_t page, size_t length)
{
	if (length == 0 || !is_charged(page))
		return 0;
	return (uint32_t)((length + OVERHEAD + OSD_UNIT_BYTES - 1) / OSD_UNIT_BYTES);
}

static bool add_units(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	const uint8_t *bytes = key.data;

	if (key.length == OSD_KEY_OBJECT_PART + 8)
		*(uint64_t *)arg += osd_attr_units(
			(uint32_t)osd_get_be(bytes + OSD_KEY_OBJECT_PART, 4), value.length);
	return true;
}

enum osd_status osd_attr_count_units(struct osd_objects *objects, struct osd_kv_txn *kv,
				     const struct osd_place *place, uint64_t *ret_units)
{
	struct osd_key prefix = osd_key_object(place);

	*ret_units = 0;
	return osd_kv_scan(objects->kv, kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&prefix), prefix.length,
			   add_units, ret_units);
}

/* Units of the object at hand, which is locked.  An early release may have written its record without
 * counting them. */
static enum osd_status know_units(struct osd_txn *txn)
{
	uint64_t units;
	enum osd_status status;

	if (txn->record.attribute_units != OSD_UNITS_UNKNOWN)
		return OSD_OK;
	status = osd_attr_count_units(txn->objects, txn->kv, &txn->place, &units);
	if (status == OSD_OK)
		txn->record.attribute_units = (uint32_t)units;
	return status;
}

/* Of the attribute as it is now. */
static enum osd_status units_now(struct osd_txn *txn, uint32_t page, const struct osd_key *key,
				 uint32_t *ret_units)
{
	uint8_t most[256]; /* a value that does not fit costs a second read of the store */
	enum osd_status status;
	size_t length;

	*ret_units = 0;
	if (txn->place.object_id && txn->record.attribute_count == 0)
		return OSD_OK;
	status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(key),
			    OSD_KV_RMW, most, sizeof(most), &length);
	if (status == OSD_OK)
		*ret_units = osd_attr_units(page, length);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* If the record of the object at hand has a field for units, it is up to date. */
static enum osd_status charge_change(struct osd_txn *txn, uint32_t before, uint32_t after)
{
	bool limited = !(txn->flags & OSD_TXN_INTERNAL) && !txn->for_views;
	enum osd_status status =
		osd_charge_in(txn, txn->partition, osd_txn_account(txn), OSD_CHARGE_ATTRIBUTES,
			      (uint64_t)before * OSD_UNIT_BYTES,
			      (uint64_t)after * OSD_UNIT_BYTES, limited);

	if (status != OSD_OK || txn->place.object_id == 0 || before == after)
		return status;
	txn->record.attribute_units += after - before;
	txn->dirty = true;
	return OSD_OK;
}

enum osd_status osd_attr_charge_added(struct osd_txn *txn, uint32_t page, size_t length)
{
	if (osd_is_objects_collection(txn->id))
		return OSD_OK;
	return charge_change(txn, 0, osd_attr_units(page, length));
}

enum osd_status osd_attr_charge_set(struct osd_txn *txn, uint32_t page, const struct osd_key *key,
				    size_t length, bool *ret_there)
{
	uint32_t before, after = osd_attr_units(page, length);
	enum osd_status status;

	*ret_there = false;
	if (!is_charged(page) || osd_is_objects_collection(txn->id))
		return OSD_OK;
	status = units_now(txn, page, key, &before);
	*ret_there = before != 0;
	if (status == OSD_OK && before == after)
		return OSD_OK;
	if (status == OSD_OK && txn->place.object_id)
		status = know_units(txn);
	return status == OSD_OK ? charge_change(txn, before, after) : status;
}

enum osd_status osd_attr_uncharge_all(struct osd_txn *txn)
{
	enum osd_status status = know_units(txn);

	if (status != OSD_OK)
		return status;
	return osd_charge_in(txn, txn->partition, osd_txn_account(txn), OSD_CHARGE_ATTRIBUTES,
			     (uint64_t)txn->record.attribute_units * OSD_UNIT_BYTES, 0, true);
}

/* ---- at open --------------------------------------------------------------------------------- */

static enum osd_status charge_counted(struct osd_objects *objects,
				      struct osd_charge_account *account,
				      const struct osd_place *place)
{
	uint64_t units;
	enum osd_status status = osd_attr_count_units(objects, NULL, place, &units);

	if (status == OSD_OK)
		osd_charge_found(objects, account, OSD_CHARGE_ATTRIBUTES, units * OSD_UNIT_BYTES);
	return status;
}

enum osd_status osd_attr_charge_object(struct osd_objects *objects, struct osd_object_id id,
				       uint16_t flags)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = osd_partition_get(objects, NULL, id.partition_id, &partition);
	struct osd_place place = {.partition_id = id.partition_id, .object_id = id.object_id};

	if (status != OSD_OK)
		return status;
	place.incarnation = partition->incarnation;
	return charge_counted(objects, osd_account_of(partition, id.object_id, flags), &place);
}

enum osd_status osd_attr_charge_container(struct osd_objects *objects,
					  struct osd_partition *partition)
{
	struct osd_place place =
		partition ? osd_partition_place(partition) : osd_root_place(objects);

	return charge_counted(objects, partition ? &partition->data : NULL, &place);
}
