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
#include <sys/mman.h>
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

/* Opens the newest file, with its name into name; -1: there is none. */
static int open_newest(const char *directory, int flags, char name[LOG_NAME_LENGTH + 1])
{
	DIR *files = opendir(directory);
	int fd = -1;

	if (files && newest_log(files, name))
		fd = openat(dirfd(files), name, flags | O_CLOEXEC | O_NOFOLLOW);
	if (files)
		closedir(files);
	return fd;
}

void osd_bdb_trim_log(const char *directory)
{
	char name[LOG_NAME_LENGTH + 1];
	struct stat stat;
	int fd = open_newest(directory, O_RDWR, name);
	off_t end;

	if (fd < 0)
		return;
	end = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)
		      ? bytes_end(fd, blocks_end(fd, stat.st_size))
		      : -1;
	if (end > 0 && end + KEPT_BYTES < stat.st_size && ftruncate(fd, end + KEPT_BYTES) != 0)
		osd_debug("cannot cut zeros off '%s'", name);
	close(fd);
}

/* ---- what recovery drops ----------------------------------------------------------------------- */

/* Of a record: offset of the one before, length, checksum, in the order of the machine. */
struct header {
	uint32_t before, length, checksum;
};

_Static_assert(sizeof(struct header) == sizeof(((struct osd_bdb_log_mark *)0)->bytes),
	       "a mark has room for a header");

static struct header header_at(const uint8_t *log, size_t at)
{
	struct header header;

	memcpy(&header, log + at, sizeof(header));
	return header;
}

/* The place of some bytes that recovery must leave.  whole: the end of the last byte that is not zero. */
static size_t find_mark(const uint8_t *log, size_t size, size_t whole)
{
	size_t at = 0, last = 0, earlier = 0;
	struct header header = {0};

	while (at + sizeof(header) <= whole) {
		header = header_at(log, at);
		if (header.length < sizeof(header) || header.length > size - at ||
		    header.before != last)
			break;
		earlier = last;
		last = at;
		at += header.length;
	}
	if (whole < at) /* zeros at the end of the last record: a kill may have cut it */
		return earlier;
	if (whole <= at + sizeof(header) || whole - at <= header.length)
		return last;
	return whole - sizeof(header); /* a header is damaged */
}

void osd_bdb_log_note(const char *directory, struct osd_bdb_log_mark *ret_mark)
{
	char name[LOG_NAME_LENGTH + 1];
	struct stat stat;
	int fd = open_newest(directory, O_RDONLY, name);
	uint8_t *log = MAP_FAILED;
	off_t whole = -1;

	*ret_mark = (struct osd_bdb_log_mark){.at = 0};
	if (fd < 0)
		return;
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode))
		whole = bytes_end(fd, blocks_end(fd, stat.st_size));
	if (whole >= (off_t)sizeof(struct header))
		log = mmap(NULL, (size_t)whole, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (log == MAP_FAILED)
		return;
	ret_mark->at = (off_t)find_mark(log, (size_t)stat.st_size, (size_t)whole);
	memcpy(ret_mark->bytes, log + ret_mark->at, sizeof(ret_mark->bytes));
	memcpy(ret_mark->name, name, sizeof(name));
	munmap(log, (size_t)whole);
}

bool osd_bdb_log_lost(const char *directory, const struct osd_bdb_log_mark *mark)
{
	uint8_t bytes[sizeof(mark->bytes)];
	char name[LOG_NAME_LENGTH + 1];
	int fd = mark->name[0] ? open_newest(directory, O_RDONLY, name) : -1;
	ssize_t count;

	if (fd < 0)
		return false;
	count = pread(fd, bytes, sizeof(bytes), mark->at);
	close(fd);
	if (strcmp(name, mark->name) !=
	    0) /* recovery has begun another file: it has read this one */
		return false;
	return count != (ssize_t)sizeof(bytes) || memcmp(bytes, mark->bytes, sizeof(bytes)) != 0;
}
