/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flights.c -- see flights.h. */
#include "command/flights.h"

#include <string.h>

#include "command/attributes.h"
#include "command/context.h"
#include "command/task_management.h"

void osd_flights_init(struct osd_flights *flights)
{
	flights->list = NULL;
	osd_lock_init(&flights->lock, OSD_RANK_FLIGHTS);
}

void osd_flights_release(struct osd_flights *flights)
{
	osd_lock_destroy(&flights->lock);
}

static bool covers(const struct osd_flight *flight, const struct osd_flight *wanted)
{
	return flight->first <= wanted->first && wanted->last <= flight->last &&
	       strcmp(flight->reader, wanted->reader) == 0 &&
	       osd_same_id(flight->key.source, wanted->key.source) &&
	       osd_same_version(flight->key.version, wanted->key.version) &&
	       memcmp(flight->key.stack, wanted->key.stack, sizeof(wanted->key.stack)) == 0;
}

/* Under lock. */
static enum osd_status join(struct osd_flight *flight, struct osd_request *request)
{
	if (osd_command_aborted(request))
		return OSD_E_TASK_ABORTED;
	osd_attributes_forget(request);
	request->next = flight->waiting;
	flight->waiting = request;
	return OSD_PENDING;
}

enum osd_status osd_flights_begin(struct osd_flights *flights, struct osd_flight *flight,
				  struct osd_request *request)
{
	enum osd_status status = OSD_OK;
	struct osd_flight *other;

	if (request->alone)
		return OSD_OK;
	osd_lock(&flights->lock);
	for (other = flights->list; other && !covers(other, flight);)
		other = other->next;
	if (other) {
		status = join(other, request);
	} else {
		flight->begun = true;
		flight->waiting = NULL;
		flight->next = flights->list;
		flights->list = flight;
	}
	osd_unlock(&flights->lock);
	return status;
}

/* Nobody else knows the list any more.  A request may be freed as soon as it is resumed. */
static void resume_all(struct osd_request *list, bool alone)
{
	while (list) {
		struct osd_request *request = list;

		list = request->next;
		request->next = NULL;
		request->again = true;
		request->alone = alone;
		request->resume(request);
	}
}

void osd_flights_end(struct osd_flights *flights, struct osd_flight *flight, bool kept,
		     enum osd_status status)
{
	struct osd_flight **at;

	if (!flight->begun)
		return;
	flight->begun = false;
	osd_lock(&flights->lock);
	at = &flights->list;
	while (*at != flight)
		at = &(*at)->next;
	*at = flight->next;
	osd_unlock(&flights->lock);
	resume_all(flight->waiting, !kept && status != OSD_E_TASK_ABORTED);
}

void osd_flights_look_at_aborted(struct osd_flights *flights)
{
	struct osd_request *list = NULL;

	osd_lock(&flights->lock);
	for (struct osd_flight *flight = flights->list; flight; flight = flight->next)
		osd_requests_take_aborted(&flight->waiting, &list);
	osd_unlock(&flights->lock);
	resume_all(list, false);
}
