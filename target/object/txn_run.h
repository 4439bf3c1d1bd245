/* SPDX-License-Identifier: GPL-2.0-or-later */
/* txn_run.h -- runs a piece of work in a transaction of its own.  This is the one place that begins a
 * transaction again after a lost deadlock.  It decides how often, and the answer when the last try has
 * lost too. */
#ifndef OSD_OBJECT_TXN_RUN_H
#define OSD_OBJECT_TXN_RUN_H

#include "object/object.h"

/* The work.  It may run several times, each time in a new transaction, and must do the same each time: -
 * what it stores through arg it sets anew before the first call that can fail, since an earlier run may
 *   have left something there;
 * - it does nothing that the abort of a transaction cannot undo, or does it in osd_txn_on_end();
 * - it calls osd_txn_watch() and osd_txn_watch_by() itself, since these hold for one transaction only.
 * OSD_OK: the transaction is committed.  Anything else: it is aborted. */
typedef enum osd_status osd_txn_fn(struct osd_txn *txn, void *arg);

/* Begins a transaction, runs fn in it and commits.  When fn or the commit returns OSD_E_CONFLICT, a new
 * transaction begins at once, at most OSD_TXN_RETRIES times.  Then the answer is OSD_E_BUSY. There is no
 * pause: the transaction that won still holds the locks, so the next try waits in the store until that
 * one has ended. flags: enum osd_txn_flags, and OSD_COMMIT_DURABLE. */
enum osd_status osd_txn_run(struct osd_objects *objects, unsigned flags, osd_txn_fn *fn, void *arg);

/* In fn, when one transaction is too small for all that must be done: fn returns what this returns.  osd_txn_run
 * then aborts, calls first(arg, id), which does a part of the work in transactions of its own, and begins again.  If
 * first fails, osd_txn_run returns its status.  The later call of two counts. */
typedef enum osd_status osd_first_fn(void *arg, struct osd_object_id id);
enum osd_status osd_txn_first(struct osd_txn *txn, osd_first_fn *first, void *arg,
			      struct osd_object_id id);

#endif
