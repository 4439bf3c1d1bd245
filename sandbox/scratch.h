/* SPDX-License-Identifier: GPL-2.0-or-later */
/* scratch.h -- a folder in memory for each slot, where a script may make files.
 *
 * It is a tmpfs of limited size and count of files, mounted by the zygote and owned by the slot's user.
 * A sandbox has it as its working directory.  A folder that was used is never given to another sandbox, and nobody
 * walks it: the zygote takes the whole file system away and mounts a new one. */
#ifndef OSD_SANDBOX_SCRATCH_H
#define OSD_SANDBOX_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "layers.h"
#include "step.h"

#define OSD_SCRATCH_PLACE  "/scratch" /* below the zygote's root; a folder for each slot in it */
#define OSD_SCRATCH_PATH   32
#define OSD_SCRATCH_SHARE  4u          /* this part of a job's memory limit ... */
#define OSD_SCRATCH_MOST   (1u << 30)  /* ... but no more: the zygote waits while it is freed */
#define OSD_SCRATCH_INODES 8192u       /* files and folders; each takes a kilobyte of the kernel's */
/* A file may be longer than the folder by this, so that a script that writes too much is told that there is no space
 * left. */
#define OSD_SCRATCH_BEYOND (1u << 20)

/* The folder is another mount than the host's, its owner nobody else's user, and the zygote keeps the
 * right to mount (for the process namespaces). */
static inline bool osd_scratch_possible(unsigned layers)
{
	const unsigned needed = OSD_LAYER_MOUNTNS | OSD_LAYER_PIDNS | OSD_LAYER_UID;

	return (layers & needed) == needed;
}

/* Size of the folder of a job with this memory limit. */
static inline uint64_t osd_scratch_bytes(uint64_t memory_bytes)
{
	uint64_t bytes = memory_bytes / OSD_SCRATCH_SHARE;

	return bytes < OSD_SCRATCH_MOST ? bytes : OSD_SCRATCH_MOST;
}

/* The longest file of a sandbox; without a folder there is no file to write. */
static inline uint64_t osd_scratch_file_bytes(unsigned layers, uint64_t memory_bytes)
{
	return osd_scratch_possible(layers) ? osd_scratch_bytes(memory_bytes) + OSD_SCRATCH_BEYOND
					    : 0;
}

static inline void osd_scratch_path(unsigned slot, char path[OSD_SCRATCH_PATH])
{
	snprintf(path, OSD_SCRATCH_PATH, OSD_SCRATCH_PLACE "/%u", slot);
}

/* A slot's, in the zygote. */
struct osd_scratch {
	bool mounted;
	uint64_t bytes;
};

/* An empty folder of this size for the slot's next sandbox.  *ret_new: it was mounted just now. */
int osd_scratch_prepare(struct osd_scratch *scratch, unsigned slot, unsigned owner, uint64_t bytes,
			bool *ret_new, struct osd_step *step);
/* Another size for a sandbox that has not used it. */
int osd_scratch_resize(struct osd_scratch *scratch, unsigned slot, uint64_t bytes,
		       struct osd_step *step);
/* The slot's sandbox has ended: if it used the folder, take it away, and free its memory. */
int osd_scratch_clear(struct osd_scratch *scratch, unsigned slot, struct osd_step *step);

/* "." of a sandbox; its filter allows statfs of it. */
extern const char osd_scratch_here[];

/* No file, no folder, no data, not even of a file that is deleted but open. */
bool osd_scratch_is_empty(const char *path);

#endif
