/* SPDX-License-Identifier: GPL-2.0-or-later */
/* superblock.c -- see superblock.h. */
#include "store/superblock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "wire/cursor.h"

#define MAGIC "IOSDSTOR"

static const char damaged[] = "the superblock in '%s' is damaged; 'osd target repair' "
			      "makes it again, or restore a backup";

enum osd_status osd_root_fail(char message[256], int error, const char *format,
			      const char *directory)
{
	int length = snprintf(message, 256, format, directory);

	if (error && length > 0 && length < 256)
		snprintf(message + length, 256 - (size_t)length, ": %s", strerror(error));
	if (error == EACCES || error == EPERM || error == ENOENT || error == ENOTDIR)
		return OSD_E_MEDIUM;
	return error ? osd_status_from_errno(error) : OSD_E_MEDIUM;
}

static uint32_t crc32(const uint8_t *bytes, size_t length)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static void superblock_encode(const struct osd_superblock *superblock,
			      uint8_t bytes[OSD_MEDIA_SUPERBLOCK])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_MEDIA_SUPERBLOCK);

	osd_wr_bytes(&w, MAGIC, 8);				      /* 0-7 */
	osd_wr_be(&w, OSD_MEDIA_VERSION, 4);			      /* 8-11 */
	osd_wr_be(&w, superblock->role, 4);			      /* 12-15 */
	osd_wr_be(&w, superblock->features, 8);			      /* 16-23 */
	osd_wr_bytes(&w, superblock->store_id, OSD_MEDIA_STORE_ID);   /* 24-39 */
	osd_wr_bytes(&w, superblock->system_id, OSD_MEDIA_SYSTEM_ID); /* 40-59 */
	osd_wr_be(&w, 0, 4);					      /* 60-63 */
	osd_wr_be(&w, superblock->head_bytes, 8);		      /* 64-71 */
	osd_wr_be(&w, superblock->created_ms, 8);		      /* 72-79 */
	osd_wr_be(&w, superblock->stamp.opening, 8);		      /* 80-87 */
	osd_wr_be(&w, superblock->stamp.mark, 8);		      /* 88-95 */
	osd_wr_be(&w, superblock->stamp.previous_mark, 8);	      /* 96-103 */
	osd_wr_be(&w, superblock->stamp.begun, 4);		      /* 104-107 */
	osd_wr_zero(&w, OSD_MEDIA_SUPERBLOCK - 4 - osd_wr_used(&w));
	osd_wr_be(&w, crc32(bytes, OSD_MEDIA_SUPERBLOCK - 4), 4); /* 508-511 */
}

/* A later release has written it: the message names what this release does not know. */
static enum osd_status refuse_later(char message[256], const char *directory, const char *what,
				    uint64_t theirs)
{
	return OSD_EXPLAIN(message, OSD_E_MEDIUM,
			   "'%.100s' has %s %" PRIu64
			   ", which this release (format version %d) does not know: use the "
			   "release that wrote it, or a later one",
			   directory, what, theirs, OSD_MEDIA_VERSION);
}

static enum osd_status superblock_decode(const uint8_t bytes[OSD_MEDIA_SUPERBLOCK],
					 const char *directory, char message[256],
					 struct osd_superblock *ret_superblock)
{
	struct osd_rd r = osd_rd_init(bytes, OSD_MEDIA_SUPERBLOCK);
	const uint8_t *magic = osd_rd_bytes(&r, 8);
	uint64_t version = osd_rd_be(&r, 4), unknown;

	if (memcmp(magic, MAGIC, 8) != 0)
		return osd_root_fail(
			message, 0,
			"'%s' holds a superblock that is not iosd's; give another directory",
			directory);
	if (version != OSD_MEDIA_VERSION)
		return refuse_later(message, directory, "format version", version);
	if (osd_get_be(bytes + OSD_MEDIA_SUPERBLOCK - 4, 4) !=
	    crc32(bytes, OSD_MEDIA_SUPERBLOCK - 4))
		return osd_root_fail(message, 0, damaged, directory);
	ret_superblock->role = (enum osd_root_role)osd_rd_be(&r, 4);
	ret_superblock->features = osd_rd_be(&r, 8);
	if (ret_superblock->features & OSD_MEDIA_NOT_TO_BE_SERVED)
		return osd_root_fail(message, 0,
				     "'%s' is a backup, or a restore that did not end: 'osd target "
				     "restore' restores it",
				     directory);
	unknown = ret_superblock->features & ~OSD_MEDIA_SUMS;
	if (unknown)
		return refuse_later(message, directory, "feature bits", unknown);
	memcpy(ret_superblock->store_id, osd_rd_bytes(&r, OSD_MEDIA_STORE_ID), OSD_MEDIA_STORE_ID);
	memcpy(ret_superblock->system_id, osd_rd_bytes(&r, OSD_MEDIA_SYSTEM_ID),
	       OSD_MEDIA_SYSTEM_ID);
	osd_rd_be(&r, 4);
	ret_superblock->head_bytes = osd_rd_be(&r, 8);
	ret_superblock->created_ms = osd_rd_be(&r, 8);
	ret_superblock->stamp.opening = osd_rd_be(&r, 8);
	ret_superblock->stamp.mark = osd_rd_be(&r, 8);
	ret_superblock->stamp.previous_mark = osd_rd_be(&r, 8);
	ret_superblock->stamp.begun = osd_rd_be(&r, 4) != 0;
	return OSD_OK;
}

int osd_root_write(int directory_fd, const char *name, const uint8_t *bytes, size_t length)
{
	OSD_CLEANUP_CLOSE int fd = -1;
	char fresh[32];

	snprintf(fresh, sizeof(fresh), "%s.new", name);
	fd = openat(directory_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return errno;
	return osd_write_all(fd, bytes, length) && fsync(fd) == 0 &&
			       renameat(directory_fd, fresh, directory_fd, name) == 0 &&
			       fsync(directory_fd) == 0
		       ? 0
		       : errno;
}

int osd_superblock_write(int directory_fd, const struct osd_superblock *superblock)
{
	uint8_t bytes[OSD_MEDIA_SUPERBLOCK];

	superblock_encode(superblock, bytes);
	return osd_root_write(directory_fd, "superblock", bytes, sizeof(bytes));
}

enum osd_status osd_superblock_read(const char *directory, int directory_fd, char message[256],
				    struct osd_superblock *ret_superblock)
{
	uint8_t bytes[OSD_MEDIA_SUPERBLOCK];
	OSD_CLEANUP_CLOSE int fd =
		openat(directory_fd, "superblock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return OSD_E_NO_OBJECT;
	if (fd < 0)
		return osd_root_fail(message, errno, "cannot open the superblock in '%s'",
				     directory);
	got = pread(fd, bytes, sizeof(bytes), 0);
	if (got < 0)
		return osd_root_fail(message, errno, "cannot read the superblock in '%s'",
				     directory);
	if ((size_t)got < sizeof(bytes))
		return osd_root_fail(message, 0, damaged, directory);
	return superblock_decode(bytes, directory, message, ret_superblock);
}
