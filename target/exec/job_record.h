/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_record.h -- what survives a restart: job records, code, payloads and idempotency keys in the
 * database tables OSD_TABLE_JOBS and OSD_TABLE_JOB_KEYS.
 *
 * Keys of OSD_TABLE_JOBS, big-endian, begin with a byte that says what follows:
 *   00  be64 expiry in ms, be64 partition, be64 object: finished jobs, soonest first
 *   01  be64 partition, be64 object: the record (struct osd_job_record, versioned)
 *   02  be64 partition, be64 object, be32 n: n-th piece of arguments and code, until the job ends or,
 *       with OSD_JOB_CODE_KEPT, until its record goes
 *   03  be64 partition, be64 object, byte kind: a payload (enum osd_job_payload)
 *   04  be64 partition, be64 object that holds a result: be64 object, the surrogate of its job
 * OSD_TABLE_JOB_KEYS: SHA-256 over principal, surrogate partition and key -> be64 partition, be64
 * object.
 *
 * Every call works inside the caller's transaction and may return OSD_E_CONFLICT. */
#ifndef OSD_EXEC_JOB_RECORD_H
#define OSD_EXEC_JOB_RECORD_H

#include "exec/job.h"

/* 1: without pools, 2: without arrays, 3: without rights, 4: without the time it starved and the bytes it is
 * charged, 5: without a begin; are read, too.  A job that does not wait for its begin is still written as
 * 5, which earlier releases read. */
#define OSD_JOB_RECORD_VERSION 6
#define OSD_JOB_RECORD_MAX     2048 /* bytes of an encoded record */

enum osd_job_payload {
	OSD_PAYLOAD_RESULT = 1,
	OSD_PAYLOAD_STDERR = 2,
	OSD_PAYLOAD_TRACEBACK = 3,
	OSD_PAYLOAD_TAGS = 4,	/* key=value lines, from acceptance on */
	OSD_PAYLOAD_AFTER = 5,	/* of jobs with OSD_JOB_AFTER, from acceptance on */
	OSD_PAYLOAD_STATES = 6, /* of an array that has ended: a byte a member, its state */
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

/* Returns the length. */
size_t osd_job_record_encode(const struct osd_job_record *record,
			     uint8_t bytes[OSD_JOB_RECORD_MAX]);
/* OSD_E_INTERNAL: damaged, or written by a later version. */
enum osd_status osd_job_record_decode(const uint8_t *bytes, size_t length,
				      struct osd_job_record *ret_record);

enum osd_status osd_job_record_put(struct osd_txn *txn, const struct osd_job_record *record);
/* OSD_E_NO_OBJECT when there is none. */
enum osd_status osd_job_record_get(struct osd_txn *txn, struct osd_object_id id,
				   struct osd_job_record *ret_record);
/* The record, its payloads, code, key and place in the expiry order; absent parts are fine. */
enum osd_status osd_job_record_delete(struct osd_txn *txn, const struct osd_job_record *record);
/* Calls fn for each record until it returns false.  fn must not use the transaction. */
enum osd_status osd_job_record_each(struct osd_txn *txn,
				    bool (*fn)(void *arg, const struct osd_job_record *record),
				    void *arg);
/* Up to capacity ids of finished jobs that expired before now_msec, and when the next of the others does
 * (UINT64_MAX: none will). */
enum osd_status osd_job_record_expired(struct osd_txn *txn, uint64_t now_msec,
				       struct osd_object_id *ids, size_t capacity,
				       size_t *ret_count, uint64_t *ret_next_msec);
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

enum osd_status osd_job_payload_put(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, const void *bytes, size_t length);
enum osd_status osd_job_payload_get(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, uint8_t *buffer, size_t capacity,
				    size_t *ret_length);

/* Whose result the object holds: companion and surrogate are of one partition.  put: of a job whose record
 * says so.  find: OSD_E_NO_OBJECT when it holds none. */
enum osd_status osd_job_companion_put(struct osd_txn *txn, struct osd_object_id job,
				      uint64_t companion);
enum osd_status osd_job_companion_find(struct osd_txn *txn, struct osd_object_id companion,
				       struct osd_object_id *ret_job);
enum osd_status osd_job_companion_delete(struct osd_txn *txn, struct osd_object_id companion);

/* The job that holds this record's key; OSD_E_NO_OBJECT when none does. */
enum osd_status osd_job_key_find(struct osd_txn *txn, const struct osd_job_record *record,
				 struct osd_object_id *ret_id);
/* OSD_E_EXISTS when one does. */
enum osd_status osd_job_key_put(struct osd_txn *txn, const struct osd_job_record *record);

#endif
