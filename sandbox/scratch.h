/* SPDX-License-Identifier: GPL-2.0-or-later */
/* scratch.h -- a folder in memory for each slot, where a script may make files.
 *
 * It is a tmpfs of limited size and count of files, mounted by the zygote and owned by the slot's user.
 * A sandbox has it as its working directory.  A used folder is never given to another sandbox.  The
 * zygote unmounts the whole file system and mounts a new one, so no code walks the folder. */
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
#define OSD_SCRATCH_INODES 8192u       /* files and folders; each needs a kilobyte of kernel memory */
/* A file may be longer than the folder by this, so that a script that writes too much gets the error
 * "no space left". */
#define OSD_SCRATCH_BEYOND (1u << 20)

/* The layers that scratch folders need: a mount namespace, a user of the sandbox's own, and a process
 * namespace, for which the zygote keeps the privilege to mount. */
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

/* The longest file of a sandbox; 0 without a folder. */
static inline uint64_t osd_scratch_file_bytes(unsigned layers, uint64_t memory_bytes)
{
	return osd_scratch_possible(layers) ? osd_scratch_bytes(memory_bytes) + OSD_SCRATCH_BEYOND
					    : 0;
}

static inline void osd_scratch_path(unsigned slot, char path[OSD_SCRATCH_PATH])
{
	snprintf(path, OSD_SCRATCH_PATH, OSD_SCRATCH_PLACE "/%u", slot);
}

/* The folder of a slot, in the zygote. */
struct osd_scratch {
	bool mounted;
	uint64_t bytes;
};

/* Provides an empty folder of this size for the slot's next sandbox.  *ret_new: it was mounted just
 * now. */
int osd_scratch_prepare(struct osd_scratch *scratch, unsigned slot, unsigned owner, uint64_t bytes,
			bool *ret_new, struct osd_step *step);
/* Changes the size for a sandbox that has not used its folder. */
int osd_scratch_resize(struct osd_scratch *scratch, unsigned slot, uint64_t bytes,
		       struct osd_step *step);
/* Called at the end of the slot's sandbox: if it used the folder, unmounts it and frees its memory. */
int osd_scratch_clear(struct osd_scratch *scratch, unsigned slot, struct osd_step *step);

/* The path "." of a sandbox, for which its filter allows statfs. */
extern const char osd_scratch_here[];

/* Whether the folder is empty: no file, no folder, no data, also not of a deleted file that is still
 * open. */
bool osd_scratch_is_empty(const char *path);

#endif
