/* SPDX-License-Identifier: GPL-2.0-or-later */
/* facts.c -- what capabilities are compared with: type, policy access tag and created time of an object,
 * from memory where the object is in use. */
#include "object/attr_table.h"

#include "base/util.h"
#include "wire/cursor.h"

void osd_object_facts(struct osd_object *object, struct osd_object_facts *ret_facts)
{
	*ret_facts = (struct osd_object_facts){
		.id = object->id,
		.type = (enum osd_object_type)object->type,
		.tag = atomic_load(&object->tag),
		.created_ms = atomic_load(&object->times[OSD_T_CREATED]),
		.boot_epoch = osd_objects_boot_epoch(object->objects),
	};
}

enum osd_status osd_objects_facts(struct osd_objects *objects, struct osd_object_id id,
				  struct osd_object_facts *ret_facts)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status;

	if (!osd_is_objects_collection(id)) {
		status = osd_cache_get(objects, id, &object);
		if (status == OSD_OK)
			osd_object_facts(object, ret_facts);
		return status;
	}
	status = osd_partition_get(objects, NULL, id.partition_id, &partition);
	if (status == OSD_OK)
		*ret_facts = (struct osd_object_facts){
			.id = id,
			.type = OSD_COLLECTION,
			.created_ms = atomic_load(&partition->times[OSD_T_CREATED]),
			.boot_epoch = osd_objects_boot_epoch(objects),
		};
	return status;
}

enum osd_status osd_txn_facts(struct osd_txn *txn, struct osd_object_id id,
			      struct osd_object_facts *ret_facts)
{
	struct osd_object_facts facts = {.id = id,
					 .boot_epoch = osd_objects_boot_epoch(txn->objects)};
	uint8_t tag[4] = {0};
	size_t length;
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status != OSD_OK)
		return status;
	facts.type = osd_txn_type(txn);
	if (facts.type != OSD_ROOT) {
		facts.created_ms = osd_txn_time(txn, OSD_T_CREATED);
		status = osd_attr_peek(txn, osd_page_base(facts.type) + OSD_REL_SECURITY,
				       OSD_SEC_TAG, tag, sizeof(tag), &length);
		facts.tag = (uint32_t)osd_get_be(tag, sizeof(tag));
	}
	if (status == OSD_OK)
		*ret_facts = facts;
	return status;
}

enum osd_status osd_objects_facts_made(struct osd_objects *objects, enum osd_object_type type,
				       struct osd_object_id id, struct osd_object_facts *ret_facts)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_object_facts facts = {.id = id,
					 .type = type,
					 .boot_epoch = osd_objects_boot_epoch(objects),
					 .to_be_made = true};
	enum osd_status status = OSD_OK;

	if (type != OSD_PARTITION)
		status = osd_partition_get(objects, NULL, id.partition_id, &partition);
	if (status != OSD_OK)
		return status;
	if (type == OSD_USER_OBJECT)
		facts.tag = atomic_load(&partition->user_tag);
	*ret_facts = facts;
	return OSD_OK;
}
