/* SPDX-License-Identifier: GPL-2.0-or-later */
/* media_seal.c -- the file `seal` of a data directory: random bytes, made once, that are never
 * stored in the database.  Data in the database that is encrypted with them is useless without the
 * file. */
#include "store/media.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/util.h"
#include "store/superblock.h"

static int make_seal(int directory_fd)
{
	uint8_t seal[OSD_MEDIA_SEAL];
	int error;

	if (getrandom(seal, sizeof(seal), 0) != sizeof(seal))
		return errno ? errno : EIO;
	error = osd_root_write(directory_fd, "seal", seal, sizeof(seal));
	explicit_bzero(seal, sizeof(seal));
	return error;
}

static enum osd_status read_seal(int directory_fd, uint8_t seal[OSD_MEDIA_SEAL])
{
	OSD_CLEANUP_CLOSE int fd = openat(directory_fd, "seal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? OSD_E_NO_OBJECT : osd_status_from_errno(errno);
	if (fstat(fd, &st) < 0 || st.st_size != OSD_MEDIA_SEAL || !S_ISREG(st.st_mode) ||
	    (st.st_mode & 077))
		return OSD_E_MEDIUM;
	return pread(fd, seal, OSD_MEDIA_SEAL, 0) == OSD_MEDIA_SEAL ? OSD_OK : OSD_E_MEDIUM;
}

/* The first of several threads makes it.  A second seal would replace the one that the first thread uses already. */
enum osd_status osd_media_seal(struct osd_media *media, bool create, uint8_t seal[OSD_MEDIA_SEAL])
{
	int directory_fd = media->main.directory_fd, error = 0;
	enum osd_status status = read_seal(directory_fd, seal);

	if (status != OSD_E_NO_OBJECT || !create)
		return status;
	osd_lock(&media->lock);
	status = read_seal(directory_fd, seal);
	if (status == OSD_E_NO_OBJECT)
		error = make_seal(directory_fd);
	osd_unlock(&media->lock);
	if (status != OSD_E_NO_OBJECT)
		return status;
	return error ? osd_status_from_errno(error) : read_seal(directory_fd, seal);
}
