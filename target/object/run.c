/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.c -- see run.h. */
#include "object/run.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "object/internal.h"

static void read_boot_id(uint8_t boot[OSD_BOOT_BYTES])
{
	OSD_CLEANUP_CLOSE int fd =
		open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[64] = "";
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	size_t digits = 0;

	memset(boot, 0, OSD_BOOT_BYTES);
	for (ssize_t i = 0; i < length && digits < 2 * OSD_BOOT_BYTES; i++) {
		char c = text[i];
		unsigned value = c >= '0' && c <= '9'	? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
							: 16;

		if (value == 16)
			continue;
		boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | value);
		digits++;
	}
	if (digits < 2 * OSD_BOOT_BYTES)
		memset(boot, 0, OSD_BOOT_BYTES);
}

void osd_run_find(const struct osd_objects *objects, struct osd_run *ret_run)
{
	struct stat stat;

	*ret_run = (struct osd_run){.device = 0};
	read_boot_id(ret_run->boot);
	if (objects->media && fstat(objects->media->main.data_fd, &stat) == 0) {
		ret_run->device = stat.st_dev;
		ret_run->inode = stat.st_ino;
	}
}

void osd_run_put(struct osd_wr *w, const struct osd_run *run)
{
	osd_wr_bytes(w, run->boot, OSD_BOOT_BYTES);
	osd_wr_be(w, run->device, 8);
	osd_wr_be(w, run->inode, 8);
}

void osd_run_get(struct osd_rd *r, struct osd_run *ret_run)
{
	const uint8_t *boot = osd_rd_bytes(r, OSD_BOOT_BYTES);

	ret_run->device = osd_rd_be(r, 8);
	ret_run->inode = osd_rd_be(r, 8);
	if (!r->bad)
		memcpy(ret_run->boot, boot, OSD_BOOT_BYTES);
}

bool osd_run_is_unbroken(const struct osd_objects *objects, const struct osd_run *last,
			 const struct osd_run *now)
{
	static const uint8_t unknown[OSD_BOOT_BYTES];

	if (!objects->unclean)
		return true;
	return memcmp(now->boot, unknown, OSD_BOOT_BYTES) != 0 &&
	       memcmp(last->boot, now->boot, OSD_BOOT_BYTES) == 0 && last->device == now->device &&
	       last->inode == now->inode;
}
