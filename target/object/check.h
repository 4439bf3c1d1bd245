/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.h -- OBJECT STRUCTURE CHECK inside this folder: check.c walks the store, check_object.c checks
 * one object, check_index.c checks the value indexes. */
#ifndef OSD_OBJECT_CHECK_H
#define OSD_OBJECT_CHECK_H

#include "object/internal.h"

struct osd_checked {
	uint8_t damage; /* enum osd_damage, as found now */
	uint8_t known;	/* as its Error Recovery page says */
};

/* OSD_E_NO_OBJECT, OSD_E_NO_PARTITION: it was removed meanwhile. */
enum osd_status osd_check_object(struct osd_objects *objects, struct osd_object_id id,
				 struct osd_checked *ret_checked);

/* Whether an entry of the partition's value indexes is wrong. */
enum osd_status osd_check_index(struct osd_objects *objects, struct osd_partition *partition,
				bool *ret_damaged);

#endif
