/* SPDX-License-Identifier: GPL-2.0-or-later */
/* facts.c -- finds an object and the facts that capabilities are compared with: type, policy access tag, created
 * time.  They come from memory if the object is in use. */
#include "object/attr_table.h"

#include "base/util.h"
#include "object/view.h"
#include "wire/cursor.h"

void osd_object_facts(struct osd_object *object, struct osd_object_facts *ret_facts)
{
	*ret_facts = (struct osd_object_facts){
		.id = object->id,
		.type = (enum osd_object_type)object->type,
		.tag = atomic_load(&object->tag),
		.created_ms = atomic_load(&object->times[OSD_T_CREATED]),
		.boot_epoch = osd_objects_boot_epoch(object->objects),
		.surrogate = object->surrogate,
	};
}

/* A partition, or the collection of all its user objects. */
static enum osd_status facts_of_partition(struct osd_objects *objects, struct osd_object_id id,
					  struct osd_object_facts *ret_facts)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = osd_partition_get(objects, NULL, id.partition_id, &partition);

	if (status == OSD_OK)
		*ret_facts = (struct osd_object_facts){
			.id = id,
			.type = id.object_id ? OSD_COLLECTION : OSD_PARTITION,
			.created_ms = atomic_load(&partition->times[OSD_T_CREATED]),
			.boot_epoch = osd_objects_boot_epoch(objects),
		};
	return status;
}

static enum osd_status facts_in_memory(struct osd_objects *objects, struct osd_object_id id,
				       struct osd_object **ret_object,
				       struct osd_object_facts *ret_facts)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status;

	if (id.object_id == 0 || osd_is_objects_collection(id))
		return facts_of_partition(objects, id, ret_facts);
	status = osd_cache_get(objects, id, &object);
	if (status != OSD_OK)
		return status;
	osd_object_facts(object, ret_facts);
	if (ret_object && object->type == OSD_USER_OBJECT)
		*ret_object = OSD_STEAL(object);
	return OSD_OK;
}

enum osd_status osd_objects_find(struct osd_objects *objects, struct osd_object_id id,
				 bool with_tag, struct osd_object **ret_object,
				 struct osd_object_facts *ret_facts)
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	enum osd_status status = OSD_OK;
	uint64_t created_ms;
	bool shown;

	if (id.partition_id == 0)
		*ret_facts = (struct osd_object_facts){
			.type = OSD_ROOT, .boot_epoch = osd_objects_boot_epoch(objects)};
	else
		status = facts_in_memory(objects, id, ret_object, ret_facts);
	/* A directory of a view has no entry in memory. */
	shown = status == OSD_E_NO_OBJECT && osd_view_may_be(objects, id.partition_id);
	if (!shown && (status != OSD_OK || !with_tag || ret_facts->tag || id.partition_id == 0))
		return status;
	created_ms = shown ? 0 : ret_facts->created_ms;
	status = osd_txn_begin(objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, &txn);
	if (status == OSD_OK)
		status = osd_txn_facts(txn, id, true, ret_facts);
	/* A later object has the id. */
	return status == OSD_OK && created_ms && ret_facts->created_ms != created_ms
		       ? OSD_E_NO_OBJECT
		       : status;
}

/* The tag of a partition, or of an object in a store of the first release, is among its attributes. */
static enum osd_status read_tag(struct osd_txn *txn, struct osd_object_facts *facts)
{
	uint8_t tag[4] = {0};
	size_t length;
	enum osd_status status = osd_attr_peek(txn, osd_page_base(facts->type) + OSD_REL_SECURITY,
					       OSD_SEC_TAG, tag, sizeof(tag), &length);

	facts->tag = (uint32_t)osd_get_be(tag, sizeof(tag));
	return status;
}

enum osd_status osd_txn_facts(struct osd_txn *txn, struct osd_object_id id, bool with_tag,
			      struct osd_object_facts *ret_facts)
{
	struct osd_object_facts facts = {.id = id,
					 .boot_epoch = osd_objects_boot_epoch(txn->objects)};
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status != OSD_OK)
		return status;
	facts.type = osd_txn_type(txn);
	if (facts.type != OSD_ROOT)
		facts.created_ms = osd_txn_time(txn, OSD_T_CREATED);
	if (id.object_id)
		facts.tag = txn->record.policy_tag;
	if (with_tag && facts.tag == 0 && facts.type != OSD_ROOT)
		status = read_tag(txn, &facts);
	facts.surrogate = facts.type == OSD_USER_OBJECT && txn->record.flags & OSD_REC_SURROGATE;
	if (status == OSD_OK)
		*ret_facts = facts;
	return status;
}

enum osd_status osd_txn_same(struct osd_txn *txn, struct osd_object_id id, uint64_t created_ms)
{
	struct osd_object_facts now;
	enum osd_status status;

	if (!created_ms)
		return OSD_OK;
	status = osd_txn_facts(txn, id, false, &now);
	return status == OSD_OK && now.created_ms != created_ms ? OSD_E_NO_OBJECT : status;
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
