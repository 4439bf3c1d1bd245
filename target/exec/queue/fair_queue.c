/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fair_queue.c -- see queue.h.  A principal's entries are a binary heap in an array; the few
 * active principals are searched one by one. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "exec/queue/queue.h"

#define BUCKETS 256
/* A weight is 1000 at most, so what a division by it cuts off does not matter. */
#define STEP	UINT64_C(1000000) /* virtual time of one job at weight 1 */

struct osd_fair_principal {
	struct osd_fair_principal *next_in_bucket;
	struct osd_fair_principal *next_active, **link_active; /* link NULL: not active */
	struct osd_fair_entry **heap;
	size_t count, capacity;
	size_t queued_places;	     /* of entries in the heap */
	size_t place_count, holders; /* holders: entries that have a place, or had and keep it */
	size_t running;
	struct osd_fair_share share;
	bool kept; /* a share was set: survives without jobs */
	uint64_t virtual_time;
	char name[];
};

enum osd_status osd_fair_queue_init(struct osd_fair_queue *queue, size_t place_max,
				    size_t principal_place_max)
{
	*queue = (struct osd_fair_queue){.place_max = place_max,
					 .principal_place_max = principal_place_max};
	queue->buckets = calloc(BUCKETS, sizeof(struct osd_fair_principal *));
	return queue->buckets ? OSD_OK : OSD_E_NO_MEMORY;
}

static void principal_free(struct osd_fair_principal *principal)
{
	free(principal->heap);
	free(principal);
}

void osd_fair_queue_release(struct osd_fair_queue *queue)
{
	for (size_t i = 0; queue->buckets && i < BUCKETS; i++) {
		while (queue->buckets[i]) {
			struct osd_fair_principal *principal = queue->buckets[i];

			queue->buckets[i] = principal->next_in_bucket;
			principal_free(principal);
		}
	}
	free(queue->buckets);
	*queue = (struct osd_fair_queue){0};
}

static struct osd_fair_principal **find_link(const struct osd_fair_queue *queue, const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	struct osd_fair_principal **link;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	link = &queue->buckets[hash % BUCKETS];
	while (*link && strcmp((*link)->name, name) != 0)
		link = &(*link)->next_in_bucket;
	return link;
}

static struct osd_fair_principal *get_principal(struct osd_fair_queue *queue, const char *name)
{
	struct osd_fair_principal **link = find_link(queue, name);
	size_t size = strlen(name) + 1;

	if (*link)
		return *link;
	*link = calloc(1, sizeof(**link) + size);
	if (!*link)
		return NULL;
	memcpy((*link)->name, name, size);
	(*link)->share.weight = 1;
	(*link)->virtual_time = queue->virtual_time;
	return *link;
}

static void forget_if_idle(struct osd_fair_queue *queue, struct osd_fair_principal *principal)
{
	if (principal->holders > 0 || principal->running > 0 || principal->kept)
		return;
	*find_link(queue, principal->name) = principal->next_in_bucket;
	principal_free(principal);
}

/* Caps may be passed already, by jobs found at restart. */
static bool fits(size_t taken, size_t count, size_t most)
{
	return taken <= most && count <= most - taken;
}

static size_t place_max(const struct osd_fair_queue *queue,
			const struct osd_fair_principal *principal)
{
	return principal && principal->share.place_max ? principal->share.place_max
						       : queue->principal_place_max;
}

enum osd_status osd_fair_queue_reserve(struct osd_fair_queue *queue, const char *name, size_t count,
				       bool force, struct osd_fair_entry *entry)
{
	struct osd_fair_principal *principal;

	if (!force && !fits(queue->place_count, count, queue->place_max))
		return OSD_E_QUEUE_FULL;
	principal = get_principal(queue, name);
	if (!principal)
		return OSD_E_NO_MEMORY;
	if (!force && !fits(principal->place_count, count, place_max(queue, principal))) {
		forget_if_idle(queue, principal);
		return OSD_E_QUEUE_FULL;
	}
	principal->holders++;
	principal->place_count += count;
	queue->place_count += count;
	entry->principal = principal;
	entry->places = count;
	entry->queued = false;
	return OSD_OK;
}

void osd_fair_queue_unreserve(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	struct osd_fair_principal *principal = entry->principal;

	if (!principal)
		return;
	entry->principal = NULL;
	principal->holders--;
	principal->place_count -= entry->places;
	queue->place_count -= entry->places;
	entry->places = 0;
	forget_if_idle(queue, principal);
}

void osd_fair_queue_add_place(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	entry->places++;
	entry->principal->queued_places += entry->queued;
	entry->principal->place_count++;
	queue->place_count++;
}

void osd_fair_queue_drop_place(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	entry->places--;
	entry->principal->queued_places -= entry->queued;
	entry->principal->place_count--;
	queue->place_count--;
}

/* ---- the heap of one principal --------------------------------------------------------------- */

/* Priority with what its age adds to it, but for what the clock adds to all alike. */
static int64_t rank(const struct osd_fair_entry *entry)
{
	return entry->priority * (int64_t)OSD_FAIR_AGE_USEC - (int64_t)entry->accepted_usec;
}

static bool before(const struct osd_fair_entry *a, const struct osd_fair_entry *b)
{
	if (rank(a) != rank(b))
		return rank(a) > rank(b);
	return a->sequence < b->sequence;
}

static void place(struct osd_fair_principal *principal, size_t at, struct osd_fair_entry *entry)
{
	principal->heap[at] = entry;
	entry->position = at;
}

static void sift_up(struct osd_fair_principal *principal, size_t at, struct osd_fair_entry *entry)
{
	while (at > 0 && before(entry, principal->heap[(at - 1) / 2])) {
		place(principal, at, principal->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	place(principal, at, entry);
}

static void sift_down(struct osd_fair_principal *principal, size_t at, struct osd_fair_entry *entry)
{
	for (size_t child; (child = 2 * at + 1) < principal->count; at = child) {
		if (child + 1 < principal->count &&
		    before(principal->heap[child + 1], principal->heap[child]))
			child++;
		if (!before(principal->heap[child], entry))
			break;
		place(principal, at, principal->heap[child]);
	}
	place(principal, at, entry);
}

static void activate(struct osd_fair_queue *queue, struct osd_fair_principal *principal)
{
	principal->virtual_time = OSD_MAX(principal->virtual_time, queue->virtual_time);
	principal->next_active = queue->active;
	principal->link_active = &queue->active;
	if (queue->active)
		queue->active->link_active = &principal->next_active;
	queue->active = principal;
}

static void deactivate(struct osd_fair_principal *principal)
{
	*principal->link_active = principal->next_active;
	if (principal->next_active)
		principal->next_active->link_active = principal->link_active;
	principal->link_active = NULL;
}

static enum osd_status grow_heap(struct osd_fair_principal *principal, size_t capacity)
{
	struct osd_fair_entry **heap =
		realloc(principal->heap, capacity * sizeof(struct osd_fair_entry *));

	if (!heap)
		return OSD_E_NO_MEMORY;
	principal->heap = heap;
	principal->capacity = capacity;
	return OSD_OK;
}

enum osd_status osd_fair_queue_make_room(struct osd_fair_entry *entry, size_t count)
{
	struct osd_fair_principal *principal = entry->principal;

	return count > principal->capacity ? grow_heap(principal, count) : OSD_OK;
}

/* ---- who has waited longest ------------------------------------------------------------------ */

/* A new entry is nearly always the newest.  An array's entry that comes back is among the oldest, so its
 * place is searched for from that end. */
static void link_by_age(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	struct osd_fair_entry *newer = NULL;

	if (queue->newest && queue->newest->since > entry->since)
		for (newer = queue->oldest; newer->since <= entry->since;)
			newer = newer->newer;
	entry->newer = newer;
	entry->older = newer ? newer->older : queue->newest;
	*(entry->older ? &entry->older->newer : &queue->oldest) = entry;
	*(newer ? &newer->older : &queue->newest) = entry;
}

static void unlink_by_age(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	*(entry->older ? &entry->older->newer : &queue->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &queue->newest) = entry->older;
}

uint64_t osd_fair_queue_oldest(const struct osd_fair_queue *queue)
{
	return queue->oldest ? queue->oldest->since : UINT64_MAX;
}

enum osd_status osd_fair_queue_push(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	struct osd_fair_principal *principal = entry->principal;

	/* The step that can fail comes first, so that a failure leaves the queue as it was. */
	if (principal->count == principal->capacity &&
	    grow_heap(principal, principal->capacity ? principal->capacity * 2 : 16) != OSD_OK)
		return OSD_E_NO_MEMORY;
	if (!principal->link_active)
		activate(queue, principal);
	sift_up(principal, principal->count++, entry);
	entry->queued = true;
	principal->queued_places += entry->places;
	queue->entry_count++;
	link_by_age(queue, entry);
	return OSD_OK;
}

void osd_fair_queue_drop(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	struct osd_fair_principal *principal = entry->principal;
	struct osd_fair_entry *last;
	size_t at = entry->position;

	if (!entry->queued)
		return;
	entry->queued = false;
	principal->queued_places -= entry->places;
	queue->entry_count--;
	unlink_by_age(queue, entry);
	last = principal->heap[--principal->count];
	/* It comes from another branch of the heap, so its new place may be further up. */
	if (last != entry) {
		if (at > 0 && before(last, principal->heap[(at - 1) / 2]))
			sift_up(principal, at, last);
		else
			sift_down(principal, at, last);
	}
	if (principal->count == 0)
		deactivate(principal);
}

static bool may_start(const struct osd_fair_principal *principal)
{
	return !principal->share.at_once || principal->running < principal->share.at_once;
}

static bool goes_before(const struct osd_fair_principal *a, const struct osd_fair_principal *b)
{
	if (a->virtual_time != b->virtual_time)
		return a->virtual_time < b->virtual_time;
	return before(a->heap[0], b->heap[0]);
}

struct osd_fair_entry *osd_fair_queue_peek(const struct osd_fair_queue *queue, bool lendable)
{
	struct osd_fair_principal *next = NULL;

	for (struct osd_fair_principal *p = queue->active; p; p = p->next_active)
		if (may_start(p) && (!lendable || p->heap[0]->lendable) &&
		    (!next || goes_before(p, next)))
			next = p;
	return next ? next->heap[0] : NULL;
}

void osd_fair_queue_take(struct osd_fair_queue *queue, struct osd_fair_entry *entry)
{
	struct osd_fair_principal *principal = entry->principal;

	queue->virtual_time = OSD_MAX(queue->virtual_time, principal->virtual_time);
	principal->virtual_time += STEP / principal->share.weight;
	osd_fair_queue_drop(queue, entry);
}

struct osd_fair_entry *osd_fair_queue_pop(struct osd_fair_queue *queue)
{
	struct osd_fair_entry *entry = osd_fair_queue_peek(queue, false);

	if (entry)
		osd_fair_queue_take(queue, entry);
	return entry;
}

/* ---- those that run, and shares -------------------------------------------------------------- */

bool osd_fair_queue_may_start(const struct osd_fair_entry *entry)
{
	return may_start(entry->principal);
}

struct osd_fair_principal *osd_fair_queue_started(const struct osd_fair_entry *entry)
{
	entry->principal->running++;
	return entry->principal;
}

void osd_fair_queue_ended(struct osd_fair_queue *queue, struct osd_fair_principal *principal)
{
	if (!principal)
		return;
	principal->running--;
	forget_if_idle(queue, principal);
}

enum osd_status osd_fair_queue_set_share(struct osd_fair_queue *queue, const char *name,
					 struct osd_fair_share share)
{
	struct osd_fair_principal *principal = get_principal(queue, name);

	if (!principal)
		return OSD_E_NO_MEMORY;
	principal->share = share;
	principal->kept = share.weight != 1 || share.place_max || share.at_once;
	forget_if_idle(queue, principal);
	return OSD_OK;
}

size_t osd_fair_queue_runnable(const struct osd_fair_queue *queue)
{
	size_t count = 0;

	for (const struct osd_fair_principal *p = queue->active; p; p = p->next_active)
		if (!p->share.at_once)
			count += p->count;
		else if (p->running < p->share.at_once)
			count += OSD_MIN(p->count, p->share.at_once - p->running);
	return count;
}

size_t osd_fair_queue_place_max(const struct osd_fair_queue *queue, const char *name)
{
	return place_max(queue, *find_link(queue, name));
}

void osd_fair_queue_count(const struct osd_fair_queue *queue, const char *name, size_t *ret_places,
			  size_t *ret_running)
{
	const struct osd_fair_principal *principal = *find_link(queue, name);

	*ret_places = principal ? principal->place_count : 0;
	*ret_running = principal ? principal->running : 0;
}

size_t osd_fair_queue_ahead(const struct osd_fair_queue *queue, const struct osd_fair_entry *entry)
{
	size_t own = 0, ahead = 0;

	if (!entry->queued)
		return 0;
	for (size_t i = 0; i < entry->principal->count; i++)
		if (before(entry->principal->heap[i], entry))
			own += entry->principal->heap[i]->places;
	/* While this principal has own + 1 turns, each other of the same weight has as many. */
	for (const struct osd_fair_principal *p = queue->active; p; p = p->next_active)
		ahead += OSD_MIN(p == entry->principal ? own : own + 1, p->queued_places);
	return ahead;
}
