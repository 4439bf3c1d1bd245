/* SPDX-License-Identifier: GPL-2.0-or-later */
/* version_page.c -- the versions of data_version.h as attributes: page 2000_0005h of a user object, page
 * 8000_0001h of a collection.  The collections of all user objects and of jobs have none. */
#include <string.h>

#include "base/util.h"
#include "object/internal.h"
#include "object/page_provider.h"
#include "wire/cursor.h"

void osd_txn_show_version(struct osd_txn *txn, struct osd_object_id id,
			  struct osd_data_version version)
{
	txn->versioned = id;
	txn->version = version;
}

/* A record that says nothing valid is that of an object in memory. */
static struct osd_data_version of_user_object(struct osd_txn *txn)
{
	struct osd_data_version version;
	struct osd_object *object;

	if (txn->length_set)
		return txn->length_version;
	if (osd_same_id(txn->versioned, txn->id))
		return txn->version;
	object = txn->record.version.counter == OSD_VERSION_STALE
			 ? osd_cache_adopt(txn)
			 : osd_cache_find(txn->objects, txn->id);
	if (object)
		version = osd_version_of(object);
	else if (txn->record.version.counter == OSD_VERSION_STALE)
		version = osd_version_new(txn->objects);
	else
		version = osd_version_of_record(txn->objects, &txn->record);
	osd_object_put(object);
	return version;
}

static enum osd_status version_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				   size_t *ret_length)
{
	struct osd_data_version version;
	uint8_t bytes[OSD_VERSION_BYTES];

	(void)context, (void)page;
	*ret_length = 0;
	if (number != OSD_VERSION_NUMBER || id.object_id == OSD_OBJECTS_COLLECTION ||
	    id.object_id == OSD_JOBS_COLLECTION)
		return OSD_OK;
	version = osd_txn_type(txn) == OSD_COLLECTION
			  ? osd_version_of_record(txn->objects, &txn->record)
			  : of_user_object(txn);
	osd_version_encode(version, bytes);
	memcpy(buffer, bytes, OSD_MIN(capacity, sizeof(bytes)));
	*ret_length = sizeof(bytes);
	return OSD_OK;
}

static enum osd_status version_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				    uint32_t page, osd_attr_fn *fn, void *arg)
{
	uint8_t value[OSD_VERSION_BYTES];
	size_t length;
	enum osd_status status = version_get(context, txn, id, page, OSD_VERSION_NUMBER, value,
					     sizeof(value), &length);

	return status == OSD_OK && length ? fn(arg, page, OSD_VERSION_NUMBER, value, length)
					  : status;
}

static enum osd_status version_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, uint32_t number, const uint8_t *value,
				   size_t length)
{
	(void)context, (void)txn, (void)id, (void)page, (void)number, (void)value, (void)length;
	return OSD_E_PARAM_FIELD;
}

const struct osd_page_provider osd_version_page = {
	.page = OSD_PAGE_VERSION,
	.page_name = "iosd data version",
	.get = version_get,
	.each = version_each,
	.set = version_set,
};

const struct osd_page_provider osd_members_version_page = {
	.page = OSD_PAGE_MEMBERS_VERSION,
	.page_name = "iosd members version",
	.get = version_get,
	.each = version_each,
	.set = version_set,
};
