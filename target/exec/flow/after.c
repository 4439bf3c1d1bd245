/* SPDX-License-Identifier: GPL-2.0-or-later */
/* after.c -- jobs that wait for other jobs, in memory: nodes and edges, and what the end of a job
 * causes (flow.h).  Elsewhere: their lists in the store (after_store.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/flow/flow.h"

#define STEP_EDGES  64	    /* edges visited before the lock is released */
#define DECIDE_USEC 2000 /* osd_after_await_decision waits no longer */

/* A job that other jobs wait for. */
struct osd_after_node {
	struct osd_job_node node;
	struct osd_after_edge *fresh; /* edges not visited since the job ended */
	struct osd_after_edge *kept;  /* edges whose condition is not met, or of a job that is being
				       * accepted */
	struct osd_after_node *next_settling;
	bool settling;
	bool pinned;   /* stays until the target is closed */
	uint8_t ended; /* terminal state; 0: the job has not ended, or ended before the node
		        * existed */
};

void osd_after_release(struct osd_flow *flow)
{
	struct osd_job_node *left;

	while ((left = osd_job_table_next(&flow->awaited, NULL))) {
		osd_job_table_remove(&flow->awaited, left);
		free(osd_container_of(left, struct osd_after_node, node));
	}
	osd_job_table_release(&flow->awaited);
}

/* ---- in memory ------------------------------------------------------------------------------- */

struct osd_after *osd_after_allocate(size_t count)
{
	struct osd_after *after = calloc(1, sizeof(*after) + count * sizeof(after->edges[0]));

	if (after)
		after->count = count;
	return after;
}

enum osd_status osd_after_create(const struct osd_exec_after *named, size_t count,
				 struct osd_after **ret_after)
{
	*ret_after = NULL;
	if (count == 0)
		return OSD_OK;
	*ret_after = osd_after_allocate(count);
	if (!*ret_after)
		return OSD_E_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		(*ret_after)->edges[i].on = (struct osd_job_predecessor){
			.id = {named[i].partition_id, named[i].object_id},
			.condition = named[i].condition,
		};
	return OSD_OK;
}

/* ---- edges and nodes; exec->lock held -------------------------------------------------------- */

static struct osd_after_node *find_node(const struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_job_node *node = osd_job_table_find(&exec->flow->awaited, id);

	return node ? osd_container_of(node, struct osd_after_node, node) : NULL;
}

static struct osd_after_node *get_node(struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_after_node *node = find_node(exec, id);

	if (node)
		return node;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->node.id = id;
	osd_job_table_insert(&exec->flow->awaited, &node->node);
	return node;
}

static void free_if_idle(struct osd_exec *exec, struct osd_after_node *node)
{
	if (node->fresh || node->kept || node->settling || node->pinned)
		return;
	osd_job_table_remove(&exec->flow->awaited, &node->node);
	pthread_cond_broadcast(&exec->changed); /* the record of its job may be removed now */
	free(node);
}

static void link_edge(struct osd_after_edge **list, struct osd_after_edge *edge)
{
	edge->next = *list;
	edge->link = list;
	if (edge->next)
		edge->next->link = &edge->next;
	*list = edge;
}

static void unlink_edge(struct osd_after_edge *edge)
{
	*edge->link = edge->next;
	if (edge->next)
		edge->next->link = edge->link;
	edge->link = NULL;
}

/* May free the node. */
static void cut(struct osd_exec *exec, struct osd_after_edge *edge)
{
	unlink_edge(edge);
	free_if_idle(exec, edge->node);
}

enum osd_status osd_after_watch(struct osd_exec *exec, struct osd_job *job)
{
	struct osd_after *after = job->after;

	if (!after)
		return OSD_OK;
	after->left = after->count + 1;
	for (size_t i = 0; i < after->count; i++) {
		struct osd_after_edge *edge = &after->edges[i];

		edge->job = job;
		edge->node = get_node(exec, edge->on.id);
		if (!edge->node) {
			osd_after_drop(exec, job);
			return OSD_E_NO_MEMORY;
		}
		link_edge(&edge->node->fresh, edge);
	}
	return OSD_OK;
}

void osd_after_drop(struct osd_exec *exec, struct osd_job *job)
{
	struct osd_after *after = job->after;

	for (size_t i = 0; after && i < after->count; i++)
		if (after->edges[i].link)
			cut(exec, &after->edges[i]);
}

void osd_after_pin(struct osd_job *job)
{
	for (size_t i = 0; job->after && i < job->after->count; i++)
		if (job->after->edges[i].link)
			job->after->edges[i].node->pinned = true;
}

bool osd_after_awaited(const struct osd_exec *exec, struct osd_object_id id)
{
	return exec->flow->awaited.count > 0 && find_node(exec, id);
}

size_t osd_after_waits_for(const struct osd_job *job, struct osd_object_id *ret_first)
{
	const struct osd_after *after = job->after;
	size_t count = 0;

	for (size_t i = 0; after && i < after->count; i++)
		if (after->edges[i].link && count++ == 0)
			*ret_first = after->edges[i].on.id;
	return count;
}

/* The job has just ended, and the jobs that wait for it have not been notified yet.  This takes a
 * moment. */
bool osd_after_await_decision(struct osd_exec *exec, struct osd_object_id id)
{
	struct timespec until = osd_timespec(osd_monotonic_usec() + DECIDE_USEC);
	bool decides;

	osd_lock(&exec->lock);
	decides = !exec->formatting && osd_after_awaited(exec, id);
	if (decides)
		osd_cond_timedwait(&exec->changed, &exec->lock, &until);
	osd_unlock(&exec->lock);
	return decides;
}

/* ---- ends; exec->lock held ------------------------------------------------------------------- */

static void let_go(struct osd_job *job)
{
	bool changing = job->pending.txn || job->end_reason;

	if (--job->after->left > 0)
		return;
	/* A held job is queued by its release, a job under change by the end of the change. */
	if (job->record.state == OSD_STATE_QUEUED && !changing)
		osd_exec_enqueue(job->exec, job);
}

static void fail(struct osd_exec *exec, struct osd_after_edge *edge)
{
	struct osd_job *job = edge->job;

	if (job->after->failed)
		return;
	job->after->failed = edge;
	job->after->next_failed = exec->flow->failed;
	exec->flow->failed = osd_job_ref(job);
	osd_flow_call(exec->flow);
}

static bool is_met(uint32_t condition, uint8_t ended)
{
	switch (condition) {
	case OSD_AFTER_ANY:
		return true;
	case OSD_AFTER_FAILED:
		return ended != OSD_STATE_COMPLETED;
	default:
		return ended == OSD_STATE_COMPLETED;
	}
}

/* The job at the far end of this linked edge has ended with this state. */
static void settle(struct osd_exec *exec, struct osd_after_edge *edge, uint8_t ended)
{
	struct osd_job *job = edge->job;

	edge->ended = ended;
	if (job->in_table && is_met(edge->on.condition, ended)) {
		cut(exec, edge);
		let_go(job);
		return;
	}
	unlink_edge(edge);
	link_edge(&edge->node->kept, edge);
	if (job->in_table)
		fail(exec, edge);
}

void osd_after_admitted(struct osd_job *job)
{
	struct osd_after *after = job->after;

	if (!after)
		return;
	for (size_t i = 0; i < after->count; i++) {
		struct osd_after_edge *edge = &after->edges[i];
		uint8_t ended = edge->found ? edge->found : edge->node->ended;

		if (ended)
			settle(job->exec, edge, ended);
	}
	let_go(job);
}

void osd_after_ended(struct osd_job *job)
{
	struct osd_exec *exec = job->exec;
	struct osd_after_node *node;

	osd_assert_held(&exec->lock);
	osd_after_drop(exec, job);
	node = exec->flow->awaited.count ? find_node(exec, job->record.id) : NULL;
	if (!node || node->settling)
		return;
	node->ended = job->record.state;
	node->settling = true;
	node->next_settling = exec->flow->settling;
	exec->flow->settling = node;
	osd_flow_call(exec->flow);
}

void osd_after_changed(struct osd_job *job)
{
	osd_assert_held(&job->exec->lock);
	if (job->after && job->after->failed)
		osd_flow_call(job->exec->flow);
}

/* ---- steps of the thread; exec->lock held -------------------------------------------------------- */

/* Settles a bounded number of edges of one node. */
static void settle_some(struct osd_exec *exec)
{
	struct osd_after_node *node = exec->flow->settling;

	osd_assert_held(&exec->lock);
	for (int i = 0; i < STEP_EDGES && node->fresh; i++)
		settle(exec, node->fresh, node->ended);
	if (node->fresh)
		return;
	exec->flow->settling = node->next_settling;
	node->settling = false;
	free_if_idle(exec, node);
}

/* Takes a job to be ended off the list, one without a change under way; NULL: none. */
static struct osd_job *take_failed(struct osd_exec *exec)
{
	struct osd_job **link = &exec->flow->failed, *job;

	osd_assert_held(&exec->lock);
	while (*link && (*link)->pending.txn)
		link = &(*link)->after->next_failed;
	job = *link;
	if (job)
		*link = job->after->next_failed;
	return job;
}

/* exec->lock held, released meanwhile.  Drops the reference. */
static void end_failed(struct osd_exec *exec, struct osd_job *job)
{
	const struct osd_after_edge *edge = job->after->failed;
	uint16_t reason = edge->on.condition == OSD_AFTER_FAILED ? OSD_REASON_NOT_NEEDED
								 : OSD_REASON_UNREACHABLE;
	char message[64];

	osd_assert_held(&exec->lock);
	snprintf(message, sizeof(message), "0x%llx/0x%llx ended %s",
		 (unsigned long long)edge->on.id.partition_id,
		 (unsigned long long)edge->on.id.object_id, osd_job_state_name(edge->ended));
	if (job->in_table && job->kind->end_parts) /* its members get the same message */
		memcpy(job->record.message, message, sizeof(message));
	if (job->in_table && osd_exec_claim(exec, job, reason)) {
		memcpy(job->record.message, message, sizeof(message));
		osd_unlock(&exec->lock);
		osd_exec_end_claimed(exec, job, reason);
		osd_lock(&exec->lock);
	}
	osd_job_unref(job);
}

bool osd_after_step(struct osd_exec *exec, bool *ret_pause)
{
	struct osd_job *job = NULL;

	osd_assert_held(&exec->lock);
	*ret_pause = exec->flow->settling != NULL;
	if (exec->flow->settling)
		settle_some(exec);
	else
		job = take_failed(exec);
	if (job)
		end_failed(exec, job);
	return *ret_pause || job;
}

void osd_after_drop_failed(struct osd_exec *exec)
{
	osd_assert_held(&exec->lock);
	while (exec->flow->failed) { /* the next start finds them again */
		struct osd_job *job = exec->flow->failed;

		exec->flow->failed = job->after->next_failed;
		osd_job_unref(job);
	}
}
