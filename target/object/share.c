/* SPDX-License-Identifier: GPL-2.0-or-later */
/* share.c -- read-only descriptors of an object's data for a sandbox, and the version counter by
 * which the sandbox sees whether what it read is of one piece (design D19).
 *
 * The counter lies in a page of its own in a memfd.  We keep the only writable mapping: the seals
 * forbid another, and what is given away was opened for reading. */
#include "object/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"

#define VERSION_PAGE_BYTES 4096

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/* In the machine's byte order; struct osd_share in object.h tells the sandbox's side. */
struct osd_version_page {
	_Atomic uint64_t version; /* even: stable */
	_Atomic uint64_t length;
	_Atomic uint64_t removed;
	_Atomic uint64_t generation; /* of the files */
};

/* ---- the page ---------------------------------------------------------------------------- */

static enum osd_status page_new(struct osd_version_page **ret_page, int *ret_fd)
{
	OSD_CLEANUP_CLOSE int fd = memfd_create("osd-version", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int read_only, error = 0;
	char path[32];
	void *page;

	if (fd < 0 || ftruncate(fd, VERSION_PAGE_BYTES) < 0)
		return osd_status_from_errno(errno);
	page = mmap(NULL, VERSION_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return osd_status_from_errno(errno);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	if (read_only < 0 ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
		error = errno;
	if (error) {
		munmap(page, VERSION_PAGE_BYTES);
		osd_closep(&read_only);
		return osd_status_from_errno(error);
	}
	*ret_page = page;
	*ret_fd = read_only;
	return OSD_OK;
}

void osd_version_begin(struct osd_object *object)
{
	if (object->writers++ == 0 && object->version_page)
		atomic_fetch_add(&object->version_page->version, 1);
}

void osd_version_end(struct osd_object *object)
{
	if (--object->writers == 0 && object->version_page)
		atomic_fetch_add(&object->version_page->version, 1);
}

void osd_version_length(struct osd_object *object, uint64_t length)
{
	/* The page is made while the whole object is locked, so it does not appear under a writer.
	 */
	if (object->version_page)
		atomic_store(&object->version_page->length, length);
}

void osd_version_generation(struct osd_object *object)
{
	if (object->version_page)
		atomic_store(&object->version_page->generation, atomic_load(&object->generation));
}

void osd_version_removed(struct osd_object *object)
{
	if (object->version_page)
		atomic_store(&object->version_page->removed, 1);
}

void osd_version_release(struct osd_object *object)
{
	if (object->version_page)
		munmap(object->version_page, VERSION_PAGE_BYTES);
	osd_closep(&object->version_fd);
}

/* ---- sharing ----------------------------------------------------------------------------- */

/* Of the files as they are, while nobody writes. */
static enum osd_status share_locked(struct osd_object *object, struct osd_share *share)
{
	enum osd_status status = OSD_OK;

	if (!object->version_page)
		status = page_new(&object->version_page, &object->version_fd);
	if (status != OSD_OK)
		return status;
	osd_version_generation(object);
	share->length = atomic_load(&object->length);
	atomic_store(&object->version_page->length, share->length);
	share->head_bytes = object->file.head_bytes;
	share->version_fd = fcntl(object->version_fd, F_DUPFD_CLOEXEC, 0);
	if (share->version_fd < 0)
		return osd_status_from_errno(errno);
	if (!object->has_files)
		return OSD_OK;
	status = osd_tier_share(&object->file, &share->head_fd, &share->tail_fd);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK; /* reserved, never written */
	osd_cache_count_open(object);
	if (status != OSD_OK)
		osd_closep(&share->version_fd);
	return status;
}

/* While the script begins with the head the tail comes off the slower device.  The kernel reads on by
 * itself once somebody does so in order; this is only the beginning, and nobody waits for it. */
static void read_ahead(const struct osd_share *share)
{
	if (share->tail_fd >= 0)
		posix_fadvise(share->tail_fd, 0, OSD_SHARE_AHEAD_BYTES, POSIX_FADV_WILLNEED);
}

enum osd_status osd_object_share(struct osd_object *object, struct osd_share *ret_share)
{
	struct osd_share share = {.head_fd = -1, .tail_fd = -1, .version_fd = -1};
	struct osd_range range;
	enum osd_status status;

	osd_lock(&object->mutex);
	osd_range_acquire(&object->ranges, &range, 0, UINT64_MAX, true);
	osd_unlock(&object->mutex);
	status = atomic_load(&object->removed) ? OSD_E_NO_OBJECT : share_locked(object, &share);
	if (status == OSD_OK)
		atomic_fetch_add(&object->shares, 1);
	osd_lock(&object->mutex);
	osd_range_drop(&object->ranges, &range);
	osd_unlock(&object->mutex);
	if (status == OSD_OK) {
		read_ahead(&share);
		*ret_share = share;
	}
	return status;
}

void osd_object_unshare(struct osd_object *object)
{
	struct osd_range range;

	osd_lock(&object->mutex);
	osd_range_acquire(&object->ranges, &range, 0, UINT64_MAX, true);
	osd_unlock(&object->mutex);
	if (atomic_fetch_sub(&object->shares, 1) == 1 && object->length_rules)
		object->untrimmed =
			osd_object_fit_files(object, atomic_load(&object->length)) != OSD_OK;
	osd_lock(&object->mutex);
	osd_range_drop(&object->ranges, &range);
	osd_unlock(&object->mutex);
}
