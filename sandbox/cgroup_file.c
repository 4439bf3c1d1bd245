/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup_file.c -- see cgroup_file.h. */
#include "cgroup_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int osd_cgroup_write(int directory, const char *file, const char *text)
{
	int fd = openat(directory, file, O_WRONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		error = -errno;
	close(fd);
	return error;
}

int osd_cgroup_write_number(int directory, const char *file, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	return osd_cgroup_write(directory, file, text);
}
