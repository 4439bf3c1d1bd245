/* SPDX-License-Identifier: GPL-2.0-or-later */
/* places.h -- a fixed number of places, shared by principals.  A principal may hold as many places as
 * are free.  So one alone holds at most half of them, and a principal that comes later finds a place,
 * however many others came before.  There is no locking here: the owner has a lock. */
#ifndef OSD_BASE_PLACES_H
#define OSD_BASE_PLACES_H

#include <stddef.h>

#include "base/status.h"

/* A principal that holds places; freed with the last of them. */
struct osd_place_holder;

struct osd_places {
	size_t most, taken;
	struct osd_place_holder *holders;
};

#define OSD_PLACES(count) ((struct osd_places){.most = (count)})

/* Takes count places for a principal, at least one.  OSD_E_QUEUE_FULL: with them it would hold more places than are
 * free now. */
enum osd_status osd_places_take(struct osd_places *places, const char *principal, size_t count,
				struct osd_place_holder **ret_holder);
/* Takes a place for the target's own work, which always succeeds. osd_places_give(places, NULL, 1) returns
 * it. */
void osd_places_take_extra(struct osd_places *places);
void osd_places_give(struct osd_places *places, struct osd_place_holder *holder, size_t count);

#endif
