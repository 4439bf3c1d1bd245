/* SPDX-License-Identifier: GPL-2.0-or-later */
/* step.h -- the failed step of a start order.  Steps return 0, or -errno with their name filled in.
 * The caller that runs the list reports it once. */
#ifndef OSD_SANDBOX_STEP_H
#define OSD_SANDBOX_STEP_H

#include <errno.h>
#include <stdio.h>

struct osd_step {
	char what[160]; /* "mount tmpfs", "write uid map", ... */
};

/* Notes the failed step and returns -errno. */
static inline int osd_step_failed(struct osd_step *step, const char *what, const char *object)
{
	int error = errno ? errno : EIO;

	snprintf(step->what, sizeof(step->what), "%.60s%s%.90s", what, object ? " " : "",
		 object ? object : "");
	return -error;
}

/* For a step whose result is known: 0, or -errno. */
static inline int osd_step_end(struct osd_step *step, int error, const char *what)
{
	if (error)
		errno = -error;
	return error ? osd_step_failed(step, what, NULL) : 0;
}

#endif
