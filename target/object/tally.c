/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tally.c -- how many ids there are from some id on, without counting them each time.
 *
 * A partition remembers a few such numbers and corrects them with every commit.  Those of all user
 * objects and all collections are always there, from the pass over the records at open; those of a
 * collection's members once they have been counted; others where the page of a listing ended, so
 * that the next page knows what is left.  The last kind may be off by what changes while the page
 * is read; the others are exact: a count is kept only when no transaction that changes members was
 * under way meanwhile. */
#include <stdlib.h>

#include "base/util.h"
#include "object/internal.h"

/* ---- the numbers; under tally_lock ------------------------------------------------------- */

static struct osd_tally *find(struct osd_partition *partition, uint64_t of, uint64_t from)
{
	for (size_t i = 0; i < OSD_TALLIES; i++) {
		struct osd_tally *tally = &partition->tallies[i];

		if (tally->known && tally->of == of && tally->from == from)
			return tally;
	}
	return NULL;
}

static struct osd_tally *oldest(struct osd_partition *partition)
{
	struct osd_tally *found = NULL;

	for (size_t i = 0; i < OSD_TALLIES; i++) {
		struct osd_tally *tally = &partition->tallies[i];

		if (!tally->known)
			return tally;
		if (!tally->stays && (!found || tally->used < found->used))
			found = tally;
	}
	return found;
}

static void set(struct osd_partition *partition, uint64_t of, uint64_t from, uint64_t count)
{
	struct osd_tally *tally = find(partition, of, from);

	if (!tally)
		tally = oldest(partition);
	*tally = (struct osd_tally){.of = of,
				    .from = from,
				    .count = count,
				    .used = ++partition->tally_clock,
				    .known = true};
}

/* ---- reading ----------------------------------------------------------------------------- */

void osd_tally_init(struct osd_partition *partition)
{
	pthread_mutex_init(&partition->tally_lock, NULL);
	partition->tallies[0] =
		(struct osd_tally){.of = OSD_TALLY_USER_OBJECTS, .known = true, .stays = true};
	partition->tallies[1] =
		(struct osd_tally){.of = OSD_TALLY_COLLECTIONS, .known = true, .stays = true};
}

bool osd_tally_get(struct osd_partition *partition, uint64_t of, uint64_t from, uint64_t *ret_count)
{
	struct osd_tally *tally;

	pthread_mutex_lock(&partition->tally_lock);
	tally = find(partition, of, from);
	if (tally) {
		tally->used = ++partition->tally_clock;
		*ret_count = tally->count <= INT64_MAX ? tally->count : 0;
	}
	pthread_mutex_unlock(&partition->tally_lock);
	return tally;
}

void osd_tally_put(struct osd_partition *partition, uint64_t of, uint64_t from, uint64_t count)
{
	pthread_mutex_lock(&partition->tally_lock);
	set(partition, of, from, count);
	pthread_mutex_unlock(&partition->tally_lock);
}

uint64_t osd_tally_begin(struct osd_partition *partition)
{
	uint64_t changes = atomic_load(&partition->member_changes);

	return atomic_load(&partition->members_changing) ? UINT64_MAX : changes;
}

void osd_tally_end(struct osd_partition *partition, uint64_t begun, uint64_t of, uint64_t count)
{
	if (begun == UINT64_MAX)
		return;
	pthread_mutex_lock(&partition->tally_lock);
	if (atomic_load(&partition->members_changing) == 0 &&
	    atomic_load(&partition->member_changes) == begun)
		set(partition, of, 0, count);
	pthread_mutex_unlock(&partition->tally_lock);
}

/* ---- changes ----------------------------------------------------------------------------- */

void osd_tally_change(struct osd_partition *partition, uint64_t of, uint64_t first, uint64_t count,
		      bool added)
{
	pthread_mutex_lock(&partition->tally_lock);
	for (size_t i = 0; i < OSD_TALLIES; i++) {
		struct osd_tally *tally = &partition->tallies[i];
		uint64_t before, counted;

		if (count == 0 || !tally->known || tally->of != of ||
		    first + (count - 1) < tally->from)
			continue;
		before = tally->from > first ? tally->from - first : 0;
		counted = count - before;
		if (added)
			tally->count += counted;
		else
			tally->count -= counted; /* what came may be told after what went */
	}
	pthread_mutex_unlock(&partition->tally_lock);
}

/* A membership that a transaction makes or ends. */
struct osd_member_change {
	struct osd_partition *partition; /* owned reference */
	uint64_t collection, member;
	bool added;
};

enum osd_status osd_tally_note(struct osd_txn *txn, uint64_t collection, uint64_t member,
			       bool added)
{
	struct osd_member_change *change;

	if (txn->members.count == txn->members.capacity) {
		size_t capacity = OSD_MAX(4, txn->members.capacity * 2);
		struct osd_member_change *list =
			realloc(txn->members.list, capacity * sizeof(*list));

		if (!list)
			return OSD_E_NO_MEMORY;
		txn->members.list = list;
		txn->members.capacity = capacity;
	}
	change = &txn->members.list[txn->members.count++];
	*change = (struct osd_member_change){txn->partition, collection, member, added};
	atomic_fetch_add(&txn->partition->references, 1);
	atomic_fetch_add(&txn->partition->members_changing, 1);
	return OSD_OK;
}

uint64_t osd_tally_noted(const struct osd_txn *txn, uint64_t of)
{
	uint64_t more = 0;

	for (size_t i = 0; i < txn->members.count; i++) {
		const struct osd_member_change *change = &txn->members.list[i];

		if (change->partition == txn->partition && change->collection == of)
			more += change->added ? 1 : UINT64_MAX;
	}
	return more;
}

void osd_tally_settle(struct osd_txn *txn, bool committed)
{
	for (size_t i = 0; i < txn->members.count; i++) {
		struct osd_member_change *change = &txn->members.list[i];

		if (committed) {
			osd_tally_change(change->partition, change->collection, change->member, 1,
					 change->added);
			atomic_fetch_add(&change->partition->member_changes, 1);
		}
		atomic_fetch_sub(&change->partition->members_changing, 1);
		osd_partition_put(change->partition);
	}
	free(txn->members.list);
	txn->members.list = NULL;
	txn->members.count = txn->members.capacity = 0;
}
