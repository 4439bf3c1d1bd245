/* SPDX-License-Identifier: GPL-2.0-or-later */
/* scratch.c -- see scratch.h. */
#include "scratch.h"

#include <sys/mount.h>
#include <sys/statfs.h>

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256 /* Linux 5.10 */
#endif

#define FLAGS       (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NOSYMFOLLOW)
#define ROOT_INODES 1 /* the folder itself */

const char osd_scratch_here[] = ".";

static int mount_new(struct osd_scratch *scratch, const char *path, unsigned owner, uint64_t bytes,
		     struct osd_step *step)
{
	char options[128];

	snprintf(options, sizeof(options), "mode=0700,uid=%u,gid=%u,size=%llu,nr_inodes=%u", owner,
		 owner, (unsigned long long)bytes, OSD_SCRATCH_INODES);
	if (mount("scratch", path, "tmpfs", FLAGS, options) < 0)
		return osd_step_failed(step, "mount the scratch folder", NULL);
	scratch->mounted = true;
	scratch->bytes = bytes;
	return 0;
}

int osd_scratch_resize(struct osd_scratch *scratch, unsigned slot, uint64_t bytes,
		       struct osd_step *step)
{
	char path[OSD_SCRATCH_PATH], options[48];

	if (bytes == scratch->bytes)
		return 0;
	osd_scratch_path(slot, path);
	snprintf(options, sizeof(options), "size=%llu", (unsigned long long)bytes);
	if (mount(NULL, path, NULL, MS_REMOUNT | FLAGS, options) < 0)
		return osd_step_failed(step, "set the size of the scratch folder", NULL);
	scratch->bytes = bytes;
	return 0;
}

int osd_scratch_prepare(struct osd_scratch *scratch, unsigned slot, unsigned owner, uint64_t bytes,
			bool *ret_new, struct osd_step *step)
{
	char path[OSD_SCRATCH_PATH];
	int error;

	/* again, in case it failed at the end of the last sandbox */
	error = osd_scratch_clear(scratch, slot, step);
	if (error)
		return error;
	*ret_new = !scratch->mounted;
	if (scratch->mounted)
		return osd_scratch_resize(scratch, slot, bytes, step);
	osd_scratch_path(slot, path);
	return mount_new(scratch, path, owner, bytes, step);
}

int osd_scratch_clear(struct osd_scratch *scratch, unsigned slot, struct osd_step *step)
{
	char path[OSD_SCRATCH_PATH];

	if (!scratch->mounted)
		return 0;
	osd_scratch_path(slot, path);
	if (osd_scratch_is_empty(path))
		return 0;
	if (umount2(path, MNT_DETACH) < 0)
		return osd_step_failed(step, "empty the scratch folder", NULL);
	scratch->mounted = false;
	return 0;
}

bool osd_scratch_is_empty(const char *path)
{
	struct statfs now;

	return statfs(path, &now) == 0 && now.f_bfree == now.f_blocks &&
	       now.f_ffree == now.f_files - ROOT_INODES;
}
