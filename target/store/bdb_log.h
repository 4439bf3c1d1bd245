/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bdb_log.h -- the newest file of Berkeley DB's log, before the environment is opened. */
#ifndef OSD_STORE_BDB_LOG_H
#define OSD_STORE_BDB_LOG_H

/* Recovery overwrites what is behind the last record with zeros, 4 KiB at a time: of a file that was
 * made 64 MiB long that is 16,000 calls and as many blocks at each start.  Cuts off zeros that are
 * there already, as far as no record can reach.  What fails is left as it is.  The caller holds the
 * store's exclusive lock. */
void osd_bdb_trim_log(const char *directory);

#endif
