/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_function.c -- a script's calls of functions: names, code in pieces, access classes, depth. */
#include "exec/session/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/util.h"
#include "function/function.h"
#include "wire/cursor.h"

#define PARTITION 0x11
#define LONG	  (OSD_CALL_IO_MAX + 5u)
#define PAGE	  0x20000006u
#define ACCESS	  5
#define ALIAS	  6

static struct osd_objects *objects;
static struct osd_functions *functions;
static struct osd_call_figures figures;
static struct osd_session_host host;
static uint64_t pid, zone_id;
static uint8_t shared[OSD_SHM_BYTES]; /* stands for a sandbox's memory */
static struct osd_answer answer;

static uint8_t *body(void)
{
	return shared + OSD_SHM_BODY_AT;
}

static enum osd_status note_wrote(void *arg)
{
	(void)arg;
	return OSD_OK;
}

static struct osd_session start(uint64_t io_bytes)
{
	struct osd_session session = {
		.objects = objects,
		.host = &host,
		.zone = {OSD_USER_OBJECT, {pid, zone_id}},
		.limits = {.io_bytes = io_bytes, .result_bytes = 1 << 20},
		.hooks = {.wrote = note_wrote},
	};

	CHECK(osd_session_init(&session) == OSD_OK);
	return session;
}

static enum osd_served serve(struct osd_session *session, struct osd_call call)
{
	osd_call_encode(&call, shared + OSD_SHM_FRAME_AT);
	return osd_session_serve(session, shared + OSD_SHM_FRAME_AT, body(),
				 shared + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES, body());
}

static enum osd_answer_code ask(struct osd_session *session, struct osd_call call)
{
	CHECK(serve(session, call) == OSD_SERVED);
	CHECK(osd_answer_decode(shared + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES, &answer));
	return answer.code;
}

static struct osd_call enter_call(const char *method, const char *name)
{
	size_t length = strlen(method);

	memcpy(body(), method, length);
	memcpy(body() + length, name, strlen(name));
	return (struct osd_call){.op = OSD_CALL_ENTER,
				 .a = length,
				 .body_bytes = (uint32_t)(length + strlen(name))};
}

static enum osd_answer_code enter(struct osd_session *session, const char *name)
{
	return ask(session, enter_call("", name));
}

static enum osd_answer_code leave(struct osd_session *session)
{
	return ask(session, (struct osd_call){.op = OSD_CALL_LEAVE});
}

static enum osd_answer_code touch(struct osd_session *session, uint16_t op)
{
	return ask(session, (struct osd_call){.op = op,
					      .partition_id = pid,
					      .object_id = zone_id,
					      .b = op == OSD_CALL_READ ? 1 : 0,
					      .body_bytes = op == OSD_CALL_WRITE ? 1 : 0});
}

static void store(const char *alias, enum osd_function_access access, size_t length)
{
	uint8_t *code = calloc(1, length), number = (uint8_t)access;
	struct osd_object_id id = {PARTITION, 0};
	struct osd_object *object;
	struct osd_txn *txn;

	CHECK(code);
	code[0] = (uint8_t)alias[0]; /* no two have the same SHA-256 */
	code[length - 1] = 'z';
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_user_object_create(txn, PARTITION, 0, 1, &id.object_id) == OSD_OK);
	CHECK(osd_attr_set(txn, id, PAGE, ALIAS, (const uint8_t *)alias, strlen(alias)) == OSD_OK);
	CHECK(osd_attr_set(txn, id, PAGE, ACCESS, &number, 1) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	CHECK(osd_object_get(objects, id, &object) == OSD_OK);
	CHECK(osd_object_write(object, 0, code, length, 0) == OSD_OK);
	osd_object_put(object);
	CHECK(osd_function_activate(functions, id, NULL, NULL, NULL) == OSD_OK);
	free(code);
}

static void fill_store(void)
{
	struct osd_objects_config config = {0};
	char message[256];
	struct osd_txn *txn;
	uint64_t made;

	CHECK(osd_objects_open(&config, message, &objects) == OSD_OK);
	CHECK(osd_functions_open(objects, NULL, message, &functions) == OSD_OK);
	host = (struct osd_session_host){.functions = functions, .calls = &figures};
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_create(txn, 0, &pid) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, 0, 1, &zone_id) == OSD_OK);
	CHECK(osd_partition_create(txn, PARTITION, &made) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	store("none", OSD_FUNCTION_NONE, 10);
	store("reads", OSD_FUNCTION_READ, LONG);
	store("writes", OSD_FUNCTION_WRITE, 10);
}

static void test_code_in_pieces(void)
{
	struct osd_session session = start(UINT64_MAX);
	struct osd_call code = {.op = OSD_CALL_CODE};

	CHECK_EQ(ask(&session, code), OSD_ANSWER_INVALID); /* nothing was entered */
	CHECK_EQ(enter(&session, "reads"), OSD_ANSWER_OK);
	CHECK_EQ(answer.a, LONG);
	CHECK_EQ(answer.b, OSD_FUNCTION_READ);
	CHECK_EQ(answer.body_bytes, 32 + 4);
	CHECK_BYTES(body() + 32, 4, "main", 4);
	CHECK_EQ(ask(&session, code), OSD_ANSWER_OK);
	CHECK_EQ(answer.body_bytes, OSD_CALL_IO_MAX);
	CHECK(body()[0] == 'r');
	code.a = OSD_CALL_IO_MAX;
	CHECK_EQ(ask(&session, code), OSD_ANSWER_OK);
	CHECK_BYTES(body(), answer.body_bytes, "\0\0\0\0z", 5);
	code.a = LONG;
	CHECK_EQ(ask(&session, code), OSD_ANSWER_OK);
	CHECK_EQ(answer.body_bytes, 0);
	code.a = LONG + 1;
	CHECK_EQ(ask(&session, code), OSD_ANSWER_INVALID);
	CHECK_EQ(leave(&session), OSD_ANSWER_OK);
	code.a = 0;
	CHECK_EQ(ask(&session, code), OSD_ANSWER_INVALID);
	osd_session_release(&session);
}

static void test_access(void)
{
	struct osd_session session = start(UINT64_MAX);

	CHECK_EQ(touch(&session, OSD_CALL_WRITE), OSD_ANSWER_OK);
	CHECK_EQ(enter(&session, "reads"), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_READ), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_WRITE), OSD_ANSWER_PERMISSION);
	CHECK_EQ(enter(&session, "writes"), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_WRITE), OSD_ANSWER_PERMISSION); /* its caller may not */
	CHECK_EQ(enter(&session, "none"), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_READ), OSD_ANSWER_PERMISSION);
	CHECK_EQ(leave(&session), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_READ), OSD_ANSWER_OK);
	CHECK_EQ(leave(&session), OSD_ANSWER_OK);
	CHECK_EQ(leave(&session), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_WRITE), OSD_ANSWER_OK);
	CHECK_EQ(leave(&session), OSD_ANSWER_INVALID);
	osd_session_release(&session);
}

/* A function that is called by itself cannot leave what it has never entered. */
static void test_bottom(void)
{
	struct osd_session session = start(UINT64_MAX);

	session.running = (struct osd_session_running){OSD_DENIES_ALL, PARTITION};
	CHECK_EQ(leave(&session), OSD_ANSWER_INVALID);
	CHECK_EQ(enter(&session, "writes"), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_READ), OSD_ANSWER_PERMISSION);
	CHECK_EQ(leave(&session), OSD_ANSWER_OK);
	CHECK_EQ(touch(&session, OSD_CALL_READ), OSD_ANSWER_PERMISSION);
	osd_session_release(&session);
}

static void test_depth(void)
{
	struct osd_session session = start(UINT64_MAX);

	for (int i = 0; i < OSD_SESSION_DEPTH; i++)
		CHECK_EQ(enter(&session, "none"), OSD_ANSWER_OK);
	CHECK_EQ(enter(&session, "none"), OSD_ANSWER_INVALID);
	for (int i = 0; i < OSD_SESSION_DEPTH; i++)
		CHECK_EQ(leave(&session), OSD_ANSWER_OK);
	CHECK_EQ(leave(&session), OSD_ANSWER_INVALID);
	osd_session_release(&session);
}

static void test_names(void)
{
	struct osd_session session = start(UINT64_MAX);
	struct osd_call call;

	CHECK_EQ(enter(&session, "nobody"), OSD_ANSWER_NOT_FOUND);
	CHECK_EQ(enter(&session, ""), OSD_ANSWER_INVALID);
	CHECK_EQ(ask(&session, enter_call("nothing", "none")), OSD_ANSWER_INVALID);
	CHECK_EQ(ask(&session, enter_call("main", "none")), OSD_ANSWER_OK);
	call = enter_call("main", "none");
	call.a = call.body_bytes + 1u;
	CHECK_EQ(ask(&session, call), OSD_ANSWER_INVALID);
	call = enter_call("", "none");
	call.object_id = 0x10000; /* an id and a name */
	CHECK_EQ(ask(&session, call), OSD_ANSWER_INVALID);
	call = enter_call("", "none");
	call.b = 1;
	CHECK_EQ(ask(&session, call), OSD_ANSWER_INVALID);
	call = enter_call("", "none");
	call.body_bytes = 2 * OSD_FUNCTION_WORD_MAX + 1;
	CHECK_EQ(ask(&session, call), OSD_ANSWER_INVALID);
	call = enter_call("", "none");
	call.partition_id = PARTITION + 1;
	CHECK_EQ(ask(&session, call), OSD_ANSWER_NOT_FOUND);
	CHECK_EQ(session.depth, 1);
	osd_session_release(&session);
}

static const char *piece(struct osd_session *session)
{
	CHECK_EQ(ask(session, (struct osd_call){.op = OSD_CALL_CODE}), OSD_ANSWER_OK);
	return (const char *)body();
}

/* Stands for encrypted code, which only the sandbox of a call would get in the clear. */
static void store_box(void)
{
	const struct osd_function_name name = {PARTITION, 0, (const uint8_t *)"sealed", 6};
	struct osd_function function;
	struct osd_function_code *code;

	store("sealed", OSD_FUNCTION_NONE, 200);
	CHECK_EQ(osd_function_find(functions, &name, &function), OSD_OK);
	CHECK_EQ(osd_function_code(functions, &function, &code), OSD_OK);
	memcpy(code->bytes, "\x89iosdbox\x01", 9); /* as it is kept in memory */
	osd_function_code_put(code);
}

/* A function that cannot be entered changes nothing: its code cannot be read. */
static void test_refused(void)
{
	struct osd_session session = start(UINT64_MAX);

	store_box();
	CHECK_EQ(enter(&session, "sealed"), OSD_ANSWER_PERMISSION);
	CHECK_EQ(ask(&session, (struct osd_call){.op = OSD_CALL_CODE}), OSD_ANSWER_INVALID);
	CHECK_EQ(enter(&session, "reads"), OSD_ANSWER_OK);
	CHECK_EQ(enter(&session, "sealed"), OSD_ANSWER_PERMISSION);
	CHECK(piece(&session)[0] == 'r');
	CHECK_EQ(enter(&session, "nobody"), OSD_ANSWER_NOT_FOUND);
	CHECK(piece(&session)[0] == 'r');
	CHECK_EQ(session.depth, 1);
	osd_session_release(&session);
}

static void test_code_counts_as_read(void)
{
	struct osd_session session = start(LONG);

	CHECK_EQ(enter(&session, "reads"), OSD_ANSWER_OK);
	CHECK(serve(&session, enter_call("", "reads")) == OSD_SERVED_FAULT);
	CHECK_EQ(session.fault, OSD_REASON_IO_LIMIT);
	osd_session_release(&session);
}

static void test_without_functions(void)
{
	struct osd_session session = start(UINT64_MAX);

	host.functions = NULL;
	CHECK_EQ(enter(&session, "none"), OSD_ANSWER_NOT_FOUND);
	host.functions = functions;
	osd_session_release(&session);
}

int main(void)
{
	fill_store();
	test_code_in_pieces();
	test_access();
	test_bottom();
	test_depth();
	test_names();
	test_refused();
	test_code_counts_as_read();
	test_without_functions();
	osd_functions_close(functions);
	osd_objects_close(objects);
	return 0;
}
