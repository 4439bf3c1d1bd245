/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_turns.h -- scripts that compute leave a processor to whoever is ready, turn by turn.
 *
 * Who becomes ready where a script runs gets the processor at once, as a rule.  Not one that has just had
 * more than its share on another processor: Linux (EEVDF, 6.6 and later) holds that against it for an
 * instant, lets the script go on however little that one's weight is, and looks again at the end of the
 * script's slice, at a tick: up to 4 ms later at 250 Hz, and more where slices are longer.  So while
 * scripts compute, one thread for each processor wakes up once a turn: it takes the processor, and who is
 * chosen after it is whoever has waited.  Needs no right. */
#ifndef OSD_EXEC_SANDBOX_SCRIPT_TURNS_H
#define OSD_EXEC_SANDBOX_SCRIPT_TURNS_H

#include <stdbool.h>

struct osd_script_turns;

/* On the processors the calling thread may run on.  usec: a turn.  wanted: whether anybody could be
 * waiting now, asked by any of the threads every turn.  Returns NULL where memory is short; then
 * it is done without. */
struct osd_script_turns *osd_script_turns_start(unsigned usec, bool (*wanted)(void *context),
						void *context);
/* Whether scripts compute; false at first.  From one thread. */
void osd_script_turns_set(struct osd_script_turns *turns, bool computing);
/* NULL is fine. */
void osd_script_turns_stop(struct osd_script_turns *turns);

#endif
