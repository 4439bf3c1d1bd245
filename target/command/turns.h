/* SPDX-License-Identifier: GPL-2.0-or-later */
/* turns.h -- the order in which commands that share a thread do their steps.  Owners take turns, so
 * an owner with many commands delays each step of another owner by one step only.  The commands of
 * one owner take turns, too.  A command that has just lost a conflict pauses, longer each time, and
 * the others go first.  There is no locking and no clock here: both are the caller's, as are the
 * entries. */
#ifndef OSD_COMMAND_TURNS_H
#define OSD_COMMAND_TURNS_H

#include <stdint.h>

#define OSD_TURN_PAUSE_MS     10u   /* after the first loss; twice that after the second ... */
#define OSD_TURN_PAUSE_MAX_MS 1000u /* and never more than that */
#define OSD_TURN_NEVER	      UINT64_MAX

/* A new entry is all zeros, except for the owner. */
struct osd_turn {
	struct osd_turn *next;
	const void *owner; /* only compared */
	uint64_t served;   /* osd_turns.taken when its owner's last turn was taken */
	uint64_t not_before_ms;
	unsigned losses; /* in a row */
};

struct osd_turns {
	struct osd_turn *head, **tail;
	uint64_t taken; /* turns */
};

void osd_turns_init(struct osd_turns *turns);
/* Puts it at the end of the queue, and clears its losses. */
void osd_turns_add(struct osd_turns *turns, struct osd_turn *turn);
/* The same, after another loss. */
void osd_turns_add_loser(struct osd_turns *turns, struct osd_turn *turn, uint64_t now_ms);
/* Takes the next entry that need not pause: the first of the owner that has waited longest.  NULL:
 * the next one is ready in *ret_wait_ms milliseconds; OSD_TURN_NEVER: there is none. */
struct osd_turn *osd_turns_take(struct osd_turns *turns, uint64_t now_ms, uint64_t *ret_wait_ms);

#endif
