/* SPDX-License-Identifier: GPL-2.0-or-later */
/* precondition.h -- the version that a command requires of the object that it names (docs/wire.md, descriptor
 * F082h).  READ and the commands that change data compare it in object/ (cmd_data.c).  Others compare it in their
 * transaction. */
#ifndef OSD_COMMAND_PRECONDITION_H
#define OSD_COMMAND_PRECONDITION_H

#include "command/context.h"

/* Whether the command has a precondition. */
bool osd_precondition_given(const struct osd_command_context *ctx);
/* *ret_wanted: the version that it requires, in *version; NULL: none.  page: OSD_PAGE_VERSION of a user object,
 * OSD_PAGE_MEMBERS_VERSION of a collection.  OSD_E_CDB_FIELD: it names another attribute. */
enum osd_status osd_precondition_load(struct osd_command_context *ctx, uint32_t page,
				      struct osd_data_version *version,
				      const struct osd_data_version **ret_wanted);
/* Before the transaction: checks the descriptor.  Then no data of a user object change until osd_pin_end, or until the
 * transaction has committed.  May wait for a change under way. */
enum osd_status osd_precondition_begin(struct osd_command_context *ctx, struct osd_pin **ret_pin);
/* In each attempt of the transaction, which holds the object if it changes something.  OSD_E_VERSION: it has another
 * version.  OSD_E_BUSY: a new length is about to take effect.  pin NULL: of a collection. */
enum osd_status osd_precondition_check(struct osd_command_context *ctx, struct osd_txn *txn,
				       struct osd_pin *pin);
/* In a transaction that holds the object: whether its data, or the members of the collection, have this version. */
enum osd_status osd_precondition_compare(struct osd_txn *txn, struct osd_object_id id,
					 uint32_t page, const struct osd_data_version *wanted);
/* In the first transaction of a command on a collection: holds the collection and compares. */
enum osd_status osd_precondition_members(struct osd_command_context *ctx, struct osd_txn *txn);

#endif
