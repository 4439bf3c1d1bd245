/* SPDX-License-Identifier: GPL-2.0-or-later */
/* transact.h -- one piece of work in one transaction, repeated when the transaction was a
 * deadlock victim. */
#ifndef OSD_COMMAND_TRANSACT_H
#define OSD_COMMAND_TRANSACT_H

#include "base/status.h"
#include "object/object.h"

/* Runs inside txn; must be repeatable.  Anything but OSD_OK rolls back. */
typedef enum osd_status osd_transact_fn(void *arg, struct osd_txn *txn);

/* Begins, runs fn, commits; at most OSD_TXN_RETRIES times again after OSD_E_RETRY, then
 * OSD_E_BUSY: the initiator may come back. */
enum osd_status osd_transact(struct osd_objects *objects, unsigned txn_flags, enum osd_commit how,
			     osd_transact_fn *fn, void *arg);

#endif
