/* SPDX-License-Identifier: GPL-2.0-or-later */
/* queue.c -- see queue.h. */
#include "unit/queue.h"

#include "base/util.h"

static struct osd_lane *lane_of(struct osd_queue_row *row, const struct osd_request *request)
{
	uint64_t spread = request->nexus.id * UINT64_C(0x9e3779b97f4a7c15);

	return &row->lanes[(spread >> 32) % OSD_QUEUE_LANES];
}

void osd_queue_init(struct osd_queue *queue)
{
	for (size_t i = 0; i < OSD_SPANS; i++) {
		struct osd_queue_row *row = &queue->rows[i];

		*row = (struct osd_queue_row){.last = &row->first};
		for (size_t k = 0; k < OSD_QUEUE_LANES; k++)
			row->lanes[k].tail = &row->lanes[k].head;
	}
}

static void append_lane(struct osd_queue_row *row, struct osd_lane *lane)
{
	lane->next = NULL;
	*row->last = lane;
	row->last = &lane->next;
}

void osd_queue_add(struct osd_queue *queue, enum osd_command_span which, struct osd_request *request)
{
	struct osd_queue_row *row = &queue->rows[which];
	struct osd_lane *lane = lane_of(row, request);

	if (!lane->head)
		append_lane(row, lane);
	request->next = NULL;
	*lane->tail = request;
	lane->tail = &request->next;
	row->count++;
}

struct osd_request *osd_queue_take(struct osd_queue *queue, enum osd_command_span which)
{
	struct osd_queue_row *row = &queue->rows[which];
	struct osd_lane *lane = row->first;
	struct osd_request *request = lane->head;

	row->first = lane->next;
	if (!row->first)
		row->last = &row->first;
	lane->head = request->next;
	if (lane->head)
		append_lane(row, lane);
	else
		lane->tail = &lane->head;
	request->next = NULL;
	row->count--;
	return request;
}

uint64_t osd_queue_oldest_ns(const struct osd_queue *queue)
{
	uint64_t oldest = UINT64_MAX;

	for (size_t i = 0; i < OSD_SPANS; i++)
		for (const struct osd_lane *lane = queue->rows[i].first; lane; lane = lane->next)
			oldest = OSD_MIN(oldest, lane->head->submitted_ns);
	return oldest;
}
