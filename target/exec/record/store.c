/* SPDX-License-Identifier: GPL-2.0-or-later */
/* store.c -- job records, code, payloads, expiry order and keys in the database (record.h).  The bytes of a
 * record are codec.c's. */
#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "exec/record/record.h"
#include "security/mac.h"
#include "wire/cursor.h"

#define PIECE_BYTES (60u << 10) /* of arguments and code in one database record */
#define KEY_MAX	    32

/* The database has these numbers. */
enum key_kind { KEY_EXPIRY, KEY_RECORD, KEY_CODE, KEY_PAYLOAD, KEY_COMPANION, KEY_USED };

/* ---- keys ------------------------------------------------------------------------------------ */

struct key {
	uint8_t bytes[KEY_MAX];
	size_t length;
};

static struct key make_key(enum key_kind kind, struct osd_object_id id)
{
	struct key key = {.bytes = {kind}, .length = 17};

	osd_put_be(key.bytes + 1, id.partition_id, 8);
	osd_put_be(key.bytes + 9, id.object_id, 8);
	return key;
}

/* Begins all keys of a kind: those of one partition, or with 0 all of them. */
static struct key prefix_of(enum key_kind kind, uint64_t partition_id)
{
	struct key key = make_key(kind, (struct osd_object_id){partition_id, 0});

	key.length = partition_id ? 9 : 1;
	return key;
}

static struct key piece_key(enum key_kind kind, struct osd_object_id id, uint32_t piece)
{
	struct key key = make_key(kind, id);

	osd_put_be(key.bytes + key.length, piece, 4);
	key.length += 4;
	return key;
}

static struct key payload_key(struct osd_object_id id, enum osd_job_payload kind)
{
	struct key key = make_key(KEY_PAYLOAD, id);

	key.bytes[key.length++] = (uint8_t)kind;
	return key;
}

static struct key expiry_key(struct osd_object_id id, uint64_t msec)
{
	struct key key = {.bytes = {KEY_EXPIRY}, .length = 25};

	osd_put_be(key.bytes + 1, msec, 8);
	osd_put_be(key.bytes + 9, id.partition_id, 8);
	osd_put_be(key.bytes + 17, id.object_id, 8);
	return key;
}

static enum osd_status put(struct osd_txn *txn, struct key key, const void *value, size_t length)
{
	return osd_txn_record_put(txn, OSD_TABLE_JOBS, key.bytes, key.length, value, length);
}

static enum osd_status delete_if_there(struct osd_txn *txn, enum osd_table table, struct key key)
{
	enum osd_status status = osd_txn_record_delete(txn, table, key.bytes, key.length);

	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status delete_pieces(struct osd_txn *txn, enum key_kind kind,
				     struct osd_object_id id, size_t count)
{
	enum osd_status status = OSD_OK;

	for (uint32_t n = 0; n < count && status == OSD_OK; n++)
		status = delete_if_there(txn, OSD_TABLE_JOBS, piece_key(kind, id, n));
	return status;
}

/* Reads a record of the database that has this length. */
static enum osd_status get(struct osd_txn *txn, enum osd_table table, struct key key,
			   uint8_t *value, size_t bytes, const char *what, struct osd_object_id id)
{
	size_t length = 0;
	enum osd_status status =
		osd_txn_record_get(txn, table, key.bytes, key.length, value, bytes, &length);

	if (status != OSD_OK || length == bytes)
		return status;
	return osd_internal("the record '%s' 0x%" PRIx64 "/0x%" PRIx64 " has %zu bytes", what,
			    id.partition_id, id.object_id, length);
}

/* ---- records --------------------------------------------------------------------------------- */

enum osd_status osd_job_record_put(struct osd_txn *txn, const struct osd_job_record *record)
{
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	size_t length = osd_job_record_encode(record, bytes);

	return put(txn, make_key(KEY_RECORD, record->id), bytes, length);
}

enum osd_status osd_job_record_get(struct osd_txn *txn, struct osd_object_id id,
				   struct osd_job_record *ret_record)
{
	struct key key = make_key(KEY_RECORD, id);
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	size_t length = 0;
	enum osd_status status = osd_txn_record_get(txn, OSD_TABLE_JOBS, key.bytes, key.length,
						    bytes, sizeof(bytes), &length);

	if (status != OSD_OK)
		return status;
	status = osd_job_record_decode(bytes, OSD_MIN(length, sizeof(bytes)), ret_record);
	return status == OSD_OK && !osd_same_id(ret_record->id, id) ? OSD_E_MEDIUM : status;
}

struct each {
	bool (*fn)(void *arg, const struct osd_job_record *record);
	bool (*damaged)(void *arg, struct osd_object_id id);
	void *arg;
	enum osd_status status;
};

static struct osd_object_id id_of(const uint8_t *key, size_t key_length)
{
	struct osd_rd r = osd_rd_init(key + 1, key_length - 1);
	uint64_t partition_id = osd_rd_be(&r, 8);

	return (struct osd_object_id){partition_id, osd_rd_be(&r, 8)};
}

static bool each_record(void *arg, const uint8_t *key, size_t key_length, const uint8_t *value,
			size_t length)
{
	struct each *each = arg;
	struct osd_job_record record;
	struct osd_object_id id;

	id = id_of(key, key_length);
	each->status = osd_job_record_decode(value, length, &record);
	if (each->status == OSD_OK && osd_same_id(record.id, id))
		return each->fn(each->arg, &record);
	/* A damaged record keeps no other job from the start; one of a later release does. */
	if (each->status != OSD_OK && each->status != OSD_E_MEDIUM)
		return false;
	each->status = OSD_OK;
	return each->damaged(each->arg, id);
}

enum osd_status osd_job_record_each(struct osd_txn *txn, uint64_t partition_id,
				    bool (*fn)(void *arg, const struct osd_job_record *record),
				    bool (*damaged)(void *arg, struct osd_object_id id), void *arg)
{
	struct each each = {fn, damaged, arg, OSD_OK};
	struct key prefix = prefix_of(KEY_RECORD, partition_id);
	enum osd_status status = osd_txn_record_each(txn, OSD_TABLE_JOBS, prefix.bytes,
						     prefix.length, each_record, &each);

	return status != OSD_OK ? status : each.status;
}

static bool each_expired(void *arg, const uint8_t *key, size_t key_length, const uint8_t *value,
			 size_t length)
{
	struct osd_expired_jobs *expired = arg;

	(void)value;
	(void)length;
	if (key_length != 25)
		return false;
	if (osd_get_be(key + 1, 8) > expired->now_msec || expired->count == OSD_EXPIRED_AT_ONCE) {
		expired->next_msec = osd_get_be(key + 1, 8);
		return false;
	}
	if (expired->seen++ >= expired->without)
		expired->ids[expired->count++] =
			(struct osd_object_id){osd_get_be(key + 9, 8), osd_get_be(key + 17, 8)};
	return true;
}

enum osd_status osd_job_record_expired(struct osd_txn *txn, void *arg)
{
	struct osd_expired_jobs *expired = arg;

	expired->seen = expired->count = 0;
	expired->next_msec = UINT64_MAX;
	return osd_txn_record_each(txn, OSD_TABLE_JOBS, (uint8_t[]){KEY_EXPIRY}, 1, each_expired,
				   expired);
}

enum osd_status osd_job_expiry_move(struct osd_txn *txn, const struct osd_job_record *record,
				    uint64_t old_msec)
{
	enum osd_status status = OSD_OK;

	if (old_msec)
		status = delete_if_there(txn, OSD_TABLE_JOBS, expiry_key(record->id, old_msec));
	return status == OSD_OK ? put(txn, expiry_key(record->id, record->expiry_msec), "", 1)
				: status;
}

/* ---- code and payloads ----------------------------------------------------------------------- */

static size_t content_length(const struct osd_job_record *record)
{
	return (size_t)record->args_length + record->code_length;
}

/* Copies bytes [offset, offset + length) of args and code taken as one. */
static void gather(const struct osd_job_record *record, const uint8_t *args, const uint8_t *code,
		   size_t offset, uint8_t *piece, size_t length)
{
	size_t from_args =
		offset < record->args_length ? OSD_MIN(length, record->args_length - offset) : 0;

	if (from_args)
		memcpy(piece, args + offset, from_args);
	if (length > from_args)
		memcpy(piece + from_args, code + (offset + from_args - record->args_length),
		       length - from_args);
}

enum osd_status osd_job_code_put(struct osd_txn *txn, const struct osd_job_record *record,
				 const uint8_t *args, const uint8_t *code)
{
	size_t total = content_length(record);
	uint8_t piece[PIECE_BYTES];
	enum osd_status status = OSD_OK;

	for (size_t at = 0, n = 0; at < total && status == OSD_OK; at += PIECE_BYTES, n++) {
		size_t length = OSD_MIN(PIECE_BYTES, total - at);

		gather(record, args, code, at, piece, length);
		status = put(txn, piece_key(KEY_CODE, record->id, (uint32_t)n), piece, length);
	}
	return status;
}

enum osd_status osd_job_code_get(struct osd_txn *txn, const struct osd_job_record *record,
				 uint8_t *buffer)
{
	size_t total = content_length(record);
	enum osd_status status = OSD_OK;

	for (size_t at = 0, n = 0; at < total && status == OSD_OK; at += PIECE_BYTES, n++)
		status = get(txn, OSD_TABLE_JOBS, piece_key(KEY_CODE, record->id, (uint32_t)n),
			     buffer + at, OSD_MIN(PIECE_BYTES, total - at), "code of job",
			     record->id);
	return status;
}

enum osd_status osd_job_code_delete(struct osd_txn *txn, const struct osd_job_record *record)
{
	size_t pieces = (content_length(record) + PIECE_BYTES - 1) / PIECE_BYTES;

	return delete_pieces(txn, KEY_CODE, record->id, pieces);
}

enum osd_status osd_job_payload_put(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, const void *bytes, size_t length)
{
	return put(txn, payload_key(id, kind), bytes, length);
}

enum osd_status osd_job_payload_get(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, uint8_t *buffer, size_t capacity,
				    size_t *ret_length)
{
	struct key key = payload_key(id, kind);

	return osd_txn_record_get(txn, OSD_TABLE_JOBS, key.bytes, key.length, buffer, capacity,
				  ret_length);
}

/* ---- objects used ---------------------------------------------------------------------------- */

enum osd_status osd_job_used_put(struct osd_txn *txn, const struct osd_job_record *record,
				 const uint8_t *bytes)
{
	enum osd_status status = OSD_OK;

	for (uint32_t n = 0; status == OSD_OK && n < osd_job_used_pieces(record); n++) {
		uint32_t at = n * OSD_JOB_USED_PIECE;

		status = put(txn, piece_key(KEY_USED, record->id, n), bytes + at,
			     OSD_MIN(record->used_length - at, OSD_JOB_USED_PIECE));
	}
	return status;
}

enum osd_status osd_job_used_get(struct osd_txn *txn, struct osd_object_id id, uint32_t n,
				 uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	struct key key = piece_key(KEY_USED, id, n);

	return osd_txn_record_get(txn, OSD_TABLE_JOBS, key.bytes, key.length, buffer, capacity,
				  ret_length);
}

/* ---- companions ------------------------------------------------------------------------------ */

enum osd_status osd_job_companion_put(struct osd_txn *txn, struct osd_object_id job,
				      uint64_t companion)
{
	struct osd_object_id id = {job.partition_id, companion};
	uint8_t value[8];

	osd_put_be(value, job.object_id, sizeof(value));
	return put(txn, make_key(KEY_COMPANION, id), value, sizeof(value));
}

enum osd_status osd_job_companion_find(struct osd_txn *txn, struct osd_object_id companion,
				       struct osd_object_id *ret_job)
{
	uint8_t value[8];
	enum osd_status status = get(txn, OSD_TABLE_JOBS, make_key(KEY_COMPANION, companion), value,
				     sizeof(value), "job that has the object", companion);

	if (status == OSD_OK)
		*ret_job = (struct osd_object_id){companion.partition_id, osd_get_be(value, 8)};
	return status;
}

enum osd_status osd_job_companion_delete(struct osd_txn *txn, struct osd_object_id companion)
{
	return delete_if_there(txn, OSD_TABLE_JOBS, make_key(KEY_COMPANION, companion));
}

/* ---- idempotency keys ------------------------------------------------------------------------ */

static struct key idempotency_key(const struct osd_job_record *record)
{
	struct key key = {.length = 32};
	struct osd_sha256 sha;
	uint8_t partition[8];

	osd_put_be(partition, record->id.partition_id, 8);
	osd_sha256_init(&sha);
	/* The 0 byte separates the principal from the bytes that follow. */
	osd_sha256_add(&sha, record->principal, strlen(record->principal) + 1);
	osd_sha256_add(&sha, partition, sizeof(partition));
	osd_sha256_add(&sha, record->key, record->key_length);
	osd_sha256_end(&sha, key.bytes);
	return key;
}

enum osd_status osd_job_key_find(struct osd_txn *txn, const struct osd_job_record *record,
				 struct osd_object_id *ret_id)
{
	uint8_t value[16];
	enum osd_status status = get(txn, OSD_TABLE_JOB_KEYS, idempotency_key(record), value,
				     sizeof(value), "idempotency key of job", record->id);

	if (status == OSD_OK)
		*ret_id = (struct osd_object_id){osd_get_be(value, 8), osd_get_be(value + 8, 8)};
	return status;
}

enum osd_status osd_job_key_put(struct osd_txn *txn, const struct osd_job_record *record)
{
	struct key key = idempotency_key(record);
	uint8_t value[16];

	osd_put_be(value, record->id.partition_id, 8);
	osd_put_be(value + 8, record->id.object_id, 8);
	/* Two submissions may both have found no such key: the insert accepts one of them. */
	return osd_txn_record_insert(txn, OSD_TABLE_JOB_KEYS, key.bytes, key.length, value,
				     sizeof(value));
}

enum osd_status osd_job_record_delete(struct osd_txn *txn, const struct osd_job_record *record)
{
	/* Lengths do not tell which payloads are stored: a long result is an object. */
	struct key keys[] = {
		make_key(KEY_RECORD, record->id),
		payload_key(record->id, OSD_PAYLOAD_RESULT),
		payload_key(record->id, OSD_PAYLOAD_STDERR),
		payload_key(record->id, OSD_PAYLOAD_TRACEBACK),
		payload_key(record->id, OSD_PAYLOAD_TAGS),
		payload_key(record->id, OSD_PAYLOAD_STATES),
		expiry_key(record->id, record->expiry_msec),
	};
	enum osd_status status = osd_job_code_delete(txn, record);

	for (size_t i = 0; i < OSD_ARRAY_SIZE(keys) && status == OSD_OK; i++)
		status = delete_if_there(txn, OSD_TABLE_JOBS, keys[i]);
	if (status == OSD_OK && record->flags & OSD_JOB_AFTER)
		status = delete_if_there(txn, OSD_TABLE_JOBS,
					 payload_key(record->id, OSD_PAYLOAD_AFTER));
	if (status == OSD_OK && record->flags & OSD_JOB_RANGES)
		status = delete_if_there(txn, OSD_TABLE_JOBS,
					 payload_key(record->id, OSD_PAYLOAD_INDICES));
	if (status == OSD_OK)
		status = delete_pieces(txn, KEY_USED, record->id, osd_job_used_pieces(record));
	if (status == OSD_OK && record->result_object)
		status = osd_job_companion_delete(
			txn,
			(struct osd_object_id){record->id.partition_id, record->result_object});
	if (status == OSD_OK && record->key_length)
		status = delete_if_there(txn, OSD_TABLE_JOB_KEYS, idempotency_key(record));
	return status;
}

/* ---- what is stored of a damaged record ------------------------------------------------------ */

#define PURGED_AT_ONCE 64

struct of_job {
	struct osd_object_id id;
	enum osd_table table;
	struct key keys[PURGED_AT_ONCE];
	size_t count;
};

static bool collect_key(void *arg, const uint8_t *key, size_t key_length, const uint8_t *value,
			size_t length)
{
	struct of_job *found = arg;
	struct osd_object_id id = {0, 0};
	bool is_expiry = key_length && key[0] == KEY_EXPIRY;

	if (found->table == OSD_TABLE_JOB_KEYS && length == 16)
		id = (struct osd_object_id){osd_get_be(value, 8), osd_get_be(value + 8, 8)};
	else if (found->table == OSD_TABLE_JOBS && key_length >= (is_expiry ? 25 : 17))
		id = id_of(is_expiry ? key + 8 : key, is_expiry ? 17 : key_length);
	if (found->table == OSD_TABLE_JOBS && key_length && key[0] == KEY_COMPANION && length == 8)
		id.object_id = osd_get_be(value, 8);
	if (!osd_same_id(id, found->id) || key_length > KEY_MAX)
		return true;
	memcpy(found->keys[found->count].bytes, key, key_length);
	found->keys[found->count++].length = key_length;
	return found->count < PURGED_AT_ONCE;
}

static enum osd_status purge_below(struct osd_txn *txn, struct osd_object_id id,
				   enum osd_table table, struct key prefix)
{
	struct of_job found = {.id = id, .table = table};
	enum osd_status status;

	/* A scan may not change its table, so keys are collected first. */
	do {
		found.count = 0;
		status = osd_txn_record_each(txn, table, prefix.bytes, prefix.length, collect_key,
					     &found);
		for (size_t i = 0; i < found.count && status == OSD_OK; i++)
			status = delete_if_there(txn, table, found.keys[i]);
	} while (status == OSD_OK && found.count == PURGED_AT_ONCE);
	return status;
}

enum osd_status osd_job_record_purge(struct osd_txn *txn, struct osd_object_id id)
{
	const struct key prefixes[] = {
		make_key(KEY_RECORD, id),  make_key(KEY_CODE, id),
		make_key(KEY_PAYLOAD, id), make_key(KEY_USED, id),
		prefix_of(KEY_EXPIRY, 0),  prefix_of(KEY_COMPANION, id.partition_id),
	};
	enum osd_status status =
		purge_below(txn, id, OSD_TABLE_JOB_KEYS, (struct key){.length = 0});

	for (size_t i = 0; i < OSD_ARRAY_SIZE(prefixes) && status == OSD_OK; i++)
		status = purge_below(txn, id, OSD_TABLE_JOBS, prefixes[i]);
	return status;
}

enum osd_status osd_job_payload_any(struct osd_txn *txn, struct osd_object_id id,
				    enum osd_job_payload kind, uint8_t *buffer, size_t capacity,
				    size_t *ret_length)
{
	enum osd_status status = osd_job_payload_get(txn, id, kind, buffer, capacity, ret_length);

	if (status != OSD_E_NO_OBJECT)
		return status;
	*ret_length = 0;
	return OSD_OK;
}

enum osd_status osd_remove_if_there(struct osd_txn *txn, struct osd_object_id id)
{
	enum osd_status status = osd_user_object_remove(txn, id);

	return osd_status_is_gone(status) ? OSD_OK : status;
}
