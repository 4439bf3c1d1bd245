/* SPDX-License-Identifier: GPL-2.0-or-later */
/* follow_impl.h -- shared by follow.c, which has the objects that are due, and follow_run.c, which has one run. */
#ifndef OSD_COMMAND_FOLLOW_IMPL_H
#define OSD_COMMAND_FOLLOW_IMPL_H

#include "base/helper.h"
#include "base/timer.h"
#include "command/follow.h"
#include "command/hook_call.h"
#include "object/object.h"

#define OSD_FOLLOW_BUCKETS 1024u
#define OSD_FOLLOW_LINES   64u

enum osd_due_state {
	OSD_DUE_WAITS,	  /* in the list of those that wait */
	OSD_DUE_RUNS,	  /* a function has it */
	OSD_DUE_ANSWERED, /* in the list of those with an answer */
};

struct osd_due {
	struct osd_due *hash_next;  /* under lock */
	struct osd_due *next;	    /* under lock: in its list */
	enum osd_due_state state;   /* under lock */
	bool again;		    /* under lock: it has changed during the run */
	uint64_t due_usec;	    /* under lock: monotonic */
	unsigned tries;		    /* failures in a row that were not the function's */
	struct osd_object_id id;    /* constant */
	struct osd_follow *follow;  /* constant */
	struct osd_follow_run *run; /* owned by the helper thread, or by the call under way; NULL: none */
};

/* The objects of some partitions, chosen by a secret hash. */
struct osd_follow_line {
	struct osd_due *waiting, *waiting_last; /* in the order of their times */
	size_t count, running;
	uint64_t turn; /* of the run that began last */
};

struct osd_follow {
	struct osd_objects *objects; /* these are constant */
	struct osd_functions *functions;
	struct osd_exec *exec;
	struct osd_dispatcher *dispatcher;
	void (*on_answer)(struct osd_due *due); /* a call of its run has ended; any thread */
	struct osd_lock lock;
	pthread_cond_t idle;
	uint64_t seed;				     /* constant */
	struct osd_due *buckets[OSD_FOLLOW_BUCKETS]; /* these are under lock */
	struct osd_follow_line lines[OSD_FOLLOW_LINES];
	struct osd_due *answered;
	size_t count, running;
	uint64_t turns;
	bool rescan, stopping;
	struct osd_helper helper;
	struct osd_timer timer;
};

enum osd_follow_end {
	OSD_FOLLOW_CALLED,  /* on_answer will be called */
	OSD_FOLLOW_DONE,    /* the object is not due any more, or gone */
	OSD_FOLLOW_CHANGED, /* the data have changed since: begin again */
	OSD_FOLLOW_LATER,   /* try again later */
};

/* Both on the helper thread, without locks.  begin: finds the hooks, and calls the first.  proceed: takes the answer of
 * one, and calls the next or stores all that they say.  After any end but CALLED the run is freed. */
enum osd_follow_end osd_follow_begin(struct osd_due *due);
enum osd_follow_end osd_follow_proceed(struct osd_due *due);
void osd_follow_run_free(struct osd_follow_run *run);

#endif
