/* SPDX-License-Identifier: GPL-2.0-or-later */
/* places.c -- see places.h. */
#include "base/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

struct osd_place_holder {
	struct osd_place_holder *next;
	size_t count;
	char principal[];
};

static struct osd_place_holder **find(struct osd_places *places, const char *principal)
{
	struct osd_place_holder **link = &places->holders;

	while (*link && strcmp((*link)->principal, principal) != 0)
		link = &(*link)->next;
	return link;
}

static struct osd_place_holder *add(struct osd_places *places, const char *principal)
{
	size_t length = strlen(principal) + 1;
	struct osd_place_holder *holder = malloc(sizeof(*holder) + length);

	if (!holder)
		return NULL;
	*holder = (struct osd_place_holder){.next = places->holders};
	memcpy(holder->principal, principal, length);
	places->holders = holder;
	return holder;
}

enum osd_status osd_places_take(struct osd_places *places, const char *principal, size_t count,
				struct osd_place_holder **ret_holder)
{
	struct osd_place_holder *holder = *find(places, principal);
	size_t own = holder ? holder->count : 0;
	size_t left = places->most - OSD_MIN(places->taken, places->most);

	if (own > left || count > left - own)
		return OSD_E_QUEUE_FULL;
	if (!holder)
		holder = add(places, principal);
	if (!holder)
		return OSD_E_NO_MEMORY;
	holder->count += count;
	places->taken += count;
	*ret_holder = holder;
	return OSD_OK;
}

void osd_places_take_extra(struct osd_places *places)
{
	places->taken++;
}

void osd_places_give(struct osd_places *places, struct osd_place_holder *holder, size_t count)
{
	struct osd_place_holder **link = &places->holders;

	places->taken -= count;
	if (!holder || (holder->count -= count) > 0)
		return;
	while (*link != holder)
		link = &(*link)->next;
	*link = holder->next;
	free(holder);
}
