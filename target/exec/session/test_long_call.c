/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_long_call.c -- long calls of a script hold a place in the call gate only for a step, charge
 * the bytes they move, and stop when the job is to end, with the object unchanged. */
#include "exec/session/session.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/util.h"
#include "object/names.h"
#include "wire/attr_list.h"

#define LENGTH (4u << 20)
#define FEW    (300u << 10) /* three steps: it is changed often */

static struct osd_objects *objects;
static uint64_t pid, object, short_object, collection, members[200];
static uint8_t shared[OSD_SHM_BYTES];
static struct osd_call_gate gate;
/* Stands for the job: the number of checks before it is asked to end, or its sandbox is gone. */
static unsigned ends_after, over_after, asked, checks;
static bool left_gate; /* a call that was asked held no place */

static enum osd_status note_wrote(void *arg)
{
	(void)arg;
	return OSD_OK;
}

static bool is_to_end(void *arg)
{
	(void)arg;
	return asked++ >= ends_after;
}

/* Called at each step.  No place is held while the call waits for the next step. */
static bool is_over(void *arg)
{
	const struct osd_session *session = arg;

	CHECK_EQ(gate.inside, session->step.inside ? 1 : 0);
	checks++;
	left_gate |= !session->step.inside;
	return asked >= over_after;
}

static void start(struct osd_session *session, uint64_t io_bytes)
{
	*session = (struct osd_session){
		.objects = objects,
		.gate = &gate,
		.zone = {OSD_PARTITION, {pid, 0}},
		.job = {pid, object},
		.limits = {.io_bytes = io_bytes, .result_bytes = 1 << 20},
		.hooks = {.wrote = note_wrote,
			  .is_to_end = is_to_end,
			  .is_over = is_over,
			  .arg = session},
	};
	asked = 0;
	ends_after = over_after = UINT32_MAX;
	CHECK(osd_session_init(session) == OSD_OK);
}

static enum osd_served serve(struct osd_session *session, struct osd_call call,
			     struct osd_answer *ret_answer)
{
	uint8_t *frame = shared + OSD_SHM_FRAME_AT, *body = shared + OSD_SHM_BODY_AT;
	enum osd_served served;

	osd_call_encode(&call, frame);
	served = osd_session_serve(session, frame, body, frame + OSD_FRAME_BYTES, body);
	if (served == OSD_SERVED)
		CHECK(osd_answer_decode(frame + OSD_FRAME_BYTES, ret_answer));
	CHECK_EQ(gate.inside, 0);
	CHECK(!session->step.inside);
	return served;
}

static struct osd_call punch(void)
{
	return (struct osd_call){
		.op = OSD_CALL_PUNCH, .partition_id = pid, .object_id = object, .a = 1000, .b = 10};
}

static uint64_t length_of(void)
{
	struct osd_object *open;
	uint64_t length;

	CHECK_EQ(osd_object_get(objects, (struct osd_object_id){pid, object}, &open), OSD_OK);
	CHECK_EQ(osd_object_length(open, &length), OSD_OK);
	osd_object_put(open);
	return length;
}

/* The job is asked to end while the call is under way. */
static void test_ends_meanwhile(void)
{
	struct osd_session session;
	struct osd_answer answer;

	start(&session, UINT64_MAX);
	ends_after = 3;
	CHECK_EQ(serve(&session, punch(), &answer), OSD_SERVED);
	CHECK(answer.code == OSD_ANSWER_IO && answer.body_bytes > 0);
	CHECK_EQ(length_of(), LENGTH);
	CHECK(session.bytes_written > 0 && session.bytes_written < LENGTH);
	osd_session_release(&session);
}

/* A script may call in its grace time; its calls end with the sandbox. */
static void test_cleans_up(void)
{
	struct osd_session session;
	struct osd_answer answer;

	start(&session, UINT64_MAX);
	ends_after = over_after = 0;
	CHECK_EQ(serve(&session, punch(), &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_IO);
	CHECK_EQ(length_of(), LENGTH);
	osd_session_release(&session);

	start(&session, UINT64_MAX);
	ends_after = 0;
	CHECK_EQ(serve(&session, punch(), &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_OK);
	CHECK_EQ(length_of(), LENGTH - 10);
	CHECK(session.bytes_written >= LENGTH - 4096 - 10);
	osd_session_release(&session);
}

static void test_limit(void)
{
	struct osd_session session;
	struct osd_answer answer;
	uint64_t length = length_of();

	start(&session, 2 << 20);
	CHECK_EQ(serve(&session, punch(), &answer), OSD_SERVED_FAULT);
	CHECK_EQ(session.fault, OSD_REASON_IO_LIMIT);
	CHECK_EQ(length_of(), length);
	osd_session_release(&session);
}

/* Long calls need no place between their steps, short calls do: then the gate is full. */
static void test_places(void)
{
	static const uint16_t calls[] = {OSD_CALL_FLUSH, OSD_CALL_TRUNCATE, OSD_CALL_CLEAR};
	struct osd_session session;
	struct osd_answer answer;

	start(&session, UINT64_MAX);
	osd_call_gate_enter(&gate);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(calls); i++) {
		struct osd_call call = {
			.op = calls[i], .partition_id = pid, .object_id = object, .a = LENGTH};
		uint8_t *frame = shared + OSD_SHM_FRAME_AT, *body = shared + OSD_SHM_BODY_AT;

		osd_call_encode(&call, frame);
		CHECK_EQ(osd_session_serve(&session, frame, body, frame + OSD_FRAME_BYTES, body),
			 OSD_SERVED);
		CHECK(osd_answer_decode(frame + OSD_FRAME_BYTES, &answer));
		CHECK_EQ(answer.code, OSD_ANSWER_OK);
	}
	osd_call_gate_leave(&gate);
	osd_session_release(&session);
}

static _Atomic bool object_held;

/* Holds the object while another call waits for it, and needs a place in the gate meanwhile. */
static bool hold_object(void *arg, uint64_t bytes)
{
	struct osd_session *waiter = arg;

	(void)bytes;
	object_held = true;
	while (atomic_load(&waiter->calls) == 0)
		sched_yield();
	osd_call_gate_enter(&gate);
	osd_call_gate_leave(&gate);
	return true;
}

static void *punch_object(void *arg)
{
	const struct osd_change_steps steps = {.go_on = hold_object, .arg = arg};
	struct osd_change punch = {
		.kind = OSD_CHANGE_PUNCH, .offset = 1000, .length = 10, .steps = &steps};
	struct osd_object *open;

	CHECK_EQ(osd_object_get(objects, (struct osd_object_id){pid, short_object}, &open), OSD_OK);
	CHECK_EQ(osd_object_change(open, &punch), OSD_OK);
	osd_object_put(open);
	return NULL;
}

/* A call that waits for an object gives its place to others.  Otherwise none of them could continue
 * until the object is free. */
static void test_waits_for_object(void)
{
	struct osd_session session;
	struct osd_answer answer;
	pthread_t thread;

	start(&session, UINT64_MAX);
	object_held = false;
	CHECK(pthread_create(&thread, NULL, punch_object, &session) == 0);
	while (!object_held)
		sched_yield();
	CHECK_EQ(serve(&session,
		       (struct osd_call){.op = OSD_CALL_READ,
					 .partition_id = pid,
					 .object_id = short_object,
					 .b = 100},
		       &answer),
		 OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_OK);
	CHECK(pthread_join(thread, NULL) == 0);
	osd_session_release(&session);
}

static uint64_t member_count(void)
{
	struct osd_list_request request = {OSD_LIST_MEMBERS, {pid, collection}, 0};
	struct osd_list_result result;
	struct osd_txn *txn;
	uint64_t ids[OSD_ARRAY_SIZE(members)];

	CHECK_EQ(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn), OSD_OK);
	CHECK_EQ(osd_list(txn, &request, ids, OSD_ARRAY_SIZE(ids), &result), OSD_OK);
	osd_txn_abort(txn);
	return result.count;
}

/* A collection with members is removed in steps.  After a stop half-way, another call removes the
 * rest. */
static void test_collection(void)
{
	struct osd_call call = {.op = OSD_CALL_REMOVE_COLLECTION,
				.partition_id = pid,
				.object_id = collection,
				.a = 1};
	struct osd_session session;
	struct osd_answer answer;
	uint64_t left;

	start(&session, UINT64_MAX);
	ends_after = 3;
	CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_IO);
	left = member_count();
	CHECK(left > 0 && left < OSD_ARRAY_SIZE(members));
	osd_session_release(&session);
	start(&session, UINT64_MAX);
	CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_OK);
	CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_NOT_FOUND);
	osd_session_release(&session);
}

static uint64_t object_count(void)
{
	struct osd_list_request request = {OSD_LIST_USER_OBJECTS, {pid, 0}, 0};
	struct osd_list_result result;
	struct osd_txn *txn;
	uint64_t id;

	CHECK_EQ(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn), OSD_OK);
	CHECK_EQ(osd_list(txn, &request, &id, 1, &result), OSD_OK);
	osd_txn_abort(txn);
	return result.total_count;
}

/* The creation of many objects can stop between two of them, and then leaves none. */
static void test_creation_stops(void)
{
	struct osd_call call = {.op = OSD_CALL_CREATE, .partition_id = pid, .a = OSD_CREATE_MAX};
	uint64_t before = object_count();
	struct osd_session session;
	struct osd_answer answer;

	start(&session, UINT64_MAX);
	ends_after = 3;
	CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_IO);
	CHECK_EQ(object_count(), before);
	osd_session_release(&session);
	start(&session, UINT64_MAX);
	CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_OK);
	CHECK_EQ(object_count(), before + OSD_CREATE_MAX);
	osd_session_release(&session);
}

/* A collection of many. */
static uint64_t uncounted(void)
{
	struct osd_txn *txn;
	uint64_t made, first;

	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_collection_create(txn, pid, 0, OSD_COLLECTION_LINKED, &made), OSD_OK);
	CHECK_EQ(osd_user_object_create(txn, pid, 0, 2 * OSD_LONG_RECORDS, &first), OSD_OK);
	for (uint64_t i = 0; i < 2 * OSD_LONG_RECORDS; i++)
		CHECK_EQ(osd_collection_add(txn, (struct osd_object_id){pid, made}, first + i),
			 OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	return made;
}

/* A listing counts all matches once.  It stops with the sandbox, and holds no place in the gate
 * meanwhile.  The count of a partition is stored, so the test lists a collection that has not been
 * counted yet. */
static void test_listing_stops(void)
{
	struct osd_call call = {.op = OSD_CALL_LIST,
				.partition_id = pid,
				.object_id = uncounted(),
				.a = OSD_LIST_MEMBERS};
	struct osd_session session;
	struct osd_answer answer;

	start(&session, UINT64_MAX);
	over_after = 0;
	CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_IO);
	osd_session_release(&session);
	start(&session, UINT64_MAX);
	left_gate = false;
	CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
	CHECK_EQ(answer.code, OSD_ANSWER_OK);
	CHECK_EQ(answer.b, 2 * OSD_LONG_RECORDS);
	CHECK(left_gate);
	osd_session_release(&session);
}

#define DEEP (OSD_LONG_RECORDS + 200)

/* An object with a name in each of many directories, one in the other, and (*ret_zone) a directory beside them. */
static uint64_t many_names(struct osd_object_id *ret_zone)
{
	const struct osd_name name = {(const uint8_t *)"n", 1}, zone = {(const uint8_t *)"z", 1};
	struct osd_object_id above = {pid, 0}, made = {pid, 0}, named = {pid, 0};
	const struct osd_name file = {(const uint8_t *)"f", 1};
	struct osd_txn *txn;

	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_user_object_create(txn, pid, 0, 1, &named.object_id), OSD_OK);
	CHECK_EQ(osd_directory_hold(txn, above), OSD_OK);
	CHECK_EQ(osd_directory_make(txn, pid, ret_zone), OSD_OK);
	CHECK_EQ(osd_name_put(txn, above, zone, *ret_zone), OSD_OK);
	for (unsigned i = 0; i < DEEP; i++) {
		CHECK_EQ(osd_directory_make(txn, pid, &made), OSD_OK);
		CHECK_EQ(osd_name_put(txn, above, name, made), OSD_OK);
		above = made;
		CHECK_EQ(osd_directory_hold(txn, above), OSD_OK);
		CHECK_EQ(osd_name_put(txn, above, file, named), OSD_OK);
	}
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	return named.object_id;
}

/* Whether an object is below the zone: each directory above it is visited once, without a place in the gate, and not at
 * all when the sandbox is gone. */
static void test_deep_directories(void)
{
	static const uint16_t calls[] = {OSD_CALL_READ, OSD_CALL_GETATTR};
	struct osd_session session;
	struct osd_answer answer;
	struct osd_object_id zone = {pid, 0};
	struct osd_call call = {.partition_id = pid, .object_id = many_names(&zone)};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(calls); i++) {
		call.op = calls[i];
		call.body_bytes = calls[i] == OSD_CALL_GETATTR ? OSD_ATTR_GET_ENTRY : 0;
		start(&session, UINT64_MAX);
		session.zone = (struct osd_zone){OSD_COLLECTION, zone};
		checks = 0;
		left_gate = false;
		CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
		CHECK_EQ(answer.code, OSD_ANSWER_PERMISSION);
		CHECK(left_gate);
		CHECK(checks > 0 && checks <= 2 * DEEP / OSD_LONG_STEP_PIECES);
		checks = 0;
		over_after = 0;
		CHECK_EQ(serve(&session, call, &answer), OSD_SERVED);
		CHECK_EQ(checks, 1);
		osd_session_release(&session);
	}
}

static void fill(uint64_t id, const uint8_t *data, size_t length)
{
	struct osd_object *open;

	CHECK_EQ(osd_object_get(objects, (struct osd_object_id){pid, id}, &open), OSD_OK);
	CHECK_EQ(osd_object_write(open, 0, data, length, 0), OSD_OK);
	osd_object_put(open);
}

static void fill_store(void)
{
	struct osd_objects_config config = {0};
	char message[256];
	struct osd_txn *txn;
	uint8_t *data = malloc(LENGTH);

	CHECK(data != NULL);
	memset(data, 7, LENGTH);
	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_partition_create(txn, 0, &pid), OSD_OK);
	CHECK_EQ(osd_user_object_create(txn, pid, 0, 1, &object), OSD_OK);
	CHECK_EQ(osd_user_object_create(txn, pid, 0, 1, &short_object), OSD_OK);
	CHECK_EQ(osd_collection_create(txn, pid, 0, OSD_COLLECTION_LINKED, &collection), OSD_OK);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(members); i++) {
		CHECK_EQ(osd_user_object_create(txn, pid, 0, 1, &members[i]), OSD_OK);
		CHECK_EQ(osd_collection_add(txn, (struct osd_object_id){pid, collection},
					    members[i]),
			 OSD_OK);
	}
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	fill(object, data, LENGTH);
	fill(short_object, data, FEW);
	free(data);
}

int main(void)
{
	fill_store();
	osd_call_gate_init(&gate, 1, NULL, NULL);
	test_ends_meanwhile();
	test_cleans_up();
	test_limit();
	test_places();
	for (int i = 0; i < 50; i++)
		test_waits_for_object();
	test_collection();
	test_creation_stops();
	test_listing_stops();
	test_deep_directories();
	osd_call_gate_release(&gate);
	osd_objects_close(objects);
	return 0;
}
