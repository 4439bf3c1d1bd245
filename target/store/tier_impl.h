/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier_impl.h -- shared by the files behind tier.h: the store of each half of an object, and
 * opening a half.  The caller meets the conditions of tier.h.  The struct owns the open files. */
#ifndef OSD_STORE_TIER_IMPL_H
#define OSD_STORE_TIER_IMPL_H

#include "store/tier.h"

static inline bool osd_tier_has_tail(const struct osd_tier_file *file)
{
	return file->head_bytes != OSD_TIER_ONE;
}

/* An empty head is a name only: it does not justify the use of another device. */
static inline struct osd_data *osd_tier_store_of(const struct osd_tier_file *file, bool tail)
{
	bool on_tail = (tail || file->head_on == OSD_HEAD_ON_TAIL || file->head_bytes == 0) &&
		       file->tier->tail;

	return on_tail ? file->tier->tail : file->tier->head;
}

/* Turns the failure of a device into that of its half. */
static inline enum osd_status osd_tier_of_half(const struct osd_tier_file *file, bool tail,
					       enum osd_status status)
{
	if (status != OSD_E_MEDIUM || !osd_tier_has_tail(file))
		return status;
	return tail ? OSD_E_TAIL_FAILED : OSD_E_HEAD_FAILED;
}

/* Opens one of the two files; OSD_E_NO_OBJECT: it does not exist, and need not be created. */
enum osd_status osd_tier_open_part(struct osd_tier_file *file, bool tail, bool create,
				   struct osd_data_file **ret_file);
/* Opens the files that exist.  After a short head it does not check for a tail, unless all: a tail
 * is begun only once its head is complete, and a failing lookup may take as long as a write.
 * OSD_E_NO_OBJECT: no file. */
enum osd_status osd_tier_open_parts(struct osd_tier_file *file, bool all);
/* Extends the head file to at least head_bytes and opens the tail file.  It does not ask the store
 * whether there is a tail yet: a failing lookup may take as long as a write. */
enum osd_status osd_tier_begin_tail(struct osd_tier_file *file, struct osd_data_file **ret_tail);

#endif
