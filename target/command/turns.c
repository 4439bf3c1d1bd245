/* SPDX-License-Identifier: GPL-2.0-or-later */
/* turns.c -- see turns.h. */
#include "command/turns.h"

#include <stddef.h>

#include "base/util.h"

void osd_turns_init(struct osd_turns *turns)
{
	turns->head = NULL;
	turns->tail = &turns->head;
	turns->taken = 0;
}

static void append(struct osd_turns *turns, struct osd_turn *turn)
{
	for (const struct osd_turn *each = turns->head; each; each = each->next)
		if (each->owner == turn->owner)
			turn->served = OSD_MAX(turn->served, each->served);
	turn->next = NULL;
	*turns->tail = turn;
	turns->tail = &turn->next;
}

void osd_turns_add(struct osd_turns *turns, struct osd_turn *turn)
{
	turn->losses = 0;
	turn->not_before_ms = 0;
	append(turns, turn);
}

void osd_turns_add_loser(struct osd_turns *turns, struct osd_turn *turn, uint64_t now_ms)
{
	uint64_t pause = OSD_TURN_PAUSE_MS;

	for (unsigned i = 0; i < turn->losses && pause < OSD_TURN_PAUSE_MAX_MS; i++)
		pause *= 2;
	turn->losses++;
	turn->not_before_ms = now_ms + OSD_MIN(pause, (uint64_t)OSD_TURN_PAUSE_MAX_MS);
	append(turns, turn);
}

static void take_out(struct osd_turns *turns, struct osd_turn **at)
{
	struct osd_turn *turn = *at;

	*at = turn->next;
	if (turns->tail == &turn->next)
		turns->tail = at;
}

static void note_served(struct osd_turns *turns, struct osd_turn *taken)
{
	taken->served = ++turns->taken;
	for (struct osd_turn *each = turns->head; each; each = each->next)
		if (each->owner == taken->owner)
			each->served = taken->served;
}

struct osd_turn *osd_turns_take(struct osd_turns *turns, uint64_t now_ms, uint64_t *ret_wait_ms)
{
	struct osd_turn **best = NULL, *turn;

	*ret_wait_ms = OSD_TURN_NEVER;
	for (struct osd_turn **at = &turns->head; *at; at = &(*at)->next) {
		turn = *at;
		if (turn->not_before_ms > now_ms)
			*ret_wait_ms = OSD_MIN(*ret_wait_ms, turn->not_before_ms - now_ms);
		else if (!best || turn->served < (*best)->served)
			best = at;
	}
	if (!best)
		return NULL;
	turn = *best;
	take_out(turns, best);
	note_served(turns, turn);
	return turn;
}
