/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy_frame.h -- what a sandbox and its proxy say to each other.
 *
 * Two channels per sandbox, both made by iosd-sandboxd:
 *   - a sealed memfd of OSD_SHM_BYTES: one call at a time from the sandbox's compute thread, the answer
 *     in the same place, and room for the texts of a long job; sync words are native atomics, frames and bodies are big-endian bytes.  Data
 *     may be written ahead (OSD_CALL_AHEAD): while one piece is served, the next is put beside it;
 *   - a Unix SEQPACKET socket, the job socket: READY and FAILED from the sandbox, JOB from the proxy, and
 *     descriptors (SCM_RIGHTS) that go with an answer whose fd_count is not 0.
 * Both ends distrust the other: the proxy copies a frame header out before it checks it, checks op, phase
 * and every length, and follows no pointer.  The same frames are the Transport of the Python package `osd`
 * at the client, so a script runs unchanged at either end. */
#ifndef OSD_WIRE_PROXY_FRAME_H
#define OSD_WIRE_PROXY_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shm_wait.h"
#include "wire/cursor.h"
#include "wire/stage.h"

#define OSD_PROXY_VERSION 1

/* ---- shared memory -------------------------------------------------------------------------- */

#define OSD_SHM_MAGIC    0x4f534453u /* "OSDS", native */
#define OSD_CALL_IO_MAX  (1u << 20)  /* bytes of object data in one call */
#define OSD_CALL_RECORDS 64          /* attributes in one call */
#define OSD_CALL_IDS     4096        /* ids in one LIST answer */
#define OSD_CALL_LOOKS   512         /* members one QUERY looks at, about: some milliseconds */
#define OSD_BODY_MAX     (OSD_CALL_IO_MAX + (64u << 10))
#define OSD_SHM_FRAME_AT 4096u /* request header; the answer's header OSD_FRAME_BYTES after it */
#define OSD_SHM_BODY_AT  8192u
#define OSD_SHM_TEXTS_AT (OSD_SHM_BODY_AT + OSD_BODY_MAX) /* of a job that is in_shared */
#define OSD_SHM_TEXTS_BYTES (OSD_STAGE_DATA_MAX + (64u << 10))
/* From there on: the texts, and the result of a stage behind them or over them. */
#define OSD_SHM_PLACES_BYTES (OSD_SHM_TEXTS_BYTES + OSD_STAGE_DATA_MAX)
#define OSD_SHM_BYTES    (OSD_SHM_TEXTS_AT + OSD_SHM_PLACES_BYTES)
#define OSD_FRAME_BYTES  64u
#define OSD_SHM_AREAS    2	    /* the second: for every other one of calls made ahead */
#define OSD_AHEAD_BYTES  (512u << 10) /* the longest body of those: half of the room */

/* Sync words (struct osd_shm_line): base/shm_wait.h.  The poster writes the frame, then posts. */

/* Words of the control line.  The poster also makes iosd-sandboxd nudge the sandbox
 * (OSD_SANDBOXD_NUDGE); after END it repeats this until the script has ended. */
enum osd_control_word { OSD_CONTROL_NONE, OSD_CONTROL_PING, OSD_CONTROL_END /* raise osd.Ended */ };

struct osd_shm {
	uint32_t magic, version;
	struct osd_shm_area {
		struct osd_shm_line call;   /* sandbox -> proxy */
		struct osd_shm_line answer; /* proxy -> sandbox */
	} areas[OSD_SHM_AREAS];
	struct osd_shm_line control; /* monitor -> the sandbox's signal handler */
	_Alignas(64) _Atomic uint32_t control_word;
	_Atomic uint32_t control_answer; /* control.seq last seen there */
	_Alignas(64) _Atomic uint64_t cpu_user_usec, cpu_system_usec, peak_bytes; /* samples; not trusted */
};

/* The offsets in the memory of an area's request header, and of the bodies of its calls and
 * answers. */
static inline size_t osd_shm_frame_at(unsigned area)
{
	return OSD_SHM_FRAME_AT + (size_t)area * 2 * OSD_FRAME_BYTES;
}

static inline size_t osd_shm_body_at(unsigned area)
{
	return OSD_SHM_BODY_AT + (size_t)area * OSD_AHEAD_BYTES;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Phase RUN: between JOB and FINISH.  Columns: number, symbol, phase in which it is permitted. */
#define OSD_CALLS(X)                                                                                  \
	X(1, FINISH)            /* a exit code, b enum osd_finish_kind, and OSD_FINISH_KEPT; pid 0, or a result: 1 \
				   bytes, 2 JSON, of oid bytes; body: be32 n, traceback n bytes UTF-8, the \
				   result, or OSD_FINISH_PLACED in b and be32 its place, then one line for \
				   people.  Ends the job.  -> a enum osd_after_job */                 \
	X(2, PROGRESS)          /* a 0..1000 or FFFFh unknown; body: message, <= 256 bytes UTF-8 */   \
	X(3, RESULT)            /* a offset in the result, b encoding 0 bytes 1 JSON; body: piece */  \
	X(4, NEXT)              /* only after FINISH: no trace of the job is left -> body: OSD_JOB_RUN of the \
				   next job; no body: it comes on the job socket, or a \
				   OSD_AFTER_CLEAN: clean up wholly and call NEXT again */            \
	X(16, TYPE)             /* -> a enum osd_object_type, 0 when absent */                        \
	X(17, CREATE_PARTITION) /* pid requested -> a id */                                           \
	X(18, REMOVE_PARTITION) /* a 1: contents too */                                               \
	X(19, CREATE)           /* pid, oid requested, a count -> a first id */                       \
	X(20, REMOVE)                                                                                 \
	X(21, CREATE_COLLECTION) /* pid, oid requested -> a id */                                     \
	X(22, REMOVE_COLLECTION) /* a 1: with members */                                              \
	X(23, COLLECTION_ADD)   /* oid collection, a member */                                        \
	X(24, COLLECTION_DROP)                                                                        \
	X(25, LIST)             /* a enum osd_list_kind, b initial id -> a next id, b total; body: be64 ids */ \
	X(26, GETATTR)          /* body: {be32 page, be32 number} x n -> body: type 9 list entries */ \
	X(27, SETATTR)          /* body: type 9 list entries (osd2-wire 5.4), one transaction */      \
	X(28, LISTATTR)         /* a page or FFFFFFFFh, b entries to skip -> a 1 if more; body: type 9 entries */ \
	X(29, QUERY)            /* oid collection, 0: whatever is in the partition; a initial id; body: query \
				   list (osd2-wire 3.9) -> a id to go on from, 0: done, b matches, for \
				   now; body: be64 ids, perhaps none yet */                            \
	X(30, SWAPATTR)         /* a page << 32 | number, b bytes of the expected value; body: that, then the \
				   new one -> a 1: set, as it was the expected one; body: what it was */ \
	X(31, ADDATTR)          /* a page << 32 | number of an 8-byte number, b addend -> a what it was */ \
	X(32, READ)             /* a offset, b length -> a bytes; body: data */                       \
	X(33, WRITE)            /* a offset; body: data */                                            \
	X(34, APPEND)           /* body: data -> a offset written at */                               \
	X(35, TRUNCATE)         /* a length */                                                        \
	X(36, CLEAR)            /* a offset, b length */                                              \
	X(37, PUNCH)            /* a offset, b length */                                              \
	X(38, LENGTH)           /* -> a logical length */                                             \
	X(39, FLUSH)                                                                                  \
	X(40, SHARE)            /* -> a head bytes, b length; descriptors on the job socket: bit 0 of flags \
				   head, bit 1 tail, version last */                                  \
	X(41, UNSHARE)                                                                                \
	X(42, ENTER)            /* calls an active function in this sandbox; pid 0: the partition of the function \
				   that runs, or the only one with active functions; oid 0: by name; a bytes \
				   of the entry point's name, b 0; body: that, the name -> a bytes of the code, \
				   b access class; body: SHA-256, entry point's name.  Until LEAVE the access \
				   class restricts, too */                                             \
	X(43, CODE)             /* a offset -> body: code of the function entered last, if nothing was left since */ \
	X(44, LEAVE)                                                                                  \
	X(45, NAMES)            /* oid directory, 0: the partition; body: parameters of READ NAMES without \
				   flags (docs/names.md) -> LOOKUP: a id, b enum osd_object_type; LIST: a \
				   entries, b 1 if more; body: entries as READ NAMES lists them */

enum osd_call_op {
#define X(number, symbol) OSD_CALL_##symbol = number,
	OSD_CALLS(X)
#undef X
};

/* The end of a sandbox or its cleaning after a job.  LIGHTLY: most likely the next job is a call of the same function.
 * So the sandbox leaves out the costly parts of cleaning and comparing. */
enum osd_after_job { OSD_AFTER_EXIT, OSD_AFTER_CLEAN, OSD_AFTER_CLEAN_LIGHTLY };

/* In b of FINISH: the code of the job is kept in its place (code_slot of struct osd_job_run). */
#define OSD_FINISH_KEPT 0x100u
/* In b of FINISH of a stage: its result stays in the room for texts, from that place on.  The target reads it there,
 * once, before it answers. */
#define OSD_FINISH_PLACED 0x200u
/* The longest result that FINISH carries. */
#define OSD_FINISH_RESULT_MAX (32u << 10)

/* For WRITE, APPEND and RESULT: the next call, also one of these, comes in the other area, perhaps
 * before this one is answered; both have at most OSD_AHEAD_BYTES.  After a call without the flag,
 * the next comes in area 0.  If a call fails, the one sent ahead after it is skipped, and gets the
 * same answer. */
#define OSD_CALL_AHEAD 1u

enum osd_finish_kind {
	OSD_FINISH_OK,        /* ran to its end, or SystemExit with code 0 */
	OSD_FINISH_EXCEPTION, /* an exception, SyntaxError included; exit code 1 */
	OSD_FINISH_EXIT,      /* SystemExit with another code; text given to it is the line for people */
	OSD_FINISH_MEMORY,    /* MemoryError; exit code 1 */
	OSD_FINISH_ENDED,     /* osd.Ended came out of the script; exit code 1 */
	OSD_FINISH_BAD_CODE,  /* packed code or byte-code that cannot be read; exit code 1 */
	OSD_FINISH_CODE_LIMIT, /* more code when expanded than a job may have; exit code 1 */
	OSD_FINISH_THREADS,   /* the script did not catch that no thread could be started */
	OSD_FINISH_FILES,     /* the script did not catch that no file could be opened (EMFILE) */
};

/* How a call ended; the body of an answer that is not OK is a message in UTF-8. */
enum osd_answer_code {
	OSD_ANSWER_OK,
	OSD_ANSWER_NOT_FOUND,  /* osd.NotFound */
	OSD_ANSWER_EXISTS,     /* osd.Exists */
	OSD_ANSWER_PERMISSION, /* osd.PermissionDenied: outside the zone, or a right is missing */
	OSD_ANSWER_NO_SPACE,   /* osd.NoSpace: quota or device full */
	OSD_ANSWER_INVALID,    /* osd.Invalid: bad argument, read-only or unknown attribute */
	OSD_ANSWER_IO,         /* osd.StorageError */
	OSD_ANSWER_NOT_EMPTY,  /* osd.NotEmpty */
	OSD_ANSWER_CONFLICT,   /* osd.Conflict: an unfinished job stands in the way */
	OSD_ANSWER_STAGE,      /* osd.OSDError: a function that the data pass through has failed */
	OSD_ANSWER_LAST = OSD_ANSWER_STAGE
};

struct osd_call {
	uint16_t op;
	uint16_t flags; /* OSD_CALL_AHEAD */
	uint32_t body_bytes;
	uint64_t partition_id, object_id;
	uint64_t a, b;
};

#define OSD_ANSWER_FDS 3 /* head, tail, version */

struct osd_answer {
	uint16_t code;
	uint16_t flags;    /* SHARE: bit 0 head, bit 1 tail present */
	uint16_t fd_count; /* descriptors sent on the job socket for this answer */
	uint32_t body_bytes;
	uint64_t a, b;
};

/* Encode into, or decode from, OSD_FRAME_BYTES at bytes.  Decoding checks version, op or code, fd_count
 * <= OSD_ANSWER_FDS, body_bytes <= OSD_BODY_MAX, and that reserved bytes are 0. */
void osd_call_encode(const struct osd_call *call, uint8_t bytes[OSD_FRAME_BYTES]);
bool osd_call_decode(const uint8_t bytes[OSD_FRAME_BYTES], struct osd_call *ret_call);
void osd_answer_encode(const struct osd_answer *answer, uint8_t bytes[OSD_FRAME_BYTES]);
bool osd_answer_decode(const uint8_t bytes[OSD_FRAME_BYTES], struct osd_answer *ret_answer);

/* ---- job socket ------------------------------------------------------------------------------- */

/* Every message begins be16 OSD_PROXY_VERSION, be16 enum osd_job_message.  READY ends there; FAILED goes
 * on with text for people; RUN is described below.  The message that carries the descriptors of a SHARE
 * ends there too and is sent before the answer is posted: head, tail (those present), version.  A SHARE is
 * refused while a message is unread. */
enum osd_job_message {
	OSD_JOB_READY = 1,
	OSD_JOB_FAILED = 2,
	OSD_JOB_RUN = 3,
	OSD_JOB_SHARE = 4,
};

#define OSD_JOB_HEADER 4u

/* Encode returns the length, 0 when it does not fit; decode's body (what follows the header) is borrowed. */
size_t osd_job_message_encode(enum osd_job_message type, const void *body, size_t length, uint8_t *bytes,
			      size_t capacity);
bool osd_job_message_decode(const uint8_t *bytes, size_t length, enum osd_job_message *ret_type,
			    const uint8_t **ret_body, size_t *ret_length);

/* Of a script or a call at most 1 MiB; a stage gets the data it transforms as arguments (wire/stage.h). */
#define OSD_JOB_ARGS_MAX   (OSD_STAGE_FRAME_MAX + OSD_STAGE_DATA_MAX)
#define OSD_JOB_INLINE_MAX (64u << 10) /* code + args above this travel in the shared memory, or in a sealed memfd */
#define OSD_RUN_NAME_MAX   128u
#define OSD_JOB_TEXTS_MAX  (OSD_RUN_NAME_MAX + 64u + OSD_JOB_INLINE_MAX) /* name, method, code + args in a message */
#define OSD_JOB_MACHINE_MAX OSD_STAGE_DATA_MAX /* bytes of machine code that goes with code */
#define OSD_CODE_SLOTS	   4u /* codes of functions that a sandbox keeps, compiled, for its next jobs */

/* OSD_JOB_RUN: header, then name, method, args, code, machine code back to back, in the message, at OSD_SHM_TEXTS_AT of
 * the shared memory, or in the memfd sent with it.  Both codes are left out if the sandbox has kept them (code_kept). */
struct osd_job_run {
	uint64_t job_partition, job_object;   /* the surrogate: osd.job */
	uint64_t zone_partition, zone_object; /* osd.zone */
	uint8_t zone_type;                    /* enum osd_object_type */
	uint8_t args_encoding;                /* 0 none, 1 bytes, 2 JSON */
	bool in_memfd, in_shared; /* not both */
	uint8_t code_form;                    /* enum osd_code_form (wire/exec_param.h) */
	uint32_t name_bytes, args_bytes, code_bytes;
	uint32_t method_bytes; /* the code is a function: this entry point is called; 0: it is a script */
	uint32_t grace_usec;
	uint32_t array_before; /* members of its array before it, and one: its id less the array's; 0: no array */
	uint32_t array_index;
	bool native; /* the code is signed for the engine native, which runs no other */
	uint8_t code_slot; /* 1 to OSD_CODE_SLOTS: keep this code there, in place of another; 0: do not keep it */
	bool code_kept;	   /* it is there */
	bool compile;	   /* do not run the code: the result is its machine code, as bytes */
	bool stage;	   /* the target itself calls, with data that pass through (wire/stage.h), or a change */
	uint32_t machine_bytes; /* such a result, for this code; 0: none */
};

/* The bytes of code and machine code in the message. */
static inline uint32_t osd_job_run_code_sent(const struct osd_job_run *run)
{
	return run->code_kept ? 0 : run->code_bytes + run->machine_bytes;
}

/* The bytes of all texts. */
static inline uint64_t osd_job_run_texts(const struct osd_job_run *run)
{
	return (uint64_t)run->name_bytes + run->method_bytes + run->args_bytes +
	       osd_job_run_code_sent(run);
}

#define OSD_JOB_RUN_BYTES 76u
void osd_job_run_encode(const struct osd_job_run *run, uint8_t bytes[OSD_JOB_RUN_BYTES]);
/* Checks version, message type, zone type, code form and the lengths (code 1..16 MiB, args <=
 * OSD_JOB_ARGS_MAX, name <= 128, method <= 64, code + args <= OSD_JOB_INLINE_MAX unless in_memfd or in_shared, all
 * texts <= OSD_SHM_TEXTS_BYTES if in_shared; grace <= 5 s, machine code <= OSD_JOB_MACHINE_MAX; only code with a slot may be kept; code to compile has neither
 * slot nor machine code). */
bool osd_job_run_decode(const uint8_t bytes[OSD_JOB_RUN_BYTES], struct osd_job_run *ret_run);

#endif
