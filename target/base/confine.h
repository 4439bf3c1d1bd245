/* SPDX-License-Identifier: GPL-2.0-or-later */
/* confine.h -- gives up what this process never needs, so that whoever takes it over lacks it too: it can
 * start no program, look into no other process, mount nothing, and use few families of sockets.
 *
 * Once, before there are threads.  It cannot be undone. */
#ifndef OSD_BASE_CONFINE_H
#define OSD_BASE_CONFINE_H

/* 0, or errno of what the kernel refused; the process must not go on serving then. */
int osd_confine(void);

#endif
