/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_phase.c -- attributes that follow a command which has waited: they are those of the object that it was permitted
 * to use, and not of a later one with its id. */
#include "command/phase.h"

#include "base/test.h"
#include "command/attributes.h"
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
	osd_objects_close(objects);
	return 0;
}
