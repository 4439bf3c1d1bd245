/* SPDX-License-Identifier: GPL-2.0-or-later */
/* table.c -- the table of jobs by id, and the permitted transitions (table.h). */
#include <stdlib.h>

#include "base/util.h"
#include "exec/job/table.h"

#define FIRST_BUCKETS 1024

struct transition {
	uint8_t from, event, to;
};

static const struct transition transitions[] = {
	{OSD_STATE_QUEUED, OSD_JOB_EVENT_HOLD, OSD_STATE_HELD},
	{OSD_STATE_QUEUED, OSD_JOB_EVENT_TAKE, OSD_STATE_STARTING},
	{OSD_STATE_QUEUED, OSD_JOB_EVENT_CANCEL, OSD_STATE_CANCELLED},
	{OSD_STATE_QUEUED, OSD_JOB_EVENT_FAIL, OSD_STATE_FAILED},
	{OSD_STATE_HELD, OSD_JOB_EVENT_RELEASE, OSD_STATE_QUEUED},
	{OSD_STATE_HELD, OSD_JOB_EVENT_CANCEL, OSD_STATE_CANCELLED},
	{OSD_STATE_HELD, OSD_JOB_EVENT_FAIL, OSD_STATE_FAILED},
	{OSD_STATE_STARTING, OSD_JOB_EVENT_HAND_OVER, OSD_STATE_RUNNING},
	{OSD_STATE_STARTING, OSD_JOB_EVENT_COLLECT, OSD_STATE_COMPLETING},
	{OSD_STATE_STARTING, OSD_JOB_EVENT_AGAIN, OSD_STATE_QUEUED},
	{OSD_STATE_STARTING, OSD_JOB_EVENT_CANCEL, OSD_STATE_CANCELLED},
	{OSD_STATE_STARTING, OSD_JOB_EVENT_LOSE, OSD_STATE_SANDBOX_LOST},
	{OSD_STATE_RUNNING, OSD_JOB_EVENT_COLLECT, OSD_STATE_COMPLETING},
	{OSD_STATE_RUNNING, OSD_JOB_EVENT_AGAIN, OSD_STATE_QUEUED},
	{OSD_STATE_RUNNING, OSD_JOB_EVENT_CANCEL, OSD_STATE_CANCELLED},
	{OSD_STATE_RUNNING, OSD_JOB_EVENT_LOSE, OSD_STATE_SANDBOX_LOST},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_AGAIN, OSD_STATE_QUEUED},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_COMPLETE, OSD_STATE_COMPLETED},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_FAIL, OSD_STATE_FAILED},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_CANCEL, OSD_STATE_CANCELLED},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_TIME_OUT, OSD_STATE_TIMEOUT},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_RUN_OUT, OSD_STATE_OUT_OF_MEMORY},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_EXCEED, OSD_STATE_LIMIT_EXCEEDED},
	{OSD_STATE_COMPLETING, OSD_JOB_EVENT_LOSE, OSD_STATE_SANDBOX_LOST},
};

bool osd_job_transition(enum osd_job_state state, enum osd_job_event event,
			enum osd_job_state *ret_state)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(transitions); i++) {
		if (transitions[i].from != state || transitions[i].event != event)
			continue;
		*ret_state = transitions[i].to;
		return true;
	}
	return false;
}

enum osd_job_event osd_job_event_to(enum osd_job_state terminal)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(transitions); i++)
		if (transitions[i].to == terminal)
			return transitions[i].event;
	return OSD_JOB_EVENT_FAIL;
}

static size_t bucket_of(const struct osd_job_table *table, struct osd_object_id id)
{
	uint64_t hash = (id.partition_id * UINT64_C(0x9e3779b97f4a7c15) ^ id.object_id) *
			UINT64_C(0xff51afd7ed558ccd);

	return (size_t)(hash >> 32) & (table->bucket_count - 1);
}

enum osd_status osd_job_table_init(struct osd_job_table *table)
{
	*table = (struct osd_job_table){.bucket_count = FIRST_BUCKETS};
	table->buckets = calloc(FIRST_BUCKETS, sizeof(*table->buckets));
	return table->buckets ? OSD_OK : OSD_E_NO_MEMORY;
}

void osd_job_table_release(struct osd_job_table *table)
{
	free(table->buckets);
	*table = (struct osd_job_table){0};
}

static void link_node(struct osd_job_table *table, struct osd_job_node *node)
{
	struct osd_job_node **bucket = &table->buckets[bucket_of(table, node->id)];

	node->next = *bucket;
	*bucket = node;
}

/* Without memory the lists in the buckets get longer: a job that is accepted must get into the table. */
static void grow(struct osd_job_table *table)
{
	struct osd_job_table bigger = {.bucket_count = table->bucket_count * 2,
				       .count = table->count};

	bigger.buckets = calloc(bigger.bucket_count, sizeof(*bigger.buckets));
	if (!bigger.buckets)
		return;
	for (size_t i = 0; i < table->bucket_count; i++) {
		while (table->buckets[i]) {
			struct osd_job_node *node = table->buckets[i];

			table->buckets[i] = node->next;
			link_node(&bigger, node);
		}
	}
	free(table->buckets);
	*table = bigger;
}

void osd_job_table_insert(struct osd_job_table *table, struct osd_job_node *node)
{
	if (++table->count > table->bucket_count)
		grow(table);
	link_node(table, node);
}

void osd_job_table_remove(struct osd_job_table *table, struct osd_job_node *node)
{
	struct osd_job_node **at = &table->buckets[bucket_of(table, node->id)];

	while (*at && *at != node)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = node->next;
	table->count--;
}

struct osd_job_node *osd_job_table_find(const struct osd_job_table *table, struct osd_object_id id)
{
	struct osd_job_node *node = table->buckets[bucket_of(table, id)];

	while (node && !osd_same_id(node->id, id))
		node = node->next;
	return node;
}

struct osd_job_node *osd_job_table_next(const struct osd_job_table *table,
					const struct osd_job_node *node)
{
	struct osd_job_node *next = node ? node->next : NULL;

	for (size_t i = node ? bucket_of(table, node->id) + 1 : 0; i < table->bucket_count && !next;
	     i++)
		next = table->buckets[i];
	return next;
}
