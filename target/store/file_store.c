/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_store.c -- object data in files under one directory.
 *
 *   <partition id>.<incarnation>/<hash>/<object id>.<generation>{h,t}[s]   all hexadecimal
 *
 * Names are made of ids and nothing else.  Files are opened relative to the directory's descriptor,
 * and symbolic links are not followed.  With direct I/O a file is open twice, once without the page
 * cache (direct.c).  The first write creates a file and its directories.  The records know which
 * objects have files, and how long they are; this file does not. */
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/util.h"
#include "store/direct.h"

#define COPY_BYTES    (256u << 10)
#define FILE_PATH_MAX 96 /* 16+1+8 / 2 / 16+1+16+2 and the separators */

struct file_data {
	struct osd_data base;
	int directory_fd; /* borrowed */
	bool can_clone, is_direct;
};

struct file {
	struct osd_data_file base;
	int fd;	       /* owned */
	int direct_fd; /* owned; -1: through the page cache */
};

/* Lengths of the path's first one and two components follow from the ids. */
struct file_path {
	char text[FILE_PATH_MAX];
	size_t partition_length, hash_length;
};

static struct file_data *to_data(struct osd_data *data)
{
	return osd_container_of(data, struct file_data, base);
}

static int fd_of(struct osd_data_file *file)
{
	return osd_container_of(file, struct file, base)->fd;
}

static int direct_fd_of(struct osd_data_file *file)
{
	return osd_container_of(file, struct file, base)->direct_fd;
}

static void make_path(const struct osd_data_name *name, struct file_path *path)
{
	uint8_t hash = (uint8_t)(name->object_id * UINT64_C(0x9e3779b97f4a7c15) >> 56);
	int length = snprintf(path->text, sizeof(path->text), "%016" PRIx64 ".%08" PRIx32,
			      name->partition_id, name->incarnation);

	path->partition_length = (size_t)length;
	length += snprintf(path->text + length, sizeof(path->text) - (size_t)length, "/%02x", hash);
	path->hash_length = (size_t)length;
	snprintf(path->text + length, sizeof(path->text) - (size_t)length,
		 "/%016" PRIx64 ".%016" PRIx64 "%c%s", name->object_id, name->generation,
		 name->tail ? 't' : 'h', name->sums ? "s" : "");
}

/* Creates the directories of the path; existing ones are fine. */
static int make_directories(int directory_fd, const struct file_path *path)
{
	const size_t lengths[] = {path->partition_length, path->hash_length};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(lengths); i++) {
		char part[FILE_PATH_MAX];

		memcpy(part, path->text, lengths[i]);
		part[lengths[i]] = '\0';
		if (mkdirat(directory_fd, part, 0700) < 0 && errno != EEXIST)
			return errno;
	}
	return 0;
}

static enum osd_status file_open(struct osd_data *base, const struct osd_data_name *name,
				 unsigned flags, struct osd_data_file **ret_file)
{
	struct file_data *data = to_data(base);
	int open_flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (flags & OSD_DATA_CREATE ? O_CREAT : 0);
	struct file *file = malloc(sizeof(*file));
	struct file_path path;
	int error = 0;

	if (!file)
		return OSD_E_NO_MEMORY;
	make_path(name, &path);
	file->fd = openat(data->directory_fd, path.text, open_flags, 0600);
	if (file->fd < 0 && errno == ENOENT && (flags & OSD_DATA_CREATE)) {
		error = make_directories(data->directory_fd, &path);
		if (!error)
			file->fd = openat(data->directory_fd, path.text, open_flags, 0600);
	}
	if (!error && file->fd < 0)
		error = errno;
	file->direct_fd = -1;
	if (!error && data->is_direct && !name->sums) {
		file->direct_fd =
			openat(data->directory_fd, path.text, (open_flags & ~O_CREAT) | O_DIRECT);
		error = file->direct_fd < 0 ? errno : 0;
		if (error)
			close(file->fd);
	}
	if (error) {
		free(file);
		return error == ENOENT ? OSD_E_NO_OBJECT : osd_status_from_errno(error);
	}
	file->base.data = base;
	*ret_file = &file->base;
	return OSD_OK;
}

static void file_close(struct osd_data_file *base)
{
	struct file *file = osd_container_of(base, struct file, base);

	osd_closep(&file->direct_fd);
	close(file->fd);
	free(file);
}

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

static enum osd_status file_read(struct osd_data_file *file, uint64_t offset, void *buffer,
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

static enum osd_status file_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
				  size_t length)
{
	const uint8_t *at = bytes;
	size_t done = 0;

	if (direct_fd_of(file) >= 0)
		return osd_status_from_errno(
			osd_direct_write(direct_fd_of(file), fd_of(file), offset, bytes, length));
	while (done < length) {
		ssize_t put = pwrite(fd_of(file), at + done, length - done, (off_t)(offset + done));

		if (put > 0)
			done += (size_t)put;
		else if (put == 0)
			return OSD_E_MEDIUM;
		else if (errno != EINTR)
			return osd_status_from_errno(errno);
	}
	return OSD_OK;
}

static enum osd_status result(int returned)
{
	return returned == 0 ? OSD_OK : osd_status_from_errno(errno);
}

static enum osd_status file_truncate(struct osd_data_file *file, uint64_t size)
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

		status = file_write(file, offset, zeros, piece);
		offset += piece;
		length -= piece;
	}
	return status;
}

static enum osd_status file_zero(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	if (fallocate(fd_of(file), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		      (off_t)length) == 0)
		return OSD_OK;
	return errno == EOPNOTSUPP ? write_zeros(file, offset, length)
				   : osd_status_from_errno(errno);
}

static enum osd_status file_stat(struct osd_data_file *file, struct osd_data_stat *ret_stat)
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
static enum osd_status file_next_extent(struct osd_data_file *file, uint64_t offset,
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

		status = file_read(from, from_offset, buffer, piece, 0, &got);
		if (status != OSD_OK || got == 0)
			break;
		status = file_write(to, to_offset, buffer, got);
		from_offset += got;
		to_offset += got;
		length -= got;
	}
	return status;
}

/* The kernel may share blocks, or let the device copy.  If it can do neither, it fails at once. */
static enum osd_status file_copy(struct osd_data_file *from, uint64_t from_offset,
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

static enum osd_status file_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	if (ioctl(fd_of(to), FICLONE, fd_of(from)) == 0)
		return OSD_OK;
	if (errno == ENOSPC || errno == EDQUOT || errno == EIO)
		return osd_status_from_errno(errno);
	return OSD_E_UNSUPPORTED;
}

/* Tries it on two files without a name: there is no other reliable check. */
static bool try_clone(int directory_fd)
{
	const int flags = O_TMPFILE | O_RDWR | O_CLOEXEC;
	OSD_CLEANUP_CLOSE int from = openat(directory_fd, ".", flags, 0600);
	OSD_CLEANUP_CLOSE int to = from < 0 ? -1 : openat(directory_fd, ".", flags, 0600);
	static const uint8_t block[4096];

	return to >= 0 && pwrite(from, block, sizeof(block), 0) == (ssize_t)sizeof(block) &&
	       ioctl(to, FICLONE, from) == 0;
}

static bool file_can_clone(struct osd_data *data)
{
	return to_data(data)->can_clone;
}

static enum osd_status file_sync(struct osd_data_file *file)
{
	return result(fdatasync(fd_of(file)));
}

static enum osd_status file_share(struct osd_data_file *file, int *ret_fd)
{
	char path[32];
	int fd;

	if (direct_fd_of(file) >= 0) /* who reads it would do so by the page cache */
		return OSD_E_UNSUPPORTED;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd_of(file));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return osd_status_from_errno(errno);
	*ret_fd = fd;
	return OSD_OK;
}

static enum osd_status file_set_modified(struct osd_data_file *file, uint64_t modified_ms)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)(modified_ms / 1000),
		 .tv_nsec = (long)(modified_ms % 1000) * 1000000},
	};

	return result(futimens(fd_of(file), times));
}

static int sync_directory(int directory_fd, const char *path)
{
	OSD_CLEANUP_CLOSE int fd = openat(directory_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : errno; /* removed meanwhile */
	return fsync(fd) < 0 ? errno : 0;
}

static enum osd_status file_sync_directories(struct osd_data *base,
					     const struct osd_data_name *name)
{
	struct file_data *data = to_data(base);
	struct file_path path;
	int error;

	make_path(name, &path);
	path.text[path.hash_length] = '\0';
	error = sync_directory(data->directory_fd, path.text);
	path.text[path.partition_length] = '\0';
	if (!error)
		error = sync_directory(data->directory_fd, path.text);
	if (!error)
		error = sync_directory(data->directory_fd, ".");
	return osd_status_from_errno(error);
}

static enum osd_status file_link(struct osd_data *base, const struct osd_data_name *from,
				 const struct osd_data_name *to)
{
	int directory_fd = to_data(base)->directory_fd;
	struct file_path from_path, to_path;

	make_path(from, &from_path);
	make_path(to, &to_path);
	if (linkat(directory_fd, from_path.text, directory_fd, to_path.text, 0) == 0)
		return OSD_OK;
	if (errno == ENOENT)
		return OSD_E_NO_OBJECT;
	if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK)
		return OSD_E_UNSUPPORTED;
	return errno == EEXIST ? OSD_E_EXISTS : osd_status_from_errno(errno);
}

static enum osd_status file_remove(struct osd_data *base, const struct osd_data_name *name)
{
	struct file_path path;

	make_path(name, &path);
	if (unlinkat(to_data(base)->directory_fd, path.text, 0) < 0 && errno != ENOENT)
		return osd_status_from_errno(errno);
	return OSD_OK;
}

/* Empties the directory open as fd (taken over), depth levels deep. */
static int empty_directory(int fd, unsigned depth)
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

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (depth == 0) {
			if (unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT)
				error = errno;
			continue;
		}
		child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		error = child < 0 ? errno : empty_directory(child, depth - 1);
		if (!error && unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
			error = errno;
	}
	closedir(directory);
	return error;
}

static enum osd_status file_remove_partition(struct osd_data *base, uint64_t partition_id,
					     uint32_t incarnation)
{
	struct osd_data_name name = {.partition_id = partition_id, .incarnation = incarnation};
	struct file_data *data = to_data(base);
	struct file_path path;
	int fd, error;

	make_path(&name, &path);
	path.text[path.partition_length] = '\0';
	fd = openat(data->directory_fd, path.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? OSD_OK : osd_status_from_errno(errno);
	error = empty_directory(fd, 1);
	if (!error && unlinkat(data->directory_fd, path.text, AT_REMOVEDIR) < 0)
		error = errno;
	return osd_status_from_errno(error);
}

static enum osd_status file_sync_all(struct osd_data *base)
{
	return result(syncfs(to_data(base)->directory_fd));
}

static enum osd_status file_capacity(struct osd_data *base, uint64_t *ret_total, uint64_t *ret_free)
{
	struct statvfs stat;

	if (fstatvfs(to_data(base)->directory_fd, &stat) < 0)
		return osd_status_from_errno(errno);
	*ret_total = (uint64_t)(stat.f_blocks - (stat.f_bfree - stat.f_bavail)) * stat.f_frsize;
	*ret_free = (uint64_t)stat.f_bavail * stat.f_frsize;
	return OSD_OK;
}

static int file_plain_fd(struct osd_data_file *file, uint64_t offset, const void *bytes,
			 size_t length)
{
	if (offset > INT64_MAX || length > INT64_MAX - offset)
		return -1;
	if (direct_fd_of(file) < 0 || !bytes)
		return fd_of(file);
	return osd_direct_fits(offset, bytes, length) ? direct_fd_of(file) : -1;
}

static void file_data_close(struct osd_data *base)
{
	free(to_data(base));
}

static const struct osd_data_ops file_ops = {
	.close = file_data_close,
	.open_file = file_open,
	.close_file = file_close,
	.read = file_read,
	.write = file_write,
	.truncate = file_truncate,
	.zero = file_zero,
	.stat = file_stat,
	.next_extent = file_next_extent,
	.copy = file_copy,
	.clone = file_clone,
	.can_clone = file_can_clone,
	.sync = file_sync,
	.share = file_share,
	.set_modified = file_set_modified,
	.sync_directories = file_sync_directories,
	.link = file_link,
	.remove = file_remove,
	.remove_partition = file_remove_partition,
	.sync_all = file_sync_all,
	.capacity = file_capacity,
	.plain_fd = file_plain_fd,
};

enum osd_status osd_file_data_open(int directory_fd, bool direct, struct osd_data **ret_data)
{
	struct file_data *data = malloc(sizeof(*data));

	if (!data)
		return OSD_E_NO_MEMORY;
	*data = (struct file_data){
		{.ops = &file_ops}, directory_fd, try_clone(directory_fd), direct};
	*ret_data = &data->base;
	return OSD_OK;
}
