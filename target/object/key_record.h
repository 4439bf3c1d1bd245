/* SPDX-License-Identifier: GPL-2.0-or-later */
/* key_record.h -- records of secret keys and of request nonces (docs/format.md, keys.db).  The keys of a
 * partition are removed with it: a later partition with the same id has none.  Keys of the root and of
 * partition zero survive FORMAT OSD. security/ gives the records their meaning.
 *
 * Everything works inside the caller's transaction and may return OSD_E_CONFLICT. */
#ifndef OSD_OBJECT_KEY_RECORD_H
#define OSD_OBJECT_KEY_RECORD_H

#include "object/object.h"

enum osd_key_level {
	OSD_KEY_MASTER = 1,
	OSD_KEY_ROOT = 2,
	OSD_KEY_PARTITION = 3, /* partition zero, too */
	OSD_KEY_WORKING = 4,
};

#define OSD_KEY_VERSIONS   16 /* working keys of a partition */
#define OSD_KEY_IDENTIFIER 7
#define OSD_NONCE_DEPTH	   0xffff /* nonces remembered of a partition at least */
#define OSD_KEY_SEALED	   92 /* bytes of an encrypted key */

/* Names a key of the store.  The partition id is 0 for master and root keys; only working keys have a
 * version other than 0. */
struct osd_key_name {
	enum osd_key_level level;
	uint64_t partition_id;
	uint8_t version;
};

struct osd_key_record {
	uint8_t identifier[OSD_KEY_IDENTIFIER];
	uint8_t sealed[OSD_KEY_SEALED]; /* security/seal.h */
};

/* OSD_E_NO_PARTITION; OSD_E_NO_OBJECT when there is no such key. */
enum osd_status osd_key_record_get(struct osd_txn *txn, const struct osd_key_name *name,
				   struct osd_key_record *ret_record);
enum osd_status osd_key_record_put(struct osd_txn *txn, const struct osd_key_name *name,
				   const struct osd_key_record *record);
/* Removes all keys below the named one: those of a partition, or, below a master or root key, those of
 * all partitions. */
enum osd_status osd_key_record_remove_below(struct osd_txn *txn, const struct osd_key_name *name);
/* Calls fn for each key of the existing partitions, until it returns false. fn must not use the
 * transaction. */
enum osd_status osd_key_record_each(struct osd_txn *txn,
				    bool (*fn)(void *arg, const struct osd_key_name *name,
					       const struct osd_key_record *record),
				    void *arg);

/* Spans of time, first and last ms, of nonces that were used or may have been used. */
#define OSD_NONCE_SPANS 8
struct osd_nonce_spans {
	size_t count;
	struct {
		uint64_t first, last;
	} span[OSD_NONCE_SPANS];
};
/* OSD_E_NO_PARTITION: the partition does not exist.  Without a record there are no spans. */
enum osd_status osd_nonce_spans_get(struct osd_txn *txn, uint64_t partition_id,
				    struct osd_nonce_spans *ret_spans);
enum osd_status osd_nonce_spans_put(struct osd_txn *txn, uint64_t partition_id,
				    const struct osd_nonce_spans *spans);

#endif
