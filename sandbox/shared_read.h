/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shared_read.h -- the usual case of a read through the descriptors that the proxy passed: no
 * write is running, and the descriptors are those of the current files. */
#ifndef OSD_SANDBOX_SHARED_READ_H
#define OSD_SANDBOX_SHARED_READ_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* 64-bit words of the version page. */
enum { OSD_SHARED_COUNTER, OSD_SHARED_LENGTH, OSD_SHARED_REMOVED, OSD_SHARED_LAYOUT, OSD_SHARED_WORDS };

struct osd_shared_reading {
	const _Atomic uint64_t *words;
	unsigned long long layout, head_bytes, offset;
	int head_fd, tail_fd;
	uint8_t *bytes;
	size_t room;
};

/* Bytes read, fewer at the end of the object; -1: not the usual case, and the bytes are undefined. */
ssize_t osd_shared_read(const struct osd_shared_reading *reading);

#endif
