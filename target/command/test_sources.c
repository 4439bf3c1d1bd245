/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_sources.c -- attributes that name the source of data, while another client takes the source away and makes a later
 * one with its id: rights were compared with the first one. */
#include "base/test.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "command/phase.h"
#include "command/table.h"
#include "function/function.h"
#include "object/internal.h"
#include "object/txn_run.h"
#include "wire/cursor.h"
#include "wire/stage.h"

#define PID  UINT64_C(0x10000)
#define BASE UINT64_C(0x20000)
#define PAGE 0x10000u

static const struct osd_object_id shown = {PID, 0x10000}, source = {PID, 0x20000},
				  view = {0x30000, 0};
static struct osd_objects *objects;
static struct osd_functions *functions;

static enum osd_status make(struct osd_txn *txn, void *arg)
{
	const struct osd_object_id *id = arg;
	uint64_t made;

	return id->object_id
		       ? osd_user_object_create(txn, id->partition_id, id->object_id, 1, &made)
		       : osd_partition_create(txn, id->partition_id, &made);
}

static enum osd_status take_away(struct osd_txn *txn, void *arg)
{
	const struct osd_object_id *id = arg;

	return id->object_id ? osd_user_object_remove(txn, *id)
			     : osd_partition_remove(txn, id->partition_id, true);
}

static void do_it(osd_txn_fn *what, struct osd_object_id id)
{
	CHECK_EQ(osd_txn_run(objects, 0, what, &id), OSD_OK);
}

/* ---- naming a source ---------------------------------------------------------------------------- */

static enum osd_status name_it(struct osd_object_id id, enum osd_object_type type, uint32_t page,
			       const uint8_t *value, size_t length, struct osd_object_id replaced)
{
	struct osd_attr_params params = {
		.format = OSD_CDBFMT_SET_ONE,
		.sets = true,
		.set_one = {page, OSD_STACK_SOURCE, value, (uint16_t)length}};
	struct osd_request request = {.def = osd_command_find(OSD_SA_SET_ATTRIBUTES),
				      .object = id,
				      .object_type = type,
				      .attributes = &params,
				      .nexus = {.initiator_name = "", .address = ""},
				      .security.proof.grant = {.open = true}};
	struct osd_command_context ctx = {.request = &request,
					  .def = request.def,
					  .addressed = id,
					  .objects = objects,
					  .functions = functions,
					  .attributes = &params,
					  .grant = &request.security.proof.grant};

	CHECK_EQ(osd_authorise_sources(&ctx), OSD_OK);
	if (replaced.partition_id) {
		do_it(take_away, replaced);
		do_it(make, replaced);
	}
	return osd_phase_alone(objects, &request);
}

static void test_object(void)
{
	const struct osd_object_id none = {0, 0};
	uint8_t value[OSD_SOURCE_IDS];

	do_it(make, shown);
	do_it(make, source);
	osd_put_be(value, source.partition_id, 8);
	osd_put_be(value + 8, source.object_id, 8);
	CHECK_EQ(name_it(shown, OSD_USER_OBJECT, OSD_PAGE_STACK, value, sizeof(value), none),
		 OSD_OK);
	CHECK_EQ(name_it(shown, OSD_USER_OBJECT, OSD_PAGE_STACK, value, sizeof(value), source),
		 OSD_E_CDB_FIELD);
}

static void test_base(void)
{
	const struct osd_object_id none = {0, 0}, base = {BASE, 0};
	const uint32_t page = OSD_PAGE_PARTITION_BASE + OSD_PAGE_STACK;
	uint8_t value[8];

	do_it(make, view);
	do_it(make, base);
	osd_put_be(value, BASE, sizeof(value));
	CHECK_EQ(name_it(view, OSD_PARTITION, page, value, sizeof(value), base), OSD_E_CDB_FIELD);
	CHECK_EQ(name_it(view, OSD_PARTITION, page, value, sizeof(value), none), OSD_OK);
}

/* ---- a WRITE through a view --------------------------------------------------------------------- */

static const struct osd_kv_ops *below;
static bool replaces; /* the object of the view, when the next transaction begins */

static enum osd_status show(struct osd_txn *txn, void *arg)
{
	struct osd_source_value value = {source.partition_id, source.object_id, 0, true};
	struct osd_object_facts facts;
	uint8_t bytes[OSD_SOURCE_BYTES];
	enum osd_status status = osd_txn_facts(txn, source, false, &facts);

	(void)arg;
	value.created_msec = facts.created_ms;
	osd_source_value_encode(&value, bytes);
	return status == OSD_OK ? osd_stack_put(txn, shown, OSD_STACK_SOURCE, bytes, sizeof(bytes))
				: status;
}

static enum osd_status begin(struct osd_kv *kv, enum osd_kv_access access,
			     struct osd_kv_txn **ret_txn)
{
	if (access == OSD_KV_CHANGE && replaces) {
		replaces = false;
		do_it(take_away, shown);
		do_it(make, shown);
		CHECK_EQ(osd_txn_run(objects, 0, show, NULL), OSD_OK);
	}
	return below->begin(kv, access, ret_txn);
}

static enum osd_status write_it(const uint8_t *data, size_t length)
{
	struct osd_attr_params params = {.format = OSD_CDBFMT_SET_ONE,
					 .sets = true,
					 .set_one = {PAGE, 1, data, (uint16_t)length}};
	struct osd_request request = {.def = osd_command_find(OSD_SA_WRITE),
				      .object = shown,
				      .object_type = OSD_USER_OBJECT,
				      .attributes = &params,
				      .decoded.length = length,
				      .nexus = {.initiator_name = "", .address = ""},
				      .security.proof.grant = {.open = true}};
	struct osd_command_context ctx = {.request = &request,
					  .def = request.def,
					  .addressed = shown,
					  .objects = objects,
					  .functions = functions,
					  .attributes = &params,
					  .command_data = data,
					  .command_data_length = length,
					  .data_flags = OSD_DATA_CHECKED,
					  .grant = &request.security.proof.grant};
	enum osd_status status;

	CHECK_EQ(osd_object_get(objects, shown, &ctx.object), OSD_OK);
	osd_object_facts(ctx.object, &request.security.addressed);
	status = osd_cmd_write(&ctx);
	osd_object_put(ctx.object);
	return status;
}

/* The bytes of the source, then the attribute of the object that shows it. */
static enum osd_status get(struct osd_txn *txn, void *arg)
{
	uint8_t *bytes = arg;
	size_t length;

	return osd_attr_get(txn, shown, PAGE, 1, bytes + 4, 4, &length);
}

static void check(const char wanted[8])
{
	struct osd_object *object;
	uint8_t bytes[8] = {0};
	size_t got;

	CHECK_EQ(osd_object_get(objects, source, &object), OSD_OK);
	CHECK_EQ(osd_object_read(object, 0, bytes, 4, 0, &got), OSD_OK);
	osd_object_put(object);
	CHECK_EQ(osd_txn_run(objects, OSD_TXN_READ_ONLY, get, bytes), OSD_OK);
	CHECK_BYTES(bytes, 8, wanted, 8);
}

static void test_write(void)
{
	struct osd_kv_ops ops;

	CHECK_EQ(osd_txn_run(objects, 0, show, NULL), OSD_OK);
	CHECK_EQ(write_it((const uint8_t *)"1234", 4), OSD_OK);
	check("12341234");
	below = objects->kv->ops;
	ops = *below;
	ops.begin = begin;
	objects->kv->ops = &ops;
	replaces = true;
	CHECK_EQ(write_it((const uint8_t *)"5678", 4), OSD_E_NO_OBJECT);
	CHECK(!replaces);
	objects->kv->ops = below;
	check("1234\0\0\0\0");
}

int main(void)
{
	struct osd_objects_config config = {0};
	char message[256];

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	CHECK_EQ(osd_functions_open(objects, NULL, message, &functions), OSD_OK);
	osd_timers_stop(&objects->timers); /* they and the reaper begin transactions, too */
	osd_helper_stop(&objects->reaper);
	do_it(make, (struct osd_object_id){PID, 0});
	test_object();
	test_base();
	test_write();
	osd_functions_close(functions);
	osd_objects_close(objects);
	return 0;
}
