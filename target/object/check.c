/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.c -- OBJECT STRUCTURE CHECK: walks one partition or all of them, in batches of objects, and
 * stores its findings in the Error Recovery pages (osd2-wire 5.18).  Other commands run meanwhile: no
 * lock is held from one object to the next.
 *
 * It also checks records that belong to no object, entries of value indexes, and the counters in
 * memory.  It does not read data: there is nothing to compare it with. */
#include "object/check.h"

#include <stdlib.h>
#include <time.h>

#include "base/util.h"
#include "object/txn_run.h"
#include "wire/cursor.h"

#define BATCH	      128u
#define COUNT_TRIES   20 /* comparisons of counters that must all fail */
#define COUNT_WAIT_NS 100000000L

struct walk {
	struct osd_objects *objects;
	struct osd_partition *partition; /* borrowed */
	bool (*stop)(void *arg);
	void *arg;
	uint8_t own, contained; /* enum osd_damage: of the partition, of its objects */
	uint64_t damaged;	/* objects */
};

static bool should_end(const struct walk *walk)
{
	return walk->stop && walk->stop(walk->arg);
}

/* ---- what is found, is kept -------------------------------------------------------------- */

struct note {
	struct osd_object_id id;
	uint8_t summary, contained;
	uint64_t count;
	bool is_container;
};

/* Writes nothing when the page has this value already. */
static enum osd_status set_number(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				  uint32_t number, uint64_t value, size_t width)
{
	uint8_t bytes[8], old[8] = {0};
	size_t length = 0;
	enum osd_status status = osd_txn_take(txn, id, true);

	if (status == OSD_OK)
		status = osd_attr_stored_get(txn, page, number, old, sizeof(old), &length);
	if (status != OSD_OK || (length ? osd_get_be(old, width) : 0) == value)
		return status;
	osd_put_be(bytes, value, width);
	return osd_attr_set(txn, id, page, number, bytes, value ? width : 0);
}

static enum osd_status put_note(struct osd_txn *txn, void *arg)
{
	const struct note *note = arg;
	uint64_t now = txn->now_ms;
	enum osd_status status = osd_txn_take(txn, note->id, true);
	uint32_t page;

	if (status != OSD_OK)
		return status;
	page = osd_page_base(osd_txn_type(txn)) + OSD_REL_RECOVERY;
	status = set_number(txn, note->id, page, OSD_DAMAGE_SUMMARY, note->summary, 1);
	if (status == OSD_OK && (note->summary & OSD_DAMAGED_DATA))
		status = set_number(txn, note->id, page, OSD_DAMAGE_DATA_TIME, now, 6);
	if (status == OSD_OK && (note->summary & OSD_DAMAGED_ATTRIBUTES))
		status = set_number(txn, note->id, page, OSD_DAMAGE_ATTR_TIME, now, 6);
	if (status != OSD_OK || !note->is_container)
		return status;
	status = set_number(txn, note->id, page, OSD_DAMAGE_CONTAINED, note->contained, 1);
	if (status == OSD_OK && note->contained)
		status = set_number(txn, note->id, page, OSD_DAMAGE_INSIDE_TIME, now, 6);
	if (status == OSD_OK)
		status = set_number(txn, note->id, page, OSD_DAMAGE_COUNT, note->count, 6);
	return status;
}

static enum osd_status keep(struct osd_objects *objects, struct note *note)
{
	return osd_txn_run(objects, OSD_TXN_INTERNAL | OSD_TXN_NO_TIMESTAMPS, put_note, note);
}

/* ---- objects ----------------------------------------------------------------------------- */

struct ids {
	uint64_t list[BATCH];
	size_t count;
};

static struct osd_place place_of(const struct walk *walk, uint64_t object_id)
{
	return (struct osd_place){walk->partition->id, walk->partition->incarnation, object_id};
}

static enum osd_status check_one(struct walk *walk, uint64_t object_id)
{
	struct note note = {.id = {walk->partition->id, object_id}};
	struct osd_checked checked;
	enum osd_status status = osd_check_object(walk->objects, note.id, &checked);

	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status != OSD_OK)
		return status;
	note.summary = checked.damage;
	if (checked.damage) {
		walk->damaged++;
		walk->contained |= checked.damage;
	}
	if (checked.damage || checked.known)
		status = keep(walk->objects, &note);
	/* The object is gone or its record cannot be read.  Then the partition's page has the damage. */
	return status == OSD_E_NO_OBJECT || osd_status_is_medium(status) ? OSD_OK : status;
}

/* ---- records of nobody ------------------------------------------------------------------- */

struct suspect {
	struct walk *walk;
	enum osd_kv_table table;
	uint64_t id;
	bool orphan;
};

/* All are read in one transaction, so that a new or removed object does not look like damage. */
static enum osd_status is_orphan(struct osd_kv_txn *kv, void *arg)
{
	struct suspect *suspect = arg;
	struct osd_objects *objects = suspect->walk->objects;
	struct osd_place place = place_of(suspect->walk, suspect->id);
	struct osd_key key = osd_key_object(&place);
	bool there;
	enum osd_status status =
		osd_record_is_there(objects, kv, OSD_KV_OBJECTS, osd_key_bytes(&key), &there);

	suspect->orphan = false;
	if (status != OSD_OK || there)
		return status;
	status = osd_key_any(objects, kv, suspect->table, osd_key_bytes(&key), &there);
	suspect->orphan = status == OSD_OK && there;
	return status;
}

static bool is_in(const struct ids *ids, uint64_t id)
{
	for (size_t i = 0; i < ids->count; i++)
		if (ids->list[i] == id)
			return true;
	return false;
}

/* Checks the records between from and the last of ids, or the end of the partition when there are no
 * more. */
static enum osd_status find_orphans(struct walk *walk, enum osd_kv_table table, uint64_t from,
				    const struct ids *ids)
{
	uint64_t last = ids->count < BATCH ? UINT64_MAX : ids->list[ids->count - 1];
	enum osd_status status = OSD_OK;

	while (status == OSD_OK && from <= last) {
		struct osd_place place = place_of(walk, from);
		struct osd_key key = osd_key_object(&place);
		struct suspect suspect = {.walk = walk, .table = table};
		uint64_t id = 0;
		size_t found;

		status = osd_key_ids(walk->objects, NULL, table, &key, OSD_KEY_PARTITION_PART, &id,
				     1, &found);
		if (status != OSD_OK || id == 0 || id > last)
			return status;
		/* The collection of all objects has attributes and no record. */
		suspect.id = id;
		if (!is_in(ids, id) && id != OSD_OBJECTS_COLLECTION)
			status = osd_own_run(walk->objects, OSD_TXN_READ_ONLY, is_orphan, &suspect);
		if (suspect.orphan)
			walk->own |= OSD_DAMAGED_DATA;
		if (id == UINT64_MAX)
			break;
		from = id + 1;
	}
	return status;
}

static enum osd_status walk_objects(struct walk *walk)
{
	static const enum osd_kv_table tables[] = {OSD_KV_ATTRIBUTES, OSD_KV_MEMBERSHIPS,
						   OSD_KV_MEMBERS};
	struct ids ids;
	uint64_t from = 1;
	enum osd_status status;

	do {
		struct osd_place place = place_of(walk, from);
		struct osd_key key = osd_key_object(&place);

		if (should_end(walk))
			return OSD_E_TASK_ABORTED;
		status = osd_key_ids(walk->objects, NULL, OSD_KV_OBJECTS, &key,
				     OSD_KEY_PARTITION_PART, ids.list, BATCH, &ids.count);
		for (size_t i = 0; status == OSD_OK && i < ids.count; i++)
			status = check_one(walk, ids.list[i]);
		for (size_t i = 0; status == OSD_OK && i < OSD_ARRAY_SIZE(tables); i++)
			status = find_orphans(walk, tables[i], from, &ids);
		if (ids.count)
			from = ids.list[ids.count - 1] + 1;
	} while (status == OSD_OK && ids.count == BATCH);
	return status;
}

/* ---- counters ---------------------------------------------------------------------------- */

/* Of one account. */
struct sum {
	uint64_t count, bytes;
	uint64_t units;	/* of attributes */
	bool uncounted; /* a record does not say how many units */
};

struct sums {
	struct osd_objects *objects;
	uint64_t partition_id;
	struct sum data, apart;
};

static bool add_up(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct sums *sums = arg;
	struct osd_record record;
	struct osd_object *object;
	struct sum *sum;
	uint64_t id;

	if (key.length != OSD_KEY_OBJECT_PART ||
	    osd_record_decode(value.data, value.length, &record) != OSD_OK)
		return true;
	id = osd_get_be((const uint8_t *)key.data + OSD_KEY_PARTITION_PART, 8);
	object = osd_cache_find(sums->objects, (struct osd_object_id){sums->partition_id, id});
	sum = osd_is_apart(id, record.flags) ? &sums->apart : &sums->data;
	sum->count++;
	if (record.attribute_units == OSD_UNITS_UNKNOWN)
		sum->uncounted = true;
	else
		sum->units += record.attribute_units;
	sum->bytes += object ? atomic_load(&object->length) : record.length;
	osd_object_put(object);
	return true;
}

/* The three byte counters must match the records, and their sum must match the charged bytes. */
static bool is_right(const struct osd_charge_account *account, const struct sum *sum)
{
	uint64_t attributes = atomic_load(&account->attribute_bytes);

	return sum->count == atomic_load(&account->object_count) &&
	       sum->bytes == atomic_load(&account->used_bytes) &&
	       (sum->uncounted || sum->units * OSD_UNIT_BYTES == attributes) &&
	       atomic_load(&account->charged_bytes) ==
		       sum->bytes + attributes + atomic_load(&account->record_bytes);
}

static uint64_t changes_of(const struct osd_partition *partition)
{
	return atomic_load(&partition->data.charges) + atomic_load(&partition->apart.charges);
}

/* Compares once.  *ret_sure: no counter changed meanwhile. */
static enum osd_status count(struct walk *walk, bool *ret_sure, bool *ret_wrong)
{
	struct osd_partition *partition = walk->partition;
	struct osd_place place = place_of(walk, 0);
	struct osd_key prefix = osd_key_object(&place);
	struct sums sums = {.objects = walk->objects, .partition_id = partition->id};
	uint64_t changes = changes_of(partition);
	enum osd_status status =
		osd_attr_count_units(walk->objects, NULL, &place, &sums.data.units);

	if (status == OSD_OK)
		status = osd_kv_scan(walk->objects->kv, NULL, OSD_KV_OBJECTS,
				     osd_key_bytes(&prefix), OSD_KEY_PARTITION_PART, add_up, &sums);
	*ret_wrong =
		!is_right(&partition->data, &sums.data) || !is_right(&partition->apart, &sums.apart);
	*ret_sure = changes == changes_of(partition);
	return status;
}

/* Bytes are charged before they are written, and objects are counted before they are committed, so one
 * difference proves nothing.  The same difference during two seconds without any charge is damage. */
static enum osd_status check_counters(struct walk *walk)
{
	const struct timespec pause = {0, COUNT_WAIT_NS};
	uint64_t changes = changes_of(walk->partition);

	for (int i = 0; i < COUNT_TRIES; i++) {
		bool sure, wrong;
		enum osd_status status = count(walk, &sure, &wrong);

		if (status != OSD_OK || (sure && !wrong))
			return status;
		if (should_end(walk))
			return OSD_E_TASK_ABORTED;
		nanosleep(&pause, NULL);
	}
	if (changes == changes_of(walk->partition))
		walk->own |= OSD_DAMAGED_ATTRIBUTES;
	return OSD_OK;
}

/* ---- partitions and root ----------------------------------------------------------------- */

static enum osd_status check_partition(struct walk *walk, uint64_t partition_id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct note note = {.id = {partition_id, 0}, .is_container = true};
	bool index_damaged = false;
	enum osd_status status = osd_partition_get(walk->objects, NULL, partition_id, &partition);

	if (status != OSD_OK)
		return status;
	walk->partition = partition;
	walk->own = walk->contained = 0;
	walk->damaged = 0;
	status = walk_objects(walk);
	if (status == OSD_OK)
		status = osd_check_index(walk->objects, partition, &index_damaged);
	if (index_damaged)
		walk->own |= OSD_DAMAGED_DATA;
	if (status == OSD_OK)
		status = check_counters(walk);
	if (status != OSD_OK)
		return status;
	note.summary = walk->own;
	note.contained = walk->contained;
	note.count = walk->damaged;
	return keep(walk->objects, &note);
}

/* *ret_ids: the caller frees it, also after an error. */
static enum osd_status list_partitions(struct osd_objects *objects, uint64_t **ret_ids,
				       size_t *ret_count)
{
	size_t capacity;

	*ret_count = 0;
	osd_read_lock(&objects->partitions_lock);
	capacity = atomic_load(&objects->partition_count) + 1;
	*ret_ids = malloc(capacity * sizeof(**ret_ids));
	osd_each_partition (objects, partition, *ret_ids && *ret_count < capacity)
		(*ret_ids)[(*ret_count)++] = partition->id;
	osd_rw_unlock(&objects->partitions_lock);
	return *ret_ids ? OSD_OK : OSD_E_NO_MEMORY;
}

static enum osd_status check_all(struct walk *walk, struct osd_check_result *result)
{
	OSD_CLEANUP_FREE uint64_t *ids = NULL;
	struct note note = {.is_container = true};
	size_t count;
	enum osd_status status = list_partitions(walk->objects, &ids, &count);

	for (size_t i = 0; status == OSD_OK && i < count; i++) {
		status = check_partition(walk, ids[i]);
		if (status == OSD_E_NO_PARTITION) {
			status = OSD_OK; /* it went meanwhile */
			continue;
		}
		result->objects += walk->damaged;
		if (walk->own || walk->contained) {
			result->containers += walk->own != 0;
			note.count++;
			note.contained |= walk->own | walk->contained;
		}
	}
	return status == OSD_OK ? keep(walk->objects, &note) : status;
}

enum osd_status osd_objects_check(struct osd_objects *objects, uint64_t partition_id,
				  bool (*stop)(void *arg), void *arg,
				  struct osd_check_result *ret_result)
{
	struct walk walk = {.objects = objects, .stop = stop, .arg = arg};
	struct osd_check_result result = {0};
	enum osd_status status;

	if (partition_id == 0) {
		status = check_all(&walk, &result);
	} else {
		status = check_partition(&walk, partition_id);
		result.objects = walk.damaged;
		result.containers = walk.own != 0;
	}
	if (status == OSD_OK)
		*ret_result = result;
	return status;
}
