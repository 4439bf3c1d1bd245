/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names.h -- names of user objects and directories (docs/names.md).  A directory is a partition itself, which is
 * its own root directory, or a collection made by osd_directory_make.  Each name is two records: one below the
 * directory (OSD_KV_NAMES), and one below the object (OSD_KV_NAMED).  The number of an object's names is the
 * number of its records in OSD_KV_NAMED, so nothing else counts them.
 *
 * Every call is made inside the store's transaction.  Calls that change something lock what they read, so
 * that a tree has no cycle and no directory is removed under a new name. */
#ifndef OSD_OBJECT_NAMES_H
#define OSD_OBJECT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "wire/name_list.h"

#define OSD_NAME_MAX  255u
#define OSD_NAMES_MAX 65536u /* of one object: REMOVE takes all of them in one transaction */

/* Whether it may be a name: 1 to OSD_NAME_MAX bytes without '/' and NUL, and neither "." nor "..". */
bool osd_name_is_valid(struct osd_name name);

struct osd_named {
	struct osd_object_id id;
	enum osd_object_type type; /* OSD_PARTITION: the root directory */
};

/* The state of a directory or object, as far as names go (name_cache.h). */
struct osd_name_mark {
	const _Atomic uint64_t *at;
	uint64_t seen;
};

/* The place that a path leads to. */
struct osd_name_place {
	struct osd_object_id directory;
	struct osd_name name; /* in the path; length 0: the path is empty, and found is the directory */
	bool exists;
	struct osd_named found;
	bool flat;		   /* it is all that a view has: no directory in it is there */
	struct osd_name_mark mark; /* of the directory, before it was read (name_cache.h) */
};

/* Follows a path of names with '/' between them from the directory on.  The last name may be absent.
 * *ret_component, also after an error: which name of the path, from 0, the outcome is about.
 * find_last false: the last name is one that osd_name_put() is to give: it is not looked up, and found to be absent.
 * OSD_E_PARAM_FIELD: it is no path.  OSD_E_NO_NAME, OSD_E_NOT_DIRECTORY: of a name before the last. */
enum osd_status osd_name_follow(struct osd_txn *txn, struct osd_object_id from,
				struct osd_name path, bool find_last,
				struct osd_name_place *ret_place, unsigned *ret_component);
/* As osd_name_follow() for a transaction that changes no names, and how many names the object has.  It reads no record if
 * the whole path is in memory.  OSD_E_WOULD_BLOCK: with OSD_TXN_NOWAIT only, because it is not. */
enum osd_status osd_name_lookup(struct osd_txn *txn, struct osd_object_id from,
				struct osd_name path, struct osd_name_place *ret_place,
				unsigned *ret_component, uint32_t *ret_names);
/* OSD_E_NOT_DIRECTORY: the object is none.  It stays one until the transaction ends. */
enum osd_status osd_directory_hold(struct osd_txn *txn, struct osd_object_id id);
/* Makes a directory that has no name yet. */
enum osd_status osd_directory_make(struct osd_txn *txn, uint64_t partition_id,
				   struct osd_object_id *ret_id);
/* OSD_E_NOT_EMPTY: the directory has entries. */
enum osd_status osd_directory_check_empty(struct osd_txn *txn, struct osd_object_id id);
/* Gives the object a name in a directory that this transaction holds, as after osd_name_follow(), and that is
 * in the same partition.  OSD_E_EXISTS: the directory has it.  OSD_E_NAME_TARGET: the object cannot have
 * this name, because it is no user object, or a directory that has a name. */
enum osd_status osd_name_put(struct osd_txn *txn, struct osd_object_id directory,
			     struct osd_name name, struct osd_object_id id);
/* Takes the name away; the directory is held, too.  The object stays, with *ret_left names. */
enum osd_status osd_name_drop(struct osd_txn *txn, struct osd_object_id directory,
			      struct osd_name name, struct osd_object_id id, uint32_t *ret_left);
/* How many names the object has. */
enum osd_status osd_name_count(struct osd_txn *txn, struct osd_object_id id, uint32_t *ret_count);
/* Whether the directory is the other one, or below it. */
enum osd_status osd_directory_is_below(struct osd_txn *txn, struct osd_object_id id,
				       struct osd_object_id other, bool *ret_below);

/* Whether the object, or directory, has a name in the directory or below it.  False also if that is no
 * directory.  OSD_E_NO_OBJECT: one of both is absent. */
enum osd_status osd_name_is_inside(struct osd_txn *txn, struct osd_object_id id,
				   struct osd_object_id directory, bool *ret_inside);

/* The entries of a directory to list. */
struct osd_name_range {
	struct osd_name after;	/* length 0: from the first on */
	struct osd_name prefix; /* length 0: any */
};
/* Calls fn for the entries in the order of their bytes.  fn must not call the store; false ends the walk. */
typedef bool osd_name_fn(void *arg, struct osd_name name, struct osd_named entry);
enum osd_status osd_name_list(struct osd_txn *txn, struct osd_object_id directory,
			      const struct osd_name_range *range, osd_name_fn *fn, void *arg);

#endif
