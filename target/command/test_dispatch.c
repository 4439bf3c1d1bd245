/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_dispatch.c -- requests through the dispatcher over a store in memory: order of
 * attributes, lengths and gaps, sense data, refusals before anything is done. */
#include "base/test.h"
#include "base/timer.h"
#include "base/util.h"
#include "command/complete.h"
#include "command/dispatch.h"
#include "wire/attr_list.h"
#include "wire/continuation.h"
#include "wire/cursor.h"
#include "wire/sense.h"
#include "testing/initiator.h"

#define PID UINT64_C(0x10000)
#define APP 0x10000u /* an application page */

static struct osd_objects *objects;
static struct osd_dispatcher *dispatcher;

struct call {
	struct osd_cdb cdb;
	uint8_t out[8192], in[8192];
	size_t out_length, in_capacity;
	struct osd_request request;
	struct osd_sense sense;
};

static struct call make(uint16_t service_action, uint64_t pid, uint64_t oid)
{
	struct call call = {.in_capacity = sizeof(call.in)};

	call.cdb.service_action = service_action;
	call.cdb.partition_id = pid;
	call.cdb.object_id = oid;
	call.cdb.create_count = service_action == OSD_SA_CREATE ? 1 : 0;
	call.cdb.attributes.format = OSD_CDBFMT_LIST;
	return call;
}

static void nothing(struct osd_request *request)
{
	(void)request;
}

/* Runs the call; the answer is in call->request, and its sense data decoded. */
static uint8_t run(struct call *call)
{
	uint8_t cdb[OSD_CDB_LENGTH];

	CHECK(osd_cdb_encode(&call->cdb, cdb));
	memset(call->in, 0xee, sizeof(call->in));
	call->request = (struct osd_request){
		.cdb = cdb,
		.cdb_length = sizeof(cdb),
		.data_out = call->out,
		.data_out_length = call->out_length,
		.data_in = call->in,
		.data_in_capacity = call->in_capacity,
		.nexus = {1, "iqn.test", NULL, ""},
		.done = nothing,
	};
	CHECK_EQ(osd_dispatch(dispatcher, &call->request), OSD_DISPATCH_DONE);
	CHECK(call->request.data_in_length <= call->in_capacity);
	CHECK(call->request.attributes == NULL);
	call->sense = (struct osd_sense){0};
	if (call->request.sense_length)
		CHECK(osd_sense_decode(call->request.sense, call->request.sense_length,
				       &call->sense));
	return call->request.sam_status;
}

static void good(struct call *call)
{
	if (run(call) == OSD_SAM_GOOD)
		return;
	fprintf(stderr, "service action %04x failed: %s\n", call->cdb.service_action,
		osd_status_info(call->request.fault.status)->meaning);
	exit(1);
}

static void refused(struct call *call, uint16_t asc_ascq, int field)
{
	CHECK_EQ(run(call), OSD_SAM_CHECK_CONDITION);
	CHECK_EQ(call->sense.asc_ascq, asc_ascq);
	CHECK_EQ(call->sense.has_field, field >= 0);
	if (field >= 0)
		CHECK_EQ(call->sense.field_pointer, field);
	CHECK_EQ(call->request.data_in_length, 0);
}

/* Adds a set list at the next multiple of 8 of Data-Out. */
static void add_set(struct call *call, uint32_t page, uint32_t number, const char *value)
{
	struct osd_attr_writer writer;
	size_t at = (call->out_length + 7) & ~(size_t)7;

	osd_attr_writer_init(&writer, call->out + at, sizeof(call->out) - at, OSD_LIST_SET);
	CHECK_EQ(osd_attr_writer_add(&writer, page, number, value, strlen(value)), OSD_OK);
	call->cdb.attributes.set_offset = at;
	call->cdb.attributes.set_length = (uint32_t)osd_attr_writer_finish(&writer);
	call->out_length = at + call->cdb.attributes.set_length;
}

/* Asks for one attribute, to be returned at Data-In byte at. */
static void add_get(struct call *call, uint32_t page, uint32_t number, size_t at,
		    uint32_t allocation)
{
	struct osd_attr_writer writer;
	size_t out = (call->out_length + 7) & ~(size_t)7;

	osd_attr_writer_init(&writer, call->out + out, sizeof(call->out) - out, OSD_LIST_GET);
	osd_attr_writer_ask(&writer, page, number);
	call->cdb.attributes.get_list_offset = out;
	call->cdb.attributes.get_list_length = (uint32_t)osd_attr_writer_finish(&writer);
	call->cdb.attributes.get_allocation_length = allocation;
	call->cdb.attributes.retrieved_offset = at;
	call->out_length = out + call->cdb.attributes.get_list_length;
}

/* The one attribute returned at byte at is value (NULL: undefined). */
static void check_got(struct call *call, size_t at, const void *value, size_t length)
{
	struct osd_attr_list list;
	struct osd_attr attr;

	CHECK(call->request.data_in_length > at);
	CHECK_EQ(osd_attr_retrieved_open(call->in + at, call->request.data_in_length - at, &list),
		 OSD_OK);
	CHECK(osd_attr_list_next(&list, &attr));
	CHECK_BYTES(attr.value, attr.length, value, length);
}

static uint64_t create(void)
{
	struct call call = make(OSD_SA_CREATE, PID, 0);
	struct osd_attr_list list;
	struct osd_attr attr;

	add_get(&call, OSD_PAGE_CURRENT_COMMAND, OSD_CURRENT_OBJECT_ID, 0, 256);
	good(&call);
	CHECK_EQ(osd_attr_retrieved_open(call.in, call.request.data_in_length, &list), OSD_OK);
	CHECK(osd_attr_list_next(&list, &attr) && attr.length == 8);
	return osd_get_be(attr.value, 8);
}

static void write_text(uint64_t oid, uint64_t start, const char *text)
{
	struct call call = make(OSD_SA_WRITE, PID, oid);

	call.cdb.length = call.out_length = strlen(text);
	call.cdb.starting_byte_address = start;
	memcpy(call.out, text, call.out_length);
	good(&call);
	CHECK_EQ(call.request.data_out_used, call.out_length);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_before_execution(void)
{
	struct call call = make(OSD_SA_CREATE_CLONE, PID, 0);
	uint8_t cdb[OSD_CDB_LENGTH] = {OSD_OPCODE};

	refused(&call, 0x2400, 8);
	call = make(OSD_SA_READ, 5, 0x10000); /* reserved partition id */
	refused(&call, 0x2400, 16);
	call = make(OSD_SA_READ, PID, 5); /* reserved object id */
	refused(&call, 0x2400, 24);
	call = make(OSD_SA_READ, 0x77777, 0x10000);
	refused(&call, 0x2400, 16);
	CHECK_EQ(call.sense.not_initiated, OSD_FN_ALL);
	call = make(OSD_SA_READ, PID, 0x77777);
	refused(&call, 0x2400, 24);
	CHECK_EQ(call.sense.partition_id, PID);
	CHECK_EQ(call.sense.object_id, 0x77777);
	call = make(OSD_SA_WRITE, PID, 0x10000); /* LENGTH without Data-Out */
	call.cdb.length = 100;
	refused(&call, 0x2400, 32);

	call.request =
		(struct osd_request){.cdb = cdb, .cdb_length = 16, .nexus = {.initiator_name = ""}};
	CHECK_EQ(osd_dispatch(dispatcher, &call.request), OSD_DISPATCH_DONE);
	CHECK_EQ(call.request.sam_status, OSD_SAM_CHECK_CONDITION);
	CHECK_EQ(osd_get_be(call.request.sense + 2, 2), 0x2000);
}

static void test_read_write(void)
{
	static const uint8_t gap[3];
	uint64_t oid = create();
	struct call call;

	write_text(oid, 0, "hello");
	call = make(OSD_SA_READ, PID, oid);
	call.cdb.length = 5;
	good(&call);
	CHECK_BYTES(call.in, call.request.data_in_length, "hello", 5);

	/* Past the end: what there is, recovered error, and attributes all the same, after a
	 * zeroed gap. */
	call = make(OSD_SA_READ, PID, oid);
	call.cdb.length = 16;
	call.cdb.starting_byte_address = 2;
	add_get(&call, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, 16, 64);
	CHECK_EQ(run(&call), OSD_SAM_CHECK_CONDITION);
	CHECK_EQ(call.sense.sense_key, OSD_SK_RECOVERED_ERROR);
	CHECK_EQ(call.sense.asc_ascq, 0x3b17);
	CHECK(call.sense.has_command_information);
	CHECK_EQ(call.sense.command_information, 3);
	CHECK_BYTES(call.in, 3, "llo", 3);
	CHECK_BYTES(call.in + 3, 3, gap, 3);
	check_got(&call, 16, "\0\0\0\0\0\0\0\5", 8);

	/* Data-In shorter than LENGTH: cut, GOOD, and the whole need is told. */
	call = make(OSD_SA_READ, PID, oid);
	call.cdb.length = 5;
	call.in_capacity = 2;
	good(&call);
	CHECK_EQ(call.request.data_in_length, 2);
	CHECK_EQ(call.request.data_in_needed, 5);
}

static void test_scatter_gather(void)
{
	static const uint64_t pieces[4] = {6, 5, 0, 3};
	static const char expected[] = "world\0\0\0hel";
	uint8_t list[32];
	uint64_t oid = create();
	struct call call = make(OSD_SA_READ, PID, oid);
	struct osd_wr writer;

	write_text(oid, 0, "hello world");
	for (size_t i = 0; i < OSD_ARRAY_SIZE(pieces); i++)
		osd_put_be(list + i * 8, pieces[i], 8);
	osd_put_be(list + 8, 8, 8); /* the first piece asks for three bytes too many */
	writer = osd_wr_init(call.out, sizeof(call.out));
	osd_continuation_begin(&writer, OSD_SA_READ);
	osd_continuation_add(&writer, OSD_DESC_SG_LIST, list, sizeof(list));
	call.out_length = osd_wr_used(&writer);
	call.cdb.continuation_length = (uint32_t)osd_wr_used(&writer);
	call.cdb.length = 11;
	CHECK_EQ(run(&call), OSD_SAM_CHECK_CONDITION);
	CHECK_EQ(call.sense.asc_ascq, 0x3b17);
	CHECK_EQ(call.sense.command_information, 8);
	CHECK_BYTES(call.in, call.request.data_in_length, expected, 11);

	call.out[0] = 2; /* not a continuation segment */
	refused(&call, 0x2400, 48);
}

static void test_attribute_order(void)
{
	uint64_t oid = create();
	struct call call = make(OSD_SA_SET_ATTRIBUTES, PID, oid);

	add_set(&call, APP, 1, "first");
	add_get(&call, APP, 1, 0, 64);
	good(&call);
	check_got(&call, 0, "first", 5); /* SET: set, then get */

	call = make(OSD_SA_GET_ATTRIBUTES, PID, oid);
	add_set(&call, APP, 1, "second");
	add_get(&call, APP, 1, 0, 64);
	good(&call);
	check_got(&call, 0, "first", 5); /* GET: get, then set */

	call = make(OSD_SA_REMOVE, PID, oid);
	add_get(&call, APP, 1, 0, 64);
	good(&call);
	check_got(&call, 0, "second", 6); /* REMOVE: before it is gone */
	call = make(OSD_SA_REMOVE, PID, oid);
	refused(&call, 0x2400, 24);
}

static void test_atomic_attributes(void)
{
	uint64_t oid = create();
	struct call call = make(OSD_SA_SET_ATTRIBUTES, PID, oid);
	struct osd_attr_writer writer;

	osd_attr_writer_init(&writer, call.out, sizeof(call.out), OSD_LIST_SET);
	osd_attr_writer_add(&writer, APP, 1, "x", 1);
	osd_attr_writer_add(&writer, OSD_REL_TIMESTAMPS, OSD_TIME_CREATED, "123456",
			    6); /* read-only */
	call.cdb.attributes.set_length = (uint32_t)osd_attr_writer_finish(&writer);
	call.out_length = call.cdb.attributes.set_length;
	refused(&call, 0x2600, -1);
	CHECK_EQ(call.sense.attribute_count, 1);
	CHECK_EQ(call.sense.attributes[0].page, OSD_REL_TIMESTAMPS);
	CHECK_EQ(call.sense.attributes[0].number, OSD_TIME_CREATED);

	call = make(OSD_SA_GET_ATTRIBUTES, PID, oid);
	add_get(&call, APP, 1, 0, 64);
	good(&call);
	check_got(&call, 0, NULL, 0); /* the first one was not set either */
}

static void test_create_many(void)
{
	struct call call = make(OSD_SA_CREATE, PID, 0);
	struct osd_attr_groups groups;
	struct osd_attr_group group;
	uint64_t first;
	struct osd_attr attr;

	call.cdb.create_count = 3;
	add_set(&call, APP, 2, "all");
	add_get(&call, APP, 2, 0, 1024);
	good(&call);
	first = call.request.object.object_id - 2;
	CHECK_EQ(osd_attr_groups_open(call.in, call.request.data_in_length, &groups), OSD_OK);
	for (uint64_t i = 0; i < 3; i++) {
		CHECK(osd_attr_groups_next(&groups, &group));
		CHECK_EQ(group.object_id, first + i);
		CHECK_EQ(group.object_type, OSD_USER_OBJECT);
		CHECK(osd_attr_list_next(&group.attributes, &attr));
		CHECK_BYTES(attr.value, attr.length, "all", 3);
	}
	CHECK(!osd_attr_groups_next(&groups, &group));

	call = make(OSD_SA_CREATE, PID, 0);
	call.cdb.create_count = OSD_CREATE_MAX + 1;
	refused(&call, 0x2400, 32);
	call = make(OSD_SA_CREATE, PID, 0x20000);
	call.cdb.create_count = 2;
	refused(&call, 0x2400, 24);
}

static void test_truncated_answer(void)
{
	uint64_t oid = create();
	struct call call = make(OSD_SA_SET_ATTRIBUTES, PID, oid);

	add_set(&call, APP, 1, "0123456789abcdef");
	add_get(&call, APP, 1, 0, 28); /* header 8, entry 16, value cut to 4 */
	good(&call);
	CHECK_EQ(call.request.data_in_length, 28);
	CHECK_EQ(osd_get_be(call.in + 4, 4), 32); /* what it would have needed */

	call.in_capacity = 0; /* the transport has no room at all: still GOOD */
	good(&call);
	CHECK_EQ(call.request.data_in_length, 0);
	CHECK_EQ(call.request.data_in_needed, 28);
}

static void test_overlap(void)
{
	uint64_t oid = create();
	struct call call = make(OSD_SA_READ, PID, oid);

	call.cdb.length = 64;
	add_get(&call, APP, 1, 8, 64); /* inside the 64 bytes of data */
	refused(&call, 0x2400, 64);
}

/* The same CDB on the caller's thread: DONE with the answer, or QUEUE and nothing has happened. */
static enum osd_dispatch_result run_inline(struct call *call)
{
	uint8_t cdb[OSD_CDB_LENGTH];

	CHECK(osd_cdb_encode(&call->cdb, cdb));
	call->request.cdb = cdb;
	call->request.cdb_length = sizeof(cdb);
	call->request.data_out = call->out;
	call->request.data_out_length = call->out_length;
	call->request.data_in = call->in;
	call->request.data_in_capacity = call->in_capacity;
	call->request.nexus = (struct osd_nexus){1, "iqn.test", NULL, ""};
	return osd_dispatch_inline(dispatcher, &call->request);
}

static void test_inline(void)
{
	uint64_t oid = create();
	struct call call = make(OSD_SA_READ, PID, oid);

	osd_timers_stop(osd_objects_timers(objects)); /* upkeep is to be waited for, by a worker */
	write_text(oid, 0, "hello");
	call.cdb.length = 5;
	CHECK_EQ(run_inline(&call), OSD_DISPATCH_DONE);
	CHECK_EQ(call.request.sam_status, OSD_SAM_GOOD);
	CHECK_BYTES(call.in, call.request.data_in_length, "hello", 5);

	call = make(OSD_SA_GET_ATTRIBUTES, PID, oid);
	add_get(&call, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, 0, 64);
	CHECK_EQ(run_inline(&call), OSD_DISPATCH_DONE);
	check_got(&call, 0, "\0\0\0\0\0\0\0\5", 8);

	add_set(&call, APP, 1, "x"); /* changes something */
	CHECK_EQ(run_inline(&call), OSD_DISPATCH_QUEUE);
	CHECK(call.request.attributes == NULL);
	call = make(OSD_SA_GET_ATTRIBUTES, PID, oid);
	add_get(&call, OSD_PAGE_ALL, OSD_NUMBER_ALL, 0, 64); /* may be long */
	CHECK_EQ(run_inline(&call), OSD_DISPATCH_QUEUE);
	call = make(OSD_SA_GET_MEMBER_ATTRIBUTES, PID, OSD_OBJECTS_COLLECTION);
	add_get(&call, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, 0, 64); /* read from records */
	CHECK_EQ(run_inline(&call), OSD_DISPATCH_QUEUE);
	call = make(OSD_SA_READ, PID, 0x77777); /* not in memory: a worker says that it is absent */
	call.cdb.length = 5;
	CHECK_EQ(run_inline(&call), OSD_DISPATCH_QUEUE);
	call = make(OSD_SA_READ, PID, oid);
	call.cdb.length = 1u << 20;
	CHECK_EQ(run_inline(&call), OSD_DISPATCH_QUEUE);
}

static void test_format(void)
{
	struct call call = make(OSD_SA_FORMAT_OSD, 0, 0);

	add_set(&call, OSD_PAGE_ROOT_BASE | OSD_REL_INFORMATION, 9, "name");
	good(&call);
	call = make(OSD_SA_GET_ATTRIBUTES, 0, 0);
	add_get(&call, OSD_PAGE_ROOT_BASE | OSD_REL_INFORMATION, 9, 0, 128);
	good(&call);
	check_got(&call, 0, "name", 4);
	call = make(OSD_SA_CREATE, PID, 0);
	refused(&call, 0x2400, 16);
}

/* What the target handles itself never reaches an initiator: a conflict is BUSY, anything else a fault. */
static void test_answers_of_own_statuses(void)
{
	struct call call = make(OSD_SA_LIST, PID, 0);

	good(&call);
	osd_complete(&call.request, OSD_E_CONFLICT);
	CHECK_EQ(call.request.sam_status, OSD_SAM_BUSY);
	osd_complete(&call.request, OSD_E_UNSUPPORTED);
	CHECK_EQ(call.request.sam_status, OSD_SAM_CHECK_CONDITION);
	CHECK_EQ(call.request.fault.status, OSD_E_INTERNAL);
}

int main(void)
{
	struct osd_objects_config config = {.directory = NULL};
	struct osd_dispatcher_config dispatch = {0};
	char message[256];
	struct call call;

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	dispatch.objects = objects;
	CHECK_EQ(osd_dispatcher_create(&dispatch, &dispatcher), OSD_OK);
	call = make(OSD_SA_CREATE_PARTITION, PID, 0);
	good(&call);
	test_before_execution();
	test_read_write();
	test_scatter_gather();
	test_attribute_order();
	test_atomic_attributes();
	test_create_many();
	test_truncated_answer();
	test_overlap();
	test_inline();
	test_answers_of_own_statuses();
	test_format();
	osd_dispatcher_free(dispatcher);
	osd_objects_close(objects);
	return 0;
}
