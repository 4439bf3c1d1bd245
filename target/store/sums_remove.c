/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums_remove.c -- see sums.h.  Files of sums are told by their names, which file_store.c makes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "store/sums.h"

#define NAME_LENGTH (16u + 1 + 16 + 2) /* object id, generation, h or t, s */
#define DEPTH	    2u		       /* of folders below data/ */

static bool is_sums(const char *name)
{
	return strlen(name) == NAME_LENGTH && name[16] == '.' && name[NAME_LENGTH - 1] == 's';
}

/* Of the directory open as fd (taken over), depth levels deep; an errno. */
static int remove_below(int fd, unsigned depth)
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;
	int error = 0;

	if (!directory) {
		error = errno;
		close(fd);
		return error;
	}
	while (!error && (entry = readdir(directory))) {
		int child;

		if (entry->d_name[0] == '.')
			continue;
		if (depth == 0) {
			if (is_sums(entry->d_name) && unlinkat(fd, entry->d_name, 0) < 0 &&
			    errno != ENOENT)
				error = errno;
			continue;
		}
		child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child >= 0)
			error = remove_below(child, depth - 1);
		else if (errno != ENOTDIR && errno != ELOOP)
			error = errno;
	}
	closedir(directory);
	return error;
}

enum osd_status osd_sums_remove_all(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return osd_status_from_errno(fd < 0 ? errno : remove_below(fd, DEPTH));
}
