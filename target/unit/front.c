/* SPDX-License-Identifier: GPL-2.0-or-later */
/* front.c -- what a front end submits (unit.h): the commands that its own thread runs or begins, and for how much of
 * its time.  The others go to the queue (unit.c). */
#include "base/clock.h"
#include "command/table.h"
#include "unit/command_figures.h"
#include "unit/unit_impl.h"

/* A front end's thread runs commands itself for at most half of its time.  The workers run the
 * others, so that the front end can still receive and send. */
#define INLINE_WINDOW_NS UINT64_C(100000)
#define INLINE_SPENT_NS	 UINT64_C(50000)
/* Commands that follow each other this closely come from an initiator's queue: they were sent
 * without waiting for the previous answer.  The workers run the large ones, so that two processors
 * copy. */
#define PIPELINED_GAP_NS UINT64_C(20000)
#define PIPELINED_BYTES	 (16u << 10)
/* After such a gap the processors sleep, and wake up late.  After a shorter one a sandbox that wakes up early may meet
 * the initiator, which is about to sleep, and get the front end's own processor instead. */
#define ASLEEP_GAP_NS UINT64_C(500000)

static bool has_time(struct osd_inline_window *window, uint64_t now)
{
	if (now - window->start_ns > INLINE_WINDOW_NS) {
		window->start_ns = now;
		window->spent_ns = 0;
	}
	return window->spent_ns < INLINE_SPENT_NS;
}

/* A command that parks soon begins here, which saves a worker's wake-up.  True: the request is not ours any more. */
static bool begin_here(struct osd_unit *unit, struct osd_inline_window *window,
		       const struct osd_command_def *def, struct osd_request *request)
{
	const unsigned wanted = OSD_CMD_INLINE | OSD_CMD_MAY_PARK;
	uint64_t start = request->submitted_ns;
	enum osd_dispatch_result result;

	if (!window || !def || (def->flags & wanted) != wanted || !has_time(window, start))
		return false;
	request->lingers = !window->pipelined;
	if (request->lingers && window->asleep)
		osd_dispatch_expect(unit->dispatcher);
	result = osd_dispatch_begin(unit->dispatcher, request);
	if (result == OSD_DISPATCH_QUEUE)
		request->lingers = false;
	if (result == OSD_DISPATCH_PARKED)
		osd_unit_resume(request);
	else if (result == OSD_DISPATCH_DONE)
		osd_unit_finish(unit, request);
	window->last_end_ns = osd_monotonic_nsec();
	window->spent_ns += window->last_end_ns - start;
	return result != OSD_DISPATCH_QUEUE;
}

void osd_unit_submit(struct osd_unit *unit, struct osd_inline_window *window,
		     struct osd_request *request)
{
	const struct osd_command_def *def = osd_command_of(request->cdb, request->cdb_length);

	request->unit = unit;
	request->park_votes = 2;
	request->resumed = request->lingers = false;
	request->submitted_ns = osd_monotonic_nsec();
	request->span = osd_command_span(def, request);
	osd_lock(&unit->lock);
	osd_tasks_add(&unit->tasks, request);
	unit->outstanding++;
	osd_unlock(&unit->lock);
	if (!begin_here(unit, window, def, request))
		osd_unit_queue(unit, def, request);
}

bool osd_unit_try(struct osd_unit *unit, struct osd_inline_window *window,
		  struct osd_request *request)
{
	uint64_t start = osd_monotonic_nsec();
	bool done;

	window->pipelined = start - window->last_end_ns < PIPELINED_GAP_NS;
	window->asleep = start - window->last_end_ns > ASLEEP_GAP_NS;
	if (!has_time(window, start))
		return false;
	if (request->data_in_capacity > PIPELINED_BYTES && window->pipelined)
		return false;
	request->unit = unit;
	request->submitted_ns = start;
	done = osd_dispatch_inline(unit->dispatcher, request) == OSD_DISPATCH_DONE;
	window->last_end_ns = osd_monotonic_nsec();
	window->spent_ns += window->last_end_ns - start;
	if (done)
		osd_figures_note(unit->figures, request, window->last_end_ns);
	return done;
}
