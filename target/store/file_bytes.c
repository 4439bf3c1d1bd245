/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_bytes.c -- reads, writes, frees and copies the bytes of a file of file_store.c. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "store/direct.h"
#include "store/file_store_impl.h"

#define COPY_BYTES (256u << 10)

/* Reads past the page cache, which would only return what it has read before; false: the file
 * system does not support it. */
static bool read_device(struct osd_data_file *file, uint64_t offset, void *buffer, size_t length,
			size_t *ret_read, enum osd_status *ret_status)
{
	OSD_CLEANUP_CLOSE int fd = -1;
	char path[32];
	int error;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd_of(file));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	if (fd < 0)
		return false;
	error = osd_direct_read(fd, offset, buffer, length, ret_read);
	*ret_status = osd_status_from_errno(error);
	return error != EINVAL && error != EOPNOTSUPP;
}

enum osd_status osd_file_read(struct osd_data_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read)
{
	int read_flags = flags & OSD_DATA_READ_NOWAIT ? RWF_NOWAIT : 0;
	uint8_t *at = buffer;
	enum osd_status status;
	size_t done = 0;

	if (direct_fd_of(file) >= 0)
		return read_flags ? OSD_E_WOULD_BLOCK
				  : osd_status_from_errno(osd_direct_read(
					    direct_fd_of(file), offset, buffer, length, ret_read));
	if ((flags & OSD_DATA_READ_DEVICE) &&
	    read_device(file, offset, buffer, length, ret_read, &status))
		return status;
	while (done < length) {
		struct iovec part = {at + done, length - done};
		ssize_t got = preadv2(fd_of(file), &part, 1, (off_t)(offset + done), read_flags);

		if (got == 0)
			break;
		if (got > 0)
			done += (size_t)got;
		else if (errno == EAGAIN || (errno == EOPNOTSUPP && read_flags))
			return OSD_E_WOULD_BLOCK;
		else if (errno != EINTR)
			return osd_status_from_errno(errno);
	}
	*ret_read = done;
	return OSD_OK;
}

enum osd_status osd_file_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
			       size_t length)
{
	int fd = fd_of(file), direct_fd = direct_fd_of(file);

	return osd_status_from_errno(
		direct_fd >= 0 ? osd_direct_write(direct_fd, fd, offset, bytes, length)
			       : osd_pwrite_all(fd, offset, bytes, length));
}

enum osd_status osd_file_truncate(struct osd_data_file *file, uint64_t size)
{
	return result(ftruncate(fd_of(file), (off_t)size));
}

/* For file systems that cannot punch holes. */
static enum osd_status write_zeros(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	static const uint8_t zeros[64 << 10];
	enum osd_status status = OSD_OK;
	struct stat stat;

	if (fstat(fd_of(file), &stat) < 0)
		return osd_status_from_errno(errno);
	if (offset >= (uint64_t)stat.st_size)
		return OSD_OK;
	length = OSD_MIN(length, (uint64_t)stat.st_size - offset);
	while (status == OSD_OK && length > 0) {
		size_t piece = OSD_MIN(length, sizeof(zeros));

		status = osd_file_write(file, offset, zeros, piece);
		offset += piece;
		length -= piece;
	}
	return status;
}

enum osd_status osd_file_zero(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	if (fallocate(fd_of(file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)length) == 0)
		return OSD_OK;
	return errno == EOPNOTSUPP ? write_zeros(file, offset, length)
				   : osd_status_from_errno(errno);
}

enum osd_status osd_file_stat(struct osd_data_file *file, struct osd_data_stat *ret_stat)
{
	struct stat stat;

	if (fstat(fd_of(file), &stat) < 0)
		return osd_status_from_errno(errno);
	ret_stat->size = (uint64_t)stat.st_size;
	ret_stat->allocated = (uint64_t)stat.st_blocks * 512;
	ret_stat->modified_ms = stat.st_mtim.tv_sec < 0
					? 0
					: (uint64_t)stat.st_mtim.tv_sec * 1000 +
						  (uint64_t)stat.st_mtim.tv_nsec / 1000000;
	return OSD_OK;
}

/* ---- extents and copies ------------------------------------------------------------------ */

/* On a file system without extents, the whole file is one extent. */
static enum osd_status whole_file(int fd, uint64_t offset, uint64_t *ret_start, uint64_t *ret_end)
{
	struct stat stat;

	if (fstat(fd, &stat) < 0)
		return osd_status_from_errno(errno);
	if (offset >= (uint64_t)stat.st_size)
		return OSD_E_BEYOND_END;
	*ret_start = offset;
	*ret_end = (uint64_t)stat.st_size;
	return OSD_OK;
}

/* lseek moves the descriptor's position, which is not used otherwise. */
enum osd_status osd_file_next_extent(struct osd_data_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end)
{
	off_t start = lseek(fd_of(file), (off_t)offset, SEEK_DATA), end;

	if (start < 0 && errno == ENXIO)
		return OSD_E_BEYOND_END;
	if (start < 0 && errno == EINVAL)
		return whole_file(fd_of(file), offset, ret_start, ret_end);
	end = start < 0 ? -1 : lseek(fd_of(file), start, SEEK_HOLE);
	if (end < 0)
		return errno == ENXIO ? OSD_E_BEYOND_END : osd_status_from_errno(errno);
	*ret_start = (uint64_t)start;
	*ret_end = (uint64_t)end;
	return OSD_OK;
}

static enum osd_status copy_bytes(struct osd_data_file *from, uint64_t from_offset,
				  struct osd_data_file *to, uint64_t to_offset, uint64_t length)
{
	OSD_CLEANUP_FREE uint8_t *buffer = malloc(OSD_MIN(length, COPY_BYTES));
	enum osd_status status = buffer ? OSD_OK : OSD_E_NO_MEMORY;

	while (status == OSD_OK && length > 0) {
		size_t piece = OSD_MIN(length, COPY_BYTES), got = 0;

		status = osd_file_read(from, from_offset, buffer, piece, 0, &got);
		if (status != OSD_OK || got == 0)
			break;
		status = osd_file_write(to, to_offset, buffer, got);
		from_offset += got;
		to_offset += got;
		length -= got;
	}
	return status;
}

/* The kernel may share blocks, or let the device copy.  If it can do neither, it fails at once. */
enum osd_status osd_file_copy(struct osd_data_file *from, uint64_t from_offset,
			      struct osd_data_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags)
{
	if (flags & OSD_DATA_COPY_BYTES)
		return copy_bytes(from, from_offset, to, to_offset, length);
	while (length > 0) {
		off_t in = (off_t)from_offset, out = (off_t)to_offset;
		ssize_t done = copy_file_range(fd_of(from), &in, fd_of(to), &out,
					       OSD_MIN(length, (uint64_t)SSIZE_MAX), 0);

		if (done == 0)
			break;
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 &&
		    (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS))
			return copy_bytes(from, from_offset, to, to_offset, length);
		if (done < 0)
			return osd_status_from_errno(errno);
		from_offset += (uint64_t)done;
		to_offset += (uint64_t)done;
		length -= (uint64_t)done;
	}
	return OSD_OK;
}

enum osd_status osd_file_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	if (ioctl(fd_of(to), FICLONE, fd_of(from)) == 0)
		return OSD_OK;
	if (errno == ENOSPC || errno == EDQUOT || errno == EIO)
		return osd_status_from_errno(errno);
	return OSD_E_UNSUPPORTED;
}

/* Tries it on two files without a name: there is no other reliable check. */
bool osd_file_try_clone(int directory_fd)
{
	const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
	OSD_CLEANUP_CLOSE int from = openat(directory_fd, ".", flags, 0600);
	OSD_CLEANUP_CLOSE int to = from < 0 ? -1 : openat(directory_fd, ".", flags, 0600);
	static const uint8_t block[4096];

	return to >= 0 && pwrite(from, block, sizeof(block), 0) == (ssize_t)sizeof(block) &&
	       ioctl(to, FICLONE, from) == 0;
}
