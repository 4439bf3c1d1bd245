/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bdb_log.h -- trims the newest file of Berkeley DB's log, before the environment is opened. */
#ifndef OSD_STORE_BDB_LOG_H
#define OSD_STORE_BDB_LOG_H

/* Recovery overwrites the space after the last record with zeros, 4 KiB at a time.  For a file of
 * 64 MiB that is 16,000 calls, and as many blocks, at each start.  So this cuts off the zeros that
 * no record can reach.  On failure it leaves the file as it is.  The caller holds the store's
 * exclusive lock. */
void osd_bdb_trim_log(const char *directory);

#endif
