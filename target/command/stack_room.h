/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_room.h -- what the data that pass through functions may hold: bytes of memory, and copies under way.  All users
 * share it; each may hold as much as is free (base/places.h).  So one user's functions, however slow, leave room for
 * those of another.  And when they may have a worker: a command for a few bytes may load much more.
 *
 * Any thread; the lock is a leaf. */
#ifndef OSD_COMMAND_STACK_ROOM_H
#define OSD_COMMAND_STACK_ROOM_H

#include <stddef.h>

#include "base/places.h"
#include "command/request.h"

enum osd_stack_room { OSD_ROOM_BYTES, OSD_ROOM_COPIES };

struct osd_stack_held {
	struct osd_place_holder *holder;
	size_t count; /* 0: nothing is held */
};

/* Exchanges what is held.  OSD_E_BUSY: there is no room; nothing is held then. */
enum osd_status osd_stack_room_hold(enum osd_stack_room room, const char *principal, size_t count,
				    struct osd_stack_held *held);
void osd_stack_room_drop(enum osd_stack_room room, struct osd_stack_held *held);

/* Whether a command that came as a short one is long, since it loads so many bytes. */
bool osd_stack_turns_long(const struct osd_request *request, uint64_t bytes);
/* The request is dispatched again, as a long one.  Returns OSD_PENDING: it may be another thread's. */
enum osd_status osd_stack_as_long(struct osd_request *request);

#endif
