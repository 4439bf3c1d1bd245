/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_frame.h -- frames between a target and its resource manager on a Unix SEQPACKET socket, one
 * a packet, and the text of requests (docs/control.md).  iosd_host/control/messages.py is the same in Python;
 * both are tested on the bytes in tests/fuzz/golden. */
#ifndef OSD_WIRE_CONTROL_FRAME_H
#define OSD_WIRE_CONTROL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cursor.h"

#define OSD_CONTROL_VERSION 1
#define OSD_CONTROL_HEADER  16u
#define OSD_CONTROL_MAX	    (128u << 10) /* of a frame, its header included */
#define OSD_CONTROL_KEY_MAX 32u

enum osd_control_type {
	OSD_CONTROL_HELLO = 1,
	OSD_CONTROL_SNAPSHOT = 2,
	OSD_CONTROL_WATCH = 3,
	OSD_CONTROL_WORKERS = 4,
	OSD_CONTROL_POOL = 5,
	OSD_CONTROL_RECYCLE = 6,
	OSD_CONTROL_PRINCIPAL = 7,
	OSD_CONTROL_USAGE = 8,
	OSD_CONTROL_SHED = 9,
	OSD_CONTROL_RELOAD = 10,
	OSD_CONTROL_FREEZE = 11,
	OSD_CONTROL_THAW = 12,
	OSD_CONTROL_JOBS = 13,
	OSD_CONTROL_WELCOME = 100,
	OSD_CONTROL_OK = 101,
	OSD_CONTROL_ERROR = 102,
	OSD_CONTROL_SNAPSHOT_IS = 103,
	OSD_CONTROL_USAGE_IS = 104,
	OSD_CONTROL_JOBS_ARE = 105,
};

struct osd_control_frame {
	uint16_t type; /* not checked: it may be of a later release */
	uint32_t serial;
	const char *payload; /* borrowed; not terminated */
	uint32_t payload_bytes;
};

enum osd_control_fault {
	OSD_CONTROL_FINE,
	OSD_CONTROL_NO_FRAME,	   /* magic or length */
	OSD_CONTROL_OTHER_VERSION, /* of a target or manager that is newer */
};

/* Returns 0 if the frame cannot be encoded: it is too long, or exceeds capacity. */
size_t osd_control_encode(const struct osd_control_frame *frame, uint8_t *bytes, size_t capacity);
/* *ret_frame is written unless OSD_CONTROL_NO_FRAME; for a frame of another version, only
 * serial. */
enum osd_control_fault osd_control_decode(const uint8_t *bytes, size_t length,
					  struct osd_control_frame *ret_frame);

/* A line of a request: key=value. */
struct osd_control_pair {
	const char *key, *value; /* borrowed; not terminated */
	size_t key_bytes;	 /* 1..OSD_CONTROL_KEY_MAX, of a-z 0-9 _ */
	size_t value_bytes;	 /* of clean UTF-8 (wire/text.h) */
};

/* Reads the next line.  False: the end, or (then bad) a malformed line.  The last line ends with a
 * newline, too. */
bool osd_control_next(struct osd_rd *payload, struct osd_control_pair *ret_pair);

#endif
