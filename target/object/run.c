/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.c -- see run.h. */
#include "object/run.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "object/internal.h"
#include "wire/cursor.h"

#define RECORD_VERSION 1
#define RECORD_MOST    44u /* bytes */

static void read_boot_id(uint8_t boot[OSD_BOOT_BYTES])
{
	static const char hex[] = "0123456789abcdef";
	OSD_CLEANUP_CLOSE int fd =
		open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[64] = "";
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	size_t digits = 0;

	memset(boot, 0, OSD_BOOT_BYTES);
	for (ssize_t i = 0; i < length && text[i] && digits < 2 * OSD_BOOT_BYTES; i++) {
		const char *digit = strchr(hex, text[i]);

		if (!digit)
			continue;
		boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | (digit - hex));
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

static size_t bytes_of(size_t count)
{
	return 4 + 4 * count + OSD_BOOT_BYTES + 8 + 8;
}

enum osd_status osd_run_record_get(struct osd_objects *objects, struct osd_kv_txn *kv,
				   enum osd_meta_kind kind, size_t count,
				   struct osd_run_record *ret_record, bool *ret_known)
{
	struct osd_key key = osd_key_meta(kind);
	uint8_t bytes[RECORD_MOST];
	size_t length = 0;
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_META, osd_key_bytes(&key),
					    OSD_KV_RMW, bytes, bytes_of(count), &length);
	struct osd_rd r = osd_rd_init(bytes, OSD_MIN(length, bytes_of(count)));
	uint64_t version = osd_rd_be(&r, 1);
	const uint8_t *boot;

	osd_rd_bytes(&r, 3);
	*ret_record = (struct osd_run_record){0};
	for (size_t i = 0; i < count; i++)
		ret_record->numbers[i] = (uint32_t)osd_rd_be(&r, 4);
	boot = osd_rd_bytes(&r, OSD_BOOT_BYTES);
	ret_record->at.device = osd_rd_be(&r, 8);
	ret_record->at.inode = osd_rd_be(&r, 8);
	if (!r.bad)
		memcpy(ret_record->at.boot, boot, OSD_BOOT_BYTES);
	*ret_known = status == OSD_OK && !r.bad && version == RECORD_VERSION;
	return status;
}

enum osd_status osd_run_record_put(struct osd_kv_txn *kv, enum osd_meta_kind kind, size_t count,
				   const struct osd_run_record *record)
{
	struct osd_key key = osd_key_meta(kind);
	uint8_t bytes[RECORD_MOST];
	struct osd_wr w = osd_wr_init(bytes, sizeof(bytes));

	osd_wr_be(&w, RECORD_VERSION, 1);
	osd_wr_zero(&w, 3);
	for (size_t i = 0; i < count; i++)
		osd_wr_be(&w, record->numbers[i], 4);
	osd_wr_bytes(&w, record->at.boot, OSD_BOOT_BYTES);
	osd_wr_be(&w, record->at.device, 8);
	osd_wr_be(&w, record->at.inode, 8);
	return osd_key_put(kv, OSD_KV_META, &key, bytes, osd_wr_used(&w));
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
