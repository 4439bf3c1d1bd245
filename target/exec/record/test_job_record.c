/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_job_record.c -- records of all versions are read and written in the present form, damaged ones are
 * refused; code, payloads, keys and expiry in the in-memory store. */
#include <string.h>

#include "base/log.h"
#include "base/test.h"
#include "base/util.h"
#include "exec/record/record.h"
#include "wire/cursor.h"
#include "wire/test_golden.h"

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
		.used_length = 100000,
		.result_object = 0x10009,
	};

	return record;
}

/* The job of the golden records, of which version 6 and 7 say all. */
static void check_numbers(const struct osd_job_record *record)
{
	CHECK(record->id.partition_id == 0x10000 && record->id.object_id == 0x10007);
	CHECK(record->sequence == 42 && record->generation == UINT64_MAX - 1);
	CHECK(record->reason == OSD_REASON_EXIT_CODE && record->exit_code == 7);
	CHECK(record->attempt == 2 && record->progress == 50 && record->priority == -100);
	CHECK(record->submitted_msec == 1795000000000 && record->keep_msec == 3600000);
	CHECK(record->zone.type == OSD_COLLECTION && record->zone.id.object_id == 0x10001);
	CHECK(record->limits.wall_usec == 1 && record->limits.result_bytes == 8);
	CHECK(record->args_length == 5 && record->code_length == 200000);
	CHECK(record->code_sha256[31] == 31 && record->content_sha256[0] == 128);
	CHECK(record->key_length == 3 && memcmp(record->key, "key", 3) == 0);
	CHECK(strcmp(record->name, "a name") == 0 && strcmp(record->message, "half way") == 0);
	CHECK(strcmp(record->principal, "chap:alice") == 0);
}

static void check_rights(const struct osd_job_rights *rights)
{
	CHECK(rights->limited && rights->grant.verified && !rights->grant.open);
	CHECK(rights->grant.level == 3 && rights->grant.key_partition == 0x10000);
	CHECK(rights->grant.capability.permissions == OSD_PERM_READ);
	CHECK(rights->grant.capability.policy_access_tag == 7);
	CHECK(memcmp(rights->key_stamp, "stamped", OSD_KEY_STAMP) == 0);
}

/* What a record of this version says, and nothing that only later ones do. */
static void check_version(unsigned version, const struct osd_job_record *record)
{
	check_numbers(record);
	CHECK(record->state == (version < 6 ? OSD_STATE_RUNNING : OSD_STATE_HELD));
	CHECK(strcmp(record->pool, version < 2 ? "" : "numpy") == 0);
	CHECK(strcmp(record->set, version < 2 ? "" : "numpy-0123456789abcdef") == 0);
	CHECK(record->array.object_id == (version < 3 ? 0 : 0x10005));
	CHECK(record->array.at_once == (version < 3 ? 0 : 4));
	CHECK(record->array.ending == (version < 3 ? 0 : OSD_REASON_KILLED));
	CHECK(record->predecessor.object_id == (version < 3 ? 0 : 0x10001));
	CHECK(record->rights.limited == (version >= 4));
	if (version >= 4)
		check_rights(&record->rights);
	CHECK(record->starved_usec == (version < 5 ? 0 : 4100000));
	CHECK(record->charged == (version < 5 ? OSD_JOB_UNCOUNTED : 201029));
	CHECK(record->begin_msec == (version < 6 ? 0 : 1795000060000));
}

/* Each version is read, cut off nowhere, and written again as the last one. */
static void test_versions(void)
{
	struct osd_job_record record, again;
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	struct golden last = golden("job_record.v7");
	char name[16];

	for (unsigned version = 1; version <= OSD_JOB_RECORD_VERSION; version++) {
		struct golden frame;
		size_t length;

		snprintf(name, sizeof(name), "job_record.v%u", version);
		frame = golden(name);
		CHECK(osd_job_record_decode(frame.bytes, frame.length, &record) == OSD_OK);
		check_version(version, &record);
		length = osd_job_record_encode(&record, bytes);
		CHECK(bytes[1] == OSD_JOB_RECORD_VERSION);
		CHECK(osd_job_record_decode(bytes, length, &again) == OSD_OK);
		check_version(version, &again);
		CHECK(version < 6 ||
		      (length == last.length && memcmp(bytes, last.bytes, length) == 0));
		for (size_t cut = 0; cut < frame.length; cut++)
			CHECK(osd_job_record_decode(frame.bytes, cut, &again) != OSD_OK);
		frame.bytes[frame.length] = 0;
		CHECK(osd_job_record_decode(frame.bytes, frame.length + 1, &again) != OSD_OK);
	}
	for (unsigned version = 0; version <= 0xffff; version++) {
		osd_put_be(last.bytes, version, 2);
		if (version < 1 || version > OSD_JOB_RECORD_VERSION)
			CHECK(osd_job_record_decode(last.bytes, last.length, &again) != OSD_OK);
	}
}

/* A record of the present version with this field behind all others. */
static enum osd_status with_field(uint32_t tag, const void *value, size_t length,
				  struct osd_job_record *ret_record)
{
	struct osd_job_record record = {.state = OSD_STATE_HELD};
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	size_t used = osd_job_record_encode(&record, bytes);

	osd_put_be(bytes + used, tag, 2);
	osd_put_be(bytes + used + 2, length, 2);
	memcpy(bytes + used + 4, value, length);
	osd_put_be(bytes + 2, used + 4 + length, 2);
	return osd_job_record_decode(bytes, used + 4 + length, ret_record);
}

static void test_fields(void)
{
	struct osd_job_record record;
	uint8_t zeros[512] = {0};
	char text[512];

	memset(text, 't', sizeof(text));
	CHECK(with_field(6, text, OSD_JOB_NAME_MAX, &record) == OSD_OK);
	CHECK(strlen(record.name) == OSD_JOB_NAME_MAX);
	CHECK(with_field(6, text, OSD_JOB_NAME_MAX + 1, &record) != OSD_OK);
	CHECK(with_field(6, "a\0b", 3, &record) != OSD_OK);
	CHECK(with_field(5, text, OSD_JOB_KEY_MAX, &record) == OSD_OK);
	CHECK(with_field(5, text, OSD_JOB_KEY_MAX + 1, &record) != OSD_OK);
	CHECK(with_field(1, "\0\0\0\0\0\0\0\5", 8, &record) == OSD_OK && record.begin_msec == 5);
	for (unsigned tag = 1; tag <= 4; tag++) { /* whose lengths are fixed */
		static const size_t wanted[] = {0, 8, 22, 16, 121};

		for (size_t length = 0; length < 200; length++)
			CHECK((with_field(tag, zeros, length, &record) == OSD_OK) ==
			      (length == wanted[tag]));
	}
	/* Fields of later releases: skipped, or refused when they must be understood. */
	CHECK(with_field(11, text, 100, &record) == OSD_OK && record.state == OSD_STATE_HELD);
	CHECK(with_field(0x7fff, text, 0, &record) == OSD_OK);
	CHECK(with_field(0x8000, text, 100, &record) != OSD_OK);
	CHECK(with_field(0xffff, text, 0, &record) != OSD_OK);
	CHECK(with_field(0, text, 1, &record) != OSD_OK); /* no tag */
}

/* Tags ascend. */
static void test_order(void)
{
	struct golden frame = golden("job_record.v7");
	struct osd_job_record record;
	size_t last = frame.length - 4 - strlen("numpy-0123456789abcdef");

	CHECK(frame.bytes[last + 1] == 10);
	for (unsigned tag = 0; tag < 10; tag++) {
		frame.bytes[last + 1] = (uint8_t)tag;
		CHECK(osd_job_record_decode(frame.bytes, frame.length, &record) != OSD_OK);
	}
}

/* No state that is none may index a table of states. */
static void test_states(void)
{
	struct osd_job_record record = {.state = OSD_STATE_HELD}, decoded;
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	unsigned known = 0;

	for (unsigned state = 0; state < 256; state++) {
		record.state = (uint8_t)state;
		known += osd_job_record_decode(bytes, osd_job_record_encode(&record, bytes),
					       &decoded) == OSD_OK;
	}
	CHECK(known == 12);
}

static void test_longest(void)
{
	struct osd_job_record record = sample(), decoded;
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	size_t length;

	memset(record.name, 'n', sizeof(record.name) - 1);
	memset(record.message, 'm', sizeof(record.message) - 1);
	memset(record.principal, 'p', sizeof(record.principal) - 1);
	memset(record.pool, 'q', sizeof(record.pool) - 1);
	memset(record.set, 's', sizeof(record.set) - 1);
	record.key_length = OSD_JOB_KEY_MAX;
	record.begin_msec = 1795000000000;
	length = osd_job_record_encode(&record, bytes);
	CHECK(length <= OSD_JOB_RECORD_MAX / 2);
	CHECK(osd_job_record_decode(bytes, length, &decoded) == OSD_OK);
	CHECK(memcmp(decoded.principal, record.principal, sizeof(record.principal)) == 0);
	CHECK(decoded.begin_msec == record.begin_msec && decoded.charged == record.charged);
	CHECK(decoded.used_length == record.used_length);
}

static bool count_record(void *arg, const struct osd_job_record *record)
{
	*(size_t *)arg += record->id.object_id == 0x10007;
	return true;
}

static bool count_damaged(void *arg, struct osd_object_id id)
{
	*(size_t *)arg += 100 * (id.object_id == 0x10007);
	return true;
}

/* What a walk finds in these bytes: 1: the record; 100: a damaged one; 0: one that a later release
 * wrote it. */
static size_t found_as(struct osd_txn *txn, struct osd_object_id id, const uint8_t *bytes,
		       size_t length)
{
	uint8_t key[17] = {1}; /* KEY_RECORD of store.c */
	size_t seen = 0;
	enum osd_status status;

	osd_put_be(key + 1, id.partition_id, 8);
	osd_put_be(key + 9, id.object_id, 8);
	CHECK(osd_txn_record_put(txn, OSD_TABLE_JOBS, key, sizeof(key), bytes, length) == OSD_OK);
	status = osd_job_record_each(txn, 0, count_record, count_damaged, &seen);
	CHECK((status == OSD_OK) == (seen != 0));
	return seen;
}

static void test_damaged(struct osd_txn *txn, const struct osd_job_record *record)
{
	struct osd_job_record other = *record;
	uint8_t bytes[OSD_JOB_RECORD_MAX];
	size_t length = osd_job_record_encode(record, bytes);

	CHECK_EQ(found_as(txn, record->id, bytes, length), 1);
	CHECK_EQ(found_as(txn, record->id, bytes, 1), 100);
	CHECK_EQ(found_as(txn, record->id, bytes, length - 1), 100);
	osd_put_be(bytes, 0x4000, 2);
	CHECK_EQ(found_as(txn, record->id, bytes, length), 100);
	osd_put_be(bytes, OSD_JOB_RECORD_VERSION + 1, 2);
	CHECK_EQ(found_as(txn, record->id, bytes, length), 0);
	osd_put_be(bytes, OSD_JOB_RECORD_VERSION, 2);
	osd_put_be(bytes + length, 0x8ffe, 2);
	osd_put_be(bytes + length + 2, 0, 2);
	osd_put_be(bytes + 2, length + 4, 2);
	CHECK_EQ(found_as(txn, record->id, bytes, length + 4), 0);
	other.id.object_id++;
	length = osd_job_record_encode(&other, bytes);
	CHECK_EQ(found_as(txn, record->id, bytes, length), 100);
	length = osd_job_record_encode(record, bytes);
	CHECK_EQ(found_as(txn, record->id, bytes, length), 1);
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

static void test_used(struct osd_txn *txn, const struct osd_job_record *record)
{
	static uint8_t list[100000], piece[OSD_JOB_USED_PIECE];
	size_t length, at = 0;

	for (size_t i = 0; i < sizeof(list); i++)
		list[i] = (uint8_t)(i * 11 / 3);
	CHECK(osd_job_used_put(txn, record, list) == OSD_OK);
	for (uint32_t n = 0; n < osd_job_used_pieces(record); n++, at += length) {
		CHECK(osd_job_used_get(txn, record->id, n, piece, sizeof(piece), &length) == OSD_OK);
		CHECK(memcmp(piece, list + at, length) == 0);
	}
	CHECK_EQ(at, sizeof(list));
	CHECK(osd_job_used_get(txn, record->id, 2, piece, sizeof(piece), &length) ==
	      OSD_E_NO_OBJECT);
}

static void test_expiry(struct osd_txn *txn, struct osd_job_record *record)
{
	struct osd_expired_jobs expired = {.now_msec = 999};

	OK(osd_job_expiry_move(txn, record, 0));
	OK(osd_job_record_expired(txn, &expired));
	CHECK(expired.count == 0 && expired.next_msec == 1000);
	expired.now_msec = 1000;
	OK(osd_job_record_expired(txn, &expired));
	CHECK(expired.count == 1 && expired.next_msec == UINT64_MAX);
	CHECK(expired.ids[0].object_id == record->id.object_id);
	expired.without = 1;
	OK(osd_job_record_expired(txn, &expired));
	CHECK(expired.count == 0);
	record->expiry_msec = 5000;
	OK(osd_job_expiry_move(txn, record, 1000));
	expired = (struct osd_expired_jobs){.now_msec = 4999};
	OK(osd_job_record_expired(txn, &expired));
	CHECK(expired.count == 0 && expired.next_msec == 5000);
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
	struct osd_objects_config config = {0};
	struct osd_job_record record = sample(), back;
	struct osd_objects *objects;
	struct osd_txn *txn;
	char message[256];
	uint8_t payload[16];
	size_t length = 0, seen = 0;

	osd_log_init(-1, "test", OSD_LOG_ERROR); /* of each version that is refused */
	test_versions();
	test_fields();
	test_order();
	test_states();
	test_longest();
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
	test_used(txn, &record);
	test_expiry(txn, &record);
	test_key(txn, &record);
	test_companion(txn, &record);
	CHECK(osd_job_record_each(txn, 0, count_record, count_damaged, &seen) == OSD_OK &&
	      seen == 1);
	test_damaged(txn, &record);
	CHECK(osd_job_record_delete(txn, &record) == OSD_OK);
	seen = 0;
	CHECK(osd_job_record_each(txn, 0, count_record, count_damaged, &seen) == OSD_OK &&
	      seen == 0);
	CHECK(osd_job_companion_find(txn, (struct osd_object_id){0x10000, record.result_object},
				     &back.id) == OSD_E_NO_OBJECT);
	for (uint32_t n = 0; n < 2; n++)
		CHECK(osd_job_used_get(txn, record.id, n, payload, sizeof(payload), &length) ==
		      OSD_E_NO_OBJECT);
	CHECK(osd_job_record_delete(txn, &record) == OSD_OK);
	osd_txn_abort(txn);
	osd_objects_close(objects);
	return 0;
}
