/* SPDX-License-Identifier: GPL-2.0-or-later */
/* manage.h -- the management thread of a sandbox: waits on the control line, samples usage when
 * pinged, raises osd.Ended in the script when told to end.  It holds no Python state and never
 * takes the GIL, so it answers whatever the script does. */
#ifndef OSD_SANDBOX_MANAGE_H
#define OSD_SANDBOX_MANAGE_H

#include "step.h"
#include "wire/proxy_frame.h"

/* The signal whose Python handler raises osd.Ended. */
#define OSD_END_SIGNAL SIGTERM

/* Call from the main thread; shm is borrowed for good. */
int osd_manage_start(struct osd_shm *shm, struct osd_step *step);
/* Samples usage as a ping does: a short job is over before it was ever pinged. */
void osd_manage_sample(void);

#endif
