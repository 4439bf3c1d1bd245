/* SPDX-License-Identifier: GPL-2.0-or-later */
/* data_version.c -- see data_version.h. */
#include "object/internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "object/run.h"
#include "object/view_impl.h"

/* Counters from here on do not move the next one: a damaged record must not use up all of them.  The clock
 * comes here in the year 2116. */
#define COUNTED (UINT64_C(1) << 62)

struct osd_data_version osd_version_new(struct osd_objects *objects)
{
	return (struct osd_data_version){atomic_fetch_add(&objects->next_version, 1),
					 objects->opening};
}

struct osd_data_version osd_version_of_record(const struct osd_objects *objects,
					      const struct osd_record *record)
{
	return (struct osd_data_version){record->version.counter,
					 OSD_MAX(record->version.opening, objects->version_floor)};
}

/* ---- of a user object in memory ---------------------------------------------------------- */

void osd_version_enter(struct osd_object *object, const struct osd_record *record)
{
	bool stale = record->version.counter == OSD_VERSION_STALE;

	object->first_version = stale ? osd_version_new(object->objects)
				      : osd_version_of_record(object->objects, record);
	atomic_store(&object->version, object->first_version.counter);
	atomic_store(&object->version_stale, stale);
}

/* Counters of this opening are above those of all records, so none of them is the first one's. */
static struct osd_data_version whole_version(const struct osd_object *object, uint64_t counter)
{
	if (counter == object->first_version.counter)
		return object->first_version;
	return (struct osd_data_version){counter, object->objects->opening};
}

struct osd_data_version osd_version_of(const struct osd_object *object)
{
	return whole_version(object, atomic_load(&object->version));
}

struct osd_data_version osd_version_change(struct osd_object *object, struct osd_data_version to)
{
	return whole_version(object, atomic_exchange(&object->version, to.counter));
}

/* ---- of a collection --------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
	const struct osd_place *x = &((const struct osd_changed_collection *)a)->place;
	const struct osd_place *y = &((const struct osd_changed_collection *)b)->place;

	if (x->partition_id != y->partition_id)
		return x->partition_id < y->partition_id ? -1 : 1;
	return (x->object_id > y->object_id) - (x->object_id < y->object_id);
}

static bool same_place(const struct osd_place *a, const struct osd_place *b)
{
	return a->object_id == b->object_id && a->partition_id == b->partition_id;
}

enum osd_status osd_version_note_members(struct osd_txn *txn, const struct osd_place *collection,
					 bool missed)
{
	size_t count = txn->collections.count;
	struct osd_changed_collection *last = count ? &txn->collections.list[count - 1] : NULL;

	/* Each job joins this one: a command that starts a job would change two records instead of one. */
	if (collection->object_id == OSD_JOBS_COLLECTION)
		return OSD_OK;
	if (last && same_place(&last->place, collection)) {
		last->missed |= missed;
		return OSD_OK;
	}
	if (!OSD_MAKE_ROOM(txn->collections.list, count, txn->collections.capacity))
		return OSD_E_NO_MEMORY;
	txn->collections.list[txn->collections.count++] =
		(struct osd_changed_collection){*collection, missed};
	txn->weight += OSD_RECORD_WEIGHT;
	return OSD_OK;
}

/* A collection that the transaction has removed has no record. */
static enum osd_status put_new(struct osd_txn *txn, const struct osd_place *collection)
{
	struct osd_record record;
	enum osd_status status =
		osd_record_load(txn->objects, txn->kv, collection, OSD_KV_RMW, &record);

	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status != OSD_OK)
		return status;
	record.version = osd_version_new(txn->objects);
	return osd_record_store(txn->kv, collection, &record);
}

enum osd_status osd_version_apply_members(struct osd_txn *txn)
{
	struct osd_changed_collection *list = txn->collections.list;
	enum osd_status status = OSD_OK;

	qsort(list, txn->collections.count, sizeof(*list), compare_places);
	for (size_t i = 0; status == OSD_OK && i < txn->collections.count; i++)
		if (i == 0 || !same_place(&list[i].place, &list[i - 1].place))
			status = put_new(txn, &list[i].place);
	return status == OSD_OK ? osd_views_check_noted(txn) : status;
}

/* ---- the opening ------------------------------------------------------------------------- */

/* The numbers of META's W record: the last opening by a release that keeps versions; the floor. */
enum { OPENING, FLOOR, NUMBERS };

enum osd_status osd_version_begin_run(struct osd_objects *objects, struct osd_kv_txn *kv,
				      uint64_t opening)
{
	struct osd_run_record last, now = {.numbers[OPENING] = (uint32_t)opening};
	bool valid;
	enum osd_status status =
		osd_run_record_get(objects, kv, OSD_META_VERSIONS, NUMBERS, &last, &valid);

	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	osd_run_find(objects, &now.at);
	valid = valid && last.numbers[OPENING] + 1 == now.numbers[OPENING] &&
		osd_run_is_unbroken(objects, &last.at, &now.at);
	now.numbers[FLOOR] = valid ? last.numbers[FLOOR] : now.numbers[OPENING];
	objects->opening = now.numbers[OPENING];
	objects->version_floor = now.numbers[FLOOR];
	atomic_store(&objects->next_version, OSD_MIN(osd_wall_nsec(), COUNTED));
	return osd_run_record_put(kv, OSD_META_VERSIONS, NUMBERS, &now);
}

void osd_version_count(struct osd_objects *objects, const struct osd_record *record)
{
	uint64_t counter = record->version.counter;

	if (counter < COUNTED && counter >= atomic_load(&objects->next_version))
		atomic_store(&objects->next_version, counter + 1);
}
