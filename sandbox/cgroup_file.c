/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup_file.c -- see cgroup_file.h. */
#include "cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

int osd_cgroup_open(const char *path)
{
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return directory < 0 ? -errno : directory;
}

int osd_cgroup_write(int directory, const char *file, const char *text)
{
	OSD_CLEANUP_CLOSE int fd = openat(directory, file, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

int osd_cgroup_write_number(int directory, const char *file, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return osd_cgroup_write(directory, file, text);
}
