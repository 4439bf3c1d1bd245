/* SPDX-License-Identifier: GPL-2.0-or-later */
/* resolve.h -- finds what the ids in a CDB name.  A command does this once: the first call looks it up and keeps it
 * in the context, later calls return the same.  So the check of the capability, the check for unfinished jobs, and
 * the command function work on one object.  If another command removes it meanwhile, it answers OSD_E_NO_OBJECT, even
 * if a new one has its id.  The context owns the reference (osd_context_release).
 *
 * Not for use in a transaction: that reads the object's records itself, and osd_authorise_again compares them with
 * what was found here.  With OSD_DATA_NOWAIT in ctx->data_flags: OSD_E_WOULD_BLOCK instead of reading a record. */
#ifndef OSD_COMMAND_RESOLVE_H
#define OSD_COMMAND_RESOLVE_H

#include "command/context.h"

/* Fills ctx->facts for the comparison with a capability, whatever the row addresses: the root, a partition, a
 * collection, a user object, or an object to be made.  An object that does not exist is no failure here: its facts say
 * `missing`, so that the capability is checked first.  with_tag: as in osd_objects_facts. */
enum osd_status osd_resolve_facts(struct osd_command_context *ctx, bool with_tag);
/* Sets ctx->object, for rows that address user objects alone.  OSD_E_NO_PARTITION, OSD_E_NO_OBJECT: there is none. */
enum osd_status osd_resolve_object(struct osd_command_context *ctx);

#endif
