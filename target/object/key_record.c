/* SPDX-License-Identifier: GPL-2.0-or-later */
/* key_record.c -- see key_record.h.  The key of a record begins with the partition's id and incarnation,
 * as most keys do.  So no lookup finds records of a removed partition, and the reaper frees them. */
#include "object/key_record.h"

#include <string.h>

#include "base/util.h"
#include "object/internal.h"
#include "wire/cursor.h"

enum { KIND_NONCES = 5 }; /* beside enum osd_key_level */

#define RECORD_VERSION 1
#define KEY_LENGTH     (OSD_KEY_PARTITION_PART + 2)
#define RECORD_BYTES   (1 + OSD_KEY_IDENTIFIER + OSD_KEY_SEALED)
#define SPAN_BYTES     16
#define SPANS_MAX      (1 + OSD_NONCE_SPANS * SPAN_BYTES)

static struct osd_key make_key(uint64_t partition_id, uint32_t incarnation, uint8_t kind,
			       uint8_t version)
{
	struct osd_key key = {.length = KEY_LENGTH};

	osd_put_be(key.bytes, partition_id, 8);
	osd_put_be(key.bytes + 8, incarnation, 4);
	key.bytes[12] = kind;
	key.bytes[13] = version;
	return key;
}

/* Partition zero has incarnation 0 in every epoch of the store.  No other partition has it. */
static enum osd_status key_of(struct osd_txn *txn, uint64_t partition_id, uint8_t kind,
			      uint8_t version, struct osd_key *ret_key)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = OSD_OK;

	if (partition_id != 0)
		status = osd_partition_get(txn->objects, txn, partition_id, &partition);
	*ret_key = make_key(partition_id, partition ? partition->incarnation : 0, kind, version);
	return status;
}

/* As key_of, and holds the partition until the transaction ends: no record is stored below a
 * partition whose removal has been committed. */
static enum osd_status held_key_of(struct osd_txn *txn, uint64_t partition_id, uint8_t kind,
				   uint8_t version, struct osd_key *ret_key)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status = osd_txn_lock_store(txn);

	if (status == OSD_OK && partition_id != 0)
		status = osd_partition_get(txn->objects, txn, partition_id, &partition);
	if (status == OSD_OK && partition)
		status = osd_partition_hold(txn, partition, false, NULL);
	*ret_key = make_key(partition_id, partition ? partition->incarnation : 0, kind, version);
	return status;
}

static enum osd_status get(struct osd_txn *txn, const struct osd_key *key, uint8_t *bytes,
			   size_t capacity, size_t *ret_length)
{
	unsigned flags = txn->kv && !(txn->flags & OSD_TXN_READ_ONLY) ? OSD_KV_RMW : 0;

	return osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_KEYS, osd_key_bytes(key), flags, bytes,
			  capacity, ret_length);
}

/* ---- keys -------------------------------------------------------------------------------- */

static enum osd_status decode(const uint8_t *bytes, size_t length,
			      struct osd_key_record *ret_record)
{
	if (length != RECORD_BYTES || bytes[0] != RECORD_VERSION)
		return OSD_E_MEDIUM;
	memcpy(ret_record->identifier, bytes + 1, OSD_KEY_IDENTIFIER);
	memcpy(ret_record->sealed, bytes + 1 + OSD_KEY_IDENTIFIER, OSD_KEY_SEALED);
	return OSD_OK;
}

enum osd_status osd_key_record_get(struct osd_txn *txn, const struct osd_key_name *name,
				   struct osd_key_record *ret_record)
{
	uint8_t bytes[RECORD_BYTES];
	struct osd_key key;
	size_t length;
	enum osd_status status =
		key_of(txn, name->partition_id, (uint8_t)name->level, name->version, &key);

	if (status == OSD_OK)
		status = get(txn, &key, bytes, sizeof(bytes), &length);
	if (status == OSD_OK)
		status = decode(bytes, length, ret_record);
	return status;
}

enum osd_status osd_key_record_put(struct osd_txn *txn, const struct osd_key_name *name,
				   const struct osd_key_record *record)
{
	uint8_t bytes[RECORD_BYTES] = {RECORD_VERSION};
	struct osd_key key;
	enum osd_status status =
		held_key_of(txn, name->partition_id, (uint8_t)name->level, name->version, &key);

	if (status != OSD_OK)
		return status;
	memcpy(bytes + 1, record->identifier, OSD_KEY_IDENTIFIER);
	memcpy(bytes + 1 + OSD_KEY_IDENTIFIER, record->sealed, OSD_KEY_SEALED);
	return osd_key_put(txn->kv, OSD_KV_KEYS, &key, bytes, sizeof(bytes));
}

/* Nonces stay: those of partition zero also are of commands that keys above have signed. */
static enum osd_status remove_level(struct osd_txn *txn, struct osd_key_list *list, uint8_t above)
{
	struct osd_bytes key;
	enum osd_status status = OSD_OK;

	while (status == OSD_OK && osd_key_list_next(list, &key)) {
		uint8_t kind = key.length == KEY_LENGTH ? ((const uint8_t *)key.data)[12] : 0;

		if (kind > above && kind <= OSD_KEY_WORKING)
			status = osd_kv_remove(txn->kv, OSD_KV_KEYS, key);
		if (status == OSD_E_NO_OBJECT)
			status = OSD_OK;
	}
	return status;
}

enum osd_status osd_key_record_remove_below(struct osd_txn *txn, const struct osd_key_name *name)
{
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_key key;
	size_t prefix = name->level >= OSD_KEY_PARTITION ? OSD_KEY_PARTITION_PART : 0;
	enum osd_status status = held_key_of(txn, name->partition_id, 0, 0, &key);

	if (status == OSD_OK)
		status = osd_key_list_collect(txn->objects, txn->kv, OSD_KV_KEYS,
					      (struct osd_bytes){key.bytes, prefix}, SIZE_MAX,
					      &list);
	return status == OSD_OK ? remove_level(txn, &list, (uint8_t)name->level) : status;
}

struct each {
	struct osd_txn *txn;
	bool (*fn)(void *arg, const struct osd_key_name *name, const struct osd_key_record *record);
	void *arg;
	enum osd_status status;
};

static bool is_there(struct each *each, uint64_t partition_id, uint32_t incarnation)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;

	if (partition_id == 0)
		return incarnation == 0;
	return osd_partition_get(each->txn->objects, each->txn, partition_id, &partition) ==
		       OSD_OK &&
	       partition->incarnation == incarnation;
}

static bool each_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct each *each = arg;
	struct osd_rd r = osd_rd_init(key.data, key.length);
	struct osd_key_name name = {.partition_id = osd_rd_be(&r, 8)};
	uint32_t incarnation = (uint32_t)osd_rd_be(&r, 4);
	struct osd_key_record record;

	name.level = (enum osd_key_level)osd_rd_be(&r, 1);
	name.version = (uint8_t)osd_rd_be(&r, 1);
	if (name.level > OSD_KEY_WORKING || !is_there(each, name.partition_id, incarnation))
		return true;
	if (key.length != KEY_LENGTH || name.version >= OSD_KEY_VERSIONS)
		each->status = OSD_E_MEDIUM;
	else
		each->status = decode(value.data, value.length, &record);
	return each->status == OSD_OK && each->fn(each->arg, &name, &record);
}

enum osd_status osd_key_record_each(struct osd_txn *txn,
				    bool (*fn)(void *arg, const struct osd_key_name *name,
					       const struct osd_key_record *record),
				    void *arg)
{
	struct each each = {txn, fn, arg, OSD_OK};
	enum osd_status status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_KEYS,
					     (struct osd_bytes){"", 0}, 0, each_one, &each);

	return status == OSD_OK ? each.status : status;
}

/* ---- nonces ------------------------------------------------------------------------------ */

/* Times have 48 bits.  A span may end a second after the last one (security/nonce.c). */
static bool are_in_order(const struct osd_nonce_spans *spans)
{
	for (size_t i = 0; i < spans->count; i++)
		if (spans->span[i].first > spans->span[i].last || spans->span[i].last >> 49 ||
		    (i > 0 && spans->span[i - 1].last >= spans->span[i].first))
			return false;
	return true;
}

enum osd_status osd_nonce_spans_get(struct osd_txn *txn, uint64_t partition_id,
				    struct osd_nonce_spans *ret_spans)
{
	uint8_t bytes[SPANS_MAX];
	struct osd_key key;
	size_t length;
	enum osd_status status = key_of(txn, partition_id, KIND_NONCES, 0, &key);

	*ret_spans = (struct osd_nonce_spans){0};
	if (status == OSD_OK)
		status = get(txn, &key, bytes, sizeof(bytes), &length);
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	if (length < 1 || length > SPANS_MAX || length % SPAN_BYTES != 1 ||
	    bytes[0] != RECORD_VERSION)
		return OSD_E_MEDIUM;
	ret_spans->count = length / SPAN_BYTES;
	for (size_t i = 0; i < ret_spans->count; i++) {
		ret_spans->span[i].first = osd_get_be(bytes + 1 + SPAN_BYTES * i, 8);
		ret_spans->span[i].last = osd_get_be(bytes + 9 + SPAN_BYTES * i, 8);
	}
	return are_in_order(ret_spans) ? OSD_OK : OSD_E_MEDIUM;
}

enum osd_status osd_nonce_spans_put(struct osd_txn *txn, uint64_t partition_id,
				    const struct osd_nonce_spans *spans)
{
	uint8_t bytes[SPANS_MAX] = {RECORD_VERSION};
	struct osd_key key;
	enum osd_status status = held_key_of(txn, partition_id, KIND_NONCES, 0, &key);

	for (size_t i = 0; i < spans->count; i++) {
		osd_put_be(bytes + 1 + SPAN_BYTES * i, spans->span[i].first, 8);
		osd_put_be(bytes + 9 + SPAN_BYTES * i, spans->span[i].last, 8);
	}
	if (status == OSD_OK)
		status = osd_key_put(txn->kv, OSD_KV_KEYS, &key, bytes,
				     1 + SPAN_BYTES * spans->count);
	return status;
}
