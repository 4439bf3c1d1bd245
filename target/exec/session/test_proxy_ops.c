/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_proxy_ops.c -- a script's calls against the in-memory store: what each zone may touch, what no script may
 * touch, attributes, queries, lengths.  test_proxy_frames.c has pieces, results and phases. */
#include "base/util.h"
#include "exec/session/test_zones.h"
#include "wire/attr_list.h"
#include "wire/cursor.h"

static enum osd_answer_code set_attr(struct osd_session *session, uint64_t id, uint32_t page,
				     uint32_t number)
{
	struct osd_call call = call_on(OSD_CALL_SETATTR, pid, id);
	struct osd_attr_writer writer;

	osd_attr_writer_init(&writer, body(), OSD_BODY_MAX, OSD_LIST_BARE);
	CHECK(osd_attr_writer_add(&writer, page, number, "value", 5) == OSD_OK);
	call.body_bytes = (uint32_t)osd_attr_writer_finish(&writer);
	return ask(session, call);
}

static void test_object_zone(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call read = call_on(OSD_CALL_READ, pid, object);

	wrote_calls = 0;
	CHECK(write_text(&session, pid, object, "hello") == OSD_ANSWER_OK);
	CHECK(write_text(&session, pid, object, "world") == OSD_ANSWER_OK);
	CHECK(wrote_calls == 1);
	read.a = 1;
	read.b = 100;
	CHECK(ask(&session, read) == OSD_ANSWER_OK);
	CHECK(answered.a == 4 && answered.body_bytes == 4 && memcmp(body(), "orld", 4) == 0);
	CHECK(write_text(&session, pid, stranger, "no") == OSD_ANSWER_PERMISSION);
	CHECK(write_text(&session, other_pid, elsewhere, "no") == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, pid, object)) == OSD_ANSWER_OK);
	CHECK(answered.a == OSD_USER_OBJECT);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, pid, stranger)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, other_pid, elsewhere)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session,
		  (struct osd_call){.op = OSD_CALL_CREATE, .partition_id = pid, .a = 1}) ==
	      OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_LIST, pid, 0)) == OSD_ANSWER_PERMISSION);
	CHECK(set_attr(&session, object, 0xa, 1) == OSD_ANSWER_OK);
	CHECK(set_attr(&session, object, OSD_REL_SECURITY, 2) == OSD_ANSWER_PERMISSION);
	CHECK(set_attr(&session, object, OSD_REL_COLLECTIONS, 1) == OSD_ANSWER_PERMISSION);
	CHECK(set_attr(&session, object, OSD_PAGE_JOB_CONTROL, 1) == OSD_ANSWER_PERMISSION);
	CHECK(set_attr(&session, stranger, 0xa, 1) == OSD_ANSWER_PERMISSION);
	osd_session_release(&session);
}

static void test_collection_zone(void)
{
	struct osd_session session = start(OSD_COLLECTION, pid, collection);
	struct osd_call list = call_on(OSD_CALL_LIST, pid, collection);
	struct osd_call add = call_on(OSD_CALL_COLLECTION_ADD, pid, collection);

	CHECK(write_text(&session, pid, object, "member") == OSD_ANSWER_OK);
	CHECK(write_text(&session, pid, stranger, "no") == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, other_pid, elsewhere)) == OSD_ANSWER_PERMISSION);
	list.a = OSD_LIST_MEMBERS;
	CHECK(ask(&session, list) == OSD_ANSWER_OK);
	CHECK(answered.body_bytes == 8 && osd_get_be(body(), 8) == object && answered.b == 1);
	add.a = stranger; /* would widen the zone */
	CHECK(ask(&session, add) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_REMOVE_COLLECTION, pid, collection)) ==
	      OSD_ANSWER_PERMISSION);
	osd_session_release(&session);
}

static void test_partition_zone(void)
{
	struct osd_session session = start(OSD_PARTITION, pid, 0);
	struct osd_call create = {.op = OSD_CALL_CREATE, .partition_id = pid, .a = 2};
	struct osd_call list = call_on(OSD_CALL_LIST, pid, 0);
	uint64_t made;

	CHECK(ask(&session, create) == OSD_ANSWER_OK);
	made = answered.a;
	CHECK(write_text(&session, pid, made + 1, "new") == OSD_ANSWER_OK);
	list.a = OSD_LIST_USER_OBJECTS;
	CHECK(ask(&session, list) == OSD_ANSWER_OK && answered.b == 4);
	list.a = OSD_LIST_PARTITIONS;
	CHECK(ask(&session, list) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_REMOVE, pid, made)) == OSD_ANSWER_OK);
	CHECK(ask(&session, call_on(OSD_CALL_REMOVE, pid, made)) == OSD_ANSWER_NOT_FOUND);
	CHECK(ask(&session, call_on(OSD_CALL_REMOVE, pid, made + 1)) == OSD_ANSWER_OK);
	CHECK(write_text(&session, pid, made + 1, "gone") == OSD_ANSWER_NOT_FOUND);
	CHECK(ask(&session, call_on(OSD_CALL_CREATE_PARTITION, 0, 0)) == OSD_ANSWER_PERMISSION);
	create.partition_id = other_pid;
	CHECK(ask(&session, create) == OSD_ANSWER_PERMISSION);
	create = (struct osd_call){
		.op = OSD_CALL_CREATE, .partition_id = pid, .a = OSD_CREATE_MAX + 1};
	CHECK(ask(&session, create) == OSD_ANSWER_INVALID);
	osd_session_release(&session);
}

/* Collections with ids below the ordinary ones belong to the target. */
static void test_well_known_collection(void)
{
	static const uint16_t ops[] = {OSD_CALL_REMOVE_COLLECTION, OSD_CALL_COLLECTION_ADD,
				       OSD_CALL_COLLECTION_DROP};
	struct osd_session session = start(OSD_PARTITION, pid, 0);
	struct osd_call list = call_on(OSD_CALL_LIST, pid, OSD_JOBS_COLLECTION);
	struct osd_txn *txn;
	uint64_t made;

	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	CHECK(osd_collection_create(txn, pid, OSD_JOBS_COLLECTION, OSD_COLLECTION_TRACKING,
				    &made) == OSD_OK);
	CHECK(osd_collection_add(txn, (struct osd_object_id){pid, made}, object) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(ops); i++) {
		struct osd_call call = call_on(ops[i], pid, OSD_JOBS_COLLECTION);

		call.a = i == 0 ? 1 : object;
		CHECK(ask(&session, call) == OSD_ANSWER_PERMISSION);
	}
	list.a = OSD_LIST_MEMBERS;
	CHECK(ask(&session, list) == OSD_ANSWER_OK && answered.b == 1);
	osd_session_release(&session);
}

static void test_root_zone(void)
{
	struct osd_session session = start(OSD_ROOT, 0, 0);
	uint64_t made;

	CHECK(ask(&session, call_on(OSD_CALL_CREATE_PARTITION, 0, 0)) == OSD_ANSWER_OK);
	made = answered.a;
	CHECK(ask(&session, call_on(OSD_CALL_REMOVE_PARTITION, made, 0)) == OSD_ANSWER_OK);
	CHECK(write_text(&session, other_pid, elsewhere, "yes") == OSD_ANSWER_OK);
	osd_session_release(&session);
}

static void mark(uint64_t id, bool unfinished)
{
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	CHECK(osd_surrogate_mark(txn, (struct osd_object_id){pid, id}, unfinished) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void test_unfinished_surrogate(void)
{
	struct osd_session session = start(OSD_PARTITION, pid, 0);

	mark(stranger, true);
	CHECK(write_text(&session, pid, stranger, "no") == OSD_ANSWER_CONFLICT);
	CHECK(set_attr(&session, stranger, 0xa, 1) == OSD_ANSWER_CONFLICT);
	CHECK(ask(&session, call_on(OSD_CALL_REMOVE, pid, stranger)) == OSD_ANSWER_CONFLICT);
	CHECK(ask(&session, call_on(OSD_CALL_LENGTH, pid, stranger)) == OSD_ANSWER_OK);
	mark(stranger, false);
	CHECK(write_text(&session, pid, stranger, "yes") == OSD_ANSWER_OK);
	osd_session_release(&session);
}

static void test_attributes(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call get = call_on(OSD_CALL_GETATTR, pid, object);
	struct osd_call list = call_on(OSD_CALL_LISTATTR, pid, object);
	struct osd_attr_list entries;
	struct osd_attr attr;

	CHECK(set_attr(&session, object, 0xb, 7) == OSD_ANSWER_OK);
	get.body_bytes = 16;
	memset(body(), 0, 16);
	osd_put_be(body(), 0xb, 4);
	osd_put_be(body() + 4, 7, 4);
	osd_put_be(body() + 8, 0xb, 4);
	osd_put_be(body() + 12, 8, 4);
	CHECK(ask(&session, get) == OSD_ANSWER_OK);
	CHECK(osd_attr_entries_open(body(), answered.body_bytes, OSD_LIST_SET, &entries) == OSD_OK);
	CHECK(osd_attr_list_next(&entries, &attr) && attr.length == 5 &&
	      memcmp(attr.value, "value", 5) == 0);
	CHECK(osd_attr_list_next(&entries, &attr) && attr.length == 0);
	list.a = 0xb;
	CHECK(ask(&session, list) == OSD_ANSWER_OK && answered.a == 0 && answered.body_bytes > 0);
	list.b = 1;
	CHECK(ask(&session, list) == OSD_ANSWER_OK && answered.body_bytes < 40);
	get.body_bytes = 12; /* one and a half entries */
	CHECK(ask(&session, get) == OSD_ANSWER_INVALID);
	get.body_bytes = OSD_CALL_RECORDS * 8 + 8;
	CHECK(ask(&session, get) == OSD_ANSWER_INVALID);
	osd_session_release(&session);
}

/* A query with one criterion: page Ah number 5, 8 bytes, from low to high. */
static struct osd_call query_call(uint64_t collection_id, uint64_t low, uint64_t high)
{
	struct osd_call call = call_on(OSD_CALL_QUERY, pid, collection_id);
	struct osd_wr w = osd_wr_init(body(), OSD_BODY_MAX);

	osd_wr_be(&w, 0x01000000, 4);
	osd_wr_be(&w, 12 + 16, 4);
	osd_wr_be(&w, 0xa, 4);
	osd_wr_be(&w, 5, 4);
	osd_wr_be(&w, 8, 2);
	osd_wr_be(&w, low, 8);
	osd_wr_be(&w, 8, 2);
	osd_wr_be(&w, high, 8);
	call.body_bytes = (uint32_t)osd_wr_used(&w);
	return call;
}

static struct osd_call add_call(uint64_t id, uint32_t page, uint64_t addend)
{
	struct osd_call call = call_on(OSD_CALL_ADDATTR, pid, id);

	call.a = (uint64_t)page << 32 | 5;
	call.b = addend;
	return call;
}

static void test_query(void)
{
	struct osd_session whole = start(OSD_PARTITION, pid, 0);
	struct osd_session members = start(OSD_COLLECTION, pid, collection);
	struct osd_session one = start(OSD_USER_OBJECT, pid, object);
	struct osd_call call;

	CHECK(ask(&whole, add_call(object, 0xa, 7)) == OSD_ANSWER_OK);
	CHECK(ask(&whole, add_call(stranger, 0xa, 8)) == OSD_ANSWER_OK);
	CHECK(ask(&whole, query_call(0, 7, 8)) == OSD_ANSWER_OK);
	CHECK(answered.body_bytes == 16 && answered.a == 0 && answered.b == 2);
	CHECK(osd_get_be(body(), 8) == object && osd_get_be(body() + 8, 8) == stranger);
	CHECK(ask(&whole, query_call(collection, 0, 9)) == OSD_ANSWER_OK && answered.body_bytes == 8);
	call = query_call(0, 0, 9);
	call.a = object + 1;
	CHECK(ask(&whole, call) == OSD_ANSWER_OK && answered.body_bytes == 8);
	CHECK(osd_get_be(body(), 8) == stranger);
	CHECK(ask(&whole, query_call(0, 9, 8)) == OSD_ANSWER_OK && answered.body_bytes == 0);
	CHECK(ask(&whole, query_call(0x7fffffff, 7, 8)) == OSD_ANSWER_NOT_FOUND);
	call = query_call(0, 7, 8);
	call.partition_id = other_pid;
	CHECK(ask(&whole, call) == OSD_ANSWER_PERMISSION);
	call = query_call(0, 7, 8);
	call.body_bytes -= 1;
	CHECK(ask(&whole, call) == OSD_ANSWER_INVALID);
	call.body_bytes = 3;
	CHECK(ask(&whole, call) == OSD_ANSWER_INVALID);
	call.body_bytes = 0;
	CHECK(ask(&whole, call) == OSD_ANSWER_INVALID);

	CHECK(ask(&members, query_call(collection, 0, 9)) == OSD_ANSWER_OK && answered.body_bytes == 8);
	CHECK(ask(&members, query_call(0, 0, 9)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&members, query_call(OSD_OBJECTS_COLLECTION, 0, 9)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&one, query_call(collection, 0, 9)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&one, query_call(0, 0, 9)) == OSD_ANSWER_PERMISSION);
	osd_session_release(&whole);
	osd_session_release(&members);
	osd_session_release(&one);
}

static struct osd_call swap_call(uint64_t id, const char *expected, const char *new)
{
	struct osd_call call = call_on(OSD_CALL_SWAPATTR, pid, id);

	call.a = (uint64_t)0xa << 32 | 6;
	call.b = strlen(expected);
	call.body_bytes = (uint32_t)(strlen(expected) + strlen(new));
	memcpy(body(), expected, strlen(expected));
	memcpy(body() + strlen(expected), new, strlen(new));
	return call;
}

static void test_atomics(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call call;

	CHECK(ask(&session, swap_call(object, "", "one")) == OSD_ANSWER_OK && answered.a == 1);
	CHECK(answered.body_bytes == 0);
	CHECK(ask(&session, swap_call(object, "", "two")) == OSD_ANSWER_OK && answered.a == 0);
	CHECK(answered.body_bytes == 3 && memcmp(body(), "one", 3) == 0);
	CHECK(ask(&session, swap_call(object, "one", "")) == OSD_ANSWER_OK && answered.a == 1);
	CHECK(ask(&session, swap_call(object, "", "")) == OSD_ANSWER_OK && answered.body_bytes == 0);
	CHECK(ask(&session, swap_call(stranger, "", "no")) == OSD_ANSWER_PERMISSION);
	call = swap_call(object, "", "no");
	call.a = (uint64_t)OSD_REL_SECURITY << 32 | 1;
	CHECK(ask(&session, call) == OSD_ANSWER_PERMISSION);
	call.a = UINT64_MAX;
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);
	call = swap_call(object, "", "no");
	call.b = 3; /* more than there is */
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);
	call.b = UINT64_MAX;
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);
	call.b = 1;
	call.body_bytes = 1 + OSD_ATTRIBUTE_MAX + 1;
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);

	CHECK(ask(&session, add_call(object, 0xb, 5)) == OSD_ANSWER_OK && answered.a == 0);
	CHECK(ask(&session, add_call(object, 0xb, UINT64_MAX)) == OSD_ANSWER_OK && answered.a == 5);
	CHECK(ask(&session, add_call(object, 0xb, 0)) == OSD_ANSWER_OK && answered.a == 4);
	CHECK(set_attr(&session, object, 0xc, 5) == OSD_ANSWER_OK);
	CHECK(ask(&session, add_call(object, 0xc, 1)) == OSD_ANSWER_INVALID);
	CHECK(ask(&session, add_call(stranger, 0xb, 1)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, add_call(object, OSD_PAGE_JOB_CONTROL, 1)) == OSD_ANSWER_PERMISSION);
	osd_session_release(&session);
}

static void test_lengths(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call call = call_on(OSD_CALL_READ, pid, object);

	call.b = OSD_CALL_IO_MAX + 1;
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);
	call = call_on(OSD_CALL_WRITE, pid, object);
	call.body_bytes = OSD_CALL_IO_MAX + 1;
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);
	call = call_on(OSD_CALL_LENGTH, pid, object);
	call.body_bytes = 1;
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);
	session.limits.io_bytes = 3;
	CHECK(write_text(&session, pid, object, "abc") == OSD_ANSWER_OK);
	call = call_on(OSD_CALL_WRITE, pid, object);
	call.body_bytes = 1;
	CHECK(serve(&session, &call) == OSD_SERVED_FAULT && session.fault == OSD_REASON_IO_LIMIT);
	osd_session_release(&session);
}

int main(void)
{
	fill_store();
	test_object_zone();
	test_collection_zone();
	test_partition_zone();
	test_well_known_collection();
	test_root_zone();
	test_unfinished_surrogate();
	test_attributes();
	test_query();
	test_atomics();
	test_lengths();
	osd_objects_close(objects);
	return 0;
}
