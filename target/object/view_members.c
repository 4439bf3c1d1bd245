/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_members.c -- the changes of members that views of collections must follow (view_follow.c). */

#include "base/util.h"
#include "object/internal.h"
#include "object/view_impl.h"
#include "wire/osd2.h"

enum osd_status osd_views_note_member(struct osd_txn *txn, const struct osd_place *collection,
				      uint64_t member, bool *ret_missed)
{
	const bool parted = atomic_load(&txn->partition->parted);
	const bool shown = collection->object_id >= OSD_FIRST_ID; /* or may be, in a view */

	*ret_missed = shown && !parted;
	if (!shown || !parted)
		return OSD_OK;
	if (!OSD_MAKE_ROOM(txn->members.list, txn->members.count, txn->members.capacity))
		return OSD_E_NO_MEMORY;
	txn->members.list[txn->members.count++] = (struct osd_member_change){*collection, member};
	return OSD_OK;
}

static enum osd_status check_one(struct osd_txn *txn, const struct osd_place *collection)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	enum osd_status status =
		osd_partition_get(txn->objects, txn, collection->partition_id, &partition);

	if (status != OSD_OK)
		return status == OSD_E_NO_PARTITION ? OSD_OK : status;
	return atomic_load(&partition->parted) ? OSD_E_CONFLICT : OSD_OK;
}

enum osd_status osd_views_check_noted(struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < txn->collections.count; i++)
		if (txn->collections.list[i].missed)
			status = check_one(txn, &txn->collections.list[i].place);
	return status;
}
