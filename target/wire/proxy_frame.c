/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy_frame.c -- frames between a sandbox and its proxy, and messages of the job socket.
 *
 * Frames (64 bytes): be16 version, be16 op or code, be16 flags, be16 fd count (answers), be32
 * body bytes, be32 0, be64 partition, be64 object (calls), be64 a, be64 b, zeros. */
#include "wire/proxy_frame.h"

#include "wire/exec_limits.h"
#include "wire/exec_param.h"
#include "wire/osd2.h"

#define FRAME_TAIL 16 /* zero bytes at the end of a frame */

static bool op_known(uint16_t op)
{
	switch (op) {
#define X(number, symbol) case number:
		OSD_CALLS(X)
#undef X
		return true;
	default:
		return false;
	}
}

/* Reserved bytes: consumed, and required to be 0 so that they can be given a meaning later. */
static bool zeros(struct osd_rd *r, size_t length)
{
	const uint8_t *bytes = osd_rd_bytes(r, length);

	for (size_t i = 0; bytes && i < length; i++)
		if (bytes[i])
			return false;
	return bytes != NULL;
}

void osd_call_encode(const struct osd_call *call, uint8_t bytes[OSD_FRAME_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_FRAME_BYTES);

	osd_wr_be(&w, OSD_PROXY_VERSION, 2);
	osd_wr_be(&w, call->op, 2);
	osd_wr_be(&w, call->flags, 2);
	osd_wr_zero(&w, 2);
	osd_wr_be(&w, call->body_bytes, 4);
	osd_wr_zero(&w, 4);
	osd_wr_be(&w, call->partition_id, 8);
	osd_wr_be(&w, call->object_id, 8);
	osd_wr_be(&w, call->a, 8);
	osd_wr_be(&w, call->b, 8);
	osd_wr_zero(&w, FRAME_TAIL);
}

bool osd_call_decode(const uint8_t bytes[OSD_FRAME_BYTES], struct osd_call *ret_call)
{
	struct osd_rd r = osd_rd_init(bytes, OSD_FRAME_BYTES);
	struct osd_call call;
	bool clean;

	if (osd_rd_be(&r, 2) != OSD_PROXY_VERSION)
		return false;
	call.op = (uint16_t)osd_rd_be(&r, 2);
	call.flags = (uint16_t)osd_rd_be(&r, 2);
	clean = zeros(&r, 2);
	call.body_bytes = (uint32_t)osd_rd_be(&r, 4);
	clean &= zeros(&r, 4);
	call.partition_id = osd_rd_be(&r, 8);
	call.object_id = osd_rd_be(&r, 8);
	call.a = osd_rd_be(&r, 8);
	call.b = osd_rd_be(&r, 8);
	clean &= zeros(&r, FRAME_TAIL);
	if (!clean || !op_known(call.op) || call.body_bytes > OSD_BODY_MAX)
		return false;
	*ret_call = call;
	return true;
}

void osd_answer_encode(const struct osd_answer *answer, uint8_t bytes[OSD_FRAME_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_FRAME_BYTES);

	osd_wr_be(&w, OSD_PROXY_VERSION, 2);
	osd_wr_be(&w, answer->code, 2);
	osd_wr_be(&w, answer->flags, 2);
	osd_wr_be(&w, answer->fd_count, 2);
	osd_wr_be(&w, answer->body_bytes, 4);
	osd_wr_zero(&w, 4 + 8 + 8);
	osd_wr_be(&w, answer->a, 8);
	osd_wr_be(&w, answer->b, 8);
	osd_wr_zero(&w, FRAME_TAIL);
}

bool osd_answer_decode(const uint8_t bytes[OSD_FRAME_BYTES], struct osd_answer *ret_answer)
{
	struct osd_rd r = osd_rd_init(bytes, OSD_FRAME_BYTES);
	struct osd_answer answer;
	bool clean;

	if (osd_rd_be(&r, 2) != OSD_PROXY_VERSION)
		return false;
	answer.code = (uint16_t)osd_rd_be(&r, 2);
	answer.flags = (uint16_t)osd_rd_be(&r, 2);
	answer.fd_count = (uint16_t)osd_rd_be(&r, 2);
	answer.body_bytes = (uint32_t)osd_rd_be(&r, 4);
	clean = zeros(&r, 4 + 8 + 8);
	answer.a = osd_rd_be(&r, 8);
	answer.b = osd_rd_be(&r, 8);
	clean &= zeros(&r, FRAME_TAIL);
	if (!clean || answer.code > OSD_ANSWER_LAST || answer.fd_count > OSD_ANSWER_FDS ||
	    answer.body_bytes > OSD_BODY_MAX)
		return false;
	*ret_answer = answer;
	return true;
}

/* ---- job socket ---------------------------------------------------------------------------- */

size_t osd_job_message_encode(enum osd_job_message type, const void *body, size_t length,
			      uint8_t *bytes, size_t capacity)
{
	struct osd_wr w = osd_wr_init(bytes, capacity);

	osd_wr_be(&w, OSD_PROXY_VERSION, 2);
	osd_wr_be(&w, type, 2);
	osd_wr_bytes(&w, body, length);
	return w.bad ? 0 : osd_wr_used(&w);
}

bool osd_job_message_decode(const uint8_t *bytes, size_t length, enum osd_job_message *ret_type,
			    const uint8_t **ret_body, size_t *ret_length)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	uint16_t version = (uint16_t)osd_rd_be(&r, 2);
	uint16_t type = (uint16_t)osd_rd_be(&r, 2);

	if (r.bad || version != OSD_PROXY_VERSION || type < OSD_JOB_READY || type > OSD_JOB_SHARE)
		return false;
	*ret_type = type;
	*ret_length = osd_rd_left(&r);
	*ret_body = r.at;
	return true;
}

enum { TEXTS_MEMFD = 1, TEXTS_SHARED = 2, FLAG_COMPILE = 1, FLAG_STAGE = 2 };

#define RUN_NUMBERS(X)                                                                             \
	X(job_partition, 8) X(job_object, 8) X(zone_partition, 8) X(zone_object, 8)                \
	X(name_bytes, 4) X(args_bytes, 4) X(code_bytes, 4) X(grace_usec, 4)                        \
	X(array_before, 4) X(array_index, 4) X(method_bytes, 4)

/* be16 version, be16 OSD_JOB_RUN, u8 zone type, u8 args encoding, u8 texts (0 here, 1 in a memfd, 2 in the shared memory), u8 code form, be64 job
 * partition, be64 job object, be64 zone partition, be64 zone object, be32 name, args, code
 * bytes, be32 grace, be32 members before, be32 index, be32 method bytes, u8 native, u8 code slot,
 * u8 code kept, u8 flags (1 compile, 2 stage), be32 bytes of machine code. */
void osd_job_run_encode(const struct osd_job_run *run, uint8_t bytes[OSD_JOB_RUN_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_JOB_RUN_BYTES);

	osd_wr_be(&w, OSD_PROXY_VERSION, 2);
	osd_wr_be(&w, OSD_JOB_RUN, 2);
	osd_wr_be(&w, run->zone_type, 1);
	osd_wr_be(&w, run->args_encoding, 1);
	osd_wr_be(&w, run->in_shared ? TEXTS_SHARED : run->in_memfd, 1);
	osd_wr_be(&w, run->code_form, 1);
#define X(member, width) osd_wr_be(&w, run->member, width);
	RUN_NUMBERS(X)
#undef X
	osd_wr_be(&w, run->native, 1);
	osd_wr_be(&w, run->code_slot, 1);
	osd_wr_be(&w, run->code_kept, 1);
	osd_wr_be(&w, (run->compile ? FLAG_COMPILE : 0u) | (run->stage ? FLAG_STAGE : 0u), 1);
	osd_wr_be(&w, run->machine_bytes, 4);
}

static bool zone_type_known(uint8_t type)
{
	return type == OSD_ROOT || type == OSD_PARTITION || type == OSD_COLLECTION ||
	       type == OSD_USER_OBJECT;
}

static bool code_form_known(uint8_t form)
{
	return form <= (OSD_CODE_PACKING | OSD_CODE_BYTECODE) &&
	       (form & OSD_CODE_PACKING) != OSD_CODE_ZSTD &&
	       (form & OSD_CODE_PACKING) != OSD_CODE_PACKING;
}

/* The sums come after the comparison of their parts, so that none of 32 bits overflows. */
static bool run_lengths_fit(const struct osd_job_run *run)
{
	return run->code_bytes >= 1 && run->code_bytes <= osd_exec_limits[OSD_LIMIT_CODE].maximum &&
	       run->machine_bytes <= OSD_JOB_MACHINE_MAX && run->args_bytes <= OSD_JOB_ARGS_MAX &&
	       run->name_bytes <= osd_exec_limits[OSD_LIMIT_NAME].maximum &&
	       run->method_bytes <= OSD_EXEC_WORD_MAX &&
	       run->grace_usec <= osd_exec_limits[OSD_LIMIT_GRACE].maximum &&
	       (run->in_memfd || run->in_shared ||
		(uint64_t)osd_job_run_code_sent(run) + run->args_bytes <= OSD_JOB_INLINE_MAX) &&
	       (!run->in_shared || osd_job_run_texts(run) <= OSD_SHM_TEXTS_BYTES);
}

static bool code_slot_known(const struct osd_job_run *run)
{
	return run->code_slot <= OSD_CODE_SLOTS && (run->code_slot || !run->code_kept) &&
	       !(run->compile && (run->code_slot || run->machine_bytes));
}

bool osd_job_run_decode(const uint8_t bytes[OSD_JOB_RUN_BYTES], struct osd_job_run *ret_run)
{
	struct osd_rd r = osd_rd_init(bytes, OSD_JOB_RUN_BYTES);
	struct osd_job_run run;
	uint8_t texts, native, code_kept, flags;

	if (osd_rd_be(&r, 2) != OSD_PROXY_VERSION || osd_rd_be(&r, 2) != OSD_JOB_RUN)
		return false;
	run.zone_type = (uint8_t)osd_rd_be(&r, 1);
	run.args_encoding = (uint8_t)osd_rd_be(&r, 1);
	texts = (uint8_t)osd_rd_be(&r, 1);
	run.code_form = (uint8_t)osd_rd_be(&r, 1);
#define X(member, width) run.member = (__typeof__(run.member))osd_rd_be(&r, width);
	RUN_NUMBERS(X)
#undef X
	native = (uint8_t)osd_rd_be(&r, 1);
	run.code_slot = (uint8_t)osd_rd_be(&r, 1);
	code_kept = (uint8_t)osd_rd_be(&r, 1);
	flags = (uint8_t)osd_rd_be(&r, 1);
	run.machine_bytes = (uint32_t)osd_rd_be(&r, 4);
	run.in_memfd = texts == TEXTS_MEMFD;
	run.in_shared = texts == TEXTS_SHARED;
	run.native = native == 1;
	run.code_kept = code_kept == 1;
	run.compile = flags & FLAG_COMPILE;
	run.stage = flags & FLAG_STAGE;
	/* As reserved bytes: other values can be given a meaning later. */
	if (texts > TEXTS_SHARED || native > 1 || code_kept > 1 ||
	    flags > (FLAG_COMPILE | FLAG_STAGE))
		return false;
	if (run.array_before > osd_exec_limits[OSD_LIMIT_ARRAY].maximum ||
	    (!run.array_before && run.array_index))
		return false;
	if (run.args_encoding > 2 || !code_slot_known(&run) || !code_form_known(run.code_form) ||
	    !zone_type_known(run.zone_type) || !run_lengths_fit(&run))
		return false;
	*ret_run = run;
	return true;
}
