/* SPDX-License-Identifier: GPL-2.0-or-later */
/* id_map.c -- see id_map.h.  At most half of the entries are used. */
#include "base/id_map.h"

#include <stdlib.h>
#include <sys/random.h>

#define CAPACITY_LEAST 64u /* a power of two */

static struct osd_id_map_entry *find(const struct osd_id_map *map, uint64_t id)
{
	uint64_t hash = (id ^ map->seed) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at;

	hash = (hash ^ hash >> 32 ^ map->seed) * UINT64_C(0xd6e8feb86659fd93);
	at = hash >> 32 & (map->capacity - 1);
	while (map->entries[at].id && map->entries[at].id != id)
		at = (at + 1) & (map->capacity - 1);
	return &map->entries[at];
}

static bool grow(struct osd_id_map *map)
{
	struct osd_id_map larger = {.count = map->count,
				    .capacity = map->capacity ? map->capacity * 2 : CAPACITY_LEAST,
				    .seed = map->seed};

	larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
	if (!larger.entries)
		return false;
	if (!map->capacity && getrandom(&larger.seed, sizeof(larger.seed), GRND_NONBLOCK) < 0)
		larger.seed = (uintptr_t)larger.entries;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->entries[i].id)
			*find(&larger, map->entries[i].id) = map->entries[i];
	free(map->entries);
	*map = larger;
	return true;
}

uint32_t *osd_id_map_at(struct osd_id_map *map, uint64_t id, bool *ret_new)
{
	struct osd_id_map_entry *entry;

	if (map->count >= map->capacity / 2 && !grow(map))
		return NULL;
	entry = find(map, id);
	*ret_new = !entry->id;
	map->count += *ret_new;
	entry->id = id;
	return &entry->value;
}

void osd_id_map_release(struct osd_id_map *map)
{
	free(map->entries);
	*map = (struct osd_id_map){0};
}
