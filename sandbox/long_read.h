/* SPDX-License-Identifier: GPL-2.0-or-later */
/* long_read.h -- long reads of a call go straight into the memory of the function, through the descriptors of
 * the object's files, one object at a time.  Called by one thread. */
#ifndef OSD_SANDBOX_LONG_READ_H
#define OSD_SANDBOX_LONG_READ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes read; -1: the proxy must serve it. */
ssize_t osd_long_read(uint64_t partition_id, uint64_t object_id, uint64_t offset, uint8_t *to,
		      size_t length);
/* At the end of a call. */
void osd_long_read_drop(void);

#endif
