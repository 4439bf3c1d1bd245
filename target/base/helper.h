/* SPDX-License-Identifier: GPL-2.0-or-later */
/* helper.h -- a thread that lives only while it has work.
 *
 * A call starts the thread, or makes the one that is at work go through the work once more.  The
 * thread ends when no call has come since it began.  So work() looks at everything there is to do,
 * and a caller first notes what there is and then calls.  Any thread. */
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
/* false: no thread can be started now.  The next call tries again, and its work includes this one's.
 * Takes a leaf lock only. */
bool osd_helper_call(struct osd_helper *helper);
/* Waits for the end of the work under way.  Calls do nothing from here on. */
void osd_helper_stop(struct osd_helper *helper);
/* Of one that was initialised, and stopped. */
void osd_helper_release(struct osd_helper *helper);

#endif
