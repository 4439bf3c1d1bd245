/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec_param.h -- the EXEC PARAMETERS descriptor (type F081h of the CDB continuation).
 *
 * Content: be16 format version (1), be16 count, then count times
 *	be16 tag, be16 flags (b0 critical), be32 length, value, zeros until the value is a
 *	multiple of 8.
 * An unknown tag is ignored unless it is critical; a tag that comes twice is refused (TAG may
 * repeat).
 * Not here: what a job's states mean (exec/), which parameters a target honours
 * (command/cmd_exec.c). */
#ifndef OSD_WIRE_EXEC_PARAM_H
#define OSD_WIRE_EXEC_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/exec_limits.h"

#define OSD_EXEC_PARAMS_VERSION 1
#define OSD_EXEC_PARAM_CRITICAL 0x0001
#define OSD_EXEC_TAGS_MAX	16
#define OSD_EXEC_AFTER_MAX	64
#define OSD_EXEC_WORD_MAX	64 /* bytes of an engine's or pool's name */

/* Columns: number, symbol, value. */
#define OSD_EXEC_PARAMS(X)                                                                         \
	X(1, ENGINE, "engine name, UTF-8, 1-64 bytes; \"python\"")                                 \
	X(2, ARGS, "be16 encoding (0 none, 1 bytes, 2 JSON), then the arguments")                  \
	X(3, WALL, "be64 us")                                                                      \
	X(4, CPU, "be64 us")                                                                       \
	X(5, MEMORY, "be64 bytes")                                                                 \
	X(6, PROCESSES, "be64 threads, the first included; no other process")                      \
	X(7, OUTPUT, "be64 bytes")                                                                 \
	X(8, OPEN_FILES, "be64")                                                                   \
	X(9, IO, "be64 bytes")                                                                     \
	X(10, PRIORITY, "be16 signed, -100..100, higher first")                                    \
	X(11, NAME, "UTF-8, 1-128 bytes")                                                          \
	X(12, TAG, "key=value, UTF-8, 2-128 bytes; at most 16 of these")                           \
	X(13, KEY, "idempotency key, 1-64 opaque bytes")                                           \
	X(14, SURROGATE_PARTITION, "be64 partition id")                                            \
	X(15, SURROGATE_ID, "be64 requested object id of the surrogate")                           \
	X(16, SYNC_WAIT, "be64 us a synchronous EXEC waits")                                       \
	X(17, FLAGS, "be32, enum osd_exec_flags")                                                  \
	X(18, AFTER,                                                                               \
	  "1-64 times {be64 partition, be64 object, be32 enum osd_after_condition, be32 0}")       \
	X(19, ARRAY,                                                                               \
	  "be32 first index, be32 last index, be32 most running at once (0: all); then, if the "   \
	  "indices are not all of these, 1-5000 times {be32 first, be32 last, be32 step}")         \
	X(20, POOL, "pool name, UTF-8, 1-64 bytes")                                                \
	X(21, EXPIRY, "be64 us the record is kept after the job's end")                            \
	X(22, PREDECESSOR, "be64 partition, be64 object: the job this one is run for again")       \
	X(23, GRACE, "be64 us a script has to clean up when it is ended")                          \
	X(24, BEGIN, "be64 ms since 1970: it is held until then")                                      \
	X(25, FUNCTION,                                                                            \
	  "be64 partition, be64 object (0: by name), u8 enum osd_call_record, u8 encoding of the " \
	  "arguments, be16 length of the method; the method, UTF-8; then the alias or 8-64 hexadecimal digits of the SHA-256")           \
	X(26, HOME,                                                                                \
	  "the job changes no objects, so that the client may run it: be64 us that it would take " \
	  "there (0: not known), be64 bytes that it reads (0: not known)")                         \
	X(27, REUSE, "be64 us: the result depends on the job's inputs alone; an earlier job that " \
	  "ended no longer ago, whose inputs have not changed, answers")

enum osd_exec_param_tag {
#define X(number, symbol, value) OSD_EXEC_PARAM_##symbol = number,
	OSD_EXEC_PARAMS(X)
#undef X
};

enum osd_exec_flags {
	OSD_EXEC_HOLD = 0x01,	      /* accepted as HELD, runs once released */
	OSD_EXEC_IDEMPOTENT = 0x02,   /* may be run again after it has written */
	OSD_EXEC_END_ON_ABORT = 0x04, /* aborting the waiting command ends the job */
	OSD_EXEC_RETRY_OOM = 0x08,    /* run again when out of memory */
	OSD_EXEC_ATTEMPTS = 0xf0,     /* b7-b4: how often it may be tried in all; 0: 3 */
	OSD_EXEC_RETRY_EXIT = 0xff00, /* b15-b8: run again when the script exits so; 0: none */
	OSD_EXEC_CODE_FORM = 0x70000, /* b18-b16: enum osd_code_form */
	/* With code: the arguments are the predecessor's, unless ARGS has others.  Not stored. */
	OSD_EXEC_PREDECESSOR_ARGS = 0x80000,
};

/* The form of the code, shifted by OSD_CODE_FORM_SHIFT.  The target only passes it on: the sandbox
 * decompresses the code and checks bytecode. */
#define OSD_CODE_FORM_SHIFT 16
enum osd_code_form {
	OSD_CODE_PACKING = 0x3,	 /* 0: as it is */
	OSD_CODE_ZLIB = 0x1,	 /* one zlib stream (RFC 1950) */
	OSD_CODE_ZSTD = 0x2,	 /* one Zstandard frame; this release refuses it */
	OSD_CODE_BYTECODE = 0x4, /* (unpacked) a .pyc file of the target's CPython, not source */
};

static inline uint8_t osd_exec_code_form(uint32_t flags)
{
	return (uint8_t)((flags & OSD_EXEC_CODE_FORM) >> OSD_CODE_FORM_SHIFT);
}

enum osd_args_encoding { OSD_ARGS_NONE, OSD_ARGS_BYTES, OSD_ARGS_JSON };

/* Whether a call of a function has a record: a surrogate, and what is stored of a job. */
enum osd_call_record {
	OSD_RECORD_IF_NEEDED, /* if the function may write, or the call asks for what a record is for */
	OSD_RECORD_NEVER,
	OSD_RECORD_ALWAYS,
};

/* The end that a job must have for another to start; FAILED: any state except COMPLETED. */
enum osd_after_condition { OSD_AFTER_ANY, OSD_AFTER_COMPLETED, OSD_AFTER_FAILED };

struct osd_exec_text { /* borrowed, not terminated */
	const uint8_t *bytes;
	uint32_t length;
};

struct osd_exec_after {
	uint64_t partition_id, object_id;
	uint32_t condition; /* enum osd_after_condition */
};

/* A field is valid only if its tag's bit is in present; the others are 0. */
struct osd_exec_params {
	uint32_t present;
	struct osd_exec_text engine;
	uint16_t args_encoding; /* enum osd_args_encoding */
	struct osd_exec_text args;
	uint64_t wall_usec, cpu_usec, memory_bytes, processes, output_bytes, open_files, io_bytes;
	int16_t priority;
	struct osd_exec_text name;
	size_t tag_count;
	struct osd_exec_text tags[OSD_EXEC_TAGS_MAX];
	struct osd_exec_text key;
	uint64_t surrogate_partition, surrogate_id;
	uint64_t sync_wait_usec;
	uint32_t flags; /* enum osd_exec_flags */
	size_t after_count;
	struct osd_exec_after after[OSD_EXEC_AFTER_MAX];
	uint32_t array_first, array_last, array_at_once;
	uint32_t array_members; /* indices in array_ranges */
	struct osd_exec_text
		array_ranges; /* valid (index_ranges.h); none: all from first to last */
	struct osd_exec_text pool;
	uint64_t expiry_usec;
	uint64_t predecessor_partition, predecessor_id;
	uint64_t grace_usec;
	uint64_t begin_msec;
	uint64_t reuse_usec;
	struct {
		uint64_t partition_id, object_id; /* object 0: by name */
		uint8_t record;			  /* enum osd_call_record */
		uint16_t args_encoding;		  /* enum osd_args_encoding; of the command's data */
		struct osd_exec_text method, name;
	} function;
	uint64_t home_usec, home_bytes;
};

static inline bool osd_exec_has(const struct osd_exec_params *params, enum osd_exec_param_tag tag)
{
	return params->present >> tag & 1;
}

/* The number of members of the array; 0: it is not an array. */
static inline uint32_t osd_exec_array_members(const struct osd_exec_params *params)
{
	if (!osd_exec_has(params, OSD_EXEC_PARAM_ARRAY))
		return 0;
	return params->array_ranges.length ? params->array_members
					   : params->array_last - params->array_first + 1;
}

/* Decodes the descriptor's content; params borrow from it.  OSD_E_CDB_FIELD (field pointer 48): a value
 * exceeds the hard limits, a text is not clean UTF-8, or lengths do not match.  *ret_why (if not NULL)
 * then is a static sentence for the log. */
enum osd_status osd_exec_params_decode(const uint8_t *content, size_t length,
				       struct osd_exec_params *ret_params, const char **ret_why);

#endif
