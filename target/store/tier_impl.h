/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier_impl.h -- what the files behind tier.h share: which store has which half of an object, and
 * opening a half.  The caller has what tier.h asks of him; a file that is open stays the struct's. */
#ifndef OSD_STORE_TIER_IMPL_H
#define OSD_STORE_TIER_IMPL_H

#include "store/tier.h"

static inline bool osd_tier_has_tail(const struct osd_tier_file *file)
{
	return file->head_bytes != OSD_TIER_ONE;
}

/* An empty head is a name only, and not worth another device. */
static inline struct osd_data *osd_tier_store_of(const struct osd_tier_file *file, bool tail)
{
	bool on_tail = (tail || file->head_on == OSD_HEAD_ON_TAIL || file->head_bytes == 0) &&
		       file->tier->tail;

	return on_tail ? file->tier->tail : file->tier->head;
}

/* Which half a failing device has. */
static inline enum osd_status osd_tier_of_half(const struct osd_tier_file *file, bool tail,
					       enum osd_status status)
{
	if (status != OSD_E_MEDIUM || !osd_tier_has_tail(file))
		return status;
	return tail ? OSD_E_TAIL_FAILED : OSD_E_HEAD_FAILED;
}

/* One of the two files; OSD_E_NO_OBJECT when it is not there and need not be made. */
enum osd_status osd_tier_open_part(struct osd_tier_file *file, bool tail, bool create,
				   struct osd_data_file **ret_file);
/* Opens what is there.  Behind a short head no tail is looked for unless all: a tail is begun when
 * its head is whole, and looking in vain may take as long as a write.  OSD_E_NO_OBJECT: no file. */
enum osd_status osd_tier_open_parts(struct osd_tier_file *file, bool all);
/* Head file of at least head_bytes, tail file open.  Whether there is a tail yet is not asked of the
 * store, where looking in vain may take as long as a write. */
enum osd_status osd_tier_begin_tail(struct osd_tier_file *file, struct osd_data_file **ret_tail);

#endif
