/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bdb_log.h -- the newest file of Berkeley DB's log: trims it before the environment is opened, and finds out
 * whether recovery has dropped some of it. */
#ifndef OSD_STORE_BDB_LOG_H
#define OSD_STORE_BDB_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Recovery overwrites the space after the last record with zeros, 4 KiB at a time.  For a file of
 * 64 MiB that is 16,000 calls, and as many blocks, at each start.  So this cuts off the zeros that
 * no record can reach.  On failure it leaves the file as it is.  The caller holds the store's
 * exclusive lock. */
void osd_bdb_trim_log(const char *directory);

/* Some bytes of the last record that a whole log must have. */
struct osd_bdb_log_mark {
	char name[16]; /* of the file; empty: there is nothing to compare */
	off_t at;
	uint8_t bytes[12];
};

/* Recovery takes the first record that it cannot read for the end of the log, overwrites what follows, and reports
 * nothing.  A record that a kill has left in part is no loss: nothing was acknowledged.  Before the environment is
 * opened. */
void osd_bdb_log_note(const char *directory, struct osd_bdb_log_mark *ret_mark);
/* Whether recovery has overwritten them.  After the environment was opened. */
bool osd_bdb_log_lost(const char *directory, const struct osd_bdb_log_mark *mark);

#endif
