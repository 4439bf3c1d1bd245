/* SPDX-License-Identifier: GPL-2.0-or-later */
/* named.h -- keys and values of the records of names, what the files on names share, and what the removal of
 * an object asks of them. */
#ifndef OSD_OBJECT_NAMED_H
#define OSD_OBJECT_NAMED_H

#include "base/status.h"
#include "object/names.h"
#include "object/record.h"
#include "store/store.h"

struct osd_txn;

/* ---- keys and values (docs/format.md) -------------------------------------------------------- */

#define OSD_NAMED_NAME_AT    (OSD_KEY_OBJECT_PART + 8u) /* in a key of OSD_KV_NAMED */
#define OSD_NAME_KEY_MAX     (OSD_NAMED_NAME_AT + OSD_NAME_MAX)
#define OSD_NAME_ENTRY_BYTES 9u /* type, object id */

struct osd_name_key {
	uint8_t bytes[OSD_NAME_KEY_MAX];
	size_t length;
};

static inline struct osd_bytes osd_name_key_bytes(const struct osd_name_key *key)
{
	return (struct osd_bytes){key->bytes, key->length};
}

/* Of OSD_KV_NAMES; an empty name: what the keys of all entries begin with. */
void osd_name_entry_key(const struct osd_place *directory, struct osd_name name,
			struct osd_name_key *ret_key);
/* Of OSD_KV_NAMED; an empty name: what the keys of its names in the directory begin with. */
void osd_named_key(const struct osd_place *object, uint64_t directory, struct osd_name name,
		   struct osd_name_key *ret_key);
/* Of a record of OSD_KV_NAMES. */
enum osd_status osd_name_entry_decode(struct osd_bytes value, uint64_t partition_id,
				      struct osd_named *ret_entry);

/* ---- between the files on names -------------------------------------------------------------- */

/* A name, or an object with names, as the base has it if it is in a view.  change: as osd_view_tree(). */
enum osd_status osd_name_in_tree(struct osd_txn *txn, bool change, struct osd_object_id *id);
/* The directory that has the name of this one.  *ret_found false: it has none.  OSD_E_TASK_ABORTED: the transaction was
 * stopped. */
enum osd_status osd_directory_above(struct osd_txn *txn, const struct osd_place *place,
				    uint64_t *ret_above, bool *ret_found);
/* The number of names of an object, in the transaction as it is: no other object is taken up. */
enum osd_status osd_names_of(struct osd_txn *txn, const struct osd_place *object,
			     uint32_t *ret_count);

/* ---- removal --------------------------------------------------------------------------------- */

/* The object at hand, which is locked, loses all its names because it is removed.  OSD_E_NOT_EMPTY: it is a
 * directory that has entries. */
enum osd_status osd_unname(struct osd_txn *txn);

#endif
