/* SPDX-License-Identifier: GPL-2.0-or-later */
/* package_set.c -- checks that a pool's zygote may import from this folder.  It must contain only files
 * and folders, which root or the daemon's user owns and no other user can write.  The daemon checks
 * this, because in the zygote's user namespace all owners look alike.  The zygote checks the contents
 * of the files (osd/_engine/packages.py). */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"

#define FOLDERS_OPEN 16

/* nftw(3) passes no argument to its callback, so these are static: the daemon has one thread. */
static char *finding;

static int found(const char *what, const char *path, const char *but)
{
	snprintf(finding, ZYGOTE_TEXT_MAX, "package set: %s %.300s%s", what, path, but);
	return 1;
}

static int check_entry(const char *path, const struct stat *status, int kind, struct FTW *ftw)
{
	(void)ftw;
	if (kind == FTW_NS || kind == FTW_DNR)
		return found("cannot read", path, "");
	if (!S_ISREG(status->st_mode) && !S_ISDIR(status->st_mode))
		return found("", path, " is neither a file nor a folder");
	if (status->st_uid != 0 && status->st_uid != geteuid())
		return found("", path, " belongs to an ordinary user");
	if (status->st_mode & (S_IWGRP | S_IWOTH))
		return found("", path, " can be written by others than its owner");
	return 0;
}

bool osd_package_set_check(const char *folder, char why[ZYGOTE_TEXT_MAX])
{
	int result;

	finding = why;
	result = nftw(folder, check_entry, FOLDERS_OPEN, FTW_PHYS);
	if (result < 0)
		snprintf(why, ZYGOTE_TEXT_MAX, "package set: cannot read %.300s: %s", folder,
			 strerror(errno));
	return result == 0;
}
