/* SPDX-License-Identifier: GPL-2.0-or-later */
/* source.c -- which object stores the data that another one shows (stack.h).  It reads records as they are: the object at
 * hand of a transaction stays. */
#include "base/util.h"
#include "object/internal.h"
#include "wire/osd2.h"
#include "wire/stage.h"

enum osd_status osd_source_read(struct osd_objects *objects, struct osd_kv_txn *kv,
				const struct osd_place *place, struct osd_source_value *ret_source)
{
	struct osd_key key = osd_key_attribute(place, OSD_PAGE_STACK, OSD_STACK_SOURCE);
	uint8_t bytes[OSD_SOURCE_BYTES];
	size_t length;
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&key),
					    0, bytes, sizeof(bytes), &length);

	if (status != OSD_OK)
		return status;
	return length <= sizeof(bytes) && osd_source_value_decode(bytes, length, ret_source)
		       ? OSD_OK
		       : OSD_E_MEDIUM;
}

/* The source of the object itself.  *ret_source NULL: it has none. */
static enum osd_status open_one(struct osd_object *object, struct osd_object **ret_source)
{
	const struct osd_place place = osd_object_place(object);
	struct osd_source_value value;
	enum osd_status status = OSD_E_NO_OBJECT;

	*ret_source = NULL;
	if (atomic_load(&object->stacked))
		status = osd_source_read(object->objects, NULL, &place, &value);
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	status = osd_object_get(object->objects,
				(struct osd_object_id){value.partition_id, value.object_id},
				ret_source);
	if (status != OSD_OK ||
	    atomic_load(&(*ret_source)->times[OSD_T_CREATED]) == value.created_msec)
		return status;
	osd_object_put(OSD_STEAL(*ret_source));
	return OSD_E_NO_OBJECT;
}

enum osd_status osd_object_get_source(struct osd_object *object, struct osd_object **ret_source)
{
	struct osd_object *next;
	enum osd_status status = OSD_OK;

	*ret_source = NULL;
	for (unsigned i = 0; i < OSD_SOURCES_MAX; i++) {
		status = open_one(*ret_source ? *ret_source : object, &next);
		if (status == OSD_OK && !next)
			break;
		osd_object_put(*ret_source);
		*ret_source = next;
		if (status != OSD_OK)
			break;
	}
	return status;
}
