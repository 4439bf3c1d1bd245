/* SPDX-License-Identifier: GPL-2.0-or-later */
/* direct.c -- see direct.h. */
#include "store/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define BLOCK	     4096u	/* accepted by every device; the size of a page of the page cache */
#define BOUNCE_BYTES (1u << 20) /* copied at a time, if the caller's memory is not aligned */

static uint64_t block_start(uint64_t offset)
{
	return offset & ~(uint64_t)(BLOCK - 1);
}

static void *bounce_new(uint64_t bytes)
{
	return aligned_alloc(BLOCK, (size_t)OSD_MIN(osd_round_up(bytes, BLOCK), BOUNCE_BYTES));
}

bool osd_direct_fits(uint64_t offset, const void *bytes, size_t length)
{
	return ((offset | (uintptr_t)bytes | length) & (BLOCK - 1)) == 0;
}

/* Reads the range as far as the file has it; the range is aligned. */
static int read_blocks(int direct_fd, uint64_t offset, void *buffer, size_t length,
		       size_t *ret_read)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got = pread(direct_fd, (uint8_t *)buffer + done, length - done,
				    (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno;
		done += (size_t)got;
		if (got == 0 || done % BLOCK) /* the end of the file */
			break;
	}
	*ret_read = done;
	return 0;
}

int osd_direct_read(int direct_fd, uint64_t offset, void *buffer, size_t length, size_t *ret_read)
{
	uint64_t at = block_start(offset), end = osd_round_up(offset + length, BLOCK);
	OSD_CLEANUP_FREE uint8_t *bounce = NULL;
	size_t done = 0;

	if (osd_direct_fits(offset, buffer, length))
		return read_blocks(direct_fd, offset, buffer, length, ret_read);
	bounce = bounce_new(end - at);
	if (!bounce)
		return ENOMEM;
	while (done < length) {
		size_t piece = (size_t)OSD_MIN(end - at, BOUNCE_BYTES), skip = 0, got = 0, use;
		int error = read_blocks(direct_fd, at, bounce, piece, &got);

		if (error)
			return error;
		if (at < offset)
			skip = (size_t)(offset - at);
		if (got <= skip)
			break;
		use = OSD_MIN(got - skip, length - done);
		memcpy((uint8_t *)buffer + done, bounce + skip, use);
		done += use;
		at += piece;
		if (got < piece)
			break;
	}
	*ret_read = done;
	return 0;
}

int osd_pwrite_all(int fd, uint64_t offset, const uint8_t *bytes, size_t length)
{
	while (length > 0) {
		ssize_t put = pwrite(fd, bytes, length, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 ? errno : EIO;
		bytes += put;
		offset += (uint64_t)put;
		length -= (size_t)put;
	}
	return 0;
}

/* Writes within one block.  The bytes are on the device when it returns, but not the metadata that
 * a sync adds. */
static int write_part(int fd, uint64_t offset, const uint8_t *bytes, size_t length)
{
	const unsigned now =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	int error = length ? osd_pwrite_all(fd, offset, bytes, length) : 0;

	if (error || !length)
		return error;
	if (sync_file_range(fd, (off_t)block_start(offset), BLOCK, now) < 0 && errno != ENOSYS)
		return errno;
	posix_fadvise(fd, (off_t)block_start(offset), BLOCK, POSIX_FADV_DONTNEED);
	return 0;
}

static int write_blocks(int direct_fd, uint64_t offset, const uint8_t *bytes, size_t length)
{
	OSD_CLEANUP_FREE uint8_t *bounce = NULL;
	int error = 0;

	if (length == 0 || osd_direct_fits(offset, bytes, length))
		return osd_pwrite_all(direct_fd, offset, bytes, length);
	bounce = bounce_new(length);
	if (!bounce)
		return ENOMEM;
	while (!error && length > 0) {
		size_t piece = OSD_MIN(length, BOUNCE_BYTES);

		memcpy(bounce, bytes, piece);
		error = osd_pwrite_all(direct_fd, offset, bounce, piece);
		offset += piece;
		bytes += piece;
		length -= piece;
	}
	return error;
}

int osd_direct_write(int direct_fd, int fd, uint64_t offset, const void *bytes, size_t length)
{
	size_t first = (size_t)(osd_round_up(offset, BLOCK) - offset), middle;
	const uint8_t *at = bytes;
	int error;

	first = OSD_MIN(first, length);
	middle = (length - first) & ~(size_t)(BLOCK - 1);
	error = write_part(fd, offset, at, first);
	if (!error)
		error = write_blocks(direct_fd, offset + first, at + first, middle);
	if (!error)
		error = write_part(fd, offset + first + middle, at + first + middle,
				   length - first - middle);
	return error;
}

bool osd_direct_works(int directory_fd)
{
	OSD_CLEANUP_CLOSE int fd =
		openat(directory_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
	OSD_CLEANUP_FREE uint8_t *block = bounce_new(BLOCK);
	size_t got = 0;

	if (fd < 0 || !block || sysconf(_SC_PAGESIZE) != BLOCK)
		return false;
	memset(block, 0x5a, BLOCK);
	return osd_pwrite_all(fd, 0, block, BLOCK) == 0 &&
	       read_blocks(fd, 0, block, BLOCK, &got) == 0 && got == BLOCK;
}
