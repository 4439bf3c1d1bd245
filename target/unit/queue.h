/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queue.h -- requests that wait for a worker.  Each span (osd_command_span) has a row, and each I_T
 * nexus a lane in the row.  Lanes take turns: an initiator that has sent a hundred commands delays
 * the next command of another initiator by one command.  Nexuses whose numbers collide share a
 * lane.  Within a lane the order is that of arrival.  There is no locking here: the caller holds
 * the unit's lock. */
#ifndef OSD_UNIT_QUEUE_H
#define OSD_UNIT_QUEUE_H

#include <stddef.h>

#include "command/request.h"

#define OSD_QUEUE_LANES 64u /* a power of two */

struct osd_lane {
	struct osd_lane *next; /* in turn; only while it has requests */
	struct osd_request *head, **tail;
};

struct osd_queue {
	struct osd_queue_row {
		struct osd_lane *first, **last; /* lanes that have requests, in turn */
		unsigned count;			/* requests */
		struct osd_lane lanes[OSD_QUEUE_LANES];
	} rows[OSD_SPANS];
};

void osd_queue_init(struct osd_queue *queue);
void osd_queue_add(struct osd_queue *queue, enum osd_command_span which,
		   struct osd_request *request);
/* The next of a span; NULL: there is none. */
static inline struct osd_request *osd_queue_peek(const struct osd_queue *queue,
						 enum osd_command_span which)
{
	const struct osd_lane *lane = queue->rows[which].first;

	return lane ? lane->head : NULL;
}
/* Takes out the request that osd_queue_peek returns; its lane moves behind the others. */
struct osd_request *osd_queue_take(struct osd_queue *queue, enum osd_command_span which);
/* The arrival time of the request that has waited longest; UINT64_MAX: none waits. */
uint64_t osd_queue_oldest_ns(const struct osd_queue *queue);

static inline unsigned osd_queue_count(const struct osd_queue *queue, enum osd_command_span which)
{
	return queue->rows[which].count;
}

#endif
