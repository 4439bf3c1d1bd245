/* SPDX-License-Identifier: GPL-2.0-or-later */
/* id_map.h -- numbers by id, in memory.  Clients may choose the ids: where each is stored depends on a random seed, too.
 *
 * One thread. */
#ifndef OSD_BASE_ID_MAP_H
#define OSD_BASE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeros: an empty map. */
struct osd_id_map {
	struct osd_id_map_entry {
		uint64_t id; /* 0: free */
		uint32_t value;
	} *entries; /* owned */
	size_t count, capacity;
	uint64_t seed;
};

/* The number of an id other than 0.  A new id has 0.  NULL: no memory.  Valid until the next call. */
uint32_t *osd_id_map_at(struct osd_id_map *map, uint64_t id, bool *ret_new);
void osd_id_map_release(struct osd_id_map *map);

#endif
