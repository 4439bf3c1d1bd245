/* SPDX-License-Identifier: GPL-2.0-or-later */
/* validate.h -- the checks a command's row asks for, all before anything is done. */
#ifndef OSD_COMMAND_VALIDATE_H
#define OSD_COMMAND_VALIDATE_H

#include "command/context.h"

/* Ids and their type.  Sets request->object and ->object_type. */
enum osd_status osd_validate_ids(struct osd_request *request);
/* Ranges, Data-Out, room for integrity information, bits without meaning. */
enum osd_status osd_validate(struct osd_request *request);
/* The type of object the ids name, checked against what exists; for rows whose ids must exist. */
enum osd_status osd_validate_exists(struct osd_request *request, struct osd_txn *txn);
/* The same in a transaction of its own, for commands that begin theirs later or need none. */
enum osd_status osd_validate_alone(struct osd_command_context *ctx);
/* OSD_E_JOB_IN_WAY when the object is an unfinished surrogate, else OSD_OK. */
enum osd_status osd_validate_unmarked(struct osd_txn *txn, struct osd_object_id id,
				      enum osd_object_type type);

#endif
