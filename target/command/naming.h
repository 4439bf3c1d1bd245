/* SPDX-License-Identifier: GPL-2.0-or-later */
/* naming.h -- one READ NAMES or CHANGE NAMES under way, and the steps that its verbs have in common.  All are
 * made inside the command's transaction; a failure has its field or the name of the path in the sense data. */
#ifndef OSD_COMMAND_NAMING_H
#define OSD_COMMAND_NAMING_H

#include "command/context.h"
#include "object/names.h"
#include "wire/name_list.h"

struct osd_naming {
	struct osd_command_context *ctx;
	struct osd_txn *txn;
	struct osd_name_params params; /* borrows from the copy of Data-Out */
	struct osd_object_id from;     /* where the paths in params begin: what the CDB addresses, or a partition */
	bool in_view;		       /* from is in a view: its names are those of the base (object/view.h) */
	unsigned entered;	       /* names that were taken off the paths because of that */
	struct osd_name_place entrance; /* where the names that were taken off lead */
	struct osd_name_place place;   /* where the path leads */
	struct osd_named result;
	uint32_t names;	 /* of the result, if the verb has counted them; else 0 */
	uint8_t outcome; /* enum osd_name_outcome */
	size_t data_bytes; /* in Data-In behind the entry: the data part of LOOKUP */
};

/* ---- failures; each returns a status --------------------------------------------------------- */

/* About a byte of Data-Out. */
enum osd_status osd_naming_fail_in_data(struct osd_request *request, enum osd_status status,
					uint16_t field);
/* About one name of a path. */
enum osd_status osd_naming_fail_at(struct osd_naming *naming, enum osd_status status,
				   unsigned component);
/* About the last name of a path. */
enum osd_status osd_naming_fail_last(struct osd_naming *naming, enum osd_status status,
				     struct osd_name path);

/* ---- parameters ------------------------------------------------------------------------------ */

/* The parameters in Data-Out, which may change while it is read: they borrow from a copy, which the caller frees.
 * A failure has its field. */
enum osd_status osd_naming_load(struct osd_command_context *ctx, uint8_t **ret_copy,
				struct osd_name_params *ret_params);

/* ---- steps ----------------------------------------------------------------------------------- */

/* Finds where the paths begin.  If the CDB addresses the root, the first name of a path with more names is a
 * partition's.  A capability of the root does not reach into it: that needs NOSEC on both.  OSD_E_CONTRACT: names
 * would be changed in a view that is read-only. */
enum osd_status osd_naming_begin(struct osd_naming *naming);
/* The capability permits that on the directory, which the path has led to.  The one that the CDB addresses was
 * checked before. */
enum osd_status osd_naming_may_use(struct osd_naming *naming, struct osd_object_id directory,
				   uint16_t permissions);
/* Follows a path, which only LIST may leave empty, and checks the directory that has its last name.  If CREATE
 * or PUT needs a new name, osd_naming_give() finds out whether it exists. */
enum osd_status osd_naming_follow(struct osd_naming *naming, struct osd_name path,
				  uint16_t permissions, struct osd_name_place *ret_place);
/* The path has its last name, and it is that of the object that is expected. */
enum osd_status osd_naming_must_exist(struct osd_naming *naming);
/* If the path has its last name, it is that of the object that is expected, if any. */
enum osd_status osd_naming_check_expected(struct osd_naming *naming);
/* The object has the policy access tag that the capability wants, and no unfinished job. */
enum osd_status osd_naming_may_touch(struct osd_naming *naming, const struct osd_named *named,
				     uint16_t permissions);
/* The object takes the name, and remembers it as its username. */
enum osd_status osd_naming_give(struct osd_naming *naming, const struct osd_name_place *place,
				const struct osd_named *named);
/* The object loses the name.  Without another one it is removed, unless it is a partition. */
enum osd_status osd_naming_take(struct osd_naming *naming, const struct osd_name_place *place);

/* ---- data (name_data.c) ---------------------------------------------------------------------- */

/* PUT, once what had the name has lost it: the draft of the command becomes an object, and gets the name. */
enum osd_status osd_naming_put(struct osd_naming *naming);
/* LOOKUP: the first bytes of the user object that was found, if the command wants some, with their version. */
enum osd_status osd_naming_read(struct osd_naming *naming);

#endif
