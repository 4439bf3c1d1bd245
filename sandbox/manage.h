/* SPDX-License-Identifier: GPL-2.0-or-later */
/* manage.h -- a sandbox's answers to the control line: iosd-sandboxd nudges it by a signal, whose handler
 * samples usage, and raises osd.Ended in the script when that is told to end.  It neither needs the
 * GIL nor waits for anything, so it answers whatever the script computes; a script that blocks the
 * signal is sampled at its end only, and not asked to end but killed. */
#ifndef OSD_SANDBOX_MANAGE_H
#define OSD_SANDBOX_MANAGE_H

#include <signal.h>

#include "wire/proxy_frame.h"

/* The signal whose Python handler raises osd.Ended. */
#define OSD_END_SIGNAL SIGTERM
/* By itself it does nothing to a process, and the filter keeps scripts from sending it. */
#define OSD_NUDGE_SIGNAL SIGURG

/* shm is borrowed for good. */
void osd_manage_attach(struct osd_shm *shm);
/* Before each job: nudges are heeded, whatever the job before did to signals, and usage is sampled. */
void osd_manage_begin(void);
/* Samples usage as a nudge does: a short job is over before it was ever nudged. */
void osd_manage_sample(void);

#endif
