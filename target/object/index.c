/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index.c -- the indexed pages of a partition and the stage of each: in the store, in memory, and in
 * the partition's attribute page OSD_PAGE_INDEX. */
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "object/attr_table.h"
#include "object/query.h"
#include "object/value_index.h"
#include "wire/cursor.h"

#define RESERVED_FIRST 0x80u /* pages that no object has (osd2-wire 5.1) */
#define RESERVED_LAST  0x7fffu

/* The one standard page that can be indexed has the user's own name.  Computed pages cannot be. */
static bool may_declare(const struct osd_objects *objects, uint32_t page)
{
	if (page >= OSD_PAGE_PARTITION_BASE || osd_objects_page(objects, page))
		return false;
	if (page >= RESERVED_FIRST && page <= RESERVED_LAST)
		return false;
	return page == OSD_REL_INFORMATION || !osd_std_page(OSD_USER_OBJECT, page);
}

/* ---- in the store ------------------------------------------------------------------------ */

static struct osd_key stage_key(const struct osd_partition *partition, uint32_t page)
{
	return osd_key_index_stage(partition->id, partition->incarnation, page);
}

enum osd_status osd_index_get(struct osd_objects *objects, struct osd_kv_txn *kv,
			      const struct osd_partition *partition, uint32_t page, bool rmw,
			      struct osd_index_record *ret_record)
{
	struct osd_key key = stage_key(partition, page);
	uint8_t bytes[OSD_INDEX_RECORD_BYTES];
	enum osd_status status;
	size_t length;

	status = osd_kv_get(objects->kv, kv, OSD_KV_META, osd_key_bytes(&key), rmw ? OSD_KV_RMW : 0,
			    bytes, sizeof(bytes), &length);
	return status == OSD_OK ? osd_index_record_decode(bytes, length, ret_record) : status;
}

enum osd_status osd_index_put(struct osd_kv_txn *kv, const struct osd_partition *partition,
			      uint32_t page, const struct osd_index_record *record)
{
	struct osd_key key = stage_key(partition, page);
	uint8_t bytes[OSD_INDEX_RECORD_BYTES];

	osd_index_record_encode(record, bytes);
	return osd_key_put(kv, OSD_KV_META, &key, bytes, sizeof(bytes));
}

/* The declared pages of a partition, ascending. */
struct stages {
	struct {
		uint32_t page;
		enum osd_index_stage stage;
	} list[OSD_INDEX_PAGES];
	size_t count;
	enum osd_status status;
};

static bool add_stage(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct stages *stages = arg;
	struct osd_index_record record;

	stages->status = osd_index_record_decode(value.data, value.length, &record);
	if (stages->status == OSD_OK &&
	    (key.length != 1 + OSD_KEY_PARTITION_PART + 4 || stages->count == OSD_INDEX_PAGES))
		stages->status = OSD_E_MEDIUM;
	if (stages->status != OSD_OK)
		return false;
	stages->list[stages->count].page =
		(uint32_t)osd_get_be((const uint8_t *)key.data + 1 + OSD_KEY_PARTITION_PART, 4);
	stages->list[stages->count++].stage = record.stage;
	return true;
}

static enum osd_status read_stages(struct osd_objects *objects, struct osd_kv_txn *kv,
				   const struct osd_partition *partition, struct stages *ret_stages)
{
	struct osd_key prefix =
		osd_key_meta_partition(OSD_META_INDEX, partition->id, partition->incarnation);
	enum osd_status status;

	ret_stages->count = 0;
	ret_stages->status = OSD_OK;
	status = osd_kv_scan(objects->kv, kv, OSD_KV_META, osd_key_bytes(&prefix), prefix.length,
			     add_stage, ret_stages);
	return status == OSD_OK ? ret_stages->status : status;
}

/* ---- in memory --------------------------------------------------------------------------- */

/* A page keeps its slot while it is declared. */
static void set_slots(struct osd_partition *partition, const struct stages *stages)
{
	struct osd_index_slots *slots = atomic_load(&partition->index);
	uint64_t free_slots = ~UINT64_C(0);

	_Static_assert(OSD_INDEX_PAGES == 64, "one bit each");
	for (size_t i = 0; i < OSD_INDEX_PAGES; i++) {
		/* Readers take no lock.  One store changes page and stage together, and a page that
		 * stays is found at any moment. */
		uint64_t word = atomic_load(&slots->words[i]), now = 0;

		for (size_t j = 0; word && j < stages->count; j++)
			if (stages->list[j].page == word >> 8)
				now = (word & ~UINT64_C(0xff)) | stages->list[j].stage;
		atomic_store(&slots->words[i], now);
		if (now)
			free_slots &= ~(UINT64_C(1) << i);
	}
	for (size_t j = 0; j < stages->count; j++) {
		int slot;

		if (osd_index_stage_of(partition, stages->list[j].page) != OSD_INDEX_UNDECLARED)
			continue;
		slot = __builtin_ctzll(free_slots); /* there are as many as pages */
		atomic_store(&slots->words[slot],
			     (uint64_t)stages->list[j].page << 8 | stages->list[j].stage);
		free_slots &= free_slots - 1;
	}
}

enum osd_status osd_index_reload(struct osd_objects *objects, struct osd_partition *partition)
{
	struct stages stages;
	enum osd_status status;

	osd_lock(&objects->index_lock);
	/* Read with the lock held: otherwise an older reading could be stored after a newer one. */
	status = read_stages(objects, NULL, partition, &stages);
	if (status == OSD_OK && stages.count && !atomic_load(&partition->index)) {
		struct osd_index_slots *slots = calloc(1, sizeof(*slots));

		atomic_store(&partition->index, slots);
		status = slots ? OSD_OK : OSD_E_NO_MEMORY;
	}
	if (status == OSD_OK && atomic_load(&partition->index))
		set_slots(partition, &stages);
	/* The serial number tells a query that has seen the earlier state. */
	atomic_fetch_add(&partition->index_serial, 1);
	osd_unlock(&objects->index_lock);
	return status;
}

/* ---- at open ----------------------------------------------------------------------------- */

/* A release without indexes has changed attributes since then: all indexes are built again. */
static enum osd_status build_anew(struct osd_objects *objects, struct osd_kv_txn *kv)
{
	struct osd_key prefix = osd_key_meta(OSD_META_INDEX);
	struct osd_index_record record;
	uint8_t bytes[OSD_INDEX_RECORD_BYTES];
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes key;
	size_t length;
	enum osd_status status = osd_key_list_collect(objects, kv, OSD_KV_META,
						      osd_key_bytes(&prefix), SIZE_MAX, &list);

	while (status == OSD_OK && osd_key_list_next(&list, &key)) {
		status = osd_kv_get(objects->kv, kv, OSD_KV_META, key, OSD_KV_RMW, bytes,
				    sizeof(bytes), &length);
		if (status == OSD_OK)
			status = osd_index_record_decode(bytes, length, &record);
		if (status != OSD_OK || !osd_index_is_kept(record.stage))
			continue;
		record = (struct osd_index_record){.stage = OSD_INDEX_CLEAR};
		osd_index_record_encode(&record, bytes);
		status = osd_kv_put(kv, OSD_KV_META, key, (struct osd_bytes){bytes, sizeof(bytes)},
				    0);
	}
	return status;
}

enum osd_status osd_index_begin_run(struct osd_objects *objects, struct osd_kv_txn *kv,
				    uint64_t before, uint64_t now)
{
	struct osd_key key = osd_key_meta(OSD_META_INDEX_BOOT);
	uint8_t bytes[4] = {0};
	size_t length = sizeof(bytes);
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_META, osd_key_bytes(&key),
					    OSD_KV_RMW, bytes, sizeof(bytes), &length);

	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	if (length != sizeof(bytes) || osd_get_be(bytes, sizeof(bytes)) != before) {
		status = build_anew(objects, kv);
		if (status != OSD_OK)
			return status;
	}
	osd_put_be(bytes, now, sizeof(bytes));
	return osd_key_put(kv, OSD_KV_META, &key, bytes, sizeof(bytes));
}

enum osd_status osd_index_load(struct osd_objects *objects)
{
	struct osd_key prefix = osd_key_meta(OSD_META_INDEX);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes key;
	enum osd_status status = osd_key_list_collect(objects, NULL, OSD_KV_META,
						      osd_key_bytes(&prefix), SIZE_MAX, &list);

	while (status == OSD_OK && osd_key_list_next(&list, &key)) {
		OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;

		if (key.length != 1 + OSD_KEY_PARTITION_PART + 4)
			status = OSD_E_MEDIUM;
		else if (osd_partition_of_key(objects, (const uint8_t *)key.data + 1, &partition))
			status = osd_index_reload(objects, partition);
	}
	return status;
}

/* ---- the page ---------------------------------------------------------------------------- */

static uint8_t state_of(enum osd_index_stage stage)
{
	if (stage == OSD_INDEX_CLEAR || stage == OSD_INDEX_FILL)
		return OSD_INDEX_BUILDING;
	return stage == OSD_INDEX_DONE ? OSD_INDEX_READY : OSD_INDEX_NONE;
}

static enum osd_status page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				size_t *ret_length)
{
	struct osd_index_record record;
	enum osd_status status =
		osd_index_get(txn->objects, txn->kv, txn->partition, number, false, &record);

	(void)context;
	(void)id;
	(void)page;
	*ret_length = 0;
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && state_of(record.stage) != OSD_INDEX_NONE) {
		if (capacity)
			buffer[0] = state_of(record.stage);
		*ret_length = 1;
	}
	return status;
}

static enum osd_status page_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				 uint32_t page, osd_attr_fn *fn, void *arg)
{
	struct stages stages;
	enum osd_status status = read_stages(txn->objects, txn->kv, txn->partition, &stages);

	(void)context;
	(void)id;
	for (size_t i = 0; status == OSD_OK && i < stages.count; i++) {
		uint8_t state = state_of(stages.list[i].stage);

		if (state != OSD_INDEX_NONE)
			status = fn(arg, page, stages.list[i].page, &state, 1);
	}
	return status;
}

static void run_changed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	/* If this fails, the builder does it again at its next run. */
	if (committed && osd_index_reload(txn->objects, effect->partition) != OSD_OK)
		osd_debug("cannot read the stages of indexes yet");
	if (committed)
		osd_kick_indexer(txn->objects);
}

static enum osd_status change_stage(struct osd_txn *txn, uint32_t page, enum osd_index_stage stage)
{
	struct osd_index_record record = {.stage = stage};
	enum osd_status status = osd_txn_add_effect(
		txn, (struct osd_effect){.run = run_changed, .partition = txn->partition});

	return status == OSD_OK ? osd_index_put(txn->kv, txn->partition, page, &record) : status;
}

static enum osd_status declare(struct osd_txn *txn, uint32_t page, enum osd_index_stage before)
{
	struct stages stages;
	enum osd_status status = OSD_OK;

	if (before != OSD_INDEX_UNDECLARED && before != OSD_INDEX_DROP)
		return OSD_OK;
	if (atomic_load(&txn->objects->disk_full))
		return OSD_E_NO_SPACE;
	/* A page that is being dropped still has its record: it is counted already. */
	if (before == OSD_INDEX_UNDECLARED)
		status = read_stages(txn->objects, txn->kv, txn->partition, &stages);
	if (status == OSD_OK && before == OSD_INDEX_UNDECLARED && stages.count == OSD_INDEX_PAGES)
		status = OSD_E_QUOTA;
	return status == OSD_OK ? change_stage(txn, page, OSD_INDEX_CLEAR) : status;
}

static enum osd_status page_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	struct osd_index_record record = {.stage = OSD_INDEX_UNDECLARED};
	enum osd_status status;

	(void)context;
	(void)id;
	(void)page;
	if (number == 0 || !may_declare(txn->objects, number))
		return OSD_E_PARAM_FIELD;
	if (length != 0 && (length != 1 || value[0] != OSD_INDEX_BUILDING))
		return OSD_E_PARAM_FIELD;
	status = osd_index_get(txn->objects, txn->kv, txn->partition, number, true, &record);
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	if (length)
		return declare(txn, number, record.stage);
	if (record.stage == OSD_INDEX_UNDECLARED || record.stage == OSD_INDEX_DROP)
		return OSD_OK;
	return change_stage(txn, number, OSD_INDEX_DROP);
}

const struct osd_page_provider osd_index_page = {
	.page = OSD_PAGE_INDEX,
	.page_name = "Attribute Value Index",
	.get = page_get,
	.each = page_each,
	.set = page_set,
};
