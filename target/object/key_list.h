/* SPDX-License-Identifier: GPL-2.0-or-later */
/* key_list.h -- keys of a table, copied out of a scan.  The function that a scan calls must not call the store:
 * a caller that changes what it finds collects the keys first. */
#ifndef OSD_OBJECT_KEY_LIST_H
#define OSD_OBJECT_KEY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"
#include "store/store.h"

struct osd_key_list {
	uint8_t *bytes; /* owned: for each key 2 bytes of length in the machine's order, then the key */
	size_t used, capacity, count;
};

/* Collects up to limit keys that begin with prefix, in ascending order.  kv NULL: as committed.  The list
 * needs osd_key_list_release, also after an error. */
enum osd_status osd_key_list_collect(struct osd_objects *objects, struct osd_kv_txn *kv,
				     enum osd_kv_table table, struct osd_bytes prefix, size_t limit,
				     struct osd_key_list *list);
/* The next key; it points into the list.  *at is 0 for the first one.  False: there are no more. */
bool osd_key_list_next(const struct osd_key_list *list, size_t *at, struct osd_bytes *ret_key);
void osd_key_list_release(struct osd_key_list *list);

#endif
