/* SPDX-License-Identifier: GPL-2.0-or-later */
/* turns.h -- the order in which commands that share a thread do their steps.  Owners take turns, so that
 * one with many commands delays each step of another one's by one step; the commands of an owner take
 * turns, too.  A command that has just lost against others pauses, longer each time, and the rest go
 * first.  No locking and no clock: the caller's, as are the entries. */
#ifndef OSD_COMMAND_TURNS_H
#define OSD_COMMAND_TURNS_H

#include <stdint.h>

#define OSD_TURN_PAUSE_MS     10u   /* after the first loss; twice that after the second ... */
#define OSD_TURN_PAUSE_MAX_MS 1000u /* and never more than that */
#define OSD_TURN_NEVER	      UINT64_MAX

/* All zeros but for the owner: a new one. */
struct osd_turn {
	struct osd_turn *next;
	const void *owner; /* only compared */
	uint64_t served;   /* when a turn of its owner was taken last, by osd_turns.taken */
	uint64_t not_before_ms;
	unsigned losses; /* in a row */
};

struct osd_turns {
	struct osd_turn *head, **tail;
	uint64_t taken; /* turns */
};

void osd_turns_init(struct osd_turns *turns);
/* At the end of the line; forgets losses. */
void osd_turns_add(struct osd_turns *turns, struct osd_turn *turn);
/* The same after another loss. */
void osd_turns_add_loser(struct osd_turns *turns, struct osd_turn *turn, uint64_t now_ms);
/* Takes out, of those that need not pause any longer, the first of the owner that has waited longest.  NULL:
 * there is none before *ret_wait_ms milliseconds from now have gone by, or, OSD_TURN_NEVER, none at all. */
struct osd_turn *osd_turns_take(struct osd_turns *turns, uint64_t now_ms, uint64_t *ret_wait_ms);

#endif
