/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bdb_log.c -- see bdb_log.h. */
#include "store/bdb_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

#define LOG_NAME_LENGTH 14 /* log. and ten digits: in order of age */
#define PIECE_BYTES	(64u << 10)
#define KEPT_BYTES	(1 << 20) /* zeros that stay: a record may end in some, and has few pages */

/* Its name into name; false: there is none. */
static bool newest_log(DIR *directory, char name[LOG_NAME_LENGTH + 1])
{
	const struct dirent *entry;

	name[0] = '\0';
	while ((entry = readdir(directory)))
		if (strncmp(entry->d_name, "log.", 4) == 0 &&
		    strlen(entry->d_name) == LOG_NAME_LENGTH && strcmp(entry->d_name, name) > 0)
			memcpy(name, entry->d_name, LOG_NAME_LENGTH + 1);
	return name[0] != '\0';
}

/* The end of the last allocated block of a file; only holes follow. */
static off_t blocks_end(int fd, off_t size)
{
	off_t end = 0, begin;

	while (end < size && (begin = lseek(fd, end, SEEK_DATA)) >= 0) {
		end = lseek(fd, begin, SEEK_HOLE);
		if (end < 0)
			return size;
	}
	return end < size && errno != ENXIO ? size : end;
}

/* Of a piece that is not empty.  memcmp is fast: of a log that was opened and closed, a megabyte is zeros. */
static bool is_zero(const uint8_t *piece, size_t length)
{
	return piece[0] == 0 && memcmp(piece, piece + 1, length - 1) == 0;
}

/* The end of the last non-zero byte before `end`; 0: there is none. */
static off_t bytes_end(int fd, off_t end)
{
	OSD_CLEANUP_FREE uint8_t *piece = malloc(PIECE_BYTES);

	while (piece && end > 0) {
		off_t begin = OSD_MAX(end - (off_t)PIECE_BYTES, 0);
		ssize_t count = pread(fd, piece, (size_t)(end - begin), begin);

		if (count != end - begin)
			return -1;
		end = begin;
		if (is_zero(piece, (size_t)count))
			continue;
		while (piece[count - 1] == 0)
			count--;
		return begin + count;
	}
	return piece ? 0 : -1;
}

void osd_bdb_trim_log(const char *directory)
{
	char name[LOG_NAME_LENGTH + 1];
	struct stat stat;
	DIR *files = opendir(directory);
	int fd = -1;
	off_t end;

	if (files && newest_log(files, name))
		fd = openat(dirfd(files), name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (files)
		closedir(files);
	if (fd < 0)
		return;
	end = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)
		      ? bytes_end(fd, blocks_end(fd, stat.st_size))
		      : -1;
	if (end > 0 && end + KEPT_BYTES < stat.st_size && ftruncate(fd, end + KEPT_BYTES) != 0)
		osd_debug("cannot cut zeros off '%s'", name);
	close(fd);
}
