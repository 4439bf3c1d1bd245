/* SPDX-License-Identifier: GPL-2.0-or-later */
/* freeze.h -- keeps the files of a store as they are for a moment, so that another process can copy
 * them.
 *
 * While a store is frozen, no transaction that changes something is open, the database has nothing
 * to write, and no call that changes a data file begins.  Such calls wait; reads continue.  The
 * files are then what a crash at the beginning of the freeze would have left, with every
 * transaction whole.  A write of data that the kernel was already doing may still end: its command
 * has not been answered.
 *
 * A freeze ends with osd_freeze_end, or by itself at its deadline: a caller that dies stops
 * commands no longer than that.  Outside a freeze a transaction pays two atomic additions, and a call that
 * changes data a look at a flag.
 *
 * Threads: everything may be called from any thread. */
#ifndef OSD_STORE_FREEZE_H
#define OSD_STORE_FREEZE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct osd_freeze;

/* The stores are borrowed; head or tail may be NULL.  Call it before any other thread uses them. */
enum osd_status osd_freeze_open(struct osd_kv *kv, struct osd_data *head, struct osd_data *tail,
				struct osd_freeze **ret_freeze);
/* No call of the stores may be under way.  NULL is fine. */
void osd_freeze_close(struct osd_freeze *freeze);

/* Freezes the stores for at most freeze_usec from now.  OSD_E_BUSY: they are frozen already, or
 * open transactions did not end within wait_usec.  Other errors: the checkpoint failed.  After an
 * error nothing is frozen. */
enum osd_status osd_freeze_begin(struct osd_freeze *freeze, uint64_t wait_usec,
				 uint64_t freeze_usec);
/* Ends the freeze.  False: it had ended by itself, so a copy made meanwhile is worthless. */
bool osd_freeze_end(struct osd_freeze *freeze);

/* For store.c: a transaction that changes something begins (this waits while the store is frozen),
 * or has ended.  NULL is fine. */
void osd_freeze_enter(struct osd_freeze *freeze);
void osd_freeze_leave(struct osd_freeze *freeze);
/* For store.c: the database must not write now.  NULL: it may. */
bool osd_freeze_is_on(struct osd_freeze *freeze);
/* For store.c: a call that changes a data file begins; this waits while the store is frozen.  NULL is fine. */
void osd_freeze_pass(struct osd_freeze *freeze);
/* Whether such calls wait now.  NULL: they do not. */
bool osd_freeze_holds(const struct osd_freeze *freeze);
#endif
