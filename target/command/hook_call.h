/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_call.h -- calls of functions that check changes or follow them (docs/hooks.md), by the target itself.  The call
 * is a plain one (exec/exec.h).  Its sandbox never runs other code, nor the same function for another place that it is
 * attached to. */
#ifndef OSD_COMMAND_HOOK_CALL_H
#define OSD_COMMAND_HOOK_CALL_H

#include "exec/exec.h"
#include "function/hooks.h"

/* The hooks of an object for some events, and when it was made; object id 0: those of an object that is being made. */
struct osd_hook_search {
	struct osd_functions *functions;
	struct osd_object_id id;
	unsigned events;
	struct osd_hook *hooks; /* the caller's */
	size_t count;
	uint64_t created_msec;
};
enum osd_status osd_hook_search(struct osd_objects *objects, struct osd_hook_search *search);

struct osd_hook_call {
	struct osd_functions *functions;
	struct osd_exec *exec;
	const struct osd_hook *hook;  /* borrowed during the call of osd_hook_call */
	struct osd_object_id zone;    /* object id 0: the object is being made */
	struct osd_hook_frame *frame; /* without parameters, which are the hook's */
	const char *payer;	      /* as in osd_exec_submission; borrowed during the call of osd_hook_call */
	struct osd_fault *fault;      /* informed about a full queue; NULL: none */
	bool reads;		      /* the function may read the zone, if its access class says so */
	uint64_t wall_usec;	      /* the most that it runs; its own limits count, too */
	uint64_t wait_usec;	      /* with the time in the queue */
	/* As in osd_exec_submission. */
	void (*done)(void *arg, const struct osd_exec_outcome *outcome);
	void *arg;
	const bool *aborted;
};

/* OSD_PENDING: done will be called, or has been.  OSD_E_FUNCTION_INACTIVE, OSD_E_FUNCTION_CAPS and others of
 * osd_exec_submit; OSD_E_QUOTA: the arguments are too long. */
enum osd_status osd_hook_call(const struct osd_hook_call *call);
/* The reason of a failure or a refusal as one line of text: the last line of the outcome's result.  Returns the bytes,
 * without the zero byte at the end.  Characters that do not print become question marks. */
#define OSD_HOOK_TEXT_MAX 128u
/* Where the last line of a text begins; *length becomes the line's, without its end. */
const uint8_t *osd_last_line(const uint8_t *text, size_t *length);
size_t osd_hook_text(const struct osd_exec_outcome *outcome, char text[OSD_HOOK_TEXT_MAX + 1]);

#endif
