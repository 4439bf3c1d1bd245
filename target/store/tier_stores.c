/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier_stores.c -- see tier.h.  Here: operations on both stores that need no open object: removal
 * by name, syncing all files, free space, closing.  Elsewhere: the files of an object (tier.c). */
#include "store/tier_impl.h"

#include "base/util.h"

void osd_tier_close(struct osd_tier *tier)
{
	osd_data_close(tier->head);
	osd_data_close(tier->tail);
	osd_both_close(tier->both);
	*tier = (struct osd_tier){0};
}

/* A failure of one device does not stop the operation on the other. */
static void note_failure(enum osd_status *first, enum osd_status status)
{
	if (*first == OSD_OK)
		*first = status;
}

enum osd_status osd_tier_remove(struct osd_tier *tier, const struct osd_data_name *name)
{
	struct osd_data *stores[] = {tier->head, tier->tail};
	enum osd_status status = OSD_OK;

	/* Try all four names: the device of the head is not known any more, and there may be no
	 * tail. */
	for (size_t i = 0; i < OSD_ARRAY_SIZE(stores); i++) {
		for (int tail = 0; stores[i] && tail < 2; tail++) {
			struct osd_data_name part = *name;

			part.tail = tail != 0;
			note_failure(&status, osd_data_remove(stores[i], &part));
		}
	}
	return status;
}

enum osd_status osd_tier_remove_parts(const struct osd_tier_file *file,
				      const struct osd_data_name *name, bool tail)
{
	struct osd_data_name part = *name;
	enum osd_status status;

	part.tail = false;
	status = osd_data_remove(osd_tier_store_of(file, false), &part);
	part.tail = true;
	if (status == OSD_OK && tail && osd_tier_has_tail(file))
		status = osd_data_remove(osd_tier_store_of(file, true), &part);
	return status;
}

enum osd_status osd_tier_remove_partition(struct osd_tier *tier, uint64_t partition_id,
					  uint32_t incarnation)
{
	enum osd_status status = osd_data_remove_partition(tier->head, partition_id, incarnation);

	if (tier->tail)
		note_failure(&status,
			     osd_data_remove_partition(tier->tail, partition_id, incarnation));
	return status;
}

enum osd_status osd_tier_sync_all(struct osd_tier *tier)
{
	enum osd_status status = osd_data_sync_all(tier->head);

	if (status == OSD_E_MEDIUM && tier->tail)
		return OSD_E_HEAD_FAILED;
	if (status == OSD_OK && tier->tail)
		status = osd_data_sync_all(tier->tail);
	return status == OSD_E_MEDIUM && tier->tail ? OSD_E_TAIL_FAILED : status;
}

enum osd_status osd_tier_capacity(struct osd_tier *tier, uint64_t *ret_total, uint64_t *ret_free)
{
	uint64_t total, available;
	enum osd_status status = osd_data_capacity(tier->head, ret_total, ret_free);

	if (status != OSD_OK || !tier->tail || tier->one_device)
		return status;
	status = osd_data_capacity(tier->tail, &total, &available);
	if (status == OSD_OK) {
		*ret_total += total;
		*ret_free += available;
	}
	return status;
}
