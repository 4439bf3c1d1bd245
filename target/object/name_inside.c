/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_inside.c -- whether an object has a name anywhere below a directory (names.h). */
#include "base/id_map.h"
#include "base/util.h"
#include "object/internal.h"
#include "object/named.h"
#include "object/names.h"
#include "wire/cursor.h"

/* As osd_directory_is_below(), up to a directory that was passed before: those above it are not the other one. */
static enum osd_status go_up(struct osd_txn *txn, struct osd_object_id id,
			     struct osd_object_id other, struct osd_id_map *passed, bool *ret_below)
{
	struct osd_place place;
	bool goes_on = true;
	enum osd_status status = osd_directory_hold(txn, id);

	place = txn->place;
	while (status == OSD_OK && goes_on && place.object_id != 0) {
		*ret_below = place.object_id == other.object_id;
		if (*ret_below)
			return OSD_OK;
		if (!osd_id_map_at(passed, place.object_id, &goes_on))
			return OSD_E_NO_MEMORY;
		if (goes_on)
			status = osd_directory_above(txn, &place, &place.object_id, &goes_on);
	}
	return status;
}

/* Of the user object at hand: the directories that its names are in, as they stand in the keys. */
static enum osd_status any_above(struct osd_txn *txn, struct osd_object_id directory,
				 bool *ret_inside)
{
	OSD_CLEANUP(osd_id_map_release) struct osd_id_map passed = {0};
	struct osd_key place = osd_key_object(&txn->place);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes key;
	uint64_t last = 0;
	enum osd_status status =
		osd_key_list_collect(txn->objects, txn->kv, OSD_KV_NAMED, osd_key_bytes(&place),
				     SIZE_MAX, &list);

	while (status == OSD_OK && !*ret_inside && osd_key_list_next(&list, &key)) {
		struct osd_object_id above = {directory.partition_id, 0};

		if (key.length < OSD_KEY_OBJECT_PART + 8u) {
			status = OSD_E_MEDIUM;
			break;
		}
		above.object_id =
			osd_get_be((const uint8_t *)key.data + OSD_KEY_OBJECT_PART, 8);
		if (above.object_id == 0 || above.object_id == last)
			continue;
		last = above.object_id;
		status = go_up(txn, above, directory, &passed, ret_inside);
		if (status == OSD_E_NO_OBJECT) /* a view of another directory has not this one */
			status = OSD_OK;
	}
	return status;
}

enum osd_status osd_name_is_inside(struct osd_txn *txn, struct osd_object_id id,
				   struct osd_object_id directory, bool *ret_inside)
{
	enum osd_status status = osd_directory_hold(txn, directory);

	*ret_inside = false;
	if (status == OSD_E_NOT_DIRECTORY)
		return OSD_OK;
	if (status == OSD_OK)
		status = osd_name_in_tree(txn, false, &id);
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, false);
	if (status != OSD_OK || !txn->loaded || !(txn->record.flags & OSD_REC_NAMED))
		return status;
	if (osd_txn_type(txn) == OSD_COLLECTION)
		return osd_directory_is_below(txn, id, directory, ret_inside);
	return any_above(txn, directory, ret_inside);
}
