/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.h -- functions that are asked before a command changes a user object (docs/hooks.md).
 *
 * The dispatcher asks before the command function runs.  The command parks meanwhile, and holds no worker.  If all
 * functions permit it, it is dispatched again from the start, with request->checked set.  A check holds for the version
 * of the data that it was asked about: if the object has changed since, it is asked again. */
#ifndef OSD_COMMAND_CHECK_H
#define OSD_COMMAND_CHECK_H

#include "command/context.h"

#define OSD_CHECK_DATA_MAX (64u << 10) /* bytes of a longer change are not passed to checks */

/* OSD_OK: no function forbids it.  OSD_PENDING: the command has parked.  OSD_E_CHECK: one does. */
enum osd_status osd_check_command(struct osd_command_context *ctx);
/* After a command that was refused with OSD_E_VERSION.  True: the version was that of the checks, so call
 * osd_check_command again; it gives up with OSD_E_BUSY in the end. */
bool osd_check_begin_again(struct osd_request *request);
/* Frees request->checked. */
void osd_check_forget(struct osd_request *request);

#endif
