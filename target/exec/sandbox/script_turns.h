/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_turns.h -- short time slices for scripts that compute, so that other threads get the CPU.
 *
 * A thread that wakes up on a CPU running a script normally preempts the script at once.  A thread
 * that has just exceeded its share on another CPU does not: Linux (EEVDF, 6.6 and later) lets the
 * script run on, however little its weight is, and decides again at the end of the script's slice,
 * at a tick.  That is up to 4 ms later at 250 Hz, and more where slices are longer.  So while
 * scripts compute, one thread for each CPU wakes up once each time slice.  It takes the CPU, and the
 * kernel then chooses the thread that has waited.  This needs no privilege.
 *
 * All targets of a process share these threads. */
#ifndef OSD_EXEC_SANDBOX_SCRIPT_TURNS_H
#define OSD_EXEC_SANDBOX_SCRIPT_TURNS_H

#include <stdbool.h>

/* Of one target. */
struct osd_script_turns;

/* For the CPUs that the calling thread may run on; those of the first target count.  usec: the time
 * slice.  wanted: whether another thread could be waiting now; any of the threads asks it, once
 * each time slice, with a leaf lock held.  NULL: no memory; scripts then have the kernel's slices. */
struct osd_script_turns *osd_script_turns_start(unsigned usec, bool (*wanted)(void *context),
						void *context);
/* Whether scripts of this target compute; false at first.  From one thread. */
void osd_script_turns_set(struct osd_script_turns *turns, bool computing);
/* wanted is not called any more.  NULL is fine. */
void osd_script_turns_stop(struct osd_script_turns *turns);

#endif
