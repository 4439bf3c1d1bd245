/* SPDX-License-Identifier: GPL-2.0-or-later */
/* txn_run.h -- runs a piece of work in a transaction of its own.  A transaction that loses a deadlock is
 * begun again here, and only here: this is the one place that decides how often, and what the caller is
 * told when the last try has lost too. */
#ifndef OSD_OBJECT_TXN_RUN_H
#define OSD_OBJECT_TXN_RUN_H

#include "object/object.h"

/* The work.  It may run several times, each time in a new transaction, so it must do the same each time:
 * - what it stores through arg it sets anew before the first call that can fail, since an earlier run may
 *   have left something there;
 * - it does nothing that the abort of a transaction cannot undo, or does it in osd_txn_on_end();
 * - it calls osd_txn_watch() and osd_txn_watch_by() itself, since these hold for one transaction only.
 * OSD_OK: the transaction is committed.  Anything else: it is aborted. */
typedef enum osd_status osd_txn_fn(struct osd_txn *txn, void *arg);

/* Begins a transaction, runs fn in it and commits.  When fn or the commit returns OSD_E_CONFLICT, the whole
 * begins again at once, at most OSD_TXN_RETRIES times; then the answer is OSD_E_BUSY.  There is no pause
 * in between: the transaction that won still holds the locks, so the next try waits in the store until it
 * has ended.
 * flags: enum osd_txn_flags, and OSD_COMMIT_DURABLE. */
enum osd_status osd_txn_run(struct osd_objects *objects, unsigned flags, osd_txn_fn *fn, void *arg);

#endif
