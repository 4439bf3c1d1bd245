/* SPDX-License-Identifier: GPL-2.0-or-later */
/* media.c -- see media.h.  A person who starts a target meets the failures here, so each has a
 * message that names the directory and the remedy. */
#include "store/media.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/util.h"
#include "store/superblock.h"

/* Log between two checkpoints: recovery may need as much. */
uint64_t osd_media_ballast_bytes = UINT64_C(64) << 20;

struct store {
	struct osd_media media;
	struct osd_superblock main_block, heads_block;
	bool is_stamped;
};

/* ---- one root ---------------------------------------------------------------------------- */

/* Whether the directory holds nothing but the remains of an interrupted format. */
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

static enum osd_status lock_root(const char *directory, char message[256],
				 struct osd_media_root *root)
{
	bool has_superblock;

	root->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root->directory_fd < 0)
		return osd_root_fail(message, errno, "cannot open data directory '%s'", directory);
	has_superblock = faccessat(root->directory_fd, "superblock", F_OK, 0) == 0;
	if (!has_superblock && !is_formattable(root->directory_fd))
		return osd_root_fail(message, 0,
				     "'%s' holds no iosd store and is not empty (or not readable); "
				     "give an empty directory, or, if a store was there, see 'osd "
				     "target check'",
				     directory);
	root->lock_fd =
		openat(root->directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (root->lock_fd < 0)
		return osd_root_fail(message, errno, "cannot open the lock file in '%s'",
				     directory);
	if (flock(root->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? osd_root_fail(message, 0,
					       "'%s' is in use by another process; stop it first",
					       directory)
			       : osd_root_fail(message, errno, "cannot lock '%s'", directory);
	return OSD_OK;
}

static int make_directory(int directory_fd, const char *name)
{
	return mkdirat(directory_fd, name, 0700) < 0 && errno != EEXIST ? errno : 0;
}

/* Reads the superblock, or formats with the given one. */
static enum osd_status open_root(const char *directory, const struct osd_superblock *fresh,
				 char message[256], struct osd_media_root *root,
				 struct osd_superblock *ret_superblock)
{
	enum osd_status status = lock_root(directory, message, root);
	int error = 0;

	if (status != OSD_OK)
		return status;
	status = osd_superblock_read(directory, root->directory_fd, message, ret_superblock);
	if (status == OSD_E_NO_OBJECT) {
		if (fresh->role == OSD_ROOT_MAIN)
			error = make_directory(root->directory_fd, "db");
		if (!error)
			error = make_directory(root->directory_fd, "data");
		if (!error)
			error = osd_superblock_write(root->directory_fd, fresh);
		if (error)
			return osd_root_fail(message, error, "cannot format '%s'", directory);
		*ret_superblock = *fresh;
		status = OSD_OK;
	}
	if (status != OSD_OK)
		return status;
	if (ret_superblock->role != fresh->role)
		return osd_root_fail(message, 0,
				     "'%s' is the other root of a two-device store; exchange the "
				     "data and SSD directories",
				     directory);
	root->data_fd =
		openat(root->directory_fd, "data", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (root->data_fd < 0)
		return osd_root_fail(message, errno, "cannot open the data files in '%s'",
				     directory);
	return OSD_OK;
}

static void close_root(struct osd_media_root *root)
{
	osd_closep(&root->data_fd);
	osd_closep(&root->lock_fd);
	osd_closep(&root->directory_fd);
}

/* ---- both roots -------------------------------------------------------------------------- */

static bool fresh_superblock(uint64_t head_bytes, struct osd_superblock *superblock)
{
	/* Code set binary, designator type T10 vendor id, as in a VPD designation descriptor. */
	static const uint8_t designator[12] = {0x01, 0x01, 0x00, 0x10, 'I', 'O',
					       'S',  'D',  ' ',	 ' ',  ' ', ' '};

	superblock->role = OSD_ROOT_MAIN;
	superblock->head_bytes = head_bytes;
	superblock->created_ms = osd_wall_msec();
	memcpy(superblock->system_id, designator, sizeof(designator));
	if (getrandom(superblock->store_id, OSD_MEDIA_STORE_ID, 0) != OSD_MEDIA_STORE_ID)
		return false;
	memcpy(superblock->system_id + sizeof(designator), superblock->store_id, 8);
	return true;
}

/* Whether it has the superblock of a store.  False: it is absent or empty, or the device does not
 * answer. */
static bool has_superblock(const char *directory)
{
	OSD_CLEANUP_CLOSE int root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	OSD_CLEANUP_CLOSE int fd =
		root < 0 ? -1 : openat(root, "superblock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint8_t byte;

	if (fd < 0)
		return errno == EACCES || errno == EPERM;
	return pread(fd, &byte, 1, 0) >= 0;
}

/* Whether the second root is in the state in which the two were last used together. */
static bool fits(const struct osd_stamp *main, const struct osd_stamp *heads)
{
	if (heads->opening == main->opening && heads->mark == main->mark)
		return true;
	return main->begun && heads->opening + 1 == main->opening &&
	       heads->mark == main->previous_mark;
}

static enum osd_status refuse_stale(char message[256], const struct osd_media_config *config,
				    const struct osd_stamp *main, const struct osd_stamp *heads)
{
	const char *older =
		heads->opening < main->opening ? config->ssd_directory : config->directory;

	if (heads->opening == main->opening)
		snprintf(message, 256,
			 "'%.70s' and '%.70s' are of different copies of one store: give the two "
			 "that were served together last",
			 config->directory, config->ssd_directory);
	else
		snprintf(message, 256,
			 "'%.100s' is an older copy than the store's other directory: bring back "
			 "its newest contents, or restore both from one backup",
			 older);
	return OSD_E_MEDIUM;
}

/* Records another opening or closing in both roots.  The main root is marked as begun until the
 * other root is written, so a crash at any point leaves two roots that fit. */
static int stamp_both(struct store *store)
{
	struct osd_stamp *main = &store->main_block.stamp, *heads = &store->heads_block.stamp;
	int main_fd = store->media.main.directory_fd, heads_fd = store->media.heads.directory_fd;
	struct osd_stamp next = {.opening = heads->opening + 1};
	int error;

	store->heads_block.features = store->main_block.features;
	if (getrandom(&next.mark, sizeof(next.mark), 0) != sizeof(next.mark))
		return EIO;
	*main = (struct osd_stamp){next.opening, next.mark, heads->mark, true};
	error = osd_superblock_write(main_fd, &store->main_block);
	if (!error) {
		*heads = next;
		error = osd_superblock_write(heads_fd, &store->heads_block);
	}
	if (!error) {
		*main = next;
		error = osd_superblock_write(main_fd, &store->main_block);
	}
	return error;
}

static enum osd_status open_heads(struct store *store, const struct osd_media_config *config,
				  char message[256])
{
	struct osd_superblock fresh = store->main_block;
	enum osd_status status;
	int error;

	if (store->main_block.stamp.opening && !has_superblock(config->ssd_directory)) {
		store->media.heads_absent = config->without_heads;
		return config->without_heads
			       ? OSD_OK
			       : osd_root_fail(
					 message, 0,
					 "SSD directory '%s' is absent or empty: bring it back, "
					 "or have what is left served with "
					 "on_ssd_loss=read-through",
					 config->ssd_directory);
	}
	fresh.role = OSD_ROOT_HEADS;
	status = open_root(config->ssd_directory, &fresh, message, &store->media.heads,
			   &store->heads_block);
	if (status != OSD_OK)
		return status;
	if (memcmp(store->heads_block.store_id, store->media.store_id, OSD_MEDIA_STORE_ID) != 0)
		return osd_root_fail(message, 0, "SSD directory '%s' belongs to another store",
				     config->ssd_directory);
	if (!fits(&store->main_block.stamp, &store->heads_block.stamp))
		return refuse_stale(message, config, &store->main_block.stamp,
				    &store->heads_block.stamp);
	error = stamp_both(store);
	if (error)
		return osd_root_fail(message, error,
				     "cannot write the superblocks of '%s' and its SSD directory",
				     config->directory);
	store->is_stamped = true;
	return OSD_OK;
}

static enum osd_status open_roots(struct store *store, const struct osd_media_config *config,
				  char message[256])
{
	struct osd_media *media = &store->media;
	bool two = config->ssd_directory != NULL;
	struct osd_superblock fresh = {0};
	enum osd_status status;

	if (two && !has_superblock(config->directory) && has_superblock(config->ssd_directory))
		return osd_root_fail(
			message, 0,
			"data directory '%s' is absent or empty, but its SSD directory is "
			"of a store: bring back the data directory",
			config->directory);
	if (!fresh_superblock(two ? config->head_bytes : UINT64_MAX, &fresh))
		return osd_root_fail(message, EIO, "no random numbers to format '%s'",
				     config->directory);
	status = open_root(config->directory, &fresh, message, &media->main, &store->main_block);
	if (status != OSD_OK)
		return status;
	if ((store->main_block.head_bytes != UINT64_MAX) != two)
		return osd_root_fail(message, 0,
				     two ? "'%s' was formatted with one root; it takes no "
					   "SSD directory"
					 : "'%s' was formatted with two roots; give its "
					   "SSD directory",
				     config->directory);
	memcpy(media->store_id, store->main_block.store_id, OSD_MEDIA_STORE_ID);
	memcpy(media->system_id, store->main_block.system_id, OSD_MEDIA_SYSTEM_ID);
	media->head_bytes = store->main_block.head_bytes;
	media->features = store->main_block.features;
	return two ? open_heads(store, config, message) : OSD_OK;
}

enum osd_status osd_media_open(const struct osd_media_config *config, char message[256],
			       struct osd_media **ret_media)
{
	struct store *store = calloc(1, sizeof(*store));
	enum osd_status status;

	if (!store)
		return osd_root_fail(message, ENOMEM, "cannot open '%s'", config->directory);
	store->media.main = store->media.heads = (struct osd_media_root){-1, -1, -1};
	osd_lock_init(&store->media.lock, OSD_RANK_MEDIA);
	status = open_roots(store, config, message);
	if (status != OSD_OK) {
		osd_media_close(&store->media);
		return status;
	}
	store->media.ballast_held =
		faccessat(store->media.main.directory_fd, "ballast", F_OK, 0) == 0;
	*ret_media = &store->media;
	return OSD_OK;
}

void osd_media_close(struct osd_media *media)
{
	struct store *store;

	if (!media)
		return;
	store = osd_container_of(media, struct store, media);
	/* The stamp makes a copy that was made while the store was open older than the store. */
	if (store->is_stamped)
		stamp_both(store);
	close_root(&media->main);
	close_root(&media->heads);
	osd_lock_destroy(&media->lock);
	free(store);
}

/* The main root comes last: it decides, and the next opening corrects the other one. */
enum osd_status osd_media_set_feature(struct osd_media *media, uint64_t feature, bool on)
{
	struct store *store = osd_container_of(media, struct store, media);
	uint64_t features = on ? media->features | feature : media->features & ~feature;
	int error = 0;

	store->main_block.features = store->heads_block.features = features;
	if (store->is_stamped)
		error = osd_superblock_write(media->heads.directory_fd, &store->heads_block);
	if (!error)
		error = osd_superblock_write(media->main.directory_fd, &store->main_block);
	if (!error)
		media->features = features;
	return osd_status_from_errno(error);
}

/* ---- ballast ----------------------------------------------------------------------------- */

uint64_t osd_media_disk_bytes(const struct osd_media *media)
{
	struct statvfs stat;

	return fstatvfs(media->main.directory_fd, &stat) < 0
		       ? 0
		       : (uint64_t)stat.f_blocks * stat.f_frsize;
}

uint64_t osd_media_free_bytes(const struct osd_media *media)
{
	struct statvfs stat;

	return fstatvfs(media->main.directory_fd, &stat) < 0
		       ? 0
		       : (uint64_t)stat.f_bavail * stat.f_frsize;
}

bool osd_media_ballast_release(struct osd_media *media)
{
	bool released;

	osd_lock(&media->lock);
	released = media->ballast_held && unlinkat(media->main.directory_fd, "ballast", 0) == 0;
	media->ballast_held = false;
	osd_unlock(&media->lock);
	return released;
}

static bool make_ballast(int directory_fd)
{
	OSD_CLEANUP_CLOSE int fd = -1;
	struct statvfs stat;
	uint64_t wanted;

	if (fstatvfs(directory_fd, &stat) < 0)
		return false;
	/* A small file system gets a small ballast.  Require twice its size to be free: otherwise
	 * the next log record fills the disk again. */
	wanted = OSD_MIN(osd_media_ballast_bytes, (uint64_t)stat.f_blocks * stat.f_frsize / 16);
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

	osd_lock(&media->lock);
	if (!media->ballast_held)
		media->ballast_held = make_ballast(media->main.directory_fd);
	held = media->ballast_held;
	osd_unlock(&media->lock);
	return held;
}
