/* SPDX-License-Identifier: GPL-2.0-or-later */
/* media.c -- see media.h.  Every failure here is met by a person starting a target, so each leaves
 * a message that names the directory and the remedy. */
#include "store/media.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "wire/cursor.h"

#define BALLAST_BYTES                                                                              \
	(UINT64_C(64)                                                                              \
	 << 20) /* log between two checkpoints: what recovery may need                \
			      */
#define MAGIC "IOSDSTOR"

static const char damaged[] = "the superblock in '%s' is damaged; restore it from a backup";

enum root_role { ROLE_MAIN = 1, ROLE_HEADS = 2 };

struct superblock {
	enum root_role role;
	uint8_t store_id[OSD_MEDIA_STORE_ID];
	uint8_t system_id[OSD_MEDIA_SYSTEM_ID];
	uint64_t head_bytes, created_ms;
};

static enum osd_status fail(char message[256], int error, const char *format, const char *directory)
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

/* ---- superblock -------------------------------------------------------------------------- */

static void superblock_encode(const struct superblock *superblock,
			      uint8_t bytes[OSD_MEDIA_SUPERBLOCK])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_MEDIA_SUPERBLOCK);

	osd_wr_bytes(&w, MAGIC, 8);				      /* 0-7 */
	osd_wr_be(&w, OSD_MEDIA_VERSION, 4);			      /* 8-11 */
	osd_wr_be(&w, superblock->role, 4);			      /* 12-15 */
	osd_wr_be(&w, 0, 8);					      /* 16-23 features */
	osd_wr_bytes(&w, superblock->store_id, OSD_MEDIA_STORE_ID);   /* 24-39 */
	osd_wr_bytes(&w, superblock->system_id, OSD_MEDIA_SYSTEM_ID); /* 40-59 */
	osd_wr_be(&w, 0, 4);					      /* 60-63 */
	osd_wr_be(&w, superblock->head_bytes, 8);		      /* 64-71 */
	osd_wr_be(&w, superblock->created_ms, 8);		      /* 72-79 */
	osd_wr_zero(&w, OSD_MEDIA_SUPERBLOCK - 4 - osd_wr_used(&w));
	osd_wr_be(&w, crc32(bytes, OSD_MEDIA_SUPERBLOCK - 4), 4); /* 508-511 */
}

/* A release that knows more has written it: the message says what that is. */
static enum osd_status refuse_later(char message[256], const char *directory, const char *what,
				    uint64_t theirs)
{
	snprintf(message, 256,
		 "'%.100s' has %s %" PRIu64 ", which this release (format version %d) does not "
		 "know: use the release that wrote it, or a later one",
		 directory, what, theirs, OSD_MEDIA_VERSION);
	return OSD_E_MEDIUM;
}

static enum osd_status superblock_decode(const uint8_t bytes[OSD_MEDIA_SUPERBLOCK],
					 const char *directory, char message[256],
					 struct superblock *ret_superblock)
{
	struct osd_rd r = osd_rd_init(bytes, OSD_MEDIA_SUPERBLOCK);
	const uint8_t *magic = osd_rd_bytes(&r, 8);
	uint64_t version = osd_rd_be(&r, 4), features;

	if (memcmp(magic, MAGIC, 8) != 0)
		return fail(message, 0,
			    "'%s' holds a superblock that is not iosd's; give another directory",
			    directory);
	if (version != OSD_MEDIA_VERSION)
		return refuse_later(message, directory, "format version", version);
	if (osd_get_be(bytes + OSD_MEDIA_SUPERBLOCK - 4, 4) !=
	    crc32(bytes, OSD_MEDIA_SUPERBLOCK - 4))
		return fail(message, 0, damaged, directory);
	ret_superblock->role = (enum root_role)osd_rd_be(&r, 4);
	features = osd_rd_be(&r, 8);
	if (features != 0)
		return refuse_later(message, directory, "feature bits", features);
	memcpy(ret_superblock->store_id, osd_rd_bytes(&r, OSD_MEDIA_STORE_ID), OSD_MEDIA_STORE_ID);
	memcpy(ret_superblock->system_id, osd_rd_bytes(&r, OSD_MEDIA_SYSTEM_ID),
	       OSD_MEDIA_SYSTEM_ID);
	osd_rd_be(&r, 4);
	ret_superblock->head_bytes = osd_rd_be(&r, 8);
	ret_superblock->created_ms = osd_rd_be(&r, 8);
	return OSD_OK;
}

static int write_all(int fd, const uint8_t *bytes, size_t length)
{
	while (length) {
		ssize_t put = write(fd, bytes, length);

		if (put < 0 && errno != EINTR)
			return errno;
		if (put > 0) {
			bytes += put;
			length -= (size_t)put;
		}
	}
	return 0;
}

/* Whole or not at all: the name appears once the bytes are on disk. */
static int superblock_write(int directory_fd, const struct superblock *superblock)
{
	uint8_t bytes[OSD_MEDIA_SUPERBLOCK];
	OSD_CLEANUP_CLOSE int fd =
		openat(directory_fd, "superblock.new",
		       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error;

	if (fd < 0)
		return errno;
	superblock_encode(superblock, bytes);
	error = write_all(fd, bytes, sizeof(bytes));
	if (!error && fsync(fd) < 0)
		error = errno;
	if (!error && renameat(directory_fd, "superblock.new", directory_fd, "superblock") < 0)
		error = errno;
	if (!error && fsync(directory_fd) < 0)
		error = errno;
	return error;
}

/* OSD_E_NO_OBJECT: the directory has none. */
static enum osd_status superblock_read(const char *directory, int directory_fd, char message[256],
				       struct superblock *ret_superblock)
{
	uint8_t bytes[OSD_MEDIA_SUPERBLOCK];
	OSD_CLEANUP_CLOSE int fd =
		openat(directory_fd, "superblock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return OSD_E_NO_OBJECT;
	if (fd < 0)
		return fail(message, errno, "cannot open the superblock in '%s'", directory);
	got = pread(fd, bytes, sizeof(bytes), 0);
	if (got < 0)
		return fail(message, errno, "cannot read the superblock in '%s'", directory);
	if ((size_t)got < sizeof(bytes))
		return fail(message, 0, damaged, directory);
	return superblock_decode(bytes, directory, message, ret_superblock);
}

/* ---- one root ---------------------------------------------------------------------------- */

/* Nothing in it but what an interrupted format leaves behind. */
static bool is_formattable(int directory_fd)
{
	static const char *const ours[] = {".",	 "..",	 "lock",    "superblock.new",
					   "db", "data", "ballast", "lost+found"};
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool only_ours = directory != NULL;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (only_ours && (entry = readdir(directory))) {
		bool known = false;

		for (size_t i = 0; i < OSD_ARRAY_SIZE(ours); i++)
			known = known || strcmp(entry->d_name, ours[i]) == 0;
		only_ours = known;
	}
	closedir(directory);
	return only_ours;
}

static enum osd_status lock_root(const char *directory, bool create, char message[256],
				 struct osd_media_root *root)
{
	bool has_superblock;

	root->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root->directory_fd < 0)
		return fail(message, errno, "cannot open data directory '%s'", directory);
	has_superblock = faccessat(root->directory_fd, "superblock", F_OK, 0) == 0;
	if (!has_superblock && !is_formattable(root->directory_fd))
		return fail(message, 0,
			    "'%s' holds no iosd store and is not empty (or not readable); "
			    "give an empty directory",
			    directory);
	if (!has_superblock && !create)
		return fail(message, 0,
			    "'%s' holds no iosd store; allow it to be created, or give the "
			    "right directory",
			    directory);
	root->lock_fd =
		openat(root->directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (root->lock_fd < 0)
		return fail(message, errno, "cannot open the lock file in '%s'", directory);
	if (flock(root->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? fail(message, 0,
				      "'%s' is in use by another process; stop it first", directory)
			       : fail(message, errno, "cannot lock '%s'", directory);
	return OSD_OK;
}

static int make_directory(int directory_fd, const char *name)
{
	return mkdirat(directory_fd, name, 0700) < 0 && errno != EEXIST ? errno : 0;
}

/* Reads the superblock, or formats with the given one. */
static enum osd_status open_root(const char *directory, bool create, const struct superblock *fresh,
				 char message[256], struct osd_media_root *root,
				 struct superblock *ret_superblock)
{
	enum osd_status status = lock_root(directory, create, message, root);
	int error = 0;

	if (status != OSD_OK)
		return status;
	status = superblock_read(directory, root->directory_fd, message, ret_superblock);
	if (status == OSD_E_NO_OBJECT) {
		if (fresh->role == ROLE_MAIN)
			error = make_directory(root->directory_fd, "db");
		if (!error)
			error = make_directory(root->directory_fd, "data");
		if (!error)
			error = superblock_write(root->directory_fd, fresh);
		if (error)
			return fail(message, error, "cannot format '%s'", directory);
		*ret_superblock = *fresh;
		status = OSD_OK;
	}
	if (status != OSD_OK)
		return status;
	if (ret_superblock->role != fresh->role)
		return fail(message, 0,
			    "'%s' is the other root of a two-device store; exchange the "
			    "data and SSD directories",
			    directory);
	root->data_fd =
		openat(root->directory_fd, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (root->data_fd < 0)
		return fail(message, errno, "cannot open the data files in '%s'", directory);
	return OSD_OK;
}

static void close_root(struct osd_media_root *root)
{
	osd_closep(&root->data_fd);
	osd_closep(&root->lock_fd);
	osd_closep(&root->directory_fd);
}

/* ---- both roots -------------------------------------------------------------------------- */

static bool fresh_superblock(bool two_roots, struct superblock *superblock)
{
	/* Code set binary, designator type T10 vendor id, as in a VPD designation descriptor. */
	static const uint8_t designator[12] = {0x01, 0x01, 0x00, 0x10, 'I', 'O',
					       'S',  'D',  ' ',	 ' ',  ' ', ' '};
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	superblock->role = ROLE_MAIN;
	superblock->head_bytes = two_roots ? OSD_MEDIA_HEAD_BYTES : UINT64_MAX;
	superblock->created_ms = (uint64_t)now.tv_sec * 1000;
	memcpy(superblock->system_id, designator, sizeof(designator));
	if (getrandom(superblock->store_id, OSD_MEDIA_STORE_ID, 0) != OSD_MEDIA_STORE_ID)
		return false;
	memcpy(superblock->system_id + sizeof(designator), superblock->store_id, 8);
	return true;
}

static enum osd_status open_roots(struct osd_media *media, const char *directory,
				  const char *ssd_directory, bool create, char message[256])
{
	struct superblock fresh = {0}, main_block = {0}, heads_block = {0};
	enum osd_status status;

	if (!fresh_superblock(ssd_directory != NULL, &fresh))
		return fail(message, EIO, "no random numbers to format '%s'", directory);
	status = open_root(directory, create, &fresh, message, &media->main, &main_block);
	if (status != OSD_OK)
		return status;
	if ((main_block.head_bytes != UINT64_MAX) != (ssd_directory != NULL))
		return fail(message, 0,
			    ssd_directory ? "'%s' was formatted with one root; it takes no "
					    "SSD directory"
					  : "'%s' was formatted with two roots; give its "
					    "SSD directory",
			    directory);
	memcpy(media->store_id, main_block.store_id, OSD_MEDIA_STORE_ID);
	memcpy(media->system_id, main_block.system_id, OSD_MEDIA_SYSTEM_ID);
	media->head_bytes = main_block.head_bytes;
	if (!ssd_directory)
		return OSD_OK;
	fresh = main_block;
	fresh.role = ROLE_HEADS;
	status = open_root(ssd_directory, create, &fresh, message, &media->heads, &heads_block);
	if (status == OSD_OK &&
	    memcmp(heads_block.store_id, media->store_id, OSD_MEDIA_STORE_ID) != 0)
		return fail(message, 0, "SSD directory '%s' belongs to another store",
			    ssd_directory);
	return status;
}

enum osd_status osd_media_open(const char *directory, const char *ssd_directory, bool create,
			       char message[256], struct osd_media **ret_media)
{
	struct osd_media *media = malloc(sizeof(*media));
	enum osd_status status;

	if (!media)
		return fail(message, ENOMEM, "cannot open '%s'", directory);
	*media = (struct osd_media){.main = {-1, -1, -1}, .heads = {-1, -1, -1}};
	pthread_mutex_init(&media->lock, NULL);
	status = open_roots(media, directory, ssd_directory, create, message);
	if (status != OSD_OK) {
		osd_media_close(media);
		return status;
	}
	media->ballast_held = faccessat(media->main.directory_fd, "ballast", F_OK, 0) == 0;
	*ret_media = media;
	return OSD_OK;
}

void osd_media_close(struct osd_media *media)
{
	if (!media)
		return;
	close_root(&media->main);
	close_root(&media->heads);
	pthread_mutex_destroy(&media->lock);
	free(media);
}

/* ---- ballast ----------------------------------------------------------------------------- */

uint64_t osd_media_disk_bytes(const struct osd_media *media)
{
	struct statvfs stat;

	return fstatvfs(media->main.directory_fd, &stat) < 0
		       ? 0
		       : (uint64_t)stat.f_blocks * stat.f_frsize;
}

bool osd_media_ballast_release(struct osd_media *media)
{
	bool released;

	pthread_mutex_lock(&media->lock);
	released = media->ballast_held && unlinkat(media->main.directory_fd, "ballast", 0) == 0;
	media->ballast_held = false;
	pthread_mutex_unlock(&media->lock);
	return released;
}

static bool make_ballast(int directory_fd)
{
	OSD_CLEANUP_CLOSE int fd = -1;
	struct statvfs stat;
	uint64_t wanted;

	if (fstatvfs(directory_fd, &stat) < 0)
		return false;
	/* A small file system has a small one.  Twice the room, or the next log record fills it
	 * again. */
	wanted = OSD_MIN(BALLAST_BYTES, (uint64_t)stat.f_blocks * stat.f_frsize / 16);
	if ((uint64_t)stat.f_bavail * stat.f_frsize < 2 * wanted)
		return false;
	fd = openat(directory_fd, "ballast", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return false;
	if (posix_fallocate(fd, 0, (off_t)wanted) == 0)
		return true;
	unlinkat(directory_fd, "ballast", 0);
	return false;
}

bool osd_media_ballast_restore(struct osd_media *media)
{
	bool held;

	pthread_mutex_lock(&media->lock);
	if (!media->ballast_held)
		media->ballast_held = make_ballast(media->main.directory_fd);
	held = media->ballast_held;
	pthread_mutex_unlock(&media->lock);
	return held;
}
