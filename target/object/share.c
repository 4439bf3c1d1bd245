/* SPDX-License-Identifier: GPL-2.0-or-later */
/* share.c -- read-only descriptors of an object's data for a sandbox.  version.c has the
 * counter that goes with them. */
#include "object/internal.h"

#include <fcntl.h>

#include "base/util.h"

/* ---- sharing ----------------------------------------------------------------------------- */

/* Of the files as they are, while nobody writes. */
static enum osd_status share_locked(struct osd_object *object, struct osd_share *share)
{
	enum osd_status status;

	if (object->unmeasured)
		return OSD_E_MEDIUM;
	share->length = atomic_load(&object->length);
	share->data_version = osd_version_of(object);
	share->head_bytes = object->file.head_bytes;
	osd_lock(&object->mutex);
	status = osd_version_share(object, share->length, &share->version_fd);
	osd_unlock(&object->mutex);
	if (status != OSD_OK)
		return status;
	if (!object->has_files)
		return OSD_OK;
	status = osd_object_lost(object, share->length);
	if (status == OSD_OK)
		status = osd_tier_share(&object->file, &share->head_fd, &share->tail_fd);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK; /* reserved, never written */
	osd_cache_note_open(object);
	if (status != OSD_OK)
		osd_closep(&share->version_fd);
	return status;
}

/* While the script begins with the head the tail comes off the slower device.  The kernel reads on by
 * itself once somebody does so in order; this is only the beginning, and nobody waits for it. */
static void read_ahead(const struct osd_share *share)
{
	if (share->tail_fd >= 0)
		posix_fadvise(share->tail_fd, 0, OSD_SHARE_AHEAD_BYTES, POSIX_FADV_WILLNEED);
}

enum osd_status osd_object_share(struct osd_object *object, struct osd_share *ret_share)
{
	struct osd_share share = {.head_fd = -1, .tail_fd = -1, .version_fd = -1};
	struct osd_range range;
	enum osd_status status = osd_object_lock_read(object, &range, 0, UINT64_MAX, false);

	if (status != OSD_OK)
		return status;
	status = share_locked(object, &share);
	if (status == OSD_OK)
		atomic_fetch_add(&object->shares, 1);
	osd_object_unlock_read(object, &range);
	if (status == OSD_OK) {
		read_ahead(&share);
		*ret_share = share;
	}
	return status;
}

/* Ends a share of which nothing is left to do, beside READs and copies. */
static bool unshare_beside(struct osd_object *object)
{
	struct osd_range range;
	bool ended;

	osd_lock(&object->mutex);
	osd_range_acquire(&object->ranges, &range, 0, UINT64_MAX, false);
	ended = atomic_load(&object->shares) > 1 || !object->length_rules;
	if (ended)
		atomic_fetch_sub(&object->shares, 1);
	osd_range_drop(&object->ranges, &range);
	osd_unlock(&object->mutex);
	return ended;
}

void osd_object_unshare(struct osd_object *object)
{
	struct osd_range range;

	if (unshare_beside(object))
		return;
	osd_object_lock_still(object, &range);
	if (atomic_fetch_sub(&object->shares, 1) == 1 && object->length_rules)
		object->untrimmed = osd_object_fit_files(object, atomic_load(&object->length));
	osd_object_unlock_read(object, &range);
}
