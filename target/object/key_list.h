/* SPDX-License-Identifier: GPL-2.0-or-later */
/* key_list.h -- keys of a table, copied out of a scan.  The function that a scan calls must not call the store:
 * a caller that changes what it finds collects the keys first. */
#ifndef OSD_OBJECT_KEY_LIST_H
#define OSD_OBJECT_KEY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"
#include "object/record.h"
#include "store/store.h"

struct osd_key_list {
	uint8_t *bytes; /* owned: for each key 2 bytes of length in the machine's order, then the key */
	size_t used, capacity, count;
	size_t at; /* of the key that osd_key_list_next returns next; 0: the first */
};

/* Collects up to limit keys that begin with prefix, in ascending order.  kv NULL: as committed.  The list
 * needs osd_key_list_release, also after an error. */
enum osd_status osd_key_list_collect(struct osd_objects *objects, struct osd_kv_txn *kv,
				     enum osd_kv_table table, struct osd_bytes prefix, size_t limit,
				     struct osd_key_list *list);
/* The next key; it points into the list.  False: there are no more. */
bool osd_key_list_next(struct osd_key_list *list, struct osd_bytes *ret_key);
void osd_key_list_release(struct osd_key_list *list);

/* Collects up to capacity ids from the keys from this one on that have the same first `at` bytes.  An id is the next
 * 8 bytes. */
enum osd_status osd_key_ids(struct osd_objects *objects, struct osd_kv_txn *kv,
			    enum osd_kv_table table, const struct osd_key *from, size_t at,
			    uint64_t *ids, size_t capacity, size_t *ret_count);
/* Whether there is a key that begins with prefix. */
enum osd_status osd_key_any(struct osd_objects *objects, struct osd_kv_txn *kv,
			    enum osd_kv_table table, struct osd_bytes prefix, bool *ret_any);

#endif
