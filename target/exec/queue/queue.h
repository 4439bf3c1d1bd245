/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queue.h -- which job runs next: weighted fair over principals, inside a
 * principal by priority, then by order of acceptance.  This room
 * knows no other: what is queued is an entry.  Pure: no locks, no I/O, no clock; the caller serialises.
 *
 * A job that waits gains a point of priority every OSD_FAIR_AGE_USEC, so that no priority keeps
 * another waiting for ever.  As all gain at the same pace, who is before whom never changes.
 *
 * Each principal has a virtual time, advanced by 1/weight for every job taken; the principal that
 * is furthest behind goes next.  One that comes back after a pause starts at the present virtual
 * time: being idle earns no credit.
 *
 * Places (osd_fair_queue_reserve) are counted apart from entries, since a job has its place from
 * acceptance to its start, held as well.  A job that waits for another attempt has none, until that
 * attempt is due.  Jobs that run are counted
 * (osd_fair_queue_started), since a principal may have a cap on them. */
#ifndef OSD_EXEC_QUEUE_QUEUE_H
#define OSD_EXEC_QUEUE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define OSD_FAIR_AGE_USEC UINT64_C(10000000)

struct osd_fair_principal;

struct osd_fair_entry {
	int16_t priority;	/* higher first */
	uint64_t accepted_usec; /* it ages from then on; not earlier than a lower sequence's */
	uint64_t sequence;	/* lower first */
	struct osd_fair_principal *principal; /* set by reserve */
	size_t places;			      /* that it has */
	size_t position;		      /* in the principal's heap; the queue's */
	uint64_t since; /* the caller's: when it began to wait; it was pushed then or later */
	struct osd_fair_entry *older, *newer; /* by since; the queue's */
	bool queued;
	bool lendable; /* it may take a slot that is lent, once it is its principal's next one; constant */
};

struct osd_fair_queue {
	struct osd_fair_principal **buckets; /* by name */
	struct osd_fair_principal *active;   /* those with entries, unordered */
	size_t place_count, place_max, principal_place_max;
	size_t entry_count;
	struct osd_fair_entry *oldest, *newest;
	uint64_t virtual_time;
};

enum osd_status osd_fair_queue_init(struct osd_fair_queue *queue, size_t place_max,
				    size_t principal_place_max);
/* Entries are the caller's; none may be queued. */
void osd_fair_queue_release(struct osd_fair_queue *queue);

/* Takes places for so many jobs; OSD_E_QUEUE_FULL when the queue or the principal has not that many left.
 * force ignores the caps (jobs found at restart).  On OSD_OK entry->principal is set. */
enum osd_status osd_fair_queue_reserve(struct osd_fair_queue *queue, const char *principal,
				       size_t count, bool force, struct osd_fair_entry *entry);
/* Gives all of its places back, if it has any; the entry must not be queued. */
void osd_fair_queue_unreserve(struct osd_fair_queue *queue, struct osd_fair_entry *entry);
/* Of an entry that stands for several jobs: one more place, whatever the caps, or one less. */
void osd_fair_queue_add_place(struct osd_fair_queue *queue, struct osd_fair_entry *entry);
void osd_fair_queue_drop_place(struct osd_fair_queue *queue, struct osd_fair_entry *entry);
/* Room for so many entries of the entry's principal: pushing up to then does not fail. */
enum osd_status osd_fair_queue_make_room(struct osd_fair_entry *entry, size_t count);

/* The entry has a place, priority and sequence.  OSD_E_NO_MEMORY leaves it out. */
enum osd_status osd_fair_queue_push(struct osd_fair_queue *queue, struct osd_fair_entry *entry);
/* The entry that pop would yield; NULL when none, or those there are may not start.  lendable: of the entries
 * that may take a lent slot. */
struct osd_fair_entry *osd_fair_queue_peek(const struct osd_fair_queue *queue, bool lendable);
/* Takes out an entry that this has just yielded; its place is kept. */
void osd_fair_queue_take(struct osd_fair_queue *queue, struct osd_fair_entry *entry);
/* The next entry, no longer queued, its place kept; NULL when none. */
struct osd_fair_entry *osd_fair_queue_pop(struct osd_fair_queue *queue);
/* Takes an entry out from anywhere (held, cancelled); nothing when it is not queued. */
void osd_fair_queue_drop(struct osd_fair_queue *queue, struct osd_fair_entry *entry);

/* May the job of an entry start, and it has or has ended.  The entry has a place, which it may give back
 * once it has started.  ended takes the principal that started returns, or NULL. */
bool osd_fair_queue_may_start(const struct osd_fair_entry *entry);
struct osd_fair_principal *osd_fair_queue_started(const struct osd_fair_entry *entry);
void osd_fair_queue_ended(struct osd_fair_queue *queue, struct osd_fair_principal *principal);

/* The share of a principal from now on.  The default is a weight of 1 and zeros. */
struct osd_fair_share {
	unsigned weight;  /* 1..1000 */
	size_t place_max; /* 0: the queue's */
	size_t at_once;	  /* jobs that run; 0: no cap */
};
/* OSD_E_NO_MEMORY. */
enum osd_status osd_fair_queue_set_share(struct osd_fair_queue *queue, const char *principal,
					 struct osd_fair_share share);
/* Places a principal may have, and has; how many of its jobs run. */
size_t osd_fair_queue_place_max(const struct osd_fair_queue *queue, const char *principal);
void osd_fair_queue_count(const struct osd_fair_queue *queue, const char *principal,
			  size_t *ret_places, size_t *ret_running);
/* since of the entry that has waited longest; UINT64_MAX where there is none. */
uint64_t osd_fair_queue_oldest(const struct osd_fair_queue *queue);
/* Entries that may start as far as their principals' caps go. */
size_t osd_fair_queue_runnable(const struct osd_fair_queue *queue);
/* How many jobs are likely taken before this one; exact for a single principal. */
size_t osd_fair_queue_ahead(const struct osd_fair_queue *queue, const struct osd_fair_entry *entry);

#endif
