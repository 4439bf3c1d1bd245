/* SPDX-License-Identifier: GPL-2.0-or-later */
/* superblock.h -- the first file of a root (docs/format.md), and the messages for a person when a
 * root cannot be used. */
#ifndef OSD_STORE_SUPERBLOCK_H
#define OSD_STORE_SUPERBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/media.h"

enum osd_root_role { OSD_ROOT_MAIN = 1, OSD_ROOT_HEADS = 2 };

/* The last opening of both roots that this root has recorded.  All zero: none. */
struct osd_stamp {
	uint64_t opening; /* from 1 */
	uint64_t mark;	  /* random: tells openings of copies apart */
	/* Main root only: the previous opening, while the present one may not yet be in the other
	 * root. */
	uint64_t previous_mark;
	bool begun;
};

struct osd_superblock {
	enum osd_root_role role;
	uint8_t store_id[OSD_MEDIA_STORE_ID];
	uint8_t system_id[OSD_MEDIA_SYSTEM_ID];
	uint64_t features; /* those that media.h has */
	uint64_t head_bytes, created_ms;
	struct osd_stamp stamp;
};

/* format has one %s, for the directory; the text of error (errno, or 0) is appended. */
enum osd_status osd_root_fail(char message[256], int error, const char *format,
			      const char *directory);
/* Writes the whole file or none: the name appears once the bytes are on disk.  Returns an errno. */
int osd_root_write(int directory_fd, const char *name, const uint8_t *bytes, size_t length);
int osd_superblock_write(int directory_fd, const struct osd_superblock *superblock);
/* OSD_E_NO_OBJECT: the directory has none; else a failure leaves a message. */
enum osd_status osd_superblock_read(const char *directory, int directory_fd, char message[256],
				    struct osd_superblock *ret_superblock);

#endif
