/* SPDX-License-Identifier: GPL-2.0-or-later */
/* helper.h -- a thread that lives only while it has work.
 *
 * A call starts the thread, or makes the one that is at work go through the work once more.  The thread
 * ends when no call has come since it began.  So work() checks everything that may have to be done, and
 * a caller first records the work and then calls.  Any thread. */
#ifndef OSD_BASE_HELPER_H
#define OSD_BASE_HELPER_H

#include "base/lock.h"

struct osd_helper {
	const char *name; /* of the thread (thread.h) */
	void (*work)(void *arg);
	void *arg;
	struct osd_lock lock;
	pthread_t thread;
	bool called, at_work, stopped; /* under lock */
	bool to_join;		       /* under lock: thread is set */
};

void osd_helper_init(struct osd_helper *helper, const char *name, void (*work)(void *arg),
		     void *arg);
/* False: no thread can be started now.  The next call tries again, and its work includes this one's.
 * It takes a leaf lock only. */
bool osd_helper_call(struct osd_helper *helper);
/* Waits for the end of the running work.  Later calls do nothing. */
void osd_helper_stop(struct osd_helper *helper);
/* Releases a helper that was initialised and stopped. */
void osd_helper_release(struct osd_helper *helper);

#endif
