/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_cache.c -- see name_cache.h.  A slot is written by one thread at a time, which makes its sequence odd
 * meanwhile.  A thread that finds it odd does without the slot. */
#include "object/name_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "object/internal.h"

#define MARKS  4096u /* powers of two */
#define GROUPS 4096u
#define WAYS   2u
/* A mark counts the transactions that change its ids now, and above that those that have ended. */
#define ENDED	     (UINT64_C(1) << 32)
#define UNDER_WAY(m) ((m) & (ENDED - 1))

enum { DIRECTORY, PARTITION, KIND, OBJECT, DIRECTORY_MARK, OBJECT_MARK, NAMES, NAME, WORDS = 15 };

struct slot {
	_Atomic uint64_t sequence;
	_Atomic uint64_t words[WORDS];
};

struct osd_name_cache {
	_Atomic uint64_t marks[MARKS];
	struct slot slots[GROUPS][WAYS];
};

_Static_assert(NAME + OSD_CACHED_NAME_MAX / 8 == WORDS, "a name fills the rest of a slot");

struct osd_name_cache *osd_name_cache_create(void)
{
	return calloc(1, sizeof(struct osd_name_cache));
}

void osd_name_cache_free(struct osd_name_cache *cache)
{
	free(cache);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static size_t mark_index(uint64_t partition_id, uint64_t id)
{
	return mix(mix(0, partition_id), id) >> 20 & (MARKS - 1);
}

static void end_change(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	(void)committed;
	atomic_fetch_add(&txn->objects->names->marks[effect->value], ENDED - 1);
}

enum osd_status osd_name_cache_change(struct osd_txn *txn, const struct osd_place *place)
{
	size_t index = mark_index(place->partition_id, place->object_id);
	enum osd_status status =
		osd_txn_add_effect(txn, (struct osd_effect){.run = end_change, .value = index});

	if (status == OSD_OK)
		atomic_fetch_add(&txn->objects->names->marks[index], 1);
	return status;
}

struct osd_name_mark osd_name_mark(const struct osd_name_cache *cache, uint64_t partition_id,
				   uint64_t id)
{
	const _Atomic uint64_t *at = &cache->marks[mark_index(partition_id, id)];

	return (struct osd_name_mark){at, atomic_load(at)};
}

bool osd_name_mark_holds(const struct osd_name_mark *mark)
{
	return !UNDER_WAY(mark->seen) && atomic_load(mark->at) == mark->seen;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The words that say which entry it is.  The name is filled up with zeros. */
static void make_words(const struct osd_place *directory, struct osd_name name,
		       uint64_t words[WORDS])
{
	memset(words, 0, WORDS * sizeof(words[0]));
	words[DIRECTORY] = directory->object_id;
	words[PARTITION] = directory->partition_id;
	words[KIND] = (uint64_t)directory->incarnation << 32 | name.length << 8;
	memcpy(&words[NAME], name.bytes, name.length);
}

static uint64_t hash_of(const uint64_t words[WORDS])
{
	uint64_t hash = mix(mix(mix(0, words[DIRECTORY]), words[PARTITION]), words[KIND]);
	size_t length = (words[KIND] & UINT32_MAX) >> 8;

	for (size_t i = 0; i < (length + 7) / 8; i++)
		hash = mix(hash, words[NAME + i]);
	return hash;
}

/* false: it is being written. */
static bool read_slot(const struct slot *slot, uint64_t words[WORDS])
{
	uint64_t sequence = atomic_load_explicit(&slot->sequence, memory_order_acquire);

	if (sequence & 1)
		return false;
	for (size_t i = 0; i < WORDS; i++)
		words[i] = atomic_load_explicit(&slot->words[i], memory_order_acquire);
	return atomic_load_explicit(&slot->sequence, memory_order_relaxed) == sequence;
}

static bool same_entry(const uint64_t a[WORDS], const uint64_t b[WORDS])
{
	return a[DIRECTORY] == b[DIRECTORY] && a[PARTITION] == b[PARTITION] &&
	       (a[KIND] & ~UINT64_C(0xff)) == (b[KIND] & ~UINT64_C(0xff)) &&
	       memcmp(&a[NAME], &b[NAME], OSD_CACHED_NAME_MAX) == 0;
}

static bool is_user_object(const uint64_t words[WORDS])
{
	return (uint8_t)words[KIND] == OSD_USER_OBJECT;
}

/* Only the number of a user object's names depends on its own mark. */
static struct osd_cached_name entry_of(const struct osd_name_cache *cache,
				       const uint64_t words[WORDS])
{
	uint64_t partition_id = words[PARTITION], directory = words[DIRECTORY];
	uint64_t counted = is_user_object(words) ? words[OBJECT] : directory;
	struct osd_cached_name entry = {
		.id = partition_id ? (struct osd_object_id){partition_id, words[OBJECT]}
				   : (struct osd_object_id){words[OBJECT], 0},
		.type = (enum osd_object_type)(uint8_t)words[KIND],
		.names = (uint32_t)words[NAMES],
		.marks = {osd_name_mark(cache, partition_id, directory),
			  osd_name_mark(cache, partition_id, counted)},
	};

	entry.marks[0].seen = words[DIRECTORY_MARK];
	entry.marks[1].seen = words[OBJECT_MARK];
	return entry;
}

bool osd_name_cache_find(const struct osd_name_cache *cache, const struct osd_place *directory,
			 struct osd_name name, struct osd_cached_name *ret_entry)
{
	uint64_t wanted[WORDS], words[WORDS];
	const struct slot *group;

	if (name.length > OSD_CACHED_NAME_MAX)
		return false;
	make_words(directory, name, wanted);
	group = cache->slots[hash_of(wanted) >> 30 & (GROUPS - 1)];
	for (size_t i = 0; i < WAYS; i++) {
		if (!read_slot(&group[i], words) || !same_entry(words, wanted))
			continue;
		*ret_entry = entry_of(cache, words);
		return true;
	}
	return false;
}

/* The slot to write: the one of the same entry, an unused or outdated one, or either. */
static struct slot *choose(struct osd_name_cache *cache, struct slot *group,
			   const uint64_t wanted[WORDS], uint64_t hash)
{
	struct slot *chosen = &group[hash & (WAYS - 1)];
	uint64_t words[WORDS];

	for (size_t i = 0; i < WAYS; i++) {
		struct osd_name_mark mark;

		if (!read_slot(&group[i], words))
			continue;
		if (same_entry(words, wanted))
			return &group[i];
		mark = osd_name_mark(cache, words[PARTITION], words[DIRECTORY]);
		if (!words[KIND] || mark.seen != words[DIRECTORY_MARK])
			chosen = &group[i];
	}
	return chosen;
}

void osd_name_cache_put(struct osd_name_cache *cache, const struct osd_place *directory,
			struct osd_name name, const struct osd_cached_name *entry)
{
	uint64_t words[WORDS], hash, sequence;
	struct slot *slot;

	if (name.length > OSD_CACHED_NAME_MAX || !osd_name_mark_holds(&entry->marks[0]) ||
	    !osd_name_mark_holds(&entry->marks[1]))
		return;
	make_words(directory, name, words);
	hash = hash_of(words);
	words[KIND] |= (uint64_t)entry->type;
	words[OBJECT] = directory->partition_id ? entry->id.object_id : entry->id.partition_id;
	words[NAMES] = entry->names;
	words[DIRECTORY_MARK] = entry->marks[0].seen;
	words[OBJECT_MARK] = entry->marks[1].seen;
	slot = choose(cache, cache->slots[hash >> 30 & (GROUPS - 1)], words, hash);
	sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
	if (sequence & 1 ||
	    !atomic_compare_exchange_strong(&slot->sequence, &sequence, sequence + 1))
		return;
	for (size_t i = 0; i < WORDS; i++)
		atomic_store_explicit(&slot->words[i], words[i], memory_order_release);
	atomic_store_explicit(&slot->sequence, sequence + 2, memory_order_release);
}
