/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_cache.h -- entries of directories in memory, so that a path can be looked up without the database
 * and without waiting.  It has a fixed size.  An entry of it is what one record of OSD_KV_NAMES says, and how
 * many names the object has.
 *
 * A transaction marks each id whose entries or names it changes before it changes them, and the mark stays
 * until the transaction has ended.  The mark has a count of such changes, too.  A reader takes the mark of
 * each id that it uses, and at the end checks that none has changed: then all that it has read was true at
 * that moment.  Several ids share a mark, which only costs reads of the database.
 *
 * Any thread may call any function.  There is no lock. */
#ifndef OSD_OBJECT_NAME_CACHE_H
#define OSD_OBJECT_NAME_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "object/names.h"
#include "object/record.h"

struct osd_name_cache;
struct osd_txn;

#define OSD_CACHED_NAME_MAX 64u /* longer names are not kept */

/* NULL: out of memory. */
struct osd_name_cache *osd_name_cache_create(void);
void osd_name_cache_free(struct osd_name_cache *cache); /* NULL is fine */

/* The entries of this directory, or the names of this object, change in the transaction. */
enum osd_status osd_name_cache_change(struct osd_txn *txn, const struct osd_place *place);

struct osd_name_mark osd_name_mark(const struct osd_name_cache *cache, uint64_t partition_id,
				   uint64_t id);
/* Whether no transaction was changing it at osd_name_mark() or has changed it since. */
bool osd_name_mark_holds(const struct osd_name_mark *mark);

struct osd_cached_name {
	struct osd_object_id id;
	enum osd_object_type type;
	uint32_t names; /* of the object */
	struct osd_name_mark marks[2]; /* of the directory, of the object */
};
/* false: it is not kept.  The answer holds if the marks do. */
bool osd_name_cache_find(const struct osd_name_cache *cache, const struct osd_place *directory,
			 struct osd_name name, struct osd_cached_name *ret_entry);
/* The entry was read from the database after its marks. */
void osd_name_cache_put(struct osd_name_cache *cache, const struct osd_place *directory,
			struct osd_name name, const struct osd_cached_name *entry);

#endif
