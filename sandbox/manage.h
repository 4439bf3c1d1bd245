/* SPDX-License-Identifier: GPL-2.0-or-later */
/* manage.h -- how a sandbox answers its control line.  iosd-sandboxd sends a signal (a nudge).  Its handler
 * samples usage, and interrupts the engine if the job has to end.  The handler takes no lock and waits for
 * nothing, so it answers whatever the job computes.  A script that blocks the signal is sampled only at
 * its end; it is killed without being asked to end. */
#ifndef OSD_SANDBOX_MANAGE_H
#define OSD_SANDBOX_MANAGE_H

#include <signal.h>

#include "wire/proxy_frame.h"

/* Its default action is to do nothing, and the filter forbids scripts to send it. */
#define OSD_NUDGE_SIGNAL SIGURG

/* interrupt: of the engine.  shm is borrowed for good. */
void osd_manage_attach(struct osd_shm *shm, void (*interrupt)(void));
/* Before each job: install the handler again, as the job before may have changed it, and sample usage. */
void osd_manage_begin(void);
/* Sample usage as a nudge does.  A short job ends before the first nudge. */
void osd_manage_sample(void);

#endif
