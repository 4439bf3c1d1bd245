/* SPDX-License-Identifier: GPL-2.0-or-later */
/* confine.h -- drops rights that this process never needs, so that an attacker who controls it does
 * not have them either.  Afterwards the process can start no program, inspect no other process,
 * mount nothing, and use few families of sockets.  Call it once, before there are threads.  It
 * cannot be undone. */
#ifndef OSD_BASE_CONFINE_H
#define OSD_BASE_CONFINE_H

/* Returns 0, or the errno of the failure; then the process must not serve. */
int osd_confine(void);

#endif
