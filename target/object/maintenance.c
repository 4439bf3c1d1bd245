/* SPDX-License-Identifier: GPL-2.0-or-later */
/* maintenance.c -- a timer and a thread of the object layer.  The timer settles what is idle,
 * writes times, checkpoints, and makes the ballast again; once a second, or when kicked.  The
 * reaper frees what REMOVE, REMOVE PARTITION and FORMAT OSD left behind in their one commit.  Its
 * work is recorded in the store, so a crash only delays it. */
#include "object/internal.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"
#include "wire/cursor.h"

#define GATHER_USEC 1000000
#define REAP_BATCH  256u   /* records removed in one transaction */
#define REAP_TRIES  4u	   /* rounds that find nothing new: wait for the next kick */
#define REPORT_USEC 60000000u

/* ---- maintenance ------------------------------------------------------------------------- */

static void settle_partitions(struct osd_objects *objects)
{
	struct osd_partition *dirty[64];
	size_t count = 0;

	osd_read_lock(&objects->partitions_lock);
	osd_each_partition (objects, partition, count < OSD_ARRAY_SIZE(dirty))
		if (atomic_load(&partition->times_dirty))
			dirty[count++] = osd_partition_ref(partition);
	osd_rw_unlock(&objects->partitions_lock);
	for (size_t i = 0; i < count; i++) {
		osd_partition_settle(objects, dirty[i]);
		osd_partition_put(dirty[i]);
	}
}

void osd_maintain(struct osd_objects *objects, bool everything)
{
	atomic_fetch_add(&objects->tick, 1);
	osd_settle_all(objects, everything);
	settle_partitions(objects);
	osd_root_settle(objects);
	osd_kv_checkpoint(objects->kv, false); /* if it fails, the next round tries again */
	osd_space_report(objects);
	if (objects->media && osd_media_ballast_restore(objects->media) &&
	    atomic_exchange(&objects->disk_full, false))
		osd_space_found(objects);
}

uint64_t osd_maintain_check(void *objects)
{
	osd_maintain(objects, false);
	return osd_monotonic_usec() + OSD_UPKEEP_USEC;
}

/* ---- reaper ------------------------------------------------------------------------------ */

struct removal {
	enum osd_kv_table table;
	struct osd_key_list *list;
};

static enum osd_status remove_in(struct osd_kv_txn *kv, void *arg)
{
	const struct removal *removal = arg;
	enum osd_status status = OSD_OK;
	struct osd_bytes key;

	removal->list->at = 0;
	while (status == OSD_OK && osd_key_list_next(removal->list, &key)) {
		status = osd_kv_remove(kv, removal->table, key);
		if (status == OSD_E_NO_OBJECT)
			status = OSD_OK;
	}
	return status;
}

static enum osd_status remove_keys(struct osd_objects *objects, enum osd_kv_table table,
				   struct osd_key_list *list)
{
	return osd_own_run(objects, 0, remove_in, &(struct removal){table, list});
}

enum osd_status osd_clear_prefix(struct osd_objects *objects, enum osd_kv_table table,
				 struct osd_bytes prefix)
{
	enum osd_status status;
	size_t count;
	bool more;

	do {
		OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};

		status = osd_key_list_collect(objects, NULL, table, prefix, REAP_BATCH, &list);
		count = list.count;
		if (status == OSD_OK && count > 0)
			status = remove_keys(objects, table, &list);
		more = (status == OSD_OK && count == REAP_BATCH) || status == OSD_E_BUSY;
		if (more && osd_should_stop(objects))
			return OSD_E_BUSY; /* the next opening goes on */
	} while (more);
	return status;
}

static enum osd_status reap_partition(struct osd_objects *objects, struct osd_bytes key)
{
	static const enum osd_kv_table tables[] = {
		OSD_KV_OBJECTS, OSD_KV_ATTRIBUTES, OSD_KV_MEMBERS, OSD_KV_MEMBERSHIPS,
		OSD_KV_INDEX,	OSD_KV_COMMANDS,   OSD_KV_NAMES,   OSD_KV_NAMED,
		OSD_KV_KEYS};
	struct osd_rd r = osd_rd_init((const uint8_t *)key.data + 1, key.length - 1);
	uint64_t partition_id = osd_rd_be(&r, 8);
	uint32_t incarnation = (uint32_t)osd_rd_be(&r, 4);
	struct osd_key mark = osd_key_meta_partition(OSD_META_ID_MARK, partition_id, incarnation);
	struct osd_key stages = osd_key_meta_partition(OSD_META_INDEX, partition_id, incarnation);
	enum osd_status status =
		osd_tier_remove_partition(&objects->tier, partition_id, incarnation);

	for (size_t i = 0; status == OSD_OK && i < OSD_ARRAY_SIZE(tables); i++)
		status = osd_clear_prefix(
			objects, tables[i],
			(struct osd_bytes){mark.bytes + 1, OSD_KEY_PARTITION_PART});
	if (status == OSD_OK)
		status = osd_clear_prefix(objects, OSD_KV_META, osd_key_bytes(&mark));
	if (status == OSD_OK)
		status = osd_clear_prefix(objects, OSD_KV_META, osd_key_bytes(&stages));
	return status;
}

static enum osd_status reap_files(struct osd_objects *objects, struct osd_bytes key)
{
	struct osd_rd r = osd_rd_init((const uint8_t *)key.data + 1, key.length - 1);
	struct osd_data_name name = {.partition_id = osd_rd_be(&r, 8)};

	name.incarnation = (uint32_t)osd_rd_be(&r, 4);
	name.object_id = osd_rd_be(&r, 8);
	name.generation = osd_rd_be(&r, 8);
	return osd_tier_remove(&objects->tier, &name);
}

/* The partition of this record becomes a dead one. */
static enum osd_status retire(struct osd_kv_txn *kv, void *arg)
{
	const struct osd_bytes *found = arg;
	uint8_t bytes[OSD_PARTITION_RECORD_BYTES];
	struct osd_partition_record record;
	struct osd_key dead;
	size_t length;
	enum osd_status status = osd_kv_get(kv->kv, kv, OSD_KV_PARTITIONS, *found, OSD_KV_RMW,
					    bytes, sizeof(bytes), &length);

	if (status == OSD_OK)
		status =
			osd_partition_record_decode(bytes, OSD_MIN(length, sizeof(bytes)), &record);
	if (status != OSD_OK)
		return status;
	dead = osd_key_meta_partition(OSD_META_DEAD_PARTITION,
				      osd_get_be((const uint8_t *)found->data + 4, 8),
				      record.incarnation);
	status = osd_key_put(kv, OSD_KV_META, &dead, "", 0);
	return status == OSD_OK ? osd_kv_remove(kv, OSD_KV_PARTITIONS, *found) : status;
}

/* The partitions of a store before FORMAT OSD become dead ones; then the epoch is forgotten. */
static enum osd_status reap_epoch(struct osd_objects *objects, struct osd_bytes key)
{
	static const enum osd_kv_table of_root[] = {OSD_KV_ATTRIBUTES, OSD_KV_NAMES};
	uint32_t epoch = (uint32_t)osd_get_be((const uint8_t *)key.data + 1, 4);
	struct osd_key prefix = osd_key_partition(epoch, 0);
	struct osd_place root = {0, epoch, 0};
	struct osd_key attributes = osd_key_attribute(&root, 0, 0);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes found;
	enum osd_status status =
		osd_key_list_collect(objects, NULL, OSD_KV_PARTITIONS,
				     (struct osd_bytes){prefix.bytes, 4}, SIZE_MAX, &list);

	while (status == OSD_OK && osd_key_list_next(&list, &found))
		status = osd_own_run(objects, 0, retire, &found);
	for (size_t i = 0; status == OSD_OK && i < OSD_ARRAY_SIZE(of_root); i++)
		status = osd_clear_prefix(
			objects, of_root[i],
			(struct osd_bytes){attributes.bytes, OSD_KEY_OBJECT_PART});
	return status;
}

typedef enum osd_status reap_fn(struct osd_objects *objects, struct osd_bytes key);

struct leftovers {
	enum osd_meta_kind kind;
	reap_fn *reap;
	size_t failed; /* in the last round */
};

/* Frees what the keys of the list name, up to limit.  Only the keys of what was freed stay in the list.  *failed
 * counts those that cannot be freed, which keep no others.  Returns why the last one could not. */
static enum osd_status reap_each(struct osd_objects *objects, struct osd_key_list *list,
				 reap_fn *reap, size_t limit, size_t *failed)
{
	enum osd_status status, last = OSD_OK;
	size_t from = 0, kept = 0, count = 0;
	struct osd_bytes key;

	*failed = 0;
	for (; count < limit && !osd_should_stop(objects) && osd_key_list_next(list, &key);
	     from = list->at) {
		status = reap(objects, key);
		if (status == OSD_OK) {
			memmove(list->bytes + kept, list->bytes + from, list->at - from);
			kept += list->at - from;
			count++;
		} else {
			last = status;
			++*failed;
		}
	}
	list->used = kept;
	list->count = count;
	list->at = 0;
	return last;
}

static void report(enum osd_status status)
{
	static struct osd_ration ration = OSD_RATION(1, REPORT_USEC);
	unsigned withheld;

	/* Without its SSD folder, the store keeps what is to be freed there. */
	if (status != OSD_OK && status != OSD_E_HEAD_ABSENT && status != OSD_E_BUSY &&
	    osd_ration_take(&ration, osd_monotonic_usec(), &withheld))
		osd_error("space of what was removed cannot be freed: %s; tried again later",
			  osd_status_info(status)->meaning);
}

/* Frees one kind of leftovers, beyond those that could not be freed before.  False: some are left for later.
 * Sets *any if some were freed, or there are more. */
static bool reap_kind(struct osd_objects *objects, struct leftovers *leftovers, bool *any)
{
	const size_t most = 2 * leftovers->failed + REAP_BATCH; /* so each round reaches further */
	struct osd_key prefix = osd_key_meta(leftovers->kind);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	enum osd_status status = osd_key_list_collect(objects, NULL, OSD_KV_META,
						      osd_key_bytes(&prefix), most, &list);
	const bool done = status == OSD_OK && list.count == 0;
	const bool more = status == OSD_OK && list.count == most;

	/* The commits that released these files must be durable first: after a power loss an older log
	 * would need the files. */
	if (status == OSD_OK && !done)
		status = osd_kv_flush(objects->kv);
	if (status == OSD_OK && !done) {
		report(reap_each(objects, &list, leftovers->reap, REAP_BATCH, &leftovers->failed));
		if (list.count > 0)
			status = remove_keys(objects, OSD_KV_META, &list);
		*any |= status == OSD_OK && (list.count > 0 || more);
	}
	return done;
}

/* A draft that cannot be removed waits for the next opening. */
enum osd_status osd_remove_drafts(struct osd_objects *objects)
{
	struct osd_key prefix = osd_key_meta(OSD_META_DRAFT_FILES);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	size_t failed;
	enum osd_status status = osd_key_list_collect(objects, NULL, OSD_KV_META,
						      osd_key_bytes(&prefix), SIZE_MAX, &list);

	if (status == OSD_OK)
		report(reap_each(objects, &list, reap_files, SIZE_MAX, &failed));
	if (status == OSD_OK && list.count > 0)
		status = remove_keys(objects, OSD_KV_META, &list);
	return status;
}

void osd_reaper_work(void *arg)
{
	struct leftovers all[] = {{OSD_META_DEAD_EPOCH, reap_epoch, 0},
				  {OSD_META_DEAD_PARTITION, reap_partition, 0},
				  {OSD_META_DEAD_FILES, reap_files, 0}};
	struct osd_objects *objects = arg;
	bool done = false;

	for (unsigned tries = 0; !done && tries < REAP_TRIES && !osd_should_stop(objects);) {
		bool any = false;

		done = true;
		for (size_t i = 0; i < OSD_ARRAY_SIZE(all); i++)
			done = reap_kind(objects, &all[i], &any) && done;
		tries = any ? 0 : tries + 1;
	}
	/* Every batch costs a flush of the log, which delays commits.  So the removals of one second are
	 * done together. */
	osd_upkeep_pause(objects, GATHER_USEC);
}
