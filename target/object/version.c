/* SPDX-License-Identifier: GPL-2.0-or-later */
/* version.c -- the version counter by which a sandbox sees whether the bytes that it has read of a mapped
 * object belong together.
 *
 * The counter lies in a page of its own in a memfd.  This process keeps the only writable mapping: the
 * seals forbid another, and the descriptor that sandboxes get was opened for reading. */
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

/* In the machine's byte order. struct osd_share (object.h) is the sandbox's view of it. */
struct osd_version_page {
	_Atomic uint64_t version; /* even: stable */
	_Atomic uint64_t length;
	_Atomic uint64_t removed;
	_Atomic uint64_t generation; /* of the files */
};

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
	/* The page is made while the whole object is locked, so no writer is active when it appears. */
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

enum osd_status osd_version_share(struct osd_object *object, uint64_t length, int *ret_fd)
{
	enum osd_status status = OSD_OK;

	if (!object->version_page)
		status = page_new(&object->version_page, &object->version_fd);
	if (status != OSD_OK)
		return status;
	osd_version_generation(object);
	osd_version_length(object, length);
	*ret_fd = fcntl(object->version_fd, F_DUPFD_CLOEXEC, 0);
	return *ret_fd < 0 ? osd_status_from_errno(errno) : OSD_OK;
}
