/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_walk.c -- the entries of a directory in order (names.h). */
#include <string.h>

#include "base/util.h"
#include "object/internal.h"
#include "object/named.h"
#include "object/names.h"

struct listing {
	const struct osd_txn *txn;
	const struct osd_name_range *range;
	osd_name_fn *fn;
	void *arg;
	uint64_t
		partition_id; /* that was asked for: the directory is in its base if it is a view */
	bool flat;	      /* a view has no directories of this one */
	enum osd_status status;
};

static bool list_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct listing *listing = arg;
	const struct osd_name *after = &listing->range->after;
	struct osd_name name = {(const uint8_t *)key.data + OSD_KEY_OBJECT_PART,
				key.length - OSD_KEY_OBJECT_PART};
	struct osd_named entry;

	if (after->length && name.length == after->length &&
	    memcmp(name.bytes, after->bytes, name.length) == 0)
		return true;
	listing->status = osd_name_entry_decode(value, listing->txn->place.partition_id, &entry);
	if (listing->status == OSD_OK && listing->flat && entry.type == OSD_COLLECTION)
		return true;
	if (listing->partition_id)
		entry.id.partition_id = listing->partition_id;
	if (osd_txn_stopped(listing->txn))
		listing->status = OSD_E_TASK_ABORTED;
	return listing->status == OSD_OK && listing->fn(listing->arg, name, entry);
}

static bool is_before(struct osd_name name, struct osd_name other)
{
	int order = memcmp(name.bytes, other.bytes, OSD_MIN(name.length, other.length));

	return order < 0 || (order == 0 && name.length < other.length);
}

enum osd_status osd_name_list(struct osd_txn *txn, struct osd_object_id directory,
			      const struct osd_name_range *range, osd_name_fn *fn, void *arg)
{
	struct listing listing = {txn, range, fn, arg, directory.partition_id, false, OSD_OK};
	struct osd_name from = range->prefix;
	struct osd_key place;
	uint8_t key[OSD_KEY_OBJECT_PART + OSD_NAME_MAX];
	enum osd_status status = osd_directory_hold(txn, directory);

	if (status != OSD_OK)
		return status;
	listing.flat = txn->flat;
	if (range->after.length && (!from.length || is_before(from, range->after)))
		from = range->after;
	if (range->prefix.length &&
	    (from.length < range->prefix.length ||
	     memcmp(from.bytes, range->prefix.bytes, range->prefix.length) != 0))
		return OSD_OK; /* all names with the prefix are before the one to begin after */
	place = osd_key_object(&txn->place);
	memcpy(key, place.bytes, OSD_KEY_OBJECT_PART);
	if (from.length)
		memcpy(key + OSD_KEY_OBJECT_PART, from.bytes, from.length);
	status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_NAMES,
			     (struct osd_bytes){key, OSD_KEY_OBJECT_PART + from.length},
			     OSD_KEY_OBJECT_PART + range->prefix.length, list_one, &listing);
	return status == OSD_OK ? listing.status : status;
}
