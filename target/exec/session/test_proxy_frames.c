/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_proxy_frames.c -- a script's calls as frames: pieces that are sent ahead, results, the end, phases and
 * nonsense. */
#include "exec/session/test_zones.h"
#include "wire/cursor.h"

/* A piece of a long write. */
static struct osd_call piece(uint64_t id, uint64_t offset, uint32_t length, uint16_t flags)
{
	struct osd_call call = call_on(OSD_CALL_WRITE, pid, id);

	call.a = offset;
	call.body_bytes = length;
	call.flags = flags;
	return call;
}

static uint64_t length_of(struct osd_session *session, uint64_t id)
{
	CHECK(ask(session, call_on(OSD_CALL_LENGTH, pid, id)) == OSD_ANSWER_OK);
	return answered.a;
}

/* A long result comes in pieces, each sent before the last is answered. */
static void test_result_ahead(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call result = {.op = OSD_CALL_RESULT,
				  .body_bytes = OSD_AHEAD_BYTES,
				  .flags = OSD_CALL_AHEAD};

	session.plain = session.stage = true;
	session.limits.result_bytes = session.result_hint = 3 * OSD_AHEAD_BYTES;
	CHECK(ask(&session, result) == OSD_ANSWER_OK && session.ahead);
	result.a = OSD_AHEAD_BYTES;
	CHECK(ask(&session, result) == OSD_ANSWER_OK);
	CHECK(ask(&session, result) == OSD_ANSWER_INVALID); /* not where the last piece ended */
	result.a *= 2;
	result.flags = 0;
	CHECK(ask(&session, result) == OSD_ANSWER_INVALID); /* skipped with the one before */
	CHECK(ask(&session, result) == OSD_ANSWER_OK && !session.ahead);
	CHECK_EQ(session.result_length, 3 * OSD_AHEAD_BYTES);
	osd_session_release(&session);
}

static void check_fault(struct osd_call first, struct osd_call second)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);

	if (first.op)
		CHECK(ask(&session, first) == OSD_ANSWER_OK && session.ahead);
	CHECK(serve(&session, &second) == OSD_SERVED_FAULT && session.fault == OSD_REASON_PROTOCOL);
	osd_session_release(&session);
}

/* The calls sent ahead after a failed piece are skipped; later calls are served. */
static void test_ahead(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call length = call_on(OSD_CALL_LENGTH, pid, object), none = {0};

	CHECK(ask(&session, piece(object, 0, OSD_AHEAD_BYTES, OSD_CALL_AHEAD)) == OSD_ANSWER_OK);
	CHECK(session.ahead);
	CHECK(ask(&session, piece(object, OSD_AHEAD_BYTES, 7, 0)) == OSD_ANSWER_OK);
	CHECK(!session.ahead);
	CHECK_EQ(length_of(&session, object), OSD_AHEAD_BYTES + 7);
	CHECK(ask(&session, piece(stranger, 0, 1, OSD_CALL_AHEAD)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, piece(object, 1 << 20, 1, OSD_CALL_AHEAD)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, piece(object, 1 << 20, 1, 0)) == OSD_ANSWER_PERMISSION);
	CHECK_EQ(length_of(&session, object), OSD_AHEAD_BYTES + 7);
	CHECK(ask(&session, piece(object, 1 << 20, 1, 0)) == OSD_ANSWER_OK);
	CHECK_EQ(length_of(&session, object), (1 << 20) + 1);
	osd_session_release(&session);

	check_fault(none, piece(object, 0, OSD_AHEAD_BYTES + 1, OSD_CALL_AHEAD));
	check_fault(none, piece(object, 0, 1, 2));
	check_fault(piece(object, 0, 1, OSD_CALL_AHEAD), piece(object, 0, OSD_AHEAD_BYTES + 1, 0));
	check_fault(piece(object, 0, 1, OSD_CALL_AHEAD), length);
	length.flags = OSD_CALL_AHEAD;
	check_fault(none, length);
}

static void test_result(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call call = {.op = OSD_CALL_RESULT, .body_bytes = 2, .b = 1};

	memcpy(body(), "42", 2);
	CHECK(ask(&session, call) == OSD_ANSWER_OK);
	CHECK(session.result_length == 2 && memcmp(session.result, "42", 2) == 0 &&
	      session.result_json);
	call.a = 5; /* a gap */
	CHECK(ask(&session, call) == OSD_ANSWER_INVALID);
	call.a = 2;
	call.body_bytes = OSD_JOB_PAYLOAD_MAX;
	CHECK(ask(&session, call) == OSD_ANSWER_OK);
	CHECK(session.result_object && session.result_length == OSD_JOB_PAYLOAD_MAX + 2);
	call.a = session.result_length;
	call.body_bytes = (uint32_t)(session.limits.result_bytes - session.result_length);
	CHECK(ask(&session, call) == OSD_ANSWER_OK); /* just its limit */
	CHECK_EQ(session.result_length, session.limits.result_bytes);
	CHECK_EQ(session.result_room, OSD_JOB_PAYLOAD_MAX); /* the rest is in the companion alone */
	call.a = session.result_length;
	call.body_bytes = 1;
	CHECK(serve(&session, &call) == OSD_SERVED_FAULT &&
	      session.fault == OSD_REASON_RESULT_LIMIT);
	osd_session_release(&session);
}

#define FIRST_BYTES  50000u /* fit into memory */
#define SECOND_BYTES 20000u /* do not, with the first ones */

static void set_quota(uint64_t bytes)
{
	struct osd_txn *txn;
	uint8_t value[8];

	osd_put_be(value, bytes, sizeof(value));
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_attr_set(txn, (struct osd_object_id){pid, 0},
			   OSD_PAGE_PARTITION_BASE | OSD_REL_QUOTAS, 0x10001, value,
			   sizeof(value)) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static enum osd_answer_code add_result(struct osd_session *session, uint64_t offset,
				       uint32_t length)
{
	struct osd_call call = {.op = OSD_CALL_RESULT, .a = offset, .body_bytes = length};

	memset(body(), 'r', length);
	return ask(session, call);
}

static void check_companion(const struct osd_session *session)
{
	static uint8_t bytes[FIRST_BYTES + SECOND_BYTES];
	uint64_t length;
	size_t got;

	CHECK(session->result_object && session->companion);
	CHECK(osd_object_length(session->companion, &length) == OSD_OK);
	CHECK_EQ(length, sizeof(bytes));
	CHECK(osd_object_read(session->companion, 0, bytes, sizeof(bytes), 0, &got) == OSD_OK);
	for (size_t i = 0; i < sizeof(bytes); i++)
		CHECK(bytes[i] == 'r');
}

/* A result that lacks a piece is none.  What follows is refused, until the script begins another result. */
static void test_result_with_a_gap(uint64_t quota)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);

	set_quota(quota);
	CHECK(add_result(&session, 0, FIRST_BYTES) == OSD_ANSWER_OK);
	CHECK(add_result(&session, FIRST_BYTES, SECOND_BYTES) == OSD_ANSWER_NO_SPACE);
	set_quota(UINT64_C(1) << 40);
	CHECK(add_result(&session, FIRST_BYTES, SECOND_BYTES) == OSD_ANSWER_NO_SPACE);
	CHECK(session.result_status != OSD_OK);
	CHECK(add_result(&session, 0, FIRST_BYTES) == OSD_ANSWER_OK);
	CHECK(add_result(&session, FIRST_BYTES, SECOND_BYTES) == OSD_ANSWER_OK);
	CHECK_EQ(session.result_status, OSD_OK);
	CHECK_EQ(session.result_length, FIRST_BYTES + SECOND_BYTES);
	check_companion(&session);
	osd_session_release(&session);
}

/* No object is named that was not made: a short result that follows is kept in memory. */
static void test_companion_is_not_made(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);

	CHECK(add_result(&session, 0, FIRST_BYTES) == OSD_ANSWER_OK);
	spilled_status = OSD_E_NO_SPACE;
	CHECK(add_result(&session, FIRST_BYTES, SECOND_BYTES) == OSD_ANSWER_NO_SPACE);
	spilled_status = OSD_OK;
	CHECK(!session.result_object && !session.companion && session.result_status != OSD_OK);
	CHECK(add_result(&session, 0, 5) == OSD_ANSWER_OK);
	CHECK(!session.result_object && session.result_status == OSD_OK);
	CHECK(session.result_length == 5 && memcmp(session.result, "rrrrr", 5) == 0);
	CHECK(add_result(&session, 0, FIRST_BYTES) == OSD_ANSWER_OK);
	CHECK(add_result(&session, FIRST_BYTES, SECOND_BYTES) == OSD_ANSWER_OK);
	check_companion(&session);
	osd_session_release(&session);
}

/* It replaces an earlier one, and is bound by the same limit. */
static void test_result_with_finish(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call result = {.op = OSD_CALL_RESULT, .body_bytes = 2, .b = 1};
	const struct osd_call good = {.op = OSD_CALL_FINISH,
				      .b = OSD_FINISH_KEPT,
				      .partition_id = 1,
				      .object_id = 3,
				      .body_bytes = 9};
	struct osd_call finish = good;

	memcpy(body(), "42", 2);
	CHECK(ask(&session, result) == OSD_ANSWER_OK);
	memcpy(body(), "\0\0\0\0abcup", 9);
	CHECK(serve(&session, &finish) == OSD_SERVED_LAST && session.kept_code);
	CHECK(session.result_length == 3 && memcmp(session.result, "abc", 3) == 0 &&
	      !session.result_json && strcmp(session.line, "up") == 0);
	osd_session_release(&session);

	session = start(OSD_USER_OBJECT, pid, object);
	session.limits.result_bytes = 2;
	memcpy(body(), "\0\0\0\0abcup", 9);
	CHECK(serve(&session, &finish) == OSD_SERVED_FAULT &&
	      session.fault == OSD_REASON_RESULT_LIMIT);
	osd_session_release(&session);

	for (int wrong = 0; wrong < 4; wrong++) {
		finish = good;
		if (wrong == 0)
			finish.partition_id = 3;
		else if (wrong == 1)
			finish.partition_id = 0; /* bytes of no result */
		else if (wrong == 2)
			finish.object_id = 6; /* beyond the body */
		else
			finish.object_id = UINT64_MAX;
		session = start(OSD_USER_OBJECT, pid, object);
		memcpy(body(), "\0\0\0\0abcup", 9);
		CHECK(serve(&session, &finish) == OSD_SERVED_FAULT &&
		      session.fault == OSD_REASON_PROTOCOL);
		osd_session_release(&session);
	}
}

static struct osd_call placed_result(uint64_t place, uint64_t length)
{
	memcpy(body(), "\0\0\0\0", 4);
	osd_put_be(body() + 4, place, 4);
	return (struct osd_call){.op = OSD_CALL_FINISH,
				 .b = OSD_FINISH_PLACED,
				 .partition_id = 1,
				 .object_id = length,
				 .body_bytes = 8};
}

static struct osd_session start_stage(const uint8_t *texts)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);

	session.plain = session.stage = true;
	session.texts = texts;
	return session;
}

static void check_not_placed(struct osd_session session, struct osd_call finish, uint16_t fault)
{
	CHECK(serve(&session, &finish) == OSD_SERVED_FAULT && session.fault == fault);
	CHECK(!session.placed);
	osd_session_release(&session);
}

/* The result of a stage in the room for texts.  It is copied unless what receives it reads it once. */
static void test_result_placed(void)
{
	uint8_t *texts = calloc(1, OSD_SHM_PLACES_BYTES);
	struct osd_session session = start_stage(texts);
	struct osd_call finish = placed_result(OSD_SHM_PLACES_BYTES - 3, 3);

	memcpy(texts + OSD_SHM_PLACES_BYTES - 3, "abc", 3);
	CHECK(serve(&session, &finish) == OSD_SERVED_LAST && !session.placed);
	CHECK(session.result_length == 3 && memcmp(session.result, "abc", 3) == 0);
	osd_session_release(&session);

	session = start_stage(texts);
	session.placed_stays = true;
	CHECK(serve(&session, &finish) == OSD_SERVED_LAST && !session.result);
	CHECK(session.result_length == 3 && session.placed == texts + OSD_SHM_PLACES_BYTES - 3);
	osd_session_release(&session);

	check_not_placed(start_stage(texts), placed_result(OSD_SHM_PLACES_BYTES - 2, 3),
			 OSD_REASON_PROTOCOL);
	check_not_placed(start_stage(texts), placed_result(8, UINT64_MAX), OSD_REASON_PROTOCOL);
	check_not_placed(start_stage(texts), placed_result(0, OSD_STAGE_DATA_MAX + 1),
			 OSD_REASON_RESULT_LIMIT);
	check_not_placed(start_stage(NULL), placed_result(0, 3), OSD_REASON_PROTOCOL);
	session = start_stage(texts);
	session.stage = false;
	check_not_placed(session, placed_result(0, 3), OSD_REASON_PROTOCOL);
	session = start_stage(texts);
	session.limits.result_bytes = 2;
	check_not_placed(session, placed_result(0, 3), OSD_REASON_RESULT_LIMIT);
	finish = placed_result(0, 3);
	finish.partition_id = 0; /* the place of no result */
	check_not_placed(start_stage(texts), finish, OSD_REASON_PROTOCOL);
	finish = placed_result(0, 3);
	finish.body_bytes = 7;
	check_not_placed(start_stage(texts), finish, OSD_REASON_PROTOCOL);
	free(texts);
}

static void test_phases_and_nonsense(void)
{
	struct osd_session session = start(OSD_USER_OBJECT, pid, object);
	struct osd_call progress = {.op = OSD_CALL_PROGRESS, .a = 500, .body_bytes = 4};
	struct osd_call finish = {
		.op = OSD_CALL_FINISH, .a = 3, .b = OSD_FINISH_EXIT, .body_bytes = 11};

	memcpy(body(), "half", 4);
	CHECK(ask(&session, progress) == OSD_ANSWER_OK && progress_seen == 500);
	progress.a = 1001;
	CHECK(ask(&session, progress) == OSD_ANSWER_INVALID);
	memcpy(body(), "\0\0\0\2tbbye!!", 11);
	CHECK(serve(&session, &finish) == OSD_SERVED_LAST);
	CHECK(session.exit_code == 3 && session.traceback_length == 2 &&
	      strcmp(session.line, "bye!!") == 0);
	CHECK(serve(&session, &progress) == OSD_SERVED_FAULT &&
	      session.fault == OSD_REASON_PROTOCOL);
	osd_session_release(&session);

	session = start(OSD_USER_OBJECT, pid, object);
	memset(shared + OSD_SHM_FRAME_AT, 0xff, OSD_FRAME_BYTES);
	CHECK(osd_session_serve(&session, shared + OSD_SHM_FRAME_AT, body(), shared, body()) ==
	      OSD_SERVED_FAULT);
	osd_session_release(&session);

	session = start(OSD_USER_OBJECT, pid, object);
	osd_put_be(body(), 100, 4); /* a traceback longer than the body */
	CHECK(serve(&session, &finish) == OSD_SERVED_FAULT && session.fault == OSD_REASON_PROTOCOL);
	osd_session_release(&session);
}

/* Every call on attributes counts among those of attributes. */
static void test_kinds(void)
{
	static const uint16_t ops[] = {OSD_CALL_GETATTR, OSD_CALL_SETATTR, OSD_CALL_LISTATTR,
				       OSD_CALL_SWAPATTR, OSD_CALL_ADDATTR};
	static struct osd_call_figures figures;

	for (size_t i = 0; i < OSD_ARRAY_SIZE(ops); i++)
		osd_call_took(&figures, ops[i], 1000);
	osd_call_took(&figures, OSD_CALL_READ, 1000);
	CHECK_EQ(figures.seconds[OSD_CALL_KIND_ATTRIBUTES].sum_usec, 5000);
	CHECK_EQ(figures.seconds[OSD_CALL_KIND_OTHER].sum_usec, 0);
}

int main(void)
{
	fill_store();
	test_result_with_a_gap(FIRST_BYTES / 2); /* no piece fits */
	/* The first piece fits beside the result above. */
	test_result_with_a_gap(2 * FIRST_BYTES + SECOND_BYTES + SECOND_BYTES / 2);
	test_companion_is_not_made();
	test_kinds();
	test_ahead();
	test_result_ahead();
	test_result();
	test_result_with_finish();
	test_result_placed();
	test_phases_and_nonsense();
	osd_objects_close(objects);
	return 0;
}
