/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_job_record.c -- records survive encoding, damaged ones are refused; code, payloads, keys and
 * expiry in the in-memory store. */

#include <string.h>

#include "base/test.h"
#include "base/util.h"
#include "exec/record/record.h"

/* Bytes that versions 3, 4 and 5 added at the end of a record. */
enum { ARRAY_NUMBERS = 38, RIGHTS = 2 + 104 + 1 + 8 + 8, STARVED = 8, CHARGED = 8 };

static struct osd_job_record sample(void)
{
	struct osd_job_record record = {
		.id = {0x10000, 0x10007},
		.sequence = 42,
		.generation = UINT64_MAX - 1,
		.state = OSD_STATE_RUNNING,
		.reason = OSD_REASON_EXIT_CODE,
		.priority = -100,
		.expiry_msec = 1000,
		.zone = {OSD_COLLECTION, {0x10000, 0x10001}},
		.limits = {.wall_usec = 1, .result_bytes = 8},
		.args_length = 5,
		.code_length = 200000,
		.key_length = 3,
		.array = {0x10005, 7, 0, 4, OSD_REASON_KILLED},
		.predecessor = {0x10000, 0x10001},
		.starved_usec = 4100000,
		.key = "key",
		.name = "a name",
		.message = "half way",
		.principal = "chap:alice",
		.rights = {.limited = true,
			   .grant = {.capability = {.permissions = OSD_PERM_READ,
						    .audit = "alice",
						    .policy_access_tag = 7},
				     .level = 3,
				     .key_partition = 0x10000},
			   .key_stamp = "stamped"},
		.pool = "numpy",
		.set = "numpy-0123456789abcdef",
		.charged = 201029,
		.result_object = 0x10009,
	};

	return record;
}

static void test_encoding(void)
{
	struct osd_job_record record = sample(), decoded;
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	size_t length = osd_job_record_encode(&record, bytes);

	CHECK(osd_job_record_decode(bytes, length, &decoded) == OSD_OK);
	CHECK(decoded.priority == -100 && decoded.generation == UINT64_MAX - 1);
	CHECK(decoded.zone.type == OSD_COLLECTION && decoded.limits.result_bytes == 8);
	CHECK(decoded.charged == 201029);
	CHECK(decoded.array.object_id == 0x10005 && decoded.array.at_once == 4);
	CHECK(decoded.array.ending == OSD_REASON_KILLED &&
	      decoded.predecessor.object_id == 0x10001 && decoded.starved_usec == 4100000);
	CHECK(strcmp(decoded.name, "a name") == 0 && strcmp(decoded.principal, "chap:alice") == 0);
	CHECK(strcmp(decoded.pool, "numpy") == 0 && strcmp(decoded.set, record.set) == 0);
	CHECK(decoded.rights.limited && decoded.rights.grant.verified &&
	      !decoded.rights.grant.open && decoded.rights.grant.level == 3 &&
	      decoded.rights.grant.key_partition == 0x10000);
	CHECK(decoded.rights.grant.capability.permissions == OSD_PERM_READ &&
	      decoded.rights.grant.capability.policy_access_tag == 7);
	CHECK(memcmp(decoded.rights.key_stamp, "stamped", OSD_KEY_STAMP) == 0);
	for (size_t cut = 0; cut < length; cut++)
		CHECK(osd_job_record_decode(bytes, cut, &decoded) != OSD_OK);
	CHECK(bytes[1] == OSD_JOB_RECORD_VERSION - 1); /* which earlier releases read */
	bytes[1] = OSD_JOB_RECORD_VERSION + 1;
	CHECK(osd_job_record_decode(bytes, length, &decoded) != OSD_OK);
	bytes[1] = OSD_JOB_RECORD_VERSION; /* it ends with the begin */
	CHECK(osd_job_record_decode(bytes, length, &decoded) != OSD_OK);
	bytes[1] = 4; /* one before ends with the rights */
	length -= CHARGED + STARVED;
	CHECK(osd_job_record_decode(bytes, length, &decoded) == OSD_OK);
	CHECK(decoded.charged == OSD_JOB_UNCOUNTED && decoded.rights.limited);
	CHECK(decoded.starved_usec == 0);
	bytes[1] = 2; /* the second with the package set */
	length -= RIGHTS + ARRAY_NUMBERS;
	CHECK(osd_job_record_decode(bytes, length, &decoded) == OSD_OK);
	CHECK(decoded.array.object_id == 0 && decoded.predecessor.object_id == 0);
	CHECK(strcmp(decoded.pool, "numpy") == 0);
	bytes[1] = 1; /* the first one ends with the principal */
	length -= 4 + strlen(record.pool) + strlen(record.set);
	CHECK(osd_job_record_decode(bytes, length, &decoded) == OSD_OK);
	CHECK(!decoded.pool[0] && !decoded.set[0] && strcmp(decoded.name, "a name") == 0);
	for (size_t cut = 0; cut < length; cut++)
		CHECK(osd_job_record_decode(bytes, cut, &decoded) != OSD_OK);

	memset(record.name, 'n', sizeof(record.name) - 1);
	memset(record.message, 'm', sizeof(record.message) - 1);
	memset(record.principal, 'p', sizeof(record.principal) - 1);
	memset(record.pool, 'q', sizeof(record.pool) - 1);
	memset(record.set, 's', sizeof(record.set) - 1);
	record.key_length = OSD_JOB_KEY_MAX;
	record.begin_msec = 1795000000000;
	length = osd_job_record_encode(&record, bytes);
	CHECK(length < OSD_JOB_RECORD_MAX && bytes[1] == OSD_JOB_RECORD_VERSION);
	CHECK(osd_job_record_decode(bytes, length, &decoded) == OSD_OK);
	CHECK(decoded.begin_msec == record.begin_msec && decoded.charged == record.charged);
	CHECK(osd_job_record_decode(bytes, length - 1, &decoded) != OSD_OK);
}

static bool count_record(void *arg, const struct osd_job_record *record)
{
	*(size_t *)arg += record->id.object_id == 0x10007;
	return true;
}

static void test_code(struct osd_txn *txn, const struct osd_job_record *record)
{
	static uint8_t code[200000], back[200005];

	for (size_t i = 0; i < sizeof(code); i++)
		code[i] = (uint8_t)(i * 7 / 3);
	CHECK(osd_job_code_put(txn, record, (const uint8_t *)"args!", code) == OSD_OK);
	CHECK(osd_job_code_get(txn, record, back) == OSD_OK);
	CHECK(memcmp(back, "args!", 5) == 0 && memcmp(back + 5, code, sizeof(code)) == 0);
	CHECK(osd_job_code_delete(txn, record) == OSD_OK);
	CHECK(osd_job_code_get(txn, record, back) == OSD_E_NO_OBJECT);
}

static void test_expiry(struct osd_txn *txn, struct osd_job_record *record)
{
	struct osd_object_id ids[2];
	size_t count = 0;
	uint64_t next = 0;

	CHECK(osd_job_expiry_move(txn, record, 0) == OSD_OK);
	CHECK(osd_job_record_expired(txn, 999, ids, 2, &count, &next) == OSD_OK && count == 0);
	CHECK(next == 1000);
	CHECK(osd_job_record_expired(txn, 1000, ids, 2, &count, &next) == OSD_OK && count == 1);
	CHECK(next == UINT64_MAX);
	CHECK(ids[0].object_id == record->id.object_id);
	record->expiry_msec = 5000;
	CHECK(osd_job_expiry_move(txn, record, 1000) == OSD_OK);
	CHECK(osd_job_record_expired(txn, 4999, ids, 2, &count, &next) == OSD_OK && count == 0);
	CHECK(next == 5000);
}

static void test_key(struct osd_txn *txn, const struct osd_job_record *record)
{
	struct osd_job_record other = *record;
	struct osd_object_id id;

	CHECK(osd_job_key_find(txn, record, &id) == OSD_E_NO_OBJECT);
	CHECK(osd_job_key_put(txn, record) == OSD_OK);
	CHECK(osd_job_key_put(txn, record) == OSD_E_EXISTS);
	CHECK(osd_job_key_find(txn, record, &id) == OSD_OK && id.object_id == 0x10007);
	snprintf(other.principal, sizeof(other.principal), "chap:bob");
	CHECK(osd_job_key_find(txn, &other, &id) == OSD_E_NO_OBJECT);
}

static void test_companion(struct osd_txn *txn, const struct osd_job_record *record)
{
	struct osd_object_id companion = {record->id.partition_id, record->result_object}, job;

	CHECK(osd_job_companion_find(txn, companion, &job) == OSD_E_NO_OBJECT);
	CHECK(osd_job_companion_put(txn, record->id, companion.object_id) == OSD_OK);
	CHECK(osd_job_companion_find(txn, companion, &job) == OSD_OK);
	CHECK(job.partition_id == record->id.partition_id && job.object_id == record->id.object_id);
}

int main(void)
{
	struct osd_objects_config config = {.create = true};
	struct osd_job_record record = sample(), back;
	struct osd_objects *objects;
	struct osd_txn *txn;
	char message[256];
	uint8_t payload[16];
	size_t length = 0, seen = 0;

	test_encoding();
	CHECK(osd_objects_open(&config, message, &objects) == OSD_OK);
	CHECK(osd_txn_begin(objects, OSD_TXN_INTERNAL, &txn) == OSD_OK);
	CHECK(osd_job_record_get(txn, record.id, &back) == OSD_E_NO_OBJECT);
	CHECK(osd_job_record_put(txn, &record) == OSD_OK);
	CHECK(osd_job_record_get(txn, record.id, &back) == OSD_OK && back.sequence == 42);
	test_code(txn, &record);
	CHECK(osd_job_payload_put(txn, record.id, OSD_PAYLOAD_RESULT, "42", 2) == OSD_OK);
	CHECK(osd_job_payload_get(txn, record.id, OSD_PAYLOAD_RESULT, payload, sizeof(payload),
				  &length) == OSD_OK);
	CHECK(length == 2 && payload[1] == '2');
	test_expiry(txn, &record);
	test_key(txn, &record);
	test_companion(txn, &record);
	CHECK(osd_job_record_each(txn, count_record, &seen) == OSD_OK && seen == 1);
	CHECK(osd_job_record_delete(txn, &record) == OSD_OK);
	seen = 0;
	CHECK(osd_job_record_each(txn, count_record, &seen) == OSD_OK && seen == 0);
	CHECK(osd_job_companion_find(txn, (struct osd_object_id){0x10000, record.result_object},
				     &back.id) == OSD_E_NO_OBJECT);
	CHECK(osd_job_record_delete(txn, &record) == OSD_OK);
	osd_txn_abort(txn);
	osd_objects_close(objects);
	return 0;
}
