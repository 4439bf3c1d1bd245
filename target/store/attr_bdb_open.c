/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_bdb_open.c -- opens the attribute database: its environment, then its tables. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "store/attr_bdb_impl.h"
#include "store/bdb_log.h"

#define BDB_PAGE_BYTES	     8192u
#define BDB_LOG_FILE_MAX     (64u << 20)
#define BDB_LOG_FILE_MIN     (4u << 20)
#define BDB_LOG_BUFFER_BYTES (1u << 20)
#define BDB_CACHE_DEFAULT    (UINT64_C(256) << 20)

static const char *const table_names[OSD_KV_TABLES] = {
	[OSD_KV_PARTITIONS] = "partitions.db",
	[OSD_KV_OBJECTS] = "objects.db",
	[OSD_KV_ATTRIBUTES] = "attributes.db",
	[OSD_KV_MEMBERS] = "members.db",
	[OSD_KV_MEMBERSHIPS] = "memberships.db",
	[OSD_KV_JOBS] = "jobs.db",
	[OSD_KV_JOB_KEYS] = "job_keys.db",
	[OSD_KV_INDEX] = "index.db",
	[OSD_KV_COMMANDS] = "commands.db",
	[OSD_KV_NAMES] = "names.db",
	[OSD_KV_NAMED] = "named.db",
	[OSD_KV_KEYS] = "keys.db",
	[OSD_KV_META] = "meta.db",
};

static void report(const DB_ENV *env, const char *prefix, const char *text)
{
	(void)env;
	(void)prefix;
	osd_debug("Berkeley DB: %s", text);
}

/* Recovery fills a new log file with zeros, so the file must also fit on a small file system. */
static u_int32_t log_file_bytes(uint64_t disk_bytes)
{
	if (disk_bytes == 0 || disk_bytes / 32 > BDB_LOG_FILE_MAX)
		return BDB_LOG_FILE_MAX;
	return (u_int32_t)OSD_MAX(disk_bytes / 32, BDB_LOG_FILE_MIN);
}

/* Private memory will do, since osd_media_open lets one process at a time into the store.  It is gone after a crash, so
 * each start recovers. */
static int open_environment(struct bdb *bdb, const struct osd_bdb_config *config)
{
	uint64_t cache = config->cache_bytes ? config->cache_bytes : BDB_CACHE_DEFAULT;
	int error = db_env_set_func_fsync(osd_bdb_sync_file);
	struct osd_bdb_log_mark mark;
	DB_ENV *env;

	if (!error)
		error = db_env_create(&bdb->env, 0);
	if (error)
		return error;
	env = bdb->env;
	env->set_errcall(env, report);
	env->set_msgcall(env, NULL);
	osd_bdb_trim_log(config->directory);
	osd_bdb_log_note(config->directory, &mark);
	error = env->set_cachesize(env, (u_int32_t)(cache >> 30),
				   (u_int32_t)(cache & ((1u << 30) - 1)), 1);
	if (!error) /* otherwise it makes locks for a cache of smaller pages: 8 MiB, written at each start */
		error = env->set_mp_pagesize(env, BDB_PAGE_BYTES);
	if (!error)
		error = env->set_lg_max(env, bdb->log_file_bytes);
	if (!error)
		error = env->set_lg_bsize(env, BDB_LOG_BUFFER_BYTES);
	if (!error)
		error = env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1);
	if (!error)
		error = env->set_lk_detect(env, DB_LOCK_DEFAULT);
	if (!error)
		error = env->open(env, config->directory,
				  DB_CREATE | DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK |
					  DB_INIT_MPOOL | DB_THREAD | DB_PRIVATE | DB_RECOVER,
				  0600);
	if (!error && osd_bdb_log_lost(config->directory, &mark))
		osd_error("the log of the database in '%s' is damaged, and the last changes before "
			  "the stop are lost: run 'osd target repair', or restore a backup",
			  config->directory);
	return error;
}

static int open_table(struct bdb *bdb, size_t table)
{
	int error = db_create(&bdb->tables[table], bdb->env, 0);
	DB *db = bdb->tables[table];

	if (!error)
		error = db->set_pagesize(db, BDB_PAGE_BYTES);
	if (!error)
		error = db->open(db, NULL, table_names[table], NULL, DB_BTREE,
				 DB_CREATE | DB_AUTO_COMMIT | DB_THREAD, 0600);
	return error;
}

enum osd_status osd_bdb_open(const struct osd_bdb_config *config, char message[256],
			     struct osd_kv **ret_kv)
{
	struct bdb *bdb = calloc(1, sizeof(*bdb));
	const char *what = "attribute database";
	enum osd_status status;
	int error;

	if (!bdb)
		return OSD_EXPLAIN(message, OSD_E_NO_MEMORY, "out of memory");
	bdb->base.ops = &osd_bdb_ops;
	bdb->log_file_bytes = log_file_bytes(config->disk_bytes);
	bdb->full = config->full;
	bdb->arg = config->arg;
	error = open_environment(bdb, config);
	for (size_t i = 0; !error && i < OSD_KV_TABLES; i++) {
		what = table_names[i];
		error = open_table(bdb, i);
	}
	if (!error) {
		*ret_kv = &bdb->base;
		return OSD_OK;
	}
	snprintf(message, 256,
		 "cannot open %s in '%s': %s; it is damaged, full or no iosd store: "
		 "'osd target check' tells",
		 what, config->directory, db_strerror(error));
	status = error == DB_RUNRECOVERY ? OSD_E_MEDIUM : osd_bdb_status(bdb, error);
	osd_bdb_ops.close(&bdb->base);
	return status == OSD_E_NO_OBJECT ? OSD_E_MEDIUM : status;
}
