/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nonce_set.c -- see nonce_set.h: an open hash table that is made anew when it is to grow or to forget. */
#include "security/nonce_set.h"

#include <stdlib.h>

#include "base/util.h"
#include "security/mac.h"

#define FIRST_CAPACITY 1024u

void osd_nonce_set_release(struct osd_nonce_set *set)
{
	free(set->slots);
	*set = (struct osd_nonce_set){.salt = set->salt};
}

/* Salted: nobody can choose nonces that all meet in one place. */
static size_t place_of(const struct osd_nonce_set *set, uint64_t time, uint64_t random)
{
	uint64_t hash = (random ^ set->salt) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32 ^ time) * UINT64_C(0xd6e8feb86659fd93);
	return (hash ^ hash >> 32) & (set->capacity - 1);
}

/* The place of a nonce in the table, or the free place for it. */
static struct osd_nonce_entry *find(const struct osd_nonce_set *set, uint64_t time, uint64_t random)
{
	size_t i = place_of(set, time, random);

	while (set->slots[i].time_plus_one &&
	       (set->slots[i].time_plus_one != time + 1 || set->slots[i].random != random))
		i = (i + 1) & (set->capacity - 1);
	return &set->slots[i];
}

bool osd_nonce_set_has(const struct osd_nonce_set *set, uint64_t time, uint64_t random)
{
	return set->capacity && find(set, time, random)->time_plus_one;
}

static uint64_t before(uint64_t time, uint64_t window_ms)
{
	return time - OSD_MIN(time, window_ms);
}

/* Rebuilds the table with the nonces from this time on. */
static enum osd_status remake(struct osd_nonce_set *set, size_t capacity, uint64_t from,
			      uint64_t window_ms, struct osd_nonce_spans *forgotten)
{
	struct osd_nonce_set made = {.slots = calloc(capacity, sizeof(*made.slots)),
				     .capacity = capacity,
				     .salt = set->salt};

	if (!made.slots)
		return OSD_E_NO_MEMORY;
	for (size_t i = 0; i < set->capacity; i++) {
		struct osd_nonce_entry *entry = &set->slots[i];
		uint64_t time = entry->time_plus_one - 1;

		if (!entry->time_plus_one)
			continue;
		if (time >= from) {
			*find(&made, time, entry->random) = *entry;
			made.count++;
		} else {
			osd_spans_add(forgotten, before(time, window_ms), time);
		}
	}
	free(set->slots);
	*set = made;
	return OSD_OK;
}

enum osd_status osd_nonce_set_forget(struct osd_nonce_set *set, uint64_t time, uint64_t window_ms,
				     struct osd_nonce_spans *forgotten)
{
	enum osd_status status = OSD_OK;

	if (set->count)
		status = remake(set, set->capacity, time + 1, window_ms, forgotten);
	if (status == OSD_OK && set->count == 0)
		osd_nonce_set_release(set);
	return status;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A time that about a quarter of all nonces do not exceed, estimated from a sample. */
static uint64_t time_of_quarter(const struct osd_nonce_set *set)
{
	uint64_t sample[1023];
	size_t count = 0, step = set->capacity / OSD_ARRAY_SIZE(sample) + 1;

	for (size_t i = 0; i < set->capacity && count < OSD_ARRAY_SIZE(sample); i += step) {
		size_t at = i;

		while (at < set->capacity && !set->slots[at].time_plus_one)
			at++;
		if (at < set->capacity)
			sample[count++] = set->slots[at].time_plus_one - 1;
	}
	qsort(sample, count, sizeof(sample[0]), by_time);
	return sample[count / 4];
}

static enum osd_status make_room(struct osd_nonce_set *set, uint64_t window_ms,
				 struct osd_nonce_spans *forgotten)
{
	if (set->count >= OSD_NONCE_SET_MAX)
		return osd_nonce_set_forget(set, time_of_quarter(set), window_ms, forgotten);
	if (!set->capacity)
		osd_random_bytes(&set->salt, sizeof(set->salt));
	if ((set->count + 1) * 4 <= set->capacity * 3)
		return OSD_OK;
	return remake(set, set->capacity ? 2 * set->capacity : FIRST_CAPACITY, 0, window_ms,
		      forgotten);
}

enum osd_status osd_nonce_set_add(struct osd_nonce_set *set, uint64_t time, uint64_t random,
				  uint64_t window_ms, struct osd_nonce_spans *forgotten)
{
	enum osd_status status = make_room(set, window_ms, forgotten);

	if (status == OSD_OK && !set->capacity) /* everything went */
		status = remake(set, FIRST_CAPACITY, 0, window_ms, forgotten);
	if (status != OSD_OK)
		return status;
	*find(set, time, random) = (struct osd_nonce_entry){time + 1, random};
	set->count++;
	return OSD_OK;
}
