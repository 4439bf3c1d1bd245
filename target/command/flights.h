/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flights.h -- results of functions that READs compute at the moment.  A READ that needs one of them waits for it
 * without a thread: its request is put aside, and dispatched again from the start when the result is kept.  So it is
 * authorised again, and finds the result or computes in turn.
 *
 * It waits for READs of its own user alone: those of another one may stand behind a thousand jobs of that user.
 *
 * If the result was not kept, the READs that have waited compute for themselves and wait no more.  If only the READ
 * that computed was aborted, one of them takes its place, and the others wait for that one.
 *
 * Any thread; the lock is a leaf. */
#ifndef OSD_COMMAND_FLIGHTS_H
#define OSD_COMMAND_FLIGHTS_H

#include "base/lock.h"
#include "command/request.h"
#include "function/kept.h"

/* A result under way; owned by the READ that computes it. */
struct osd_flight {
	struct osd_flight *next;
	struct osd_kept_key key;
	uint64_t first, last; /* units */
	const char *reader;   /* principal; borrowed */
	bool begun;
	struct osd_request *waiting; /* under lock */
};

struct osd_flights {
	struct osd_lock lock;
	struct osd_flight *list; /* under lock */
};

void osd_flights_init(struct osd_flights *flights);
void osd_flights_release(struct osd_flights *flights);
/* flight has key, first, last and reader.  OSD_OK: the caller computes, and ends the flight.  OSD_PENDING: the request waits
 * until request->resume is called for it, and the caller must not touch it any more.  OSD_E_TASK_ABORTED: it would have to wait, but was aborted. */
enum osd_status osd_flights_begin(struct osd_flights *flights, struct osd_flight *flight,
				  struct osd_request *request);
/* status: how the READ ended.  If the flight has not begun, nothing happens. */
void osd_flights_end(struct osd_flights *flights, struct osd_flight *flight, bool kept,
		     enum osd_status status);
/* Dispatches waiting READs that were aborted, so that they end. */
void osd_flights_look_at_aborted(struct osd_flights *flights);

#endif
