/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index_build.c -- the thread that makes and clears value indexes in the background, in transactions of
 * bounded size.  Each of them also writes its progress, so that the work continues there after a restart
 * or a crash. value_index.h has the stages.
 *
 * A transaction of the builder reads attributes, then writes its progress, then changes entries in
 * order of keys.  All transactions lock in this order.  It holds the partition's record, so a partition
 * that is being removed gets no entry after the reaper has cleared them. */
#include <stdlib.h>

#include "base/util.h"
#include "object/value_index.h"
#include "wire/cursor.h"

#define BATCH_ENTRIES 128u /* made or removed in one transaction */
#define BATCH_SEEKS   256u /* objects whose attributes are looked for in one */

struct build {
	struct osd_objects *objects;
	struct osd_partition *partition; /* borrowed */
	uint32_t page;
	struct osd_index_record record; /* FILL: where the next transaction begins */
	struct osd_index_record from;	/* FILL: where this one began */
	struct osd_key_list list;	/* CLEAR, DROP: what this one removes */
	struct osd_index_key keys[BATCH_ENTRIES];
	size_t count;
	bool stopped_early; /* a scan: record says where to go on */
	bool over;	    /* nothing of this stage is left */
};

/* ---- the partition and the stage --------------------------------------------------------- */

/* Reads the stage for a change.  OSD_E_NO_PARTITION, OSD_E_NO_OBJECT: the index no longer exists. */
static enum osd_status hold_stage(struct build *build, struct osd_kv_txn *kv,
				  enum osd_index_stage *ret_stage)
{
	struct osd_partition_record partition;
	struct osd_index_record record;
	enum osd_status status =
		osd_partition_load(build->objects, kv, build->partition, 0, &partition);

	if (status == OSD_OK)
		status = osd_index_get(build->objects, kv, build->partition, build->page, true,
				       &record);
	if (status == OSD_OK)
		*ret_stage = record.stage;
	return status;
}

/* ---- clearing ---------------------------------------------------------------------------- */

static enum osd_status leave_clear(struct build *build, struct osd_kv_txn *kv,
				   enum osd_index_stage stage)
{
	struct osd_key key = osd_key_index_stage(build->partition->id,
						 build->partition->incarnation, build->page);
	struct osd_index_record fill = {.stage = OSD_INDEX_FILL};

	if (stage == OSD_INDEX_DROP)
		return osd_kv_remove(kv, OSD_KV_META, osd_key_bytes(&key));
	return osd_index_put(kv, build->partition, build->page, &fill);
}

/* Removes the entries listed; without any the stage is over. */
static enum osd_status clear_listed(struct osd_kv_txn *kv, void *arg)
{
	struct build *build = arg;
	enum osd_index_stage stage;
	struct osd_bytes key;
	enum osd_status status = hold_stage(build, kv, &stage);

	if (status != OSD_OK)
		return status;
	build->over = build->list.count == 0 ||
		      (stage != OSD_INDEX_CLEAR && stage != OSD_INDEX_DROP);
	if (build->over)
		return build->list.count == 0 ? leave_clear(build, kv, stage) : OSD_OK;
	build->list.at = 0;
	while (status == OSD_OK && osd_key_list_next(&build->list, &key))
		status = osd_kv_remove(kv, OSD_KV_INDEX, key);
	return status;
}

/* No other thread reads or writes entries in this stage. */
static enum osd_status clear_some(struct build *build)
{
	struct osd_place place = {build->partition->id, build->partition->incarnation, 0};
	struct osd_index_key prefix;
	enum osd_status status;

	osd_index_key_begin(&place, build->page, 0, &prefix);
	prefix.length = OSD_INDEX_PAGE_PART;
	status = osd_key_list_collect(build->objects, NULL, OSD_KV_INDEX,
				      osd_index_key_bytes(&prefix), BATCH_ENTRIES, &build->list);
	if (status == OSD_OK)
		status = osd_own_run(build->objects, 0, clear_listed, build);
	osd_key_list_release(&build->list);
	return status;
}

/* ---- filling ----------------------------------------------------------------------------- */

/* Visits attributes from (next_object, page, next_number) on.  A new scan jumps over attributes of other
 * pages. */
static bool add_entry(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct build *build = arg;
	const uint8_t *bytes = key.data;
	struct osd_place place = {build->partition->id, build->partition->incarnation, 0};
	struct osd_index_record *record = &build->record;
	uint32_t page, number;

	if (key.length != OSD_KEY_OBJECT_PART + 8)
		return true;
	place.object_id = osd_get_be(bytes + OSD_KEY_PARTITION_PART, 8);
	page = (uint32_t)osd_get_be(bytes + OSD_KEY_OBJECT_PART, 4);
	number = (uint32_t)osd_get_be(bytes + OSD_KEY_OBJECT_PART + 4, 4);
	record->next_object = place.object_id + (page > build->page);
	record->next_number = page == build->page ? number : 0;
	if (page != build->page || build->count == BATCH_ENTRIES) {
		build->stopped_early = true;
		return false;
	}
	if (osd_index_takes(page, number))
		osd_index_key_entry(&place, page, number, value.data, value.length,
				    &build->keys[build->count++]);
	return true;
}

/* Makes entries for the next attributes. record then says where to continue. */
static enum osd_status collect_entries(struct build *build, struct osd_kv_txn *kv)
{
	enum osd_status status = OSD_OK;

	build->count = 0;
	build->stopped_early = true;
	for (unsigned i = 0; status == OSD_OK && i < BATCH_SEEKS && build->stopped_early &&
			     build->count < BATCH_ENTRIES;
	     i++) {
		struct osd_place place = {build->partition->id, build->partition->incarnation,
					  OSD_MAX(build->record.next_object, 1)};
		struct osd_key from =
			osd_key_attribute(&place, build->page, build->record.next_number);

		build->stopped_early = false;
		status =
			osd_kv_scan(build->objects->kv, kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&from),
				    OSD_KEY_PARTITION_PART, add_entry, build);
	}
	qsort(build->keys, build->count, sizeof(build->keys[0]), osd_index_key_compare);
	if (!build->stopped_early)
		build->record = (struct osd_index_record){.stage = OSD_INDEX_DONE};
	return status;
}

static enum osd_status put_entries(struct build *build, struct osd_kv_txn *kv)
{
	enum osd_status status = osd_index_put(kv, build->partition, build->page, &build->record);

	for (size_t i = 0; status == OSD_OK && i < build->count; i++)
		status = osd_kv_put(kv, OSD_KV_INDEX, osd_index_key_bytes(&build->keys[i]),
				    (struct osd_bytes){"", 0}, 0);
	return status;
}

static enum osd_status fill_in(struct osd_kv_txn *kv, void *arg)
{
	struct build *build = arg;
	enum osd_index_stage stage;
	enum osd_status status;

	build->record = build->from;
	status = collect_entries(build, kv);
	if (status == OSD_OK)
		status = hold_stage(build, kv, &stage);
	if (status != OSD_OK)
		return status;
	build->over = stage != OSD_INDEX_FILL || build->record.stage == OSD_INDEX_DONE;
	return stage == OSD_INDEX_FILL ? put_entries(build, kv) : OSD_OK;
}

static enum osd_status fill_some(struct build *build)
{
	enum osd_status status;

	if (atomic_load(&build->objects->disk_full))
		return OSD_E_NO_SPACE; /* it is tried again every second */
	build->from = build->record;
	status = osd_own_run(build->objects, 0, fill_in, build);
	if (status != OSD_OK)
		build->record = build->from;
	return status;
}

/* ---- one page ---------------------------------------------------------------------------- */

/* Does the work of one stage, after the transactions that saw an earlier stage have ended. */
static enum osd_status run_stage(struct build *build)
{
	bool fills = build->record.stage == OSD_INDEX_FILL;
	enum osd_status status = osd_index_reload(build->objects, build->partition);

	build->over = false;
	if (status == OSD_OK && !osd_index_grace(build->objects))
		return OSD_E_BUSY;
	while (status == OSD_OK && !build->over) {
		if (osd_should_stop(build->objects))
			return OSD_E_BUSY;
		status = fills ? fill_some(build) : clear_some(build);
	}
	return status;
}

/* False: some work is left for later. */
static bool build_page(struct osd_objects *objects, struct osd_partition *partition, uint32_t page)
{
	struct build *build = calloc(1, sizeof(*build));
	enum osd_status status = build ? OSD_OK : OSD_E_NO_MEMORY;

	while (status == OSD_OK) {
		build->objects = objects;
		build->partition = partition;
		build->page = page;
		status = osd_index_get(objects, NULL, partition, page, false, &build->record);
		if (status == OSD_OK && build->record.stage == OSD_INDEX_DONE)
			break;
		if (status == OSD_OK)
			status = run_stage(build);
	}
	free(build);
	if (status == OSD_OK || osd_status_is_gone(status))
		return osd_index_reload(objects, partition) == OSD_OK;
	return false;
}

/* ---- the thread -------------------------------------------------------------------------- */

static bool build_key(struct osd_objects *objects, struct osd_bytes key)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	const uint8_t *bytes = key.data;

	if (key.length != 1 + OSD_KEY_PARTITION_PART + 4 ||
	    !osd_partition_of_key(objects, bytes + 1, &partition))
		return true; /* the reaper's */
	return build_page(objects, partition,
			  (uint32_t)osd_get_be(bytes + 1 + OSD_KEY_PARTITION_PART, 4));
}

static bool build_all(struct osd_objects *objects)
{
	struct osd_key prefix = osd_key_meta(OSD_META_INDEX);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes key;
	bool done = osd_key_list_collect(objects, NULL, OSD_KV_META, osd_key_bytes(&prefix),
					 SIZE_MAX, &list) == OSD_OK;

	while (!osd_should_stop(objects) && osd_key_list_next(&list, &key))
		done = build_key(objects, key) && done;
	return done;
}

void osd_indexer_work(void *arg)
{
	struct osd_objects *objects = arg;

	while (!build_all(objects) && osd_indexer_wait(objects))
		;
}
