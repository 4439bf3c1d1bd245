/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record.h -- the data of a job: limits, and the record with everything about it.  Also the
 * database tables that hold these.  This room knows no other.
 *
 * Inside: reasons.h has the states and reasons, store.c the database tables.  codec.c has the bytes of a
 * record, earlier.c those of earlier releases.  format.h is private to these two.
 *
 * Locking: none.  Every call of store.c works inside the caller's transaction and may return OSD_E_CONFLICT. */
#ifndef OSD_EXEC_RECORD_RECORD_H
#define OSD_EXEC_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/record/reasons.h"
#include "object/object.h"
#include "security/grant.h"
#include "wire/exec_limits.h"
#include "wire/exec_param.h"
#include "wire/signer_line.h"

/* ---- limits ---------------------------------------------------------------------------------- */

/* field, row of wire/exec_limits.h; in the order of attribute 2000_0001h #21h. */
#define OSD_JOB_LIMITS(X)                                                                          \
	X(wall_usec, WALL)                                                                         \
	X(cpu_usec, CPU)                                                                           \
	X(memory_bytes, MEMORY)                                                                    \
	X(processes, THREADS)                                                                      \
	X(output_bytes, OUTPUT)                                                                    \
	X(open_files, OPEN_FILES)                                                                  \
	X(io_bytes, IO)                                                                            \
	X(result_bytes, RESULT)

struct osd_job_limits {
#define X(field, row) uint64_t field;
	OSD_JOB_LIMITS(X)
#undef X
};

#define OSD_JOB_NAME_MAX      128
#define OSD_JOB_KEY_MAX	      64
#define OSD_JOB_TAGS_MAX      2304 /* 16 lines of 128 bytes, and some */
#define OSD_JOB_MESSAGE_MAX   256
#define OSD_JOB_PRINCIPAL_MAX 511
#define OSD_JOB_POOL_MAX      64
#define OSD_JOB_METHOD_MAX 64
#define OSD_JOB_SET_MAX	      64	  /* id of a package set */
#define OSD_JOB_PAYLOAD_MAX   (60u << 10) /* result, stderr, traceback in page 2000_0002h, each */
#define OSD_JOB_PLAIN_MAX     (1u << 20)  /* result of a plain call */
#define OSD_JOB_STDERR_HEAD   (20u << 10) /* of a longer stderr the first and the last are kept */
#define OSD_JOB_STDERR_TAIL   (40u << 10)
#define OSD_JOB_PROGRESS_NONE 0xffff
#define OSD_JOB_PROGRESS_USEC 50000 /* at most 20 visible updates a second */
#define OSD_JOB_SHARES_MAX    256   /* descriptors one job may hold */
#define OSD_JOB_SHARED_MAX    4096  /* objects whose descriptors it may be passed in all */
#define OSD_EXEC_SLOTS_MAX    64    /* jobs at a time, in all pools */
#define OSD_JOB_WHY_MAX	      240   /* why its pool does not serve */
#define OSD_JOB_STATES_END    (OSD_STATE_SANDBOX_LOST + 1)
#define OSD_JOB_ATTEMPTS      3 /* the first one and two after faults, if nothing else was asked */

#define OSD_JOB_UNCOUNTED UINT64_MAX /* the record was written by a release that did not charge */

/* ---- the record ------------------------------------------------------------------------------ */

/* The objects that a job may use. */
struct osd_zone {
	enum osd_object_type type;
	struct osd_object_id id;
};

/* The owner of a job: its zone, and the AUDIT value of the capability it was submitted with. */
struct osd_job_owner {
	struct osd_zone zone;
	uint8_t audit[20];
};

/* Bits of attribute 2000_0001h #1Ah. */
enum osd_job_flags {
	OSD_JOB_STDOUT_CUT = 0x01,
	OSD_JOB_STDERR_CUT = 0x02,
	OSD_JOB_RESULT_SPILLED = 0x04,
	OSD_JOB_IDEMPOTENT = 0x08,
	OSD_JOB_WROTE = 0x10,
	OSD_JOB_RESULT_JSON = 0x20,
	OSD_JOB_AFTER = 0x40,	   /* it waits, or waited, for other jobs */
	OSD_JOB_KILL_ASKED = 0x80, /* killed while STARTING or RUNNING: never retried */
	OSD_JOB_ARRAY = 0x100,	   /* stands for an array of jobs (flow/array.c) */
	OSD_JOB_MEMBER = 0x200,	   /* is one of an array */
	OSD_JOB_RANGES = 0x400,	   /* of an array: its indices are stored as a list of ranges */
	OSD_JOB_CODE_KEPT = 0x800, /* has ended; its code and arguments are kept (job/charge.c) */
	/* A plain call of a function: nothing of it is stored, it has no surrogate, and its id is no
	 * object's.  Its submitter waits for it. */
	OSD_JOB_PLAIN = 0x1000,
	/* Its code is a function of the engine native, so a signer who is listed for that has signed it.  A sandbox
	 * of this engine runs no other code, also if the pool had another engine when the job was accepted. */
	OSD_JOB_NATIVE = 0x2000,
	OSD_JOB_STAGE = 0x4000, /* a plain call that transforms data (osd_exec_submission.stage) */
	OSD_JOB_LISTED = 0x8000, /* has ended; all objects that it used are in its list (exec/used/used.h) */
	OSD_JOB_PURE = 0x10000, /* it may change no objects, and its client can run it too */
	OSD_JOB_REUSABLE = 0x20000, /* its result depends on its inputs alone, the submitter says; after the
				     * end: and they all have versions, and it has changed nothing */
	OSD_JOB_ANSWERED = 0x40000, /* a member that an earlier job has answered: it has not run */
	OSD_JOB_COMPILE = 0x80000, /* osd_exec_submission.compile */
};

/* The place of a job in an array: of the array itself, and of each of its members. */
struct osd_job_array {
	uint64_t object_id; /* the array's own surrogate, in the job's partition; 0: no array */
	uint32_t index;	    /* the member's; of the array its first */
	uint32_t count;	    /* members; 0: this is one */
	uint32_t at_once;   /* members that may run at a time; 0: all */
	uint16_t ending;    /* all members are being ended for this reason; 0: they are not */
};

/* The function that a job calls.  object 0: it is a script of its own. */
struct osd_job_function {
	struct osd_object_id id;
	uint8_t access;				/* enum osd_job_access */
	char method[OSD_JOB_METHOD_MAX + 1];
	char signer[OSD_SIGNER_NAME_MAX + 1]; /* of the function at the call; "": it is not signed */
};

/* The access of a job's code to its zone, within its rights. */
enum osd_job_access { OSD_JOB_NO_ACCESS, OSD_JOB_READS, OSD_JOB_WRITES };

/* Of a pure job: what its client said, and the last decision of the target (advice/advice.h). */
struct osd_job_offload {
	uint64_t home_usec, home_bytes;
	uint64_t near_usec, wait_usec, weighed_usec; /* weighed: at home, with other work there */
};

#define OSD_KEY_STAMP 8

/* The rights that a job acts with: those of the capability it was submitted with. */
struct osd_job_rights {
	bool limited; /* false: submitted without security, it may do everything in its zone */
	struct osd_grant grant;		  /* verified */
	uint8_t key_stamp[OSD_KEY_STAMP]; /* of the key that proves the grant (session/rights.c) */
};

/* Everything that survives a restart and everything page 2000_0001h shows.  A name in _msec that is a time
 * of day counts ms since 1970 (0: not yet); a name in _usec is a duration in microseconds. */
struct osd_job_record {
	struct osd_object_id id; /* the surrogate */
	uint64_t sequence;	 /* order of acceptance */
	uint64_t generation;	 /* +1 on every change seen */
	uint8_t state;		 /* enum osd_job_state */
	uint16_t reason;
	uint32_t exit_code;
	uint8_t signal;
	uint16_t attempt;
	uint16_t progress;
	uint64_t submitted_msec, started_msec, ended_msec,
		expiry_msec; /* expiry: 0 until it ends */
	uint64_t queue_usec, run_usec;
	uint64_t starved_usec; /* of the run: ready to run, and given no processor */
	uint64_t cpu_user_usec, cpu_system_usec, peak_bytes;
	uint64_t bytes_read, bytes_written, calls;
	uint64_t result_length, stdout_length, stderr_length;
	uint32_t flags;
	uint64_t result_object, sandbox_id;
	uint8_t code_sha256[32], content_sha256[32];
	struct osd_zone zone;
	struct osd_job_limits limits;
	uint64_t begin_msec;   /* HELD until then; 0: not, or it has been released */
	uint64_t keep_msec;    /* how long the record outlives the job */
	uint32_t client_flags; /* enum osd_exec_flags as submitted; from bit 19 the grace in ms */
	int16_t priority;
	uint8_t args_encoding;
	uint32_t args_length, code_length;
	uint8_t key_length;
	struct osd_job_array array;
	struct osd_job_rights rights;
	struct osd_job_function function;
	struct osd_job_offload offload;
	struct osd_object_id predecessor; /* the job this one is run for again; 0/0: none */
	uint64_t charged;		  /* bytes, or OSD_JOB_UNCOUNTED (job/charge.c) */
	uint32_t used_length;		  /* bytes of the stored list of objects used; 0: there is none */
	uint8_t key[OSD_JOB_KEY_MAX];
	char name[OSD_JOB_NAME_MAX + 1];
	char message[OSD_JOB_MESSAGE_MAX + 1];
	char principal[OSD_JOB_PRINCIPAL_MAX + 1];
	char pool[OSD_JOB_POOL_MAX + 1]; /* "": default */
	char set[OSD_JOB_SET_MAX + 1];	 /* package set of its last attempt; "": none */
};

#define OSD_JOB_GRACE_SHIFT 19
/* The flags of a submission that its record keeps. */
#define OSD_JOB_FLAGS_KEPT ((UINT32_C(1) << OSD_JOB_GRACE_SHIFT) - 1)
_Static_assert(((OSD_EXEC_CODE_FORM | OSD_EXEC_RETRY_EXIT) & ~OSD_JOB_FLAGS_KEPT) == 0,
	       "no flag that is kept is above");

/* The number of attempts a job may have, the first included. */
static inline unsigned osd_job_attempts(const struct osd_job_record *record)
{
	unsigned asked = (record->client_flags & OSD_EXEC_ATTEMPTS) >> 4;

	return asked ? asked : OSD_JOB_ATTEMPTS;
}

/* The time in microseconds that a script may clean up after it is told to end.  0 in the record stands for
 * the default. */
static inline uint64_t osd_job_grace_usec(const struct osd_job_record *record)
{
	uint64_t msec = record->client_flags >> OSD_JOB_GRACE_SHIFT;

	return msec ? msec * 1000 : osd_exec_limits[OSD_LIMIT_GRACE].standard;
}

/* The outcome of a synchronous EXEC; borrowed during the call. */
enum osd_result_form {
	OSD_RESULT_NONE,
	OSD_RESULT_BYTES,
	OSD_RESULT_JSON,
	OSD_RESULT_REPORT, /* of a plain call that failed: UTF-8, why */
};

struct osd_exec_outcome {
	/* OSD_OK: COMPLETED; OSD_E_STILL_RUNNING, OSD_E_TASK_ABORTED, OSD_E_JOB_* */
	enum osd_status status;
	struct osd_object_id job;
	uint16_t reason;
	const uint8_t *result; /* NULL when there is none, or it is in result_object */
	uint8_t **owned_result; /* the same, malloc'd, which the receiver may take; NULL: it copies */
	size_t result_length;
	uint64_t whole_length; /* of the result, wherever it is */
	uint8_t form;	       /* enum osd_result_form */
	uint64_t result_object; /* companion object in the surrogate's partition; 0: none */
	uint64_t cpu_usec;	/* that it took; 0: it has not ended */
};

/* ---- data that pass through functions ------------------------------------------------------------ */

/* A script's READ, or WRITE, of an object whose data pass through functions (docs/views.md).  exec/ has checked what the
 * script may do; command/ does it (osd_exec_set_data_ops). */
#define OSD_DATA_WHY_MAX 96
struct osd_exec_data {
	struct osd_object *object; /* borrowed */
	struct osd_object_id id;
	const char *principal;	   /* of the job; borrowed */
	uint64_t offset, length;
	uint8_t *buffer;	   /* READ: room for capacity bytes, at most length; NULL: none are wanted */
	size_t capacity;
	const uint8_t *bytes;	   /* WRITE: length bytes; NULL: it is a READ */
	/* WRITE: called in the step that changes the data; OSD_OK: the script may still do so. */
	enum osd_status (*permit)(struct osd_exec_data *data);
	struct osd_session *session; /* of permit */
	/* Called once for each step that returned OSD_PENDING, perhaps before that; any thread. */
	void (*done)(struct osd_exec_data *data);
	void *arg;

	/* Results. */
	bool plain;		   /* no function concerns the object after all, and nothing was done */
	uint64_t available;	   /* READ: bytes of the range that readers find */
	struct osd_data_version before, version; /* of the stored bytes; WRITE: before and after it */
	bool changed;			 /* WRITE: there was something to do */
	char why[OSD_DATA_WHY_MAX]; /* it failed; "": the status says it */
	void *own;		   /* of those functions, from the first step to the last */
};

struct osd_exec_data_ops {
	/* Takes a step.  OSD_PENDING: when data->done has been called, call it again.  Otherwise it is over. */
	enum osd_status (*step)(void *context, struct osd_exec_data *data);
	/* Called after OSD_PENDING: data->done is called soon, and the last step fails. */
	void (*abort)(void *context, struct osd_exec_data *data);
	void *context;
};

/* The partition of a job's surrogate if no other one is asked for. */
static inline uint64_t osd_job_usual_partition(struct osd_object_id zone)
{
	return zone.partition_id ? zone.partition_id : OSD_JOBS_PARTITION;
}

static inline enum osd_result_form osd_job_result_form(const struct osd_job_record *record)
{
	if (record->flags & OSD_JOB_RESULT_JSON)
		return OSD_RESULT_JSON;
	return record->result_length ? OSD_RESULT_BYTES : OSD_RESULT_NONE;
}

/* ---- in the store (store.c) -------------------------------------------------------------------- */

/* The database tables OSD_TABLE_JOBS and OSD_TABLE_JOB_KEYS hold job records, code, payloads and idempotency
 * keys.  A key of OSD_TABLE_JOBS is big-endian and begins with a byte for its kind.  Kinds of keys:
 *
 *   00  be64 expiry in ms, be64 partition, be64 object: finished jobs, soonest first
 *   01  be64 partition, be64 object: the record (struct osd_job_record, versioned)
 *   02  be64 partition, be64 object, be32 n: n-th piece of arguments and code.  Removed when the job
 *       ends; with OSD_JOB_CODE_KEPT, with the record.
 *   03  be64 partition, be64 object, byte kind: a payload (enum osd_job_payload)
 *   04  be64 partition, be64 object that holds a result: be64 object, the surrogate of its job
 *   05  be64 partition, be64 object, be32 n: n-th piece of the list of objects used (exec/used/used.h)
 *
 * OSD_TABLE_JOB_KEYS: SHA-256 over principal, surrogate partition and key -> be64 partition, be64 object.
 */

/* Written: this version, a head and tagged fields (docs/format.md).  Versions 1 to 6 are read, too. */
#define OSD_JOB_RECORD_VERSION 7
#define OSD_JOB_RECORD_MAX     4096 /* bytes of an encoded record, of any release */

enum osd_job_payload {
	OSD_PAYLOAD_RESULT = 1,
	OSD_PAYLOAD_STDERR = 2,
	OSD_PAYLOAD_TRACEBACK = 3,
	OSD_PAYLOAD_TAGS = 4,	 /* key=value lines, from acceptance on */
	OSD_PAYLOAD_AFTER = 5,	 /* of jobs with OSD_JOB_AFTER, from acceptance on */
	OSD_PAYLOAD_STATES = 6,	 /* of an array that has ended: a byte a member, its state */
	OSD_PAYLOAD_INDICES = 7, /* of arrays with OSD_JOB_RANGES (wire/index_ranges.h) */
	OSD_PAYLOAD_LAST = OSD_PAYLOAD_INDICES,
};

#define OSD_JOB_AFTER_BYTES 32u /* of one job to wait for */

/* A job that another waits for. */
struct osd_job_predecessor {
	struct osd_object_id id;
	uint64_t sequence;  /* of its record: an id may be another job's one day */
	uint32_t condition; /* enum osd_after_condition */
};

/* Returns the length, which is never more than half of OSD_JOB_RECORD_MAX. */
size_t osd_job_record_encode(const struct osd_job_record *record,
			     uint8_t bytes[OSD_JOB_RECORD_MAX]);
/* OSD_E_MEDIUM: damaged; OSD_E_INTERNAL: written by a later release in a form that this one must not read.  The
 * record is untouched. */
enum osd_status osd_job_record_decode(const uint8_t *bytes, size_t length,
				      struct osd_job_record *ret_record);

enum osd_status osd_job_record_put(struct osd_txn *txn, const struct osd_job_record *record);
/* OSD_E_NO_OBJECT when there is none. */
enum osd_status osd_job_record_get(struct osd_txn *txn, struct osd_object_id id,
				   struct osd_job_record *ret_record);
/* Deletes the record, its payloads, code, key and place in the expiry order.  An absent part is no error. */
enum osd_status osd_job_record_delete(struct osd_txn *txn, const struct osd_job_record *record);
/* The same for a damaged record: looks for all that has the job's id, so it reads the expiry order and the keys of all
 * jobs. */
enum osd_status osd_job_record_purge(struct osd_txn *txn, struct osd_object_id id);
/* Calls fn for each record of a partition, or with 0 of all, until it returns false, and damaged in place of fn for
 * one that is damaged.  They must not use the transaction.  OSD_E_INTERNAL: a later release wrote a record. */
enum osd_status osd_job_record_each(struct osd_txn *txn, uint64_t partition_id,
				    bool (*fn)(void *arg, const struct osd_job_record *record),
				    bool (*damaged)(void *arg, struct osd_object_id id), void *arg);
/* Finished jobs that have expired at now_msec, without the first ones. */
#define OSD_EXPIRED_AT_ONCE 64
struct osd_expired_jobs {
	uint64_t now_msec;
	size_t without, seen; /* seen: those that are left out, too */
	struct osd_object_id ids[OSD_EXPIRED_AT_ONCE];
	size_t count;
	uint64_t next_msec; /* when the next of the others expires; UINT64_MAX: there is no other */
};
/* arg: struct osd_expired_jobs; lists them. */
enum osd_status osd_job_record_expired(struct osd_txn *txn, void *arg);
/* Moves the finished job's place in the expiry order from old_msec (0: none yet) to
 * record->expiry_msec. */
enum osd_status osd_job_expiry_move(struct osd_txn *txn, const struct osd_job_record *record,
				    uint64_t old_msec);

/* Arguments and code, back to back: args_length + code_length bytes. */
enum osd_status osd_job_code_put(struct osd_txn *txn, const struct osd_job_record *record,
				 const uint8_t *args, const uint8_t *code);
enum osd_status osd_job_code_get(struct osd_txn *txn, const struct osd_job_record *record,
				 uint8_t *buffer);
enum osd_status osd_job_code_delete(struct osd_txn *txn, const struct osd_job_record *record);

/* The list of objects that the job has used, in pieces of OSD_JOB_USED_PIECE bytes, record->used_length in
 * all.  get: the n-th piece; OSD_E_NO_OBJECT when there is none. */
#define OSD_JOB_USED_PIECE (60u << 10)
enum osd_status osd_job_used_put(struct osd_txn *txn, const struct osd_job_record *record,
				 const uint8_t *bytes);
enum osd_status osd_job_used_get(struct osd_txn *txn, struct osd_object_id id, uint32_t n,
				 uint8_t *buffer, size_t capacity, size_t *ret_length);
static inline uint32_t osd_job_used_pieces(const struct osd_job_record *record)
{
	return (record->used_length + OSD_JOB_USED_PIECE - 1) / OSD_JOB_USED_PIECE;
}

enum osd_status osd_job_payload_put(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, const void *bytes, size_t length);
enum osd_status osd_job_payload_get(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, uint8_t *buffer, size_t capacity,
				    size_t *ret_length);
/* The same, but an absent payload has length 0 and is no error. */
enum osd_status osd_job_payload_any(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, uint8_t *buffer, size_t capacity,
				    size_t *ret_length);
/* Removes a user object.  An absent one is no error. */
enum osd_status osd_remove_if_there(struct osd_txn *txn, struct osd_object_id id);

/* A companion is the object that holds a job's result; it is in the partition of the job's surrogate.
 * These map it back to its job, so that only the job's owner reads it.  put: the job's record must name
 * this companion.  find: OSD_E_NO_OBJECT: the object holds no result. */
enum osd_status osd_job_companion_put(struct osd_txn *txn, struct osd_object_id job,
				      uint64_t companion);
enum osd_status osd_job_companion_find(struct osd_txn *txn, struct osd_object_id companion,
				       struct osd_object_id *ret_job);
enum osd_status osd_job_companion_delete(struct osd_txn *txn, struct osd_object_id companion);

/* Finds the job with the idempotency key of this record.  OSD_E_NO_OBJECT: there is none. */
enum osd_status osd_job_key_find(struct osd_txn *txn, const struct osd_job_record *record,
				 struct osd_object_id *ret_id);
/* Enters the key.  OSD_E_EXISTS: another job has it. */
enum osd_status osd_job_key_put(struct osd_txn *txn, const struct osd_job_record *record);

#endif
