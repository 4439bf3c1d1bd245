/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pace.c -- the bandwidth of a pool: a proxy sends an answer when the bytes of its call are due (run.h). */
#include <time.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/run/run.h"

#define STEP_USEC UINT64_C(20000) /* between two checks whether the job is to end */

static bool is_wanted(struct osd_run *run)
{
	const struct osd_session_hooks *hooks = &run->session.hooks;

	return !hooks->is_over(hooks->arg) && !hooks->is_to_end(hooks->arg);
}

static void rest(uint64_t usec)
{
	const struct timespec step = osd_timespec(OSD_MIN(usec, STEP_USEC));

	nanosleep(&step, NULL);
}

void osd_run_pace(struct osd_run *run)
{
	struct osd_session *session = &run->session;
	uint64_t first, now;

	if (!session->due_usec)
		return;
	first = now = osd_monotonic_usec();
	while (now < session->due_usec && is_wanted(run)) {
		rest(session->due_usec - now);
		now = osd_monotonic_usec();
	}
	session->due_usec = 0;
	atomic_fetch_add(&session->pace->held_usec, now - first);
}
