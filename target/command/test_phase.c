/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_phase.c -- commands whose object another one takes the place of after its rights were compared, or is changed
 * after checks were asked: attributes that follow a command which has waited, and commands in steps. */
#include "command/phase.h"

#include "base/test.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/commands.h"
#include "command/table.h"
#include "object/txn_run.h"

#define PAGE 0x10000u

static const struct osd_object_id id = {UINT64_C(0x10000), UINT64_C(0x20000)};

static enum osd_status make(struct osd_txn *txn, void *arg)
{
	uint64_t made;

	(void)arg;
	return osd_user_object_create(txn, id.partition_id, id.object_id, 1, &made);
}

static enum osd_status make_partition(struct osd_txn *txn, void *arg)
{
	uint64_t made;
	enum osd_status status = osd_partition_create(txn, id.partition_id, &made);

	return status == OSD_OK ? make(txn, arg) : status;
}

static enum osd_status take_away(struct osd_txn *txn, void *arg)
{
	(void)arg;
	return osd_user_object_remove(txn, id);
}

static enum osd_status get_length(struct osd_txn *txn, void *arg)
{
	uint8_t value[8];

	return osd_attr_get(txn, id, PAGE, 1, value, sizeof(value), arg);
}

/* ---- checks ----------------------------------------------------------------------------------- */

/* Checks were asked about the data.  While the command ran, others have changed them, or have not. */
static void test_checked(struct osd_objects *objects)
{
	const uint8_t zero[8] = {0};
	struct osd_attr_params params = {
		.format = OSD_CDBFMT_SET_ONE,
		.sets = true,
		.set_one = {OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, zero, sizeof(zero)}};
	struct osd_data_version version;
	struct osd_request request = {.def = osd_command_find(OSD_SA_FLUSH),
				      .decoded.partition_id = id.partition_id,
				      .decoded.object_id = id.object_id,
				      .object = id,
				      .object_type = OSD_USER_OBJECT,
				      .attributes = &params,
				      .checked_version = &version};
	struct osd_object *object;
	uint64_t length;

	CHECK_EQ(osd_object_get(objects, id, &object), OSD_OK);
	CHECK_EQ(osd_object_state(object, &length, &version), OSD_OK);
	CHECK_EQ(osd_object_write(object, 0, "data", 4, 0), OSD_OK);
	CHECK_EQ(osd_phase_alone(objects, &request), OSD_E_VERSION);
	CHECK_EQ(osd_object_state(object, &length, &version), OSD_OK);
	CHECK_EQ(length, 4);
	CHECK_EQ(osd_phase_alone(objects, &request), OSD_OK);
	CHECK_EQ(osd_object_state(object, &length, &version), OSD_OK);
	CHECK_EQ(length, 0);
	osd_object_put(object);
}

/* ---- a collection ----------------------------------------------------------------------------- */

#define TAG 7u

static const struct osd_object_id collection = {UINT64_C(0x10000), UINT64_C(0x30000)};

static enum osd_status make_collection(struct osd_txn *txn, void *arg)
{
	const uint32_t *tag = arg;
	uint8_t value[4];
	uint64_t made;
	enum osd_status status = osd_collection_create(txn, collection.partition_id,
						       collection.object_id,
						       OSD_COLLECTION_LINKED, &made);

	osd_put_be(value, *tag, sizeof(value));
	return status == OSD_OK
		       ? osd_attr_set(txn, collection, OSD_PAGE_COLLECTION_BASE + OSD_REL_SECURITY,
				      OSD_SEC_TAG, value, sizeof(value))
		       : status;
}

static enum osd_status remove_collection(struct osd_txn *txn, void *arg)
{
	(void)arg;
	return osd_collection_remove(txn, collection, false);
}

/* Rights were compared with the facts. */
static enum osd_status command_on(struct osd_objects *objects, const struct osd_object_facts *facts)
{
	struct osd_request request = {
		.def = osd_command_find(OSD_SA_REMOVE_COLLECTION),
		.object = collection,
		.object_type = OSD_COLLECTION,
		.decoded.service_action = OSD_SA_REMOVE_COLLECTION,
		.security.proof.grant = {.verified = true,
					 .capability = {.object_type = OSD_COLLECTION,
							.descriptor_type = OSD_CAPDESC_OBJECT,
							.permissions = OSD_PERM_REMOVE,
							.policy_access_tag = TAG,
							.allowed_partition_id =
								collection.partition_id,
							.allowed_object_id =
								collection.object_id}},
	};
	struct osd_command_context ctx = {
		.request = &request,
		.def = request.def,
		.addressed = collection,
		.objects = objects,
		.facts = *facts,
	};

	return osd_cmd_remove_collection(&ctx);
}

static void test_collection(struct osd_objects *objects)
{
	struct osd_object_facts facts;
	uint32_t tag = TAG, other = TAG + 1;

	CHECK_EQ(osd_txn_run(objects, 0, make_collection, &tag), OSD_OK);
	CHECK_EQ(osd_objects_facts(objects, collection, true, &facts), OSD_OK);
	CHECK_EQ(osd_txn_run(objects, 0, remove_collection, NULL), OSD_OK);
	CHECK_EQ(osd_txn_run(objects, 0, make_collection, &other), OSD_OK);
	CHECK_EQ(command_on(objects, &facts), OSD_E_CDB_FIELD);
	CHECK_EQ(osd_txn_run(objects, 0, remove_collection, NULL), OSD_OK);
	CHECK_EQ(osd_txn_run(objects, 0, make_collection, &tag), OSD_OK);
	CHECK_EQ(command_on(objects, &facts), OSD_OK);
	CHECK_EQ(osd_txn_run(objects, 0, remove_collection, NULL), OSD_E_NO_OBJECT);
}

int main(void)
{
	struct osd_attr_params params = {.format = OSD_CDBFMT_SET_ONE,
					 .sets = true,
					 .set_one = {PAGE, 1, (const uint8_t *)"value", 5}};
	struct osd_request request = {.def = osd_command_find(OSD_SA_EXECUTE_FUNCTION),
				      .object = id,
				      .object_type = OSD_USER_OBJECT,
				      .attributes = &params};
	struct osd_objects_config config = {0};
	struct osd_objects *objects;
	char message[256];
	size_t length = 0;

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	CHECK_EQ(osd_txn_run(objects, 0, make_partition, NULL), OSD_OK);
	CHECK_EQ(osd_objects_facts(objects, id, false, &request.security.addressed), OSD_OK);
	CHECK_EQ(osd_phase_alone(objects, &request), OSD_OK);
	CHECK_EQ(osd_txn_run(objects, OSD_TXN_READ_ONLY, get_length, &length), OSD_OK);
	CHECK_EQ(length, 5);

	CHECK_EQ(osd_txn_run(objects, 0, take_away, NULL), OSD_OK);
	CHECK_EQ(osd_phase_alone(objects, &request), OSD_E_NO_OBJECT);
	CHECK_EQ(osd_txn_run(objects, 0, make, NULL), OSD_OK);
	CHECK_EQ(osd_phase_alone(objects, &request), OSD_E_NO_OBJECT);
	CHECK_EQ(osd_txn_run(objects, OSD_TXN_READ_ONLY, get_length, &length), OSD_OK);
	CHECK_EQ(length, 0);
	test_checked(objects);
	test_collection(objects);
	osd_objects_close(objects);
	return 0;
}
