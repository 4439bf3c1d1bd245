/* SPDX-License-Identifier: GPL-2.0-or-later */
/* media.h -- the data directory: its lock, its format, and the space reserved for recovery.  Layout
 * (docs/format.md): lock, superblock, ballast, db/, data/; a second root holds lock, superblock and
 * data/ with the same store id.  Both roots are stamped at each opening and closing, so that an old
 * copy of one of them is refused. */
#ifndef OSD_STORE_MEDIA_H
#define OSD_STORE_MEDIA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/status.h"

#define OSD_MEDIA_VERSION    1
#define OSD_MEDIA_STORE_ID   16
#define OSD_MEDIA_SYSTEM_ID  20
#define OSD_MEDIA_SUPERBLOCK 512
#define OSD_MEDIA_SEAL	     32
/* The feature bit in the superblock of a backup, and of a restore until it is complete. */
#define OSD_MEDIA_NOT_TO_BE_SERVED (UINT64_C(1) << 63)
#define OSD_MEDIA_SUMS	     UINT64_C(1) /* feature bit: data files have checksums */
#define OSD_MEDIA_HEAD_BYTES (UINT64_C(2) << 20) /* default head size of a store */

struct osd_media_root {
	int directory_fd, lock_fd, data_fd; /* owned; -1: no such root */
};

struct osd_media_config {
	const char *directory;
	const char *ssd_directory; /* NULL: one root */
	uint64_t head_bytes;	   /* when they are formatted: of new objects, with two roots */
	bool without_heads;	   /* go on where the second root is absent */
};

struct osd_media {
	struct osd_media_root main, heads; /* heads: second root, or all -1 */
	bool heads_absent;		   /* the store has a second root and it is not there */
	uint8_t store_id[OSD_MEDIA_STORE_ID];
	uint8_t system_id[OSD_MEDIA_SYSTEM_ID]; /* Root Information #3 */
	uint64_t head_bytes;			/* of new objects; UINT64_MAX with one root */
	uint64_t features;			/* the main root's */
	struct osd_lock lock;
	bool ballast_held; /* under lock */
};

/* Takes the exclusive lock, then reads and checks the superblocks, or formats empty directories.
 * On failure, message (256 bytes) has instructions. */
enum osd_status osd_media_open(const struct osd_media_config *config, char message[256],
			       struct osd_media **ret_media);
/* Releases the lock; NULL is fine. */
void osd_media_close(struct osd_media *media);
/* Writes the superblocks; a release that does not know the feature then refuses to open the
 * store. */
enum osd_status osd_media_set_feature(struct osd_media *media, uint64_t feature, bool on);
/* Reads the store's seal; create: makes one if there is none.  OSD_E_NO_OBJECT: there is none;
 * OSD_E_MEDIUM: not a seal file, or readable by other users than its owner. */
enum osd_status osd_media_seal(struct osd_media *media, bool create, uint8_t seal[OSD_MEDIA_SEAL]);
/* Size of the file system the main root is on; 0: not known. */
uint64_t osd_media_disk_bytes(const struct osd_media *media);
/* The size of the ballast on a large file system.  Set before a store is opened, and only by the library of
 * testing/: the stores of most tests are in memory. */
extern uint64_t osd_media_ballast_bytes;
/* Free bytes of that file system; 0: not known. */
uint64_t osd_media_free_bytes(const struct osd_media *media);
/* Frees the ballast's space, true when there was some; called when the disk is full. */
bool osd_media_ballast_release(struct osd_media *media);
/* Makes the ballast again once there is room; true when it is in place. */
bool osd_media_ballast_restore(struct osd_media *media);

#endif
