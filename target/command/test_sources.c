/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_sources.c -- attributes that name the source of data, and commands that name a second collection, while another client
 * takes that away and makes a later one with its id: rights were compared with the first one. */
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
#include "wire/continuation.h"
#include "wire/cursor.h"
#include "wire/stage.h"

#define PID  UINT64_C(0x10000)
#define BASE UINT64_C(0x20000)
#define PAGE 0x10000u

static const struct osd_object_id shown = {PID, 0x10000}, source = {PID, 0x20000},
				  view = {0x30000, 0};
static const struct osd_object_id none, asked = {PID, 0x40000}, second = {PID, 0x50000};
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

/* ---- while a command runs ------------------------------------------------------------------------- */

static const struct osd_kv_ops *below;
static void (*replace)(void); /* called when the next transaction begins */

static enum osd_status begin(struct osd_kv *kv, enum osd_kv_access access,
			     struct osd_kv_txn **ret_txn)
{
	void (*it)(void) = access == OSD_KV_CHANGE ? replace : NULL;

	if (it) {
		replace = NULL;
		it();
	}
	return below->begin(kv, access, ret_txn);
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
					  .attributes = &params};

	CHECK_EQ(osd_authorise_sources(&ctx), OSD_OK);
	if (replaced.partition_id) {
		do_it(take_away, replaced);
		do_it(make, replaced);
	}
	return osd_phase_alone(objects, &request);
}

static void test_object(void)
{
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
	const struct osd_object_id base = {BASE, 0};
	const uint32_t page = OSD_PAGE_PARTITION_BASE + OSD_PAGE_STACK;
	uint8_t value[8];

	do_it(make, view);
	do_it(make, base);
	osd_put_be(value, BASE, sizeof(value));
	CHECK_EQ(name_it(view, OSD_PARTITION, page, value, sizeof(value), base), OSD_E_CDB_FIELD);
	CHECK_EQ(name_it(view, OSD_PARTITION, page, value, sizeof(value), none), OSD_OK);
}

/* ---- a WRITE through a view --------------------------------------------------------------------- */

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

static void replace_shown(void)
{
	do_it(take_away, shown);
	do_it(make, shown);
	CHECK_EQ(osd_txn_run(objects, 0, show, NULL), OSD_OK);
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
					  .data_flags = OSD_DATA_CHECKED};
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
	CHECK_EQ(osd_txn_run(objects, 0, show, NULL), OSD_OK);
	CHECK_EQ(write_it((const uint8_t *)"1234", 4), OSD_OK);
	check("12341234");
	replace = replace_shown;
	CHECK_EQ(write_it((const uint8_t *)"5678", 4), OSD_E_NO_OBJECT);
	CHECK(!replace);
	check("1234\0\0\0\0");
}

/* ---- the object addressed ----------------------------------------------------------------------- */

static enum osd_status remove_in(struct osd_txn *txn, void *arg)
{
	struct osd_command_context *ctx = arg;
	enum osd_status status;

	ctx->txn = txn;
	status = osd_authorise_again(ctx);
	return status == OSD_OK ? osd_user_object_remove(txn, source) : status;
}

/* The capability is for the object of that time. */
static enum osd_status remove_it(void)
{
	struct osd_object_facts facts;
	struct osd_request request = {.def = osd_command_find(OSD_SA_REMOVE),
				      .object = source,
				      .object_type = OSD_USER_OBJECT,
				      .nexus = {.initiator_name = "", .address = ""}};
	struct osd_command_context ctx = {
		.request = &request, .def = request.def, .addressed = source, .objects = objects};

	CHECK_EQ(osd_objects_facts(objects, source, false, &facts), OSD_OK);
	request.security.proof.grant =
		(struct osd_grant){.verified = true,
				   .capability = {.object_type = OSD_USER_OBJECT,
						  .object_created_ms = facts.created_ms,
						  .descriptor_type = OSD_CAPDESC_OBJECT,
						  .permissions = OSD_PERM_REMOVE,
						  .allowed_partition_id = PID,
						  .allowed_object_id = source.object_id}};
	return osd_txn_run(objects, 0, remove_in, &ctx);
}

static void replace_source(void)
{
	do_it(take_away, source);
	do_it(make, source);
}

static void test_remove(void)
{
	replace = replace_source;
	CHECK_EQ(remove_it(), OSD_E_CDB_FIELD);
	CHECK(!replace);
	CHECK_EQ(remove_it(), OSD_OK);
}

/* ---- a second collection -------------------------------------------------------------------------- */

static enum osd_status collect(struct osd_txn *txn, void *arg)
{
	const struct osd_object_id *id = arg;
	uint64_t made;

	return osd_collection_create(
		txn, PID, id->object_id,
		osd_same_id(*id, second) ? OSD_COLLECTION_TRACKING : OSD_COLLECTION_LINKED, &made);
}

static enum osd_status dissolve(struct osd_txn *txn, void *arg)
{
	return osd_collection_remove(txn, *(const struct osd_object_id *)arg, true);
}

static void replace_second(void)
{
	do_it(dissolve, second);
	do_it(collect, second);
}

static struct osd_grant grant_of(uint64_t collection, uint16_t permissions)
{
	return (struct osd_grant){.verified = true,
				  .capability = {.object_type = OSD_COLLECTION,
						 .descriptor_type = OSD_CAPDESC_OBJECT,
						 .permissions = permissions,
						 .allowed_partition_id = PID,
						 .allowed_object_id = collection}};
}

static enum osd_status run(uint16_t action)
{
	static const uint8_t all[8]; /* no criteria */
	const bool query = action == OSD_SA_QUERY;
	uint8_t segment[64];
	struct osd_wr writer;
	struct osd_extension extension = {
		.grant = grant_of(second.object_id, OSD_PERM_READ | OSD_PERM_WRITE)};
	struct osd_request request = {
		.def = osd_command_find(action),
		.object = query ? asked : (struct osd_object_id){PID, 0},
		.object_type = OSD_COLLECTION,
		.osc_compat = true, /* no list of extension capabilities */
		.decoded = {.service_action = action,
			    .partition_id = PID,
			    .object_id = query ? asked.object_id : 0},
		.nexus = {.initiator_name = "", .address = ""},
		.security = {.proof.grant = grant_of(asked.object_id, OSD_PERM_QUERY),
			     .extensions = &extension,
			     .extension_count = 1}};
	struct osd_command_context ctx = {.request = &request,
					  .def = request.def,
					  .addressed = request.object,
					  .objects = objects};

	if (!query) {
		request.decoded.source_collection_id = second.object_id;
	} else {
		request.decoded.matches_collection_id = second.object_id;
		writer = osd_wr_init(segment, sizeof(segment));
		osd_continuation_begin(&writer, action);
		osd_continuation_add(&writer, OSD_DESC_QUERY_LIST, all, sizeof(all));
		CHECK_EQ(osd_continuation_open(segment, osd_wr_used(&writer), action,
					       &ctx.continuation),
			 OSD_OK);
	}
	return request.def->execute(&ctx);
}

static void test_second(uint16_t action)
{
	CHECK_EQ(run(action), OSD_OK);
	replace = replace_second;
	CHECK_EQ(run(action), OSD_E_NO_OBJECT);
	CHECK(!replace);
}

int main(void)
{
	struct osd_kv_ops ops;
	struct osd_objects_config config = {0};
	char message[256];

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	CHECK_EQ(osd_functions_open(objects, NULL, message, &functions), OSD_OK);
	osd_timers_stop(&objects->timers); /* they and the reaper begin transactions, too */
	osd_helper_stop(&objects->reaper);
	below = objects->kv->ops;
	ops = *below;
	ops.begin = begin;
	objects->kv->ops = &ops;
	do_it(make, (struct osd_object_id){PID, 0});
	test_object();
	test_base();
	test_write();
	test_remove();
	do_it(collect, asked);
	do_it(collect, second);
	test_second(OSD_SA_CREATE_USER_TRACKING_COLLECTION);
	test_second(OSD_SA_QUERY);
	objects->kv->ops = below;
	osd_functions_close(functions);
	osd_objects_close(objects);
	return 0;
}
