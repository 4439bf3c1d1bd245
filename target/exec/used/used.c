/* SPDX-License-Identifier: GPL-2.0-or-later */
/* used.c -- the list of used objects in memory (used.h). */
#include "exec/used/used.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define FIRST_ENTRIES 16

/* ---- entries ---------------------------------------------------------------------------------- */

static uint32_t *slot_of(const struct osd_used *used, struct osd_object_id id)
{
	uint64_t mixed = (id.object_id ^ id.partition_id * 31) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t mask = 2 * used->capacity - 1, at = (uint32_t)(mixed >> 32) & mask;

	/* Half of the slots at least are free, so this ends. */
	while (used->slots[at] && !osd_same_id(used->entries[used->slots[at] - 1].id, id))
		at = (at + 1) & mask;
	return &used->slots[at];
}

static bool grow(struct osd_used *used)
{
	uint32_t capacity = used->capacity ? 2 * used->capacity : FIRST_ENTRIES;
	struct osd_used_entry *entries;
	uint32_t *slots;

	if (capacity > OSD_USED_OBJECTS_MAX)
		return false;
	/* The list changes only when both are there: after a failure it is valid as it was. */
	slots = calloc(2 * (size_t)capacity, sizeof(*slots));
	entries = slots ? realloc(used->entries, capacity * sizeof(*entries)) : NULL;
	if (!entries) {
		free(slots);
		return false;
	}
	free(used->slots);
	used->entries = entries;
	used->slots = slots;
	used->capacity = capacity;
	for (uint32_t i = 0; i < used->count; i++)
		*slot_of(used, entries[i].id) = i + 1;
	return true;
}

/* The object's entry, made if it has none.  NULL: there is no room for it. */
static struct osd_used_entry *entry_of(struct osd_used *used, struct osd_object_id id)
{
	uint32_t *slot;

	if (used->last < used->count && osd_same_id(used->entries[used->last].id, id))
		return &used->entries[used->last];
	slot = used->capacity ? slot_of(used, id) : NULL;
	if (!slot || !*slot) {
		if (used->count == used->capacity && !grow(used)) {
			used->left_out++;
			return NULL;
		}
		slot = slot_of(used, id);
		used->entries[used->count++] = (struct osd_used_entry){.id = id};
		*slot = used->count;
	}
	used->last = *slot - 1;
	return &used->entries[used->last];
}

const struct osd_used_entry *osd_used_find(struct osd_used *used, struct osd_object_id id)
{
	uint32_t *slot = used->capacity ? slot_of(used, id) : NULL;

	return slot && *slot ? &used->entries[*slot - 1] : NULL;
}

void osd_used_release(struct osd_used *used)
{
	for (uint32_t i = 0; i < used->count; i++)
		free(used->entries[i].ranges);
	free(used->entries);
	free(used->slots);
	*used = (struct osd_used){0};
}

/* ---- ranges ----------------------------------------------------------------------------------- */

static void be_whole(struct osd_used *used, struct osd_used_entry *entry)
{
	used->all_ranges -= entry->range_count;
	entry->range_count = 0;
	entry->kinds |= OSD_USED_WHOLE;
	free(OSD_STEAL(entry->ranges));
}

/* Room for one more: the capacity is the least power of two. */
static bool range_fits(const struct osd_used *used, struct osd_used_entry *entry)
{
	uint32_t count = entry->range_count;
	struct osd_used_range *ranges = entry->ranges;

	if (count == OSD_USED_RANGES_MAX || used->all_ranges == OSD_USED_ALL_RANGES_MAX)
		return false;
	if ((count & (count - 1)) == 0)
		ranges = realloc(ranges, OSD_MAX(2 * count, 1) * sizeof(*ranges));
	if (!ranges)
		return false;
	entry->ranges = ranges;
	return true;
}

static void add_range(struct osd_used *used, struct osd_used_entry *entry, uint64_t start,
		      uint64_t end)
{
	struct osd_used_range *ranges = entry->ranges;
	uint32_t count = entry->range_count, from = count, to;

	/* Most reads go on where the last one ended. */
	while (from > 0 && ranges[from - 1].end >= start)
		from--;
	for (to = from; to < count && ranges[to].start <= end; to++) {
		start = OSD_MIN(start, ranges[to].start);
		end = OSD_MAX(end, ranges[to].end);
	}
	if (from == to) { /* it touches none */
		if (!range_fits(used, entry)) {
			/* The list may say more than was read, never less. */
			be_whole(used, entry);
			return;
		}
		ranges = entry->ranges;
		memmove(&ranges[from + 1], &ranges[from], (count - from) * sizeof(*ranges));
		entry->range_count++;
		used->all_ranges++;
	} else {
		memmove(&ranges[from + 1], &ranges[to], (count - to) * sizeof(*ranges));
		entry->range_count -= to - from - 1;
		used->all_ranges -= to - from - 1;
	}
	ranges[from] = (struct osd_used_range){start, end};
}

/* ---- notes ------------------------------------------------------------------------------------ */

void osd_used_note(struct osd_used *used, struct osd_object_id id, uint32_t kinds)
{
	struct osd_used_entry *entry = entry_of(used, id);

	if (entry)
		entry->kinds |= kinds;
}

/* The version that the next read finds if nobody else changes the object. */
static struct osd_data_version expected(const struct osd_used_entry *entry)
{
	return entry->kinds & OSD_MADE_DATA ? entry->after : entry->version;
}

static void see_version(struct osd_used_entry *entry, uint32_t kind,
			struct osd_data_version version)
{
	if (entry->kinds & (kind | OSD_MADE_DATA) && !osd_same_version(expected(entry), version))
		entry->kinds |= OSD_USED_VARIED;
	if (!(entry->kinds & kind))
		entry->version = version;
	entry->kinds |= kind;
}

void osd_used_read(struct osd_used *used, struct osd_object_id id, struct osd_data_version version,
		   uint64_t offset, uint64_t length)
{
	struct osd_used_entry *entry = entry_of(used, id);
	uint64_t end;

	if (!entry)
		return;
	see_version(entry, OSD_USED_DATA, version);
	if (length && !(entry->kinds & OSD_USED_WHOLE) && osd_add_u64(offset, length, &end))
		add_range(used, entry, offset, end);
}

void osd_used_members(struct osd_used *used, struct osd_object_id id,
		      struct osd_data_version version)
{
	struct osd_used_entry *entry = entry_of(used, id);

	if (entry)
		see_version(entry, OSD_USED_MEMBERS, version);
}

void osd_used_wrote(struct osd_used *used, struct osd_object_id id, struct osd_data_version before,
		    struct osd_data_version after)
{
	struct osd_used_entry *entry = entry_of(used, id);

	if (!entry)
		return;
	if (entry->kinds & (OSD_USED_DATA | OSD_MADE_DATA) &&
	    !osd_same_version(expected(entry), before))
		entry->kinds |= OSD_USED_VARIED;
	/* The version that the job has found is that of its first write. */
	if (!(entry->kinds & OSD_MADE_DATA))
		entry->before = before;
	entry->after = after;
	entry->kinds |= OSD_MADE_DATA;
}

bool osd_used_is_versioned(const struct osd_used *used)
{
	for (uint32_t i = 0; i < used->count; i++)
		if (used->entries[i].kinds & ~(uint32_t)(OSD_USED_VERSIONED | OSD_USED_WHOLE))
			return false;
	return used->left_out == 0;
}
