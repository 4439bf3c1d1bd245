/* SPDX-License-Identifier: GPL-2.0-or-later */
/* version_page.c -- the versions of data_version.h as attributes: page 2000_0005h of a user object, page
 * 8000_0001h of a collection.  The collections of all user objects and of jobs have none. */

#include "base/util.h"
#include "object/internal.h"
#include "object/page_provider.h"
#include "wire/osd2.h"
#include "wire/stage.h"

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

/* ---- of data that another object stores (view.h) ------------------------------------------------ */

/* This reads records, so the object at hand stays.  OSD_E_NO_OBJECT: there is none. */
static enum osd_status read_record(struct osd_txn *txn, const struct osd_source_value *source,
				   struct osd_place *ret_place, struct osd_record *ret_record)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status =
		osd_partition_get(txn->objects, txn, source->partition_id, &partition);

	if (status != OSD_OK)
		return status;
	*ret_place = (struct osd_place){partition->id, partition->incarnation, source->object_id};
	status = osd_record_load(txn->objects, txn->kv, ret_place, 0, ret_record);
	if (status != OSD_OK)
		return status;
	return ret_record->type == OSD_USER_OBJECT &&
			       ret_record->times[OSD_T_CREATED] == source->created_msec
		       ? OSD_OK
		       : OSD_E_NO_OBJECT;
}

/* A new one, if nothing valid is known: so nobody takes the data for those of an earlier one. */
static struct osd_data_version of_source(struct osd_txn *txn, const struct osd_place *place,
					 const struct osd_record *record)
{
	const struct osd_object_id id = {place->partition_id, place->object_id};
	struct osd_object *object = osd_cache_find(txn->objects, id);
	struct osd_data_version version = object ? osd_version_of(object)
					  : record->version.counter == OSD_VERSION_STALE
						  ? osd_version_new(txn->objects)
						  : osd_version_of_record(txn->objects, record);

	osd_object_put(object);
	return version;
}

/* The version that a READ of the object at hand returns.  *ret_known false: its source is gone. */
static enum osd_status of_data(struct osd_txn *txn, struct osd_data_version *ret_version,
			       bool *ret_known)
{
	struct osd_place place = txn->place;
	struct osd_record record = txn->record;
	struct osd_source_value source;
	enum osd_status status = OSD_OK;
	unsigned i;

	for (i = 0; i <= OSD_SOURCES_MAX && record.flags & OSD_REC_STACKED; i++) {
		status = osd_source_read(txn->objects, txn->kv, &place, &source);
		if (status != OSD_OK)
			break;
		status = read_record(txn, &source, &place, &record);
		if (status != OSD_OK) {
			*ret_known = false;
			return osd_status_is_gone(status) ? OSD_OK : status;
		}
	}
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	*ret_known = i <= OSD_SOURCES_MAX;
	*ret_version =
		place.object_id == txn->id.object_id && place.partition_id == txn->id.partition_id
			? of_user_object(txn)
			: of_source(txn, &place, &record);
	return OSD_OK;
}

static enum osd_status version_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				   size_t *ret_length)
{
	struct osd_data_version version;
	uint8_t bytes[OSD_VERSION_BYTES];
	bool known = true;
	enum osd_status status = OSD_OK;

	(void)context, (void)page;
	*ret_length = 0;
	if (number != OSD_VERSION_NUMBER || id.object_id == OSD_OBJECTS_COLLECTION ||
	    id.object_id == OSD_JOBS_COLLECTION)
		return OSD_OK;
	if (osd_txn_type(txn) == OSD_COLLECTION)
		version = osd_version_of_record(txn->objects, &txn->record);
	else if (txn->record.flags & OSD_REC_STACKED && !osd_same_id(txn->versioned, txn->id))
		status = of_data(txn, &version, &known);
	else
		version = of_user_object(txn);
	if (status != OSD_OK || !known)
		return status;
	osd_version_encode(version, bytes);
	osd_value_put(bytes, sizeof(bytes), buffer, capacity, ret_length);
	return OSD_OK;
}

const struct osd_page_provider osd_version_page = {
	.page = OSD_PAGE_VERSION,
	.page_name = "iosd data version",
	.get = version_get,
	.last = OSD_VERSION_NUMBER,
};

const struct osd_page_provider osd_members_version_page = {
	.page = OSD_PAGE_MEMBERS_VERSION,
	.page_name = "iosd members version",
	.get = version_get,
	.last = OSD_VERSION_NUMBER,
};
