/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tally.c -- how many ids there are from some id on, without counting them each time.
 *
 * A partition remembers a few such numbers and corrects them with every commit: just before it,
 * while the transaction still has its locks.  So who sees a change also sees it counted; and who
 * sees it counted early waits for those locks when it looks for the change itself.
 *
 * The numbers of all user objects and of all collections are always known, from the pass over the
 * records when the store is opened.  The number of a collection's members is known once it was counted.
 * Other numbers are kept for the end of a page of a listing, so that the next page knows how many ids
 * are left.  These may be off by the changes made while the page is read.  The others are exact: a count
 * is kept only if no transaction that changes members ran meanwhile. */
#include <stdlib.h>

#include "base/lock.h"
#include "base/util.h"
#include "object/internal.h"

/* ---- the numbers; under tally_lock ------------------------------------------------------- */

static struct osd_tally *find(struct osd_partition *partition, uint64_t of, uint64_t from)
{
	osd_assert_held(&partition->tally_lock);
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

	osd_assert_held(&partition->tally_lock);
	/* There is always one: only two of OSD_TALLIES stay. */
	if (!tally)
		tally = oldest(partition);
	*tally = (struct osd_tally){.of = of,
				    .from = from,
				    .count = count,
				    .used = ++partition->tally_clock,
				    .known = true};
}

/* ---- reading ----------------------------------------------------------------------------- */

bool osd_tally_get(struct osd_partition *partition, uint64_t of, uint64_t from, uint64_t *ret_count)
{
	struct osd_tally *tally;

	osd_lock(&partition->tally_lock);
	tally = find(partition, of, from);
	if (tally) {
		tally->used = ++partition->tally_clock;
		*ret_count = tally->count <= INT64_MAX ? tally->count : 0;
	}
	osd_unlock(&partition->tally_lock);
	return tally;
}

void osd_tally_put(struct osd_partition *partition, uint64_t of, uint64_t from, uint64_t count)
{
	osd_lock(&partition->tally_lock);
	set(partition, of, from, count);
	osd_unlock(&partition->tally_lock);
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
	osd_lock(&partition->tally_lock);
	if (atomic_load(&partition->members_changing) == 0 &&
	    atomic_load(&partition->member_changes) == begun)
		set(partition, of, 0, count);
	osd_unlock(&partition->tally_lock);
}

/* ---- changes ----------------------------------------------------------------------------- */

void osd_tally_change(struct osd_partition *partition, uint64_t of, uint64_t first, uint64_t count,
		      bool added)
{
	osd_lock(&partition->tally_lock);
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
			tally->count -= counted; /* a removal may be counted before the addition */
	}
	osd_unlock(&partition->tally_lock);
}

/* Ids that a transaction adds to a list or removes. */
struct osd_tally_note {
	struct osd_partition *partition; /* owned reference */
	uint64_t of, first, count;
	bool added;
};

static bool is_membership(uint64_t of)
{
	return of != OSD_TALLY_USER_OBJECTS && of != OSD_TALLY_COLLECTIONS;
}

enum osd_status osd_tally_reserve(struct osd_txn *txn)
{
	return OSD_MAKE_ROOM(txn->notes.list, txn->notes.count, txn->notes.capacity)
		       ? OSD_OK
		       : OSD_E_NO_MEMORY;
}

enum osd_status osd_tally_note(struct osd_txn *txn, struct osd_partition *partition, uint64_t of,
			       uint64_t first, uint64_t count, bool added)
{
	enum osd_status status = osd_tally_reserve(txn);

	if (status != OSD_OK)
		return status;
	txn->notes.list[txn->notes.count++] =
		(struct osd_tally_note){osd_partition_ref(partition), of, first, count, added};
	if (is_membership(of))
		atomic_fetch_add(&partition->members_changing, 1);
	return OSD_OK;
}

uint64_t osd_tally_noted(const struct osd_txn *txn, uint64_t of)
{
	uint64_t more = 0;

	for (size_t i = 0; i < txn->notes.count; i++) {
		const struct osd_tally_note *note = &txn->notes.list[i];

		if (note->partition == txn->partition && note->of == of)
			more += note->added ? note->count : -note->count;
	}
	return more;
}

void osd_tally_tell(struct osd_txn *txn)
{
	for (size_t i = 0; i < txn->notes.count; i++) {
		const struct osd_tally_note *note = &txn->notes.list[i];

		osd_tally_change(note->partition, note->of, note->first, note->count, note->added);
		if (is_membership(note->of))
			atomic_fetch_add(&note->partition->member_changes, 1);
	}
	txn->notes.told = true;
}

void osd_tally_settle(struct osd_txn *txn, bool committed)
{
	for (size_t i = 0; i < txn->notes.count; i++) {
		struct osd_tally_note *note = &txn->notes.list[i];

		if (txn->notes.told && !committed)
			osd_tally_change(note->partition, note->of, note->first, note->count,
					 !note->added);
		/* Last: a count that is kept earlier would get the correction above, too. */
		if (is_membership(note->of))
			atomic_fetch_sub(&note->partition->members_changing, 1);
		osd_partition_put(note->partition);
	}
	free(txn->notes.list);
	txn->notes.list = NULL;
	txn->notes.count = txn->notes.capacity = 0;
}
