/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tracking.c -- the Command Tracking page of a collection (osd2-wire 5.16).  Only the target writes it,
 * in the transaction that does the tracked work. */
#include "object/tracking.h"

#include "object/internal.h"
#include "wire/cursor.h"

#define PAGE (OSD_PAGE_COLLECTION_BASE | OSD_REL_COLLECTIONS)

enum { PERCENT = 0x1, ACTIVE = 0x2, ENDED = 0x3, SENSE = 0x4, PROCESSED = 0x11, MISSING = 0x13 };

static enum osd_status put_number(struct osd_txn *txn, uint32_t number, uint64_t value,
				  size_t width)
{
	uint8_t bytes[8];

	osd_put_be(bytes, value, width);
	return osd_attr_stored_set(txn, PAGE, number, bytes, width);
}

enum osd_status osd_tracking_active(struct osd_txn *txn, struct osd_object_id collection, bool hold,
				    uint16_t *ret_service_action)
{
	enum osd_status status = osd_txn_take_type(txn, collection, OSD_COLLECTION, hold);
	uint8_t bytes[2] = {0, 0};
	size_t length;

	if (status == OSD_OK)
		status = osd_attr_stored_get(txn, PAGE, ACTIVE, bytes, sizeof(bytes), &length);
	if (status == OSD_OK)
		*ret_service_action = (uint16_t)osd_get_be(bytes, sizeof(bytes));
	return status;
}

static enum osd_status put(struct osd_txn *txn, const struct osd_tracking *tracking)
{
	enum osd_status status = put_number(txn, PERCENT, tracking->percent, 1);

	if (status == OSD_OK)
		status = put_number(txn, ACTIVE, tracking->active, 2);
	if (status == OSD_OK)
		status = put_number(txn, ENDED, tracking->ended, 2);
	if (status == OSD_OK)
		status = osd_attr_stored_set(txn, PAGE, SENSE, tracking->sense,
					     tracking->sense_length);
	if (status == OSD_OK)
		status = put_number(txn, PROCESSED, tracking->processed, 8);
	if (status == OSD_OK)
		status = put_number(txn, MISSING, tracking->missing, 8);
	return status;
}

/* Works on a full disk too: removing members makes room there. */
enum osd_status osd_tracking_put(struct osd_txn *txn, struct osd_object_id collection,
				 const struct osd_tracking *tracking)
{
	enum osd_status status = osd_txn_take_type(txn, collection, OSD_COLLECTION, true);
	unsigned flags = txn->flags;

	if (status != OSD_OK)
		return status;
	txn->flags |= OSD_TXN_INTERNAL;
	status = put(txn, tracking);
	txn->flags = flags;
	txn->dirty = true;
	return status;
}
