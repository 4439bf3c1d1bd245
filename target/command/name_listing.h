/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_listing.h -- LIST of READ NAMES: the entries of one directory, as Data-In. */
#ifndef OSD_COMMAND_NAME_LISTING_H
#define OSD_COMMAND_NAME_LISTING_H

#include "command/context.h"
#include "wire/name_list.h"

/* OSD_E_CDB_FIELD: there is no room for the header. */
enum osd_status osd_names_listing(struct osd_command_context *ctx, struct osd_txn *txn,
				  struct osd_object_id directory,
				  const struct osd_name_params *params);

#endif
