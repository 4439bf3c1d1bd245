/* SPDX-License-Identifier: GPL-2.0-or-later */
/* follow.h -- functions that follow changes of data (docs/hooks.md): each user object whose data have changed is given to
 * the functions of its hooks, and the attributes that they return are stored with the version of the data.
 *
 * The store says which objects are due (object/due.h).  Here they are in memory, at most FOLLOW_OBJECTS of them, each
 * once; others are found again in the store.  A change is followed DELAY_USEC later, so many changes become one run.  The
 * function runs without a thread of ours.  Its result is stored if the data still have the version that it has seen;
 * otherwise it runs again.
 *
 * A function that fails is logged, and its attributes stay as they are: their version says that they are of other data.
 * It runs again at the next change.  Other failures (no sandbox, function not active, queue full) are tried again.
 *
 * Order: create after osd_exec_open; stop after osd_exec_quiesce, when no command is under way, before the dispatcher is
 * freed. */
#ifndef OSD_COMMAND_FOLLOW_H
#define OSD_COMMAND_FOLLOW_H

#include "base/status.h"

struct osd_dispatcher;
struct osd_exec;
struct osd_follow;
struct osd_functions;
struct osd_objects;

enum osd_status osd_follow_create(struct osd_objects *objects, struct osd_functions *functions,
				  struct osd_exec *exec, struct osd_dispatcher *dispatcher,
				  struct osd_follow **ret_follow);
/* Ends the runs under way; their objects stay due.  NULL is fine, and so for the next. */
void osd_follow_stop(struct osd_follow *follow);
void osd_follow_free(struct osd_follow *follow); /* when no script runs any more */

#endif
