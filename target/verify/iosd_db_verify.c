/* SPDX-License-Identifier: GPL-2.0-or-later */
/* iosd_db_verify.c -- verifies tables of a database that nobody has open, for `osd target check` and
 * `repair`: a program, because Berkeley DB can crash while it reads damaged pages.
 *
 *   iosd-db-verify FILE...
 *
 * A line for each file: "ok", or the first finding.  The program ends with the first damaged file, with
 * 1: the damage may have spoiled its memory, so other findings need another process.
 *
 * db5.3_verify of db5.3-util takes one process for each file: it verifies the first of its files again
 * and again. */
#include <stdio.h>
#include <sys/stat.h>

#include <db.h>

#include "base/util.h"

#define CACHE_MIN (1u << 20)
#define CACHE_MAX (64u << 20)

enum { EXIT_OK, EXIT_DAMAGED, EXIT_FAILED };

static char finding[1024];

static void note_first(const DB_ENV *env, const char *prefix, const char *message)
{
	(void)env;
	(void)prefix;
	if (!finding[0])
		snprintf(finding, sizeof(finding), "%s", message);
}

/* A table's pages are read several times, and not in order. */
static u_int32_t cache_for(const char *path)
{
	struct stat stat_of;

	if (stat(path, &stat_of) < 0 || stat_of.st_size < CACHE_MIN)
		return CACHE_MIN;
	return (u_int32_t)OSD_MIN(stat_of.st_size, (off_t)CACHE_MAX);
}

/* An error of Berkeley DB or the system; 0: the file is in order. */
static int verify(const char *path)
{
	DB *db;
	int error = db_create(&db, NULL, 0);

	if (error)
		return error;
	db->set_errcall(db, note_first);
	error = db->set_cachesize(db, 0, cache_for(path), 1);
	if (error) {
		db->close(db, 0);
		return error;
	}
	return db->verify(db, path, NULL, NULL, 0); /* also closes it */
}

int main(int count, char **files)
{
	for (int i = 1; i < count; i++) {
		int error = verify(files[i]);

		puts(!error ? "ok" : finding[0] ? finding : db_strerror(error));
		/* Now: the next one may end us. */
		if (fflush(stdout) != 0)
			return EXIT_FAILED;
		if (error)
			return EXIT_DAMAGED;
	}
	return EXIT_OK;
}
