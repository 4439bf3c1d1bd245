/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_bdb_impl.h -- an open attribute database, for attr_bdb.c and attr_bdb_open.c. */
#ifndef OSD_STORE_ATTR_BDB_IMPL_H
#define OSD_STORE_ATTR_BDB_IMPL_H

#include <db.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

struct bdb {
	struct osd_kv base;
	DB_ENV *env;
	DB *tables[OSD_KV_TABLES];
	u_int32_t log_file_bytes; /* also how much log gathers between checkpoints */
	bool (*full)(void *arg);
	void *arg;
	_Atomic bool stopped; /* and said so */
	_Atomic uint64_t commits, aborts, deadlocks, checkpoints;
};

extern const struct osd_kv_ops osd_bdb_ops;

/* The status for an error of the library. */
enum osd_status osd_bdb_status(struct bdb *bdb, int error);
/* Berkeley DB calls it in place of its own.  Returns an errno. */
int osd_bdb_sync_file(int fd);

#endif
