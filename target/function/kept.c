/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kept.c -- see kept.h. */
#include "function/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"

#define LEAST_FREE 20 /* of this part of the file system */
#define FILE_NAME  "kept" /* from the creation of the file to the removal of its name */

struct unit {
	struct unit *next;	    /* in its bucket */
	struct unit *older, *newer; /* in order of use */
	struct osd_kept_key key;
	uint64_t number, length;
	unsigned pins; /* threads that read it */
	bool dropped;  /* not in the table; freed by the last of them */
	uint32_t slot_count, slots[];
};

struct osd_kept {
	int fd; /* owned */
	uint32_t slot_count, bucket_count;
	struct osd_lock lock; /* of what follows, and of units */
	uint32_t *free_slots; /* a stack */
	uint32_t free_count;
	struct unit **buckets;
	struct unit *oldest, *newest;
	struct osd_kept_figures figures;
};

/* ---- the table --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

static struct unit **bucket_of(struct osd_kept *kept, const struct osd_kept_key *key,
			       uint64_t number)
{
	uint64_t hash;

	memcpy(&hash, key->stack, sizeof(hash));
	hash = mix(mix(hash, key->version.counter), key->version.opening);
	hash = mix(mix(hash, key->source.partition_id), key->source.object_id);
	return &kept->buckets[mix(hash, number) & (kept->bucket_count - 1)];
}

static bool is_unit(const struct unit *unit, const struct osd_kept_key *key, uint64_t number)
{
	return unit->number == number && osd_same_id(unit->key.source, key->source) &&
	       osd_same_version(unit->key.version, key->version) &&
	       memcmp(unit->key.stack, key->stack, sizeof(key->stack)) == 0;
}

static struct unit *find(struct osd_kept *kept, const struct osd_kept_key *key, uint64_t number)
{
	struct unit *unit = *bucket_of(kept, key, number);

	osd_assert_held(&kept->lock);
	while (unit && !is_unit(unit, key, number))
		unit = unit->next;
	return unit;
}

static void leave_order(struct osd_kept *kept, struct unit *unit)
{
	*(unit->older ? &unit->older->newer : &kept->oldest) = unit->newer;
	*(unit->newer ? &unit->newer->older : &kept->newest) = unit->older;
}

static void become_newest(struct osd_kept *kept, struct unit *unit)
{
	unit->newer = NULL;
	unit->older = kept->newest;
	*(kept->newest ? &kept->newest->newer : &kept->oldest) = unit;
	kept->newest = unit;
}

static void free_unit(struct osd_kept *kept, struct unit *unit)
{
	osd_assert_held(&kept->lock);
	for (uint32_t i = unit->slot_count; i-- > 0;)
		kept->free_slots[kept->free_count++] = unit->slots[i];
	free(unit);
}

static void drop(struct osd_kept *kept, struct unit *unit)
{
	struct unit **at = bucket_of(kept, &unit->key, unit->number);

	osd_assert_held(&kept->lock);
	while (*at != unit)
		at = &(*at)->next;
	*at = unit->next;
	leave_order(kept, unit);
	kept->figures.units--;
	kept->figures.kept_bytes -= unit->length;
	unit->dropped = true;
	if (unit->pins == 0)
		free_unit(kept, unit);
}

static void enter(struct osd_kept *kept, struct unit *unit)
{
	struct unit **bucket = bucket_of(kept, &unit->key, unit->number);

	osd_assert_held(&kept->lock);
	unit->next = *bucket;
	*bucket = unit;
	become_newest(kept, unit);
	kept->figures.units++;
	kept->figures.kept_bytes += unit->length;
}

/* Until the unit has so many.  A unit that is being read gives its slots back later: the next one goes, too. */
static bool take_slots(struct osd_kept *kept, struct unit *unit, uint32_t count)
{
	uint32_t wanted = count - unit->slot_count;

	osd_assert_held(&kept->lock);
	while (kept->free_count < wanted && kept->oldest) {
		drop(kept, kept->oldest);
		kept->figures.evicted++;
	}
	if (kept->free_count < wanted)
		return false;
	while (unit->slot_count < count)
		unit->slots[unit->slot_count++] = kept->free_slots[--kept->free_count];
	return true;
}

/* ---- the file ---------------------------------------------------------------------------------- */

/* Slots next to each other from the place-th on, as one range of the file. */
static size_t run_of(const struct unit *unit, uint32_t place, size_t most)
{
	size_t length = OSD_KEPT_SLOT;

	for (uint32_t i = place + 1;
	     i < unit->slot_count && length < most && unit->slots[i] == unit->slots[i - 1] + 1; i++)
		length += OSD_KEPT_SLOT;
	return length;
}

/* 0 or an errno. */
static int transfer(const struct osd_kept *kept, const struct unit *unit, uint64_t from,
		    uint8_t *bytes, size_t length, bool writes, bool nowait)
{
	while (length) {
		uint32_t place = (uint32_t)(from / OSD_KEPT_SLOT);
		size_t skipped = from % OSD_KEPT_SLOT;
		size_t room = run_of(unit, place, skipped + length) - skipped;
		struct iovec part = {bytes, OSD_MIN(room, length)};
		off_t offset = (off_t)unit->slots[place] * OSD_KEPT_SLOT + (off_t)skipped;
		ssize_t moved =
			writes ? pwritev(kept->fd, &part, 1, offset)
			       : preadv2(kept->fd, &part, 1, offset, nowait ? RWF_NOWAIT : 0);

		if (moved < 0 && errno == EINTR)
			continue;
		if (moved <= 0)
			return moved ? errno : EIO;
		from += (uint64_t)moved;
		bytes += moved;
		length -= (size_t)moved;
	}
	return 0;
}

static void report(struct osd_kept *kept, const char *action, int error)
{
	static struct osd_ration ration = OSD_RATION(1, 60000000);
	unsigned withheld;

	osd_lock(&kept->lock);
	kept->figures.failed++;
	osd_unlock(&kept->lock);
	if (osd_ration_take(&ration, osd_monotonic_usec(), &withheld))
		osd_warning("cannot %s what functions have computed: %s; READs compute it again",
			    action, strerror(error));
}

static bool has_space(const struct osd_kept *kept)
{
	struct statvfs stat;

	return fstatvfs(kept->fd, &stat) == 0 && stat.f_bavail >= stat.f_blocks / LEAST_FREE;
}

/* ---- put --------------------------------------------------------------------------------------- */

static uint64_t slots_of(uint64_t length)
{
	return OSD_MAX((length + OSD_KEPT_SLOT - 1) / OSD_KEPT_SLOT, UINT64_C(1));
}

static struct unit *reserve(struct osd_kept *kept, const struct osd_kept_key *key, uint64_t number,
			    size_t length)
{
	uint64_t slots = slots_of(length);
	OSD_CLEANUP_FREE struct unit *unit = NULL;
	bool taken;

	if (slots > kept->slot_count || !has_space(kept))
		return NULL;
	unit = calloc(1, sizeof(*unit) + slots * sizeof(*unit->slots));
	if (!unit)
		return NULL;
	unit->key = *key;
	unit->number = number;
	unit->length = length;
	osd_lock(&kept->lock);
	taken = !find(kept, key, number) && take_slots(kept, unit, (uint32_t)slots);
	osd_unlock(&kept->lock);
	return taken ? OSD_STEAL(unit) : NULL;
}

static int store(struct osd_kept *kept, struct unit *unit, uint64_t from, const void *bytes,
		 size_t length)
{
	/* The bytes are only read. */
	int error = transfer(kept, unit, from, (uint8_t *)(uintptr_t)bytes, length, true, false);

	if (error)
		report(kept, "keep", error);
	return error;
}

static void enter_or_free(struct osd_kept *kept, struct unit *unit, bool good)
{
	osd_lock(&kept->lock);
	if (good && !find(kept, &unit->key, unit->number))
		enter(kept, unit);
	else
		free_unit(kept, unit);
	osd_unlock(&kept->lock);
}

void osd_kept_put(struct osd_kept *kept, const struct osd_kept_key *key, uint64_t unit_number,
		  const void *bytes, size_t length)
{
	struct unit *unit = reserve(kept, key, unit_number, length);

	if (unit)
		enter_or_free(kept, unit, store(kept, unit, 0, bytes, length) == 0);
}

/* ---- results that come in parts ---------------------------------------------------------------- */

struct osd_kept_draft {
	struct unit *unit; /* owned, and not in the table */
	uint64_t room;	   /* slots that the unit has memory for */
};

static enum osd_status grow(struct osd_kept *kept, struct osd_kept_draft *draft, uint64_t slots)
{
	struct unit *unit = draft->unit;
	bool taken;

	if (slots > kept->slot_count)
		return OSD_E_QUOTA;
	if (!has_space(kept))
		return OSD_E_NO_SPACE;
	if (slots > draft->room) {
		uint64_t room = OSD_MIN(slots * 2, (uint64_t)kept->slot_count);

		unit = realloc(unit, sizeof(*unit) + room * sizeof(*unit->slots));
		if (!unit)
			return OSD_E_NO_MEMORY;
		*draft = (struct osd_kept_draft){unit, room};
	}
	osd_lock(&kept->lock);
	taken = take_slots(kept, unit, (uint32_t)slots);
	osd_unlock(&kept->lock);
	return taken ? OSD_OK : OSD_E_BUSY;
}

enum osd_status osd_kept_begin(struct osd_kept *kept, const struct osd_kept_key *key,
			       struct osd_kept_draft **ret_draft)
{
	struct osd_kept_draft *draft = calloc(1, sizeof(*draft));
	enum osd_status status = OSD_E_NO_MEMORY;

	if (draft)
		draft->unit = calloc(1, sizeof(*draft->unit));
	if (draft && draft->unit) {
		draft->unit->key = *key;
		status = grow(kept, draft, 1);
	}
	if (status == OSD_OK)
		*ret_draft = draft;
	else
		osd_kept_end(kept, draft, false);
	return status;
}

enum osd_status osd_kept_append(struct osd_kept *kept, struct osd_kept_draft *draft,
				const void *bytes, size_t length)
{
	uint64_t from = draft->unit->length;
	enum osd_status status = grow(kept, draft, slots_of(from + length));

	if (status != OSD_OK)
		return status;
	draft->unit->length += length;
	return store(kept, draft->unit, from, bytes, length) ? OSD_E_NO_SPACE : OSD_OK;
}

void osd_kept_end(struct osd_kept *kept, struct osd_kept_draft *draft, bool good)
{
	if (draft && draft->unit)
		enter_or_free(kept, draft->unit, good);
	free(draft);
}

/* ---- get --------------------------------------------------------------------------------------- */

static void unpin(struct osd_kept *kept, struct unit *unit, bool damaged)
{
	osd_lock(&kept->lock);
	unit->pins--;
	if (damaged && !unit->dropped)
		drop(kept, unit);
	else if (unit->dropped && unit->pins == 0)
		free_unit(kept, unit);
	osd_unlock(&kept->lock);
}

bool osd_kept_get(struct osd_kept *kept, const struct osd_kept_key *key, uint64_t unit_number,
		  uint64_t from, void *buffer, size_t length, bool nowait, uint64_t *ret_whole)
{
	struct unit *unit;
	bool waits;
	int error;

	osd_lock(&kept->lock);
	unit = find(kept, key, unit_number);
	if (unit) {
		unit->pins++;
		leave_order(kept, unit);
		become_newest(kept, unit);
	}
	osd_unlock(&kept->lock);
	if (!unit)
		return false;
	*ret_whole = unit->length;
	length = from < unit->length ? (size_t)OSD_MIN(length, unit->length - from) : 0;
	error = transfer(kept, unit, from, buffer, length, false, nowait);
	waits = nowait && (error == EAGAIN || error == EOPNOTSUPP);
	unpin(kept, unit, error && !waits);
	if (error && !waits)
		report(kept, "read", error);
	return error == 0;
}

/* ---- figures ----------------------------------------------------------------------------------- */

void osd_kept_count(struct osd_kept *kept, enum osd_kept_use use, uint64_t usec)
{
	struct osd_kept_figures *figures = &kept->figures;

	osd_lock(&kept->lock);
	figures->hits += use == OSD_KEPT_HIT;
	figures->misses += use == OSD_KEPT_MISS;
	figures->shared += use == OSD_KEPT_SHARED;
	figures->computed_usec += use == OSD_KEPT_MISS ? usec : 0;
	osd_unlock(&kept->lock);
}

void osd_kept_figures(struct osd_kept *kept, struct osd_kept_figures *ret_figures)
{
	*ret_figures = (struct osd_kept_figures){0};
	if (!kept)
		return;
	osd_lock(&kept->lock);
	*ret_figures = kept->figures;
	osd_unlock(&kept->lock);
}

/* ---- open and close ---------------------------------------------------------------------------- */

uint32_t osd_kept_unit(uint32_t block)
{
	return block ? (OSD_KEPT_SLOT + block - 1) / block * block : 0;
}

static int open_file(const char *directory)
{
	OSD_CLEANUP_CLOSE int dir = -1;
	int fd;

	if (!directory)
		return memfd_create(FILE_NAME, MFD_CLOEXEC);
	dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	fd = openat(dir, FILE_NAME, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlinkat(dir, FILE_NAME, 0);
	return fd;
}

OSD_DEFINE_CLEANUP(struct osd_kept *, osd_kept_close)

enum osd_status osd_kept_open(const char *directory, uint64_t quota, struct osd_kept **ret_kept)
{
	OSD_CLEANUP(osd_kept_closep) struct osd_kept *kept = calloc(1, sizeof(*kept));
	uint64_t slots = OSD_MIN(quota, OSD_KEPT_MAX) / OSD_KEPT_SLOT;

	if (!kept)
		return OSD_E_NO_MEMORY;
	osd_lock_init(&kept->lock, OSD_RANK_KEPT);
	kept->fd = open_file(directory);
	if (kept->fd < 0)
		return osd_status_from_errno(errno);
	kept->slot_count = (uint32_t)OSD_MAX(slots, UINT64_C(1));
	kept->figures.quota_bytes = (uint64_t)kept->slot_count * OSD_KEPT_SLOT;
	for (kept->bucket_count = 64; kept->bucket_count < kept->slot_count;)
		kept->bucket_count *= 2;
	kept->buckets = calloc(kept->bucket_count, sizeof(struct unit *));
	kept->free_slots = malloc(kept->slot_count * sizeof(*kept->free_slots));
	if (!kept->buckets || !kept->free_slots)
		return OSD_E_NO_MEMORY;
	while (kept->free_count < kept->slot_count) {
		kept->free_slots[kept->free_count] = kept->slot_count - 1 - kept->free_count;
		kept->free_count++;
	}
	*ret_kept = OSD_STEAL(kept);
	return OSD_OK;
}

void osd_kept_close(struct osd_kept *kept)
{
	if (!kept)
		return;
	while (kept->buckets && kept->oldest) {
		struct unit *unit = kept->oldest;

		kept->oldest = unit->newer;
		free(unit);
	}
	osd_closep(&kept->fd);
	osd_lock_destroy(&kept->lock);
	free(kept->free_slots);
	free(kept->buckets);
	free(kept);
}
