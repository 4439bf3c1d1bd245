/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status.h -- the one error convention of the target: every fallible function returns
 * enum osd_status; out-parameters named ret_x are written only on OSD_OK.  One table turns an
 * outcome into a sense key and ASC/ASCQ (osd2-wire 7.4; docs/sense.md for the vendor codes 80/xx).
 *
 * These outcomes ask the caller to do something else before it gives up:
 * - OSD_E_CONFLICT: a deadlock, or other work on the same object.  Abort the transaction and begin it
 *   again.  osd_txn_run() does so.  It answers OSD_E_BUSY when every try ended in a conflict.
 * - OSD_E_WOULD_BLOCK: the call may not wait, and would have to, for a lock or a device.  Make the call
 *   again on a thread that may wait.
 * - OSD_E_UNSUPPORTED: the store cannot do it this way.  Do it another way, for example copy the bytes.
 * - OSD_E_TXN_TOO_LARGE: do it in several transactions.
 * - OSD_E_QUEUE_FULL and OSD_E_BUSY: the initiator can send the same command again later.
 *
 * Details (field pointer, attribute, information) travel in struct osd_fault (command/request.h). */
#ifndef OSD_BASE_STATUS_H
#define OSD_BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum osd_sense_key {
	OSD_SK_NO_SENSE = 0x0,
	OSD_SK_RECOVERED_ERROR = 0x1,
	OSD_SK_NOT_READY = 0x2,
	OSD_SK_MEDIUM_ERROR = 0x3,
	OSD_SK_HARDWARE_ERROR = 0x4,
	OSD_SK_ILLEGAL_REQUEST = 0x5,
	OSD_SK_UNIT_ATTENTION = 0x6,
	OSD_SK_DATA_PROTECT = 0x7,
	OSD_SK_ABORTED_COMMAND = 0xb,
	OSD_SK_MISCOMPARE = 0xe,
};

/*        status               sense key        ASCQ    meaning */
#define OSD_STATUS_MAP(X)                                                                          \
	X(OSD_OK, NO_SENSE, 0x0000, "success")                                                     \
	X(OSD_E_SHORT_READ, RECOVERED_ERROR, 0x3b17, "read past the end of the object")            \
	X(OSD_E_STILL_RUNNING, RECOVERED_ERROR, 0x8010,                                            \
	  "the wait ended before the job; the job goes on")                                        \
	X(OSD_E_NOT_READY, NOT_READY, 0x0404, "format in progress")                                \
	X(OSD_E_MEDIUM, MEDIUM_ERROR, 0x1100, "the backing device failed to read or write")        \
	X(OSD_E_HEAD_FAILED, MEDIUM_ERROR, 0x1100,                                                 \
	  "the device with the object's head failed to read or write")                             \
	X(OSD_E_TAIL_FAILED, MEDIUM_ERROR, 0x1100,                                                 \
	  "the device with the bytes behind the object's head failed to read or write")            \
	X(OSD_E_SUM, MEDIUM_ERROR, 0x1100, "the bytes on the device differ from their checksum")   \
	X(OSD_E_HEAD_ABSENT, HARDWARE_ERROR, 0x3a00,                                               \
	  "the device with the object's head is absent")                                           \
	X(OSD_E_INTERNAL, HARDWARE_ERROR, 0x4400, "internal failure; the cause is in the log")     \
	X(OSD_E_DAMAGED, HARDWARE_ERROR, 0x4400,                                                   \
	  "the structure check found damage: see Error Recovery")                                  \
	X(OSD_E_NO_MEMORY, HARDWARE_ERROR, 0x5500, "out of memory or another resource")            \
	X(OSD_E_OPCODE, ILLEGAL_REQUEST, 0x2000, "operation code or CDB length is not OSD-2")      \
	X(OSD_E_CDB_FIELD, ILLEGAL_REQUEST, 0x2400, "invalid field in CDB")                        \
	X(OSD_E_NO_PARTITION, ILLEGAL_REQUEST, 0x2400, "partition does not exist")                 \
	X(OSD_E_NO_OBJECT, ILLEGAL_REQUEST, 0x2400, "user object or collection does not exist")    \
	X(OSD_E_EXISTS, ILLEGAL_REQUEST, 0x2400, "requested id is taken or reserved")              \
	X(OSD_E_BEYOND_END, ILLEGAL_REQUEST, 0x2400,                                               \
	  "starting byte address beyond the end of the object")                                    \
	X(OSD_E_PERMISSION, ILLEGAL_REQUEST, 0x2400, "permission missing in the capability")       \
	X(OSD_E_PARAM_LENGTH, ILLEGAL_REQUEST, 0x1a00, "parameter list length error")              \
	X(OSD_E_PARAM_FIELD, ILLEGAL_REQUEST, 0x2600, "invalid field in parameter list")           \
	X(OSD_E_GROUP_LENGTH, ILLEGAL_REQUEST, 0x2400,                                             \
	  "attributes of one object exceed 65,528 bytes of a multi-object list")                   \
	X(OSD_E_AUDIT_FROZEN, ILLEGAL_REQUEST, 0x2404, "audit value frozen")                       \
	X(OSD_E_KEY_FROZEN, ILLEGAL_REQUEST, 0x2405, "working key frozen")                         \
	X(OSD_E_NONCE_REPEAT, ILLEGAL_REQUEST, 0x2406, "nonce not unique")                         \
	X(OSD_E_NONCE_TIME, ILLEGAL_REQUEST, 0x2407, "nonce timestamp out of range")               \
	X(OSD_E_DATA_OUT_ICV, ILLEGAL_REQUEST, 0x260f,                                             \
	  "invalid data-out buffer integrity check value")                                         \
	X(OSD_E_NOT_EMPTY, ILLEGAL_REQUEST, 0x2c0a,                                                \
	  "partition or collection contains user objects")                                         \
	X(OSD_E_SEQUENCE, ILLEGAL_REQUEST, 0x2c00, "command sequence error")                       \
	X(OSD_E_JOB_IN_WAY, ILLEGAL_REQUEST, 0x8011, "an unfinished job stands in the way")        \
	X(OSD_E_JOB_KEY_CLASH, ILLEGAL_REQUEST, 0x8012,                                            \
	  "idempotency key in use with other content")                                             \
	X(OSD_E_ISOLATION, ILLEGAL_REQUEST, 0x8013, "isolation level not available on this host")  \
	X(OSD_E_BYTECODE, ILLEGAL_REQUEST, 0x8015, "byte-code is not allowed on this target")      \
	X(OSD_E_POOL_ACCESS, ILLEGAL_REQUEST, 0x8016, "the pool is not for this principal")        \
	X(OSD_E_FUNCTION_INACTIVE, ILLEGAL_REQUEST, 0x8017,                                        \
	  "the function is not active, or its code has changed since")                             \
	X(OSD_E_NO_FUNCTION, ILLEGAL_REQUEST, 0x8019, "no active function has this name")          \
	X(OSD_E_FUNCTION_ALIAS, ILLEGAL_REQUEST, 0x801a,                                           \
	  "another active function of the partition has the alias")                                \
	X(OSD_E_FUNCTION_ENGINE, ILLEGAL_REQUEST, 0x8018,                                          \
	  "this target has no such engine, or not this version of its interface")                  \
	X(OSD_E_FUNCTION_UNSIGNED, ILLEGAL_REQUEST, 0x8020,                                        \
	  "the policy of this target requires a signature of the function")                        \
	X(OSD_E_FUNCTION_SIGNATURE, ILLEGAL_REQUEST, 0x8021,                                       \
	  "the signature of the function is damaged, or is of other code or of another manifest")  \
	X(OSD_E_FUNCTION_SIGNER, ILLEGAL_REQUEST, 0x8022,                                          \
	  "the signer of the function is not in the list of signers, not for this engine, or not " \
	  "at this time")                                                                          \
	X(OSD_E_FUNCTION_BOX, ILLEGAL_REQUEST, 0x8023,                                             \
	  "the code of the function is damaged, or is encrypted to another key than this "         \
	  "target's")                                                                              \
	X(OSD_E_FUNCTION_CAPS, ILLEGAL_REQUEST, 0x8029,                                            \
	  "the function is more than its signer may sign, or its zone is not the signer's")        \
	X(OSD_E_FUNCTION_IN_USE, ILLEGAL_REQUEST, 0x8028, "calls of the function are under way")   \
	X(OSD_E_FUNCTION_CODE, ILLEGAL_REQUEST, 0x802f,                                            \
	  "the code of the function cannot be compiled")                                           \
	X(OSD_E_CONTRACT, ILLEGAL_REQUEST, 0x802c,                                                 \
	  "the contract of the functions does not permit this, or contradicts itself")             \
	X(OSD_E_CHECK, ILLEGAL_REQUEST, 0x802e,                                                    \
	  "a function that checks changes of the object does not permit this")                     \
	X(OSD_E_NO_NAME, ILLEGAL_REQUEST, 0x8030, "the directory has no such name")                \
	X(OSD_E_NAME_EXISTS, ILLEGAL_REQUEST, 0x8031, "the directory has this name already")       \
	X(OSD_E_NOT_DIRECTORY, ILLEGAL_REQUEST, 0x8032, "a name of the path is no directory")      \
	X(OSD_E_IS_DIRECTORY, ILLEGAL_REQUEST, 0x8033, "the name is a directory's")                \
	X(OSD_E_NAME_LOOP, ILLEGAL_REQUEST, 0x8034, "a directory cannot move below itself")        \
	X(OSD_E_NAME_CHANGED, MISCOMPARE, 0x8035,                                                  \
	  "the name belongs to another object than the command wants")                             \
	X(OSD_E_NAME_TARGET, ILLEGAL_REQUEST, 0x8036, "this object cannot have the name")          \
	X(OSD_E_VERSION, MISCOMPARE, 0x1d00,                                                       \
	  "the data have another version than the command wants")                                  \
	X(OSD_E_QUOTA, DATA_PROTECT, 0x5507, "quota exceeded")                                     \
	X(OSD_E_NO_SPACE, DATA_PROTECT, 0x5507, "no space left on the backing device")             \
	X(OSD_E_STAGE, ABORTED_COMMAND, 0x802d,                                                    \
	  "a function that the object's data pass through failed")                                 \
	X(OSD_E_JOB_QUEUE, ABORTED_COMMAND, 0x8001, "job ended: queue or hold (reason 1xx)")       \
	X(OSD_E_JOB_SCRIPT, ABORTED_COMMAND, 0x8002, "job ended: script (reason 2xx)")             \
	X(OSD_E_JOB_LIMIT, ABORTED_COMMAND, 0x8003, "job ended: limit (reason 3xx)")               \
	X(OSD_E_JOB_SANDBOX, ABORTED_COMMAND, 0x8004, "job ended: sandbox or host (reason 4xx)")   \
	X(OSD_E_JOB_STORAGE, ABORTED_COMMAND, 0x8005, "job ended: storage (reason 5xx)")           \
	X(OSD_E_JOB_SECURITY, ABORTED_COMMAND, 0x8006, "job ended: security (reason 6xx)")         \
	X(OSD_E_JOB_INTERNAL, ABORTED_COMMAND, 0x8009, "job ended: internal (reason 9xx)")         \
	X(OSD_E_PUSHED_BACK, ABORTED_COMMAND, 0x800a,                                              \
	  "the client is expected to be done sooner: run it there")                                \
	X(OSD_E_LATE, ABORTED_COMMAND, 0x800b,                                                     \
	  "the pool's deadline would pass before the job ended")                                   \
	/* The command ends with another SAM status than CHECK CONDITION. */                       \
	X(OSD_E_QUEUE_FULL, NO_SENSE, 0x0000, "no free place in a queue; SAM status BUSY")         \
	X(OSD_E_BUSY, NO_SENSE, 0x0000, "not possible now, try again later; SAM status BUSY")      \
	X(OSD_E_TASK_ABORTED, NO_SENSE, 0x0000, "SAM status TASK ABORTED")                         \
	/* The target handles these itself; no command ends with one. */                           \
	X(OSD_E_CONFLICT, NO_SENSE, 0x0000,                                                        \
	  "conflict with other work: undo everything and begin again")                             \
	X(OSD_E_WOULD_BLOCK, NO_SENSE, 0x0000, "the call would have to wait, and may not")         \
	X(OSD_E_UNSUPPORTED, NO_SENSE, 0x0000, "not possible with these files or in this store")   \
	X(OSD_E_TXN_TOO_LARGE, NO_SENSE, 0x0000, "too much for one transaction: do it in steps")   \
	X(OSD_PENDING, NO_SENSE, 0x0000, "accepted; completes later")

enum osd_status {
#define X(status, key, ascq, meaning) status,
	OSD_STATUS_MAP(X)
#undef X
	OSD_STATUS_COUNT
};

struct osd_status_info {
	const char *name;
	const char *meaning;
	enum osd_sense_key sense_key;
	uint16_t asc_ascq;
};

/* The table's row; never NULL (an unknown value yields OSD_E_INTERNAL's row). */
const struct osd_status_info *osd_status_info(enum osd_status status);

/* Whether the status means that a device failed. */
static inline bool osd_status_is_medium(enum osd_status status)
{
	return status == OSD_E_MEDIUM || status == OSD_E_HEAD_FAILED ||
	       status == OSD_E_TAIL_FAILED || status == OSD_E_SUM;
}

/* The named object does not exist. */
static inline bool osd_status_is_gone(enum osd_status status)
{
	return status == OSD_E_NO_OBJECT || status == OSD_E_NO_PARTITION;
}

/* How a job has ended that did not complete, or that the command did not wait for its end. */
static inline bool osd_status_is_of_job(enum osd_status status)
{
	return status == OSD_E_STILL_RUNNING ||
	       (status >= OSD_E_JOB_QUEUE && status <= OSD_E_JOB_INTERNAL);
}

/* Logs the cause, at most 20 a second, and returns OSD_E_INTERNAL, whose meaning refers to the log.  Nothing
 * else returns it anew. */
enum osd_status osd_internal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the message (of 256 bytes) for the administrator, as printf does, and yields status. */
#define OSD_EXPLAIN(message, status, ...) (snprintf((message), 256, __VA_ARGS__), (status))

/* errno of a failed system call on the store -> status (ENOSPC/EDQUOT -> OSD_E_NO_SPACE,
 * ENOMEM/EMFILE/ENFILE -> OSD_E_NO_MEMORY, EIO and kin -> OSD_E_MEDIUM, others OSD_E_INTERNAL). */
enum osd_status osd_status_from_errno(int error);

#endif
