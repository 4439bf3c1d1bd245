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

#define OSD_NAME_MAX 255u

struct osd_name {
	const uint8_t *bytes; /* borrowed */
	size_t length;
};

/* Whether it may be a name: 1 to OSD_NAME_MAX bytes without '/' and NUL, and neither "." nor "..". */
bool osd_name_is_valid(struct osd_name name);

struct osd_named {
	struct osd_object_id id;
	enum osd_object_type type; /* OSD_PARTITION: the root directory */
};

/* Where a path leads. */
struct osd_name_place {
	struct osd_object_id directory;
	struct osd_name name; /* in the path; length 0: the path is empty, and found is the directory */
	bool exists;
	struct osd_named found;
};

/* Follows a path of names with '/' between them from the directory on.  The last name may be absent.
 * *ret_component, also after an error: which name of the path, from 0, the outcome is about.
 * OSD_E_PARAM_FIELD: it is no path.  OSD_E_NO_NAME, OSD_E_NOT_DIRECTORY: of a name before the last. */
enum osd_status osd_name_follow(struct osd_txn *txn, struct osd_object_id from,
				struct osd_name path, struct osd_name_place *ret_place,
				unsigned *ret_component);
/* OSD_E_NOT_DIRECTORY: the object is none.  It stays one until the transaction ends. */
enum osd_status osd_directory_hold(struct osd_txn *txn, struct osd_object_id id);
/* Makes a directory that has no name yet. */
enum osd_status osd_directory_make(struct osd_txn *txn, uint64_t partition_id,
				   struct osd_object_id *ret_id);
/* OSD_E_NOT_EMPTY: the directory has entries. */
enum osd_status osd_directory_check_empty(struct osd_txn *txn, struct osd_object_id id);
/* Gives the object a name.  OSD_E_EXISTS: the directory has it.  OSD_E_NAME_TARGET: the object cannot have
 * this name, because it is no user object, or a directory that has a name. */
enum osd_status osd_name_put(struct osd_txn *txn, struct osd_object_id directory,
			     struct osd_name name, struct osd_object_id id);
/* Takes the name away.  The object stays. */
enum osd_status osd_name_drop(struct osd_txn *txn, struct osd_object_id directory,
			      struct osd_name name, struct osd_object_id id);
/* How many names the object has. */
enum osd_status osd_name_count(struct osd_txn *txn, struct osd_object_id id, uint32_t *ret_count);
/* Whether the directory is the other one, or below it. */
enum osd_status osd_directory_is_below(struct osd_txn *txn, struct osd_object_id id,
				       struct osd_object_id other, bool *ret_below);

/* Which entries of a directory to list. */
struct osd_name_range {
	struct osd_name after;	/* length 0: from the first on */
	struct osd_name prefix; /* length 0: any */
};
/* Calls fn for the entries in the order of their bytes.  fn must not call the store; false ends the walk. */
typedef bool osd_name_fn(void *arg, struct osd_name name, struct osd_named entry);
enum osd_status osd_name_list(struct osd_txn *txn, struct osd_object_id directory,
			      const struct osd_name_range *range, osd_name_fn *fn, void *arg);

#endif
