/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_room.c -- see stack_room.h. */
#include "command/stack_room.h"

#include "base/lock.h"
#include "command/attributes.h"
#include "command/table.h"

#define BYTES_MAX  ((size_t)256 << 20)
#define COPIES_MAX 16u /* each holds a piece in memory */

static struct {
	struct osd_lock lock;
	struct osd_places rooms[2]; /* under lock; by enum osd_stack_room */
} all = {OSD_LOCK_INITIALIZER(OSD_RANK_STACK_ROOM),
	 {[OSD_ROOM_BYTES] = {.most = BYTES_MAX}, [OSD_ROOM_COPIES] = {.most = COPIES_MAX}}};

/* Under lock. */
static void drop(enum osd_stack_room room, struct osd_stack_held *held)
{
	osd_assert_held(&all.lock);
	if (held->count)
		osd_places_give(&all.rooms[room], held->holder, held->count);
	*held = (struct osd_stack_held){0};
}

enum osd_status osd_stack_room_hold(enum osd_stack_room room, const char *principal, size_t count,
				    struct osd_stack_held *held)
{
	enum osd_status status = OSD_OK;

	osd_lock(&all.lock);
	drop(room, held);
	if (count)
		status = osd_places_take(&all.rooms[room], principal, count, &held->holder);
	if (status == OSD_OK)
		held->count = count;
	osd_unlock(&all.lock);
	return status == OSD_E_QUEUE_FULL ? OSD_E_BUSY : status;
}

void osd_stack_room_drop(enum osd_stack_room room, struct osd_stack_held *held)
{
	osd_lock(&all.lock);
	drop(room, held);
	osd_unlock(&all.lock);
}

bool osd_stack_turns_long(const struct osd_request *request, uint64_t bytes)
{
	return request->span == OSD_SPAN_SHORT && bytes > OSD_LONG_BYTES;
}

enum osd_status osd_stack_as_long(struct osd_request *request)
{
	osd_attributes_forget(request);
	request->span = OSD_SPAN_LONG;
	request->again = true;
	request->resume(request);
	return OSD_PENDING;
}
