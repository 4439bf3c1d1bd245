/* SPDX-License-Identifier: GPL-2.0-or-later */
/* methods.c -- the initial security methods: a new store gets the configured one, a new partition the
 * one in the root's attribute.  NOSEC is not written: an attribute that was never set means NOSEC. */
#include "object/internal.h"

#include "wire/capability.h"

enum { METHOD = 0x1, PARTITION_METHOD = 0x6 };

static enum osd_status put(struct osd_kv_txn *kv, const struct osd_place *place, uint32_t page,
			   uint32_t number, uint8_t method)
{
	struct osd_key key = osd_key_attribute(place, page | OSD_REL_SECURITY, number);

	return osd_key_put(kv, OSD_KV_ATTRIBUTES, &key, &method, sizeof(method));
}

enum osd_status osd_methods_begin(struct osd_objects *objects, struct osd_kv_txn *kv,
				  uint32_t epoch)
{
	struct osd_place root = {0, epoch, 0};
	enum osd_status status;

	if (objects->method == OSD_NOSEC)
		return OSD_OK;
	status = put(kv, &root, OSD_PAGE_ROOT_BASE, METHOD, objects->method);
	if (status == OSD_OK)
		status = put(kv, &root, OSD_PAGE_ROOT_BASE, PARTITION_METHOD, objects->method);
	return status;
}

enum osd_status osd_methods_inherit(struct osd_txn *txn, uint32_t epoch, uint64_t partition_id,
				    uint32_t incarnation)
{
	struct osd_place root = {0, epoch, 0}, partition = {partition_id, incarnation, 0};
	uint8_t method = OSD_NOSEC;
	size_t length;
	enum osd_status status =
		osd_attr_load(txn->objects, txn->kv, &root, OSD_PAGE_ROOT_BASE | OSD_REL_SECURITY,
			      PARTITION_METHOD, &method, 1, &length);

	return status == OSD_OK && method != OSD_NOSEC
		       ? put(txn->kv, &partition, OSD_PAGE_PARTITION_BASE, METHOD, method)
		       : status;
}
