/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_frames.c -- frames of the sandbox's two channels and of iosd-sandboxd: bytes typed by
 * hand, and what a hostile peer may not say. */
#include "base/test.h"
#include "wire/osd2.h"
#include "wire/exec_param.h"
#include "wire/proxy_frame.h"
#include "wire/sandboxd_frame.h"

static const uint8_t call_bytes[OSD_FRAME_BYTES] = {
	0, 1, 0, 33, 0, 5, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, /* WRITE, flags 5, 9 bytes */
	0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2,	/* 1_0000h / 1_0002h */
	0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3};

static const uint8_t answer_bytes[OSD_FRAME_BYTES] = {
	0, 1, 0, 0, 0, 3, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, /* OK, head and tail, 3 descriptors */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0};

enum { NATIVE_AT = 68 };

static const uint8_t run_bytes[OSD_JOB_RUN_BYTES] = {
	0, 1, 0, 3, 0x40, 2, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, /* collection zone, JSON, memfd */
	0, 0, 0, 0, 0, 1, 0, 9, 0, 0, 0, 0, 0, 1, 0, 0,
	0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 4, 0, 0, 0, 8,
	0, 1, 0, 0, 0, 0, 0x4e, 0x20};

static void test_call(void)
{
	uint8_t bytes[OSD_FRAME_BYTES];
	struct osd_call call;

	CHECK(osd_call_decode(call_bytes, &call));
	CHECK(call.op == OSD_CALL_WRITE && call.flags == 5 && call.body_bytes == 9);
	CHECK(call.partition_id == 0x10000 && call.object_id == 0x10002 && call.a == 512 &&
	      call.b == 3);
	osd_call_encode(&call, bytes);
	CHECK_BYTES(bytes, sizeof(bytes), call_bytes, sizeof(call_bytes));
}

static void test_bad_calls(void)
{
	/* version, op 0, op 99, reserved, body too long, reserved tail */
	static const struct {
		size_t at;
		uint8_t value;
	} lies[] = {{1, 2}, {3, 0}, {3, 99}, {7, 1}, {8, 1}, {15, 1}, {48, 1}, {63, 1}};
	uint8_t bytes[OSD_FRAME_BYTES];
	struct osd_call call;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		memcpy(bytes, call_bytes, sizeof(bytes));
		bytes[lies[i].at] = lies[i].value;
		CHECK(!osd_call_decode(bytes, &call));
	}
}

static void test_answer(void)
{
	uint8_t bytes[OSD_FRAME_BYTES];
	struct osd_answer answer;

	CHECK(osd_answer_decode(answer_bytes, &answer));
	CHECK(answer.code == OSD_ANSWER_OK && answer.flags == 3 && answer.fd_count == 3);
	CHECK(answer.a == 0x200000 && answer.b == 0x400000);
	osd_answer_encode(&answer, bytes);
	CHECK_BYTES(bytes, sizeof(bytes), answer_bytes, sizeof(answer_bytes));
	bytes[7] = 4; /* more descriptors than any answer has */
	CHECK(!osd_answer_decode(bytes, &answer));
	bytes[7] = 0;
	bytes[3] = OSD_ANSWER_LAST + 1;
	CHECK(!osd_answer_decode(bytes, &answer));
}

static void test_run(void)
{
	uint8_t bytes[OSD_JOB_RUN_BYTES];
	struct osd_job_run run, wrong;

	CHECK(osd_job_run_decode(run_bytes, &run));
	CHECK(run.zone_type == OSD_COLLECTION && run.args_encoding == 2 && run.in_memfd);
	CHECK(run.job_object == 0x10009 && run.zone_object == 0x10002);
	CHECK(run.name_bytes == 4 && run.args_bytes == 8 && run.code_bytes == 65536);
	CHECK_EQ(run.grace_usec, 20000);
	osd_job_run_encode(&run, bytes);
	CHECK_BYTES(bytes, sizeof(bytes), run_bytes, sizeof(run_bytes));
	CHECK_EQ(run.code_form, 0);
	CHECK(!run.native);
	memcpy(bytes, run_bytes, sizeof(bytes));
	bytes[NATIVE_AT] = 1;
	CHECK(osd_job_run_decode(bytes, &wrong) && wrong.native);
	bytes[NATIVE_AT] = 2;
	CHECK(!osd_job_run_decode(bytes, &wrong));
	bytes[NATIVE_AT] = 0;
	bytes[NATIVE_AT + 3] = 1;
	CHECK(osd_job_run_decode(bytes, &wrong) && wrong.compile);
	bytes[NATIVE_AT + 3] = 2;
	CHECK(osd_job_run_decode(bytes, &wrong) && wrong.stage && !wrong.compile);
	bytes[NATIVE_AT + 3] = 4;
	CHECK(!osd_job_run_decode(bytes, &wrong));
	run.code_form = OSD_CODE_ZLIB | OSD_CODE_BYTECODE;
	osd_job_run_encode(&run, bytes);
	CHECK(osd_job_run_decode(bytes, &wrong) && wrong.code_form == run.code_form);

#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		wrong = run;                                                                       \
		wrong.field = (value);                                                             \
		osd_job_run_encode(&wrong, bytes);                                                 \
		CHECK(!osd_job_run_decode(bytes, &wrong));                                         \
	} while (0)
	REFUSED(code_bytes, 0);
	REFUSED(code_bytes, (16u << 20) + 1);
	REFUSED(args_bytes, OSD_JOB_ARGS_MAX + 1);
	REFUSED(name_bytes, 129);
	REFUSED(zone_type, 3);
	REFUSED(args_encoding, 3);
	REFUSED(code_form, OSD_CODE_ZSTD);
	REFUSED(code_form, OSD_CODE_PACKING);
	REFUSED(code_form, 8);
	REFUSED(grace_usec, 5000001);
	REFUSED(array_before, 10001);
	REFUSED(array_index, 1); /* of no array */
	REFUSED(in_memfd, false); /* 64 KiB of code and 8 bytes of arguments are not inline */
	REFUSED(code_slot, OSD_CODE_SLOTS + 1);
	REFUSED(code_kept, true); /* nowhere */
	REFUSED(machine_bytes, OSD_JOB_MACHINE_MAX + 1);
	run.compile = true;
	REFUSED(code_slot, 1);
	REFUSED(machine_bytes, 1);
	run.compile = false;
	run.in_memfd = false;
	run.in_shared = true;
	osd_job_run_encode(&run, bytes);
	CHECK(osd_job_run_decode(bytes, &wrong) && wrong.in_shared && !wrong.in_memfd);
	REFUSED(args_bytes, OSD_SHM_TEXTS_BYTES - 65536); /* with the code and the name it has no room */
#undef REFUSED
	run.in_shared = false;
	run.code_slot = OSD_CODE_SLOTS;
	run.code_kept = true;
	osd_job_run_encode(&run, bytes);
	CHECK(osd_job_run_decode(bytes, &wrong) && wrong.code_slot == OSD_CODE_SLOTS && wrong.code_kept);
	CHECK_EQ(osd_job_run_code_sent(&wrong), 0);
	wrong.code_kept = false;
	wrong.machine_bytes = 5;
	CHECK_EQ(osd_job_run_code_sent(&wrong), 65541);
	bytes[NATIVE_AT + 2] = 2;
	CHECK(!osd_job_run_decode(bytes, &wrong));
}

static void test_job_messages(void)
{
	static const uint8_t failed[] = {0, 1, 0, 2, 'n', 'o'};
	enum osd_job_message type;
	const uint8_t *body;
	uint8_t bytes[8];
	size_t length;

	CHECK_BYTES(bytes, osd_job_message_encode(OSD_JOB_FAILED, "no", 2, bytes, sizeof(bytes)),
		    failed, sizeof(failed));
	CHECK_EQ(osd_job_message_encode(OSD_JOB_FAILED, "no", 2, bytes, 5), 0);
	CHECK(osd_job_message_decode(failed, sizeof(failed), &type, &body, &length));
	CHECK_EQ(type, OSD_JOB_FAILED);
	CHECK_BYTES(body, length, "no", 2);
	CHECK(!osd_job_message_decode(failed, 3, &type, &body, &length));
	CHECK(!osd_job_message_decode((const uint8_t *)"\0\2\0\1", 4, &type, &body, &length));
	CHECK(!osd_job_message_decode((const uint8_t *)"\0\1\0\0", 4, &type, &body, &length));
	CHECK(!osd_job_message_decode((const uint8_t *)"\0\1\0\x9", 4, &type, &body, &length));
}

static void test_sandboxd(void)
{
	static const uint8_t limits_message[] = {
		0, 1, 0, 2, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 7, /* SPAWN of sandbox 7 */
		0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0, 2, 0, 0, 1, 0};
	struct osd_sandboxd_message message;
	struct osd_sandbox_limits limits;
	uint8_t bytes[64], body[32];
	size_t length;

	CHECK(osd_sandboxd_decode(limits_message, sizeof(limits_message), &message));
	CHECK(message.type == OSD_SANDBOXD_SPAWN && message.sandbox_id == 7);
	CHECK(osd_sandbox_limits_decode(message.body, message.body_bytes, &limits));
	CHECK(limits.memory_bytes == 256u << 20 && limits.cpu_seconds == 60);
	CHECK(limits.processes == 2 && limits.open_files == 256);
	message.body_bytes = (uint32_t)osd_sandbox_limits_encode(&limits, body, sizeof(body));
	message.body = body;
	length = osd_sandboxd_encode(&message, bytes, sizeof(bytes));
	CHECK_BYTES(bytes, length, limits_message, sizeof(limits_message));
	CHECK_EQ(osd_sandboxd_encode(&message, bytes, length - 1), 0);
	CHECK(!osd_sandboxd_decode(bytes, length - 1, &message));
	CHECK(!osd_sandboxd_decode(bytes, length + 1, &message));
	CHECK(!osd_sandboxd_decode(bytes, 15, &message));
	CHECK(!osd_sandbox_limits_decode(body, 19, &limits));
	bytes[3] = 15; /* no such type */
	CHECK(!osd_sandboxd_decode(bytes, length, &message));
}

static void test_pool_news(void)
{
	static const uint8_t body[] = {2, 0, 2, 'n', 'p', 0, 4, 'n', 'p', '-', '1', 0, 3, 'w', 'h', 'y'};
	struct osd_pool_news news;
	uint8_t bytes[32];

	CHECK(osd_pool_news_decode(body, sizeof(body), &news));
	CHECK(news.state == OSD_POOL_FAILED);
	CHECK_BYTES(news.name, news.name_bytes, "np", 2);
	CHECK_BYTES(news.set, news.set_bytes, "np-1", 4);
	CHECK_BYTES(news.why, news.why_bytes, "why", 3);
	CHECK_BYTES(bytes, osd_pool_news_encode(&news, bytes, sizeof(bytes)), body, sizeof(body));
	for (size_t cut = 0; cut < sizeof(body); cut++)
		CHECK(!osd_pool_news_decode(body, cut, &news));
	CHECK(!osd_pool_news_decode((const uint8_t *)"\3\0\1x\0\0\0\0", 8, &news));
	CHECK(!osd_pool_news_decode((const uint8_t *)"\0\0\0\0\0\0\0", 7, &news));
}

static void test_exit_report(void)
{
	struct osd_sandbox_exit status = {.wait_status = -9,
					  .cpu_user_usec = 1,
					  .cpu_system_usec = 2,
					  .peak_bytes = 3,
					  .out_of_memory = true},
				back;
	uint8_t bytes[32];
	size_t length = osd_sandbox_exit_encode(&status, bytes, sizeof(bytes));

	CHECK_EQ(length, 29);
	CHECK(osd_sandbox_exit_decode(bytes, length, &back));
	CHECK(back.wait_status == -9 && back.peak_bytes == 3 && back.out_of_memory);
	CHECK(!osd_sandbox_exit_decode(bytes, length - 1, &back));
	bytes[28] = 2;
	CHECK(!osd_sandbox_exit_decode(bytes, length, &back));
}

int main(void)
{
	test_call();
	test_bad_calls();
	test_answer();
	test_run();
	test_job_messages();
	test_sandboxd();
	test_pool_news();
	test_exit_report();
	return 0;
}
