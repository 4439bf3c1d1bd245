/* SPDX-License-Identifier: GPL-2.0-or-later */
/* objects.c -- properties of an open store: its names, settings and figures, the providers of computed
 * pages, and the callbacks for changes.  Any file of this folder may call it.  Not here: opening and
 * closing (open.c). */
#include "object/internal.h"

#include <assert.h>
#include <string.h>

#include "base/util.h"
#include "object/page_provider.h"

/* The place of a page in provider_of: pages of one type of object follow one another. */
static size_t place_of(uint32_t page)
{
	return (page + (page >> 28) * 8) % OSD_PAGE_PLACES;
}

void osd_objects_add_page(struct osd_objects *objects, const struct osd_page_provider *provider)
{
	const struct osd_page_provider **place = &objects->provider_of[place_of(provider->page)];

	if (objects->provider_count == OSD_PAGE_PROVIDERS)
		return;
	objects->providers[objects->provider_count++] = provider;
	if (!*place)
		*place = provider;
}

const struct osd_page_provider *osd_objects_page(const struct osd_objects *objects, uint32_t page)
{
	const struct osd_page_provider *first = objects->provider_of[place_of(page)];

	/* Each access to an attribute asks, also for pages that nobody computes: an empty place
	 * answers at once.  Only a page that shares its place with another one costs a walk. */
	if (!first || first->page == page)
		return first;
	for (size_t i = 0; i < objects->provider_count; i++)
		if (objects->providers[i]->page == page)
			return objects->providers[i];
	return NULL;
}

bool osd_page_controls(const struct osd_objects *objects, uint32_t page)
{
	const struct osd_page_provider *provider = osd_objects_page(objects, page);

	return provider && provider->controls;
}

const struct osd_page_provider *osd_objects_peeks(const struct osd_objects *objects,
						  struct osd_attr_list list)
{
	/* An entry of the list takes 8 bytes, and one that answers it 24 at most. */
	bool small = list.end - list.at <= OSD_ATTR_GROUP_MAX / 3;
	const struct osd_page_provider *provider = NULL;
	struct osd_attr attr;

	if (small && osd_attr_list_next(&list, &attr))
		provider = osd_objects_page(objects, attr.page);
	if (!provider || !provider->peek)
		return NULL;
	do {
		if (attr.page != provider->page || !provider->has_peek(attr.number))
			return NULL;
	} while (osd_attr_list_next(&list, &attr));
	return provider;
}

/* Commands ask for it, so it is read from a copy.  The root record itself needs partitions_lock. */
uint8_t osd_objects_isolation(struct osd_objects *objects)
{
	uint8_t isolation = atomic_load(&objects->isolation);

	return isolation ? isolation : OSD_ISOLATION_RANGE;
}

enum osd_status osd_objects_seal(struct osd_objects *objects, bool create,
				 uint8_t seal[OSD_SEAL_BYTES])
{
	_Static_assert(OSD_SEAL_BYTES == OSD_MEDIA_SEAL, "the store's seal");

	if (objects->media)
		return osd_media_seal(objects->media, create, seal);
	memcpy(seal, objects->seal, OSD_SEAL_BYTES);
	return OSD_OK;
}

uint64_t osd_objects_policy_changes(const struct osd_objects *objects)
{
	return atomic_load(&objects->policy_changes) + 1;
}

void osd_objects_watch_policies(struct osd_objects *objects, void (*fn)(void *arg), void *arg)
{
	objects->policy_watcher.arg = arg;
	objects->policy_watcher.fn = fn;
}

void osd_note_policy_change(struct osd_objects *objects)
{
	/* Counted first: a thread that the watcher wakes up compares this number. */
	atomic_fetch_add(&objects->policy_changes, 1);
	if (objects->policy_watcher.fn)
		objects->policy_watcher.fn(objects->policy_watcher.arg);
}

void osd_objects_watch_partitions(struct osd_objects *objects,
				  void (*fn)(void *arg, uint64_t partition_id), void *arg)
{
	assert(objects->watcher_count < OSD_ARRAY_SIZE(objects->watchers));
	objects->watchers[objects->watcher_count].fn = fn;
	objects->watchers[objects->watcher_count++].arg = arg;
}

void osd_objects_watch_removals(struct osd_objects *objects, osd_removal_fn *fn, void *arg)
{
	size_t at = 0;

	while (at < OSD_REMOVAL_WATCHERS - 1 && objects->removal_watchers[at].fn &&
	       objects->removal_watchers[at].arg != arg)
		at++;
	assert(!objects->removal_watchers[at].fn || objects->removal_watchers[at].arg == arg);
	objects->removal_watchers[at].arg = arg;
	objects->removal_watchers[at].fn = fn;
}

void osd_objects_unwatch_removals(struct osd_objects *objects, const void *arg)
{
	for (size_t i = 0; i < OSD_REMOVAL_WATCHERS; i++)
		if (objects->removal_watchers[i].arg == arg)
			objects->removal_watchers[i].fn = NULL;
}

enum osd_status osd_note_removal(struct osd_txn *txn, struct osd_object_id id)
{
	const struct osd_objects *objects = txn->objects;
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < OSD_REMOVAL_WATCHERS && status == OSD_OK; i++)
		if (objects->removal_watchers[i].fn)
			status = objects->removal_watchers[i].fn(objects->removal_watchers[i].arg,
								 txn, id);
	return status;
}

/* ---- figures ----------------------------------------------------------------------------- */

/* The upper half of each generation is the number of the opening (count_boot in recovery.c). */
uint64_t osd_objects_openings(const struct osd_objects *objects)
{
	return atomic_load(&objects->next_generation) >> 32;
}

uint16_t osd_objects_boot_epoch(const struct osd_objects *objects)
{
	return (uint16_t)(osd_objects_openings(objects) % UINT16_MAX + 1);
}

const uint8_t *osd_objects_system_id(const struct osd_objects *objects)
{
	return objects->system_id;
}

const char *osd_objects_serial(const struct osd_objects *objects)
{
	return objects->serial;
}

void osd_objects_stats(struct osd_objects *objects, struct osd_objects_stats *ret_stats)
{
	struct osd_kv_stats kv;

	osd_kv_stats(objects->kv, &kv);
	*ret_stats = (struct osd_objects_stats){
		.capacity_bytes = atomic_load(&objects->capacity_bytes),
		.used_bytes = atomic_load(&objects->used_bytes),
		.partition_count = atomic_load(&objects->partition_count),
		.object_count = atomic_load(&objects->object_count),
		.commits = kv.commits,
		.aborts = kv.aborts,
		.checkpoints = kv.checkpoints,
		.recovery_seconds = objects->recovery_seconds,
	};
}

void osd_objects_figures(struct osd_objects *objects, struct osd_objects_figures *ret_figures)
{
	static const char *const reasons[OSD_KV_ABORTS] = {
		[OSD_KV_ABORTED_DEADLOCK] = "deadlock",
		[OSD_KV_ABORTED_NO_SPACE] = "no_space",
		[OSD_KV_ABORTED_FAILURE] = "failure",
		[OSD_KV_ABORTED_CALLER] = "caller",
	};
	struct osd_data *const stores[] = {objects->tier.head, objects->tier.tail};
	uint64_t bytes[2];

	osd_heads_bytes(objects, bytes);
	*ret_figures = (struct osd_objects_figures){.transactions = &objects->kv->figures.seconds};
	for (size_t i = 0; i < OSD_KV_ABORTS; i++) {
		ret_figures->aborted[i].why = reasons[i];
		ret_figures->aborted[i].count = atomic_load(&objects->kv->figures.aborted[i]);
	}
	for (size_t i = 0; i < OSD_ARRAY_SIZE(stores) && stores[i]; i++) {
		ret_figures->tiers[i].tier = i == 0 && stores[1] ? "ssd" : "main";
		ret_figures->tiers[i].reads = atomic_load(&stores[i]->figures.reads);
		ret_figures->tiers[i].writes = atomic_load(&stores[i]->figures.writes);
		ret_figures->tiers[i].errors = atomic_load(&stores[i]->figures.errors);
		ret_figures->tiers[i].bytes = bytes[i];
	}
}
