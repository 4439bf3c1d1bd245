/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pages.c -- attribute pages of jobs: status 2000_0001h and control 2000_0003h of a surrogate.
 * An unfinished job's status comes from memory, and a finished one's from its record.
 * Elsewhere: the bytes of the status page (status.c), payload (payload.c), the root's page
 * (root_page.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/flow/flow.h"
#include "exec/pool/pool.h"
#include "exec/run/run.h"
#include "exec/tell/tell.h"
#include "wire/cursor.h"

/* ---- status ---------------------------------------------------------------------------------- */

/* It may have to wait for more than other jobs. */
static void view_waiting(const struct osd_exec *exec, const struct osd_job *job,
			 struct osd_job_view *v)
{
	const struct osd_pool *pool = job->pool;

	osd_assert_held(&exec->lock);
	if (job->run || v->own.reason != OSD_REASON_WAITS_FOR_SLOT)
		return;
	if (pool->mode == OSD_POOL_PAUSED) {
		v->own.reason = OSD_REASON_WAITS_FOR_RESUME;
	} else if (pool->failed) {
		v->own.reason = OSD_REASON_WAITS_FOR_POOL;
		memcpy(v->why, pool->why, sizeof(v->why));
	} else if (!exec->sandboxes->welcomed) {
		v->own.reason = OSD_REASON_WAITS_FOR_SERVICE;
		snprintf(v->why, sizeof(v->why), "%s", exec->sandboxes->unfit);
	} else if (osd_supply_lacks(exec->sandboxes, &pool->supply)) {
		v->own.reason = OSD_REASON_WAITS_FOR_SANDBOX;
		snprintf(v->why, sizeof(v->why), "%s",
			 osd_supply_lacks(exec->sandboxes, &pool->supply));
	}
}

/* All but what the run knows. */
static void view_memory(const struct osd_job *job, struct osd_job_view *v)
{
	osd_assert_held(&job->exec->lock);
	osd_job_seen(job, &v->own);
	memset(v->counts, 0, sizeof(v->counts));
	v->why[0] = '\0';
	job->kind->view(job, v);
}

static void view_live(struct osd_exec *exec, const struct osd_job *job, const struct osd_txn *txn,
		      struct osd_job_view *v)
{
	osd_assert_held(&exec->lock);
	view_memory(job, v);
	if (job->pending.txn == txn && job->kind->shows_pending(job, v)) {
		v->own.state = job->pending.state;
		v->own.reason = job->pending.reason;
		v->own.generation++;
	}
	job->kind->view_parts(job, txn, v);
	if (job->started_usec == 0 && !v->own.started_msec)
		v->own.queue_usec = osd_monotonic_usec() - job->accepted_usec;
	if (job->run)
		osd_run_sample(job->run, &v->own);
	view_waiting(exec, job, v);
}

static void view_engine(struct osd_exec *exec, struct osd_job_view *v)
{
	const char *name = v->own.pool[0] ? v->own.pool : OSD_POOL_DEFAULT;
	const struct osd_pool *pool;

	osd_lock(&exec->lock);
	pool = osd_pool_find_any(exec, name, strlen(name));
	if (pool)
		memcpy(v->engine, pool->config.engine, sizeof(v->engine));
	osd_unlock(&exec->lock);
}

/* The same view for all attributes one command reads: the job goes on meanwhile.  Borrowed from txn.
 * OSD_E_NO_OBJECT: not a job's surrogate; then the view has no state. */
static enum osd_status get_view(struct osd_exec *exec, struct osd_txn *txn, struct osd_object_id id,
				const struct osd_job_view **ret_view)
{
	OSD_CLEANUP_FREE struct osd_job_view *v = NULL;
	const struct osd_job_record *ended = NULL;
	struct osd_job *job;
	uint32_t members;
	enum osd_status status = OSD_OK;

	*ret_view = osd_txn_kept(txn);
	if (*ret_view && osd_same_id((*ret_view)->record->id, id))
		return (*ret_view)->record->state ? OSD_OK : OSD_E_NO_OBJECT;
	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	members = job ? job->record.array.count : 0;
	v = calloc(1, sizeof(*v) + members);
	if (v && job)
		view_live(exec, job, txn, v);
	else
		ended = osd_exec_find_ended(exec, id);
	if (v && ended)
		v->own = *ended;
	osd_unlock(&exec->lock);
	if (!v)
		return OSD_E_NO_MEMORY;
	v->members = members;
	v->record = &v->own;
	if (!job && !ended)
		status = osd_job_record_get(txn, id, &v->own);
	if (status == OSD_E_MEDIUM) /* damaged: the same command may read the pages of other jobs */
		status = OSD_E_NO_OBJECT;
	if (status == OSD_E_NO_OBJECT)
		v->own = (struct osd_job_record){.id = id};
	else if (status == OSD_OK)
		view_engine(exec, v);
	else
		return status;
	*ret_view = v;
	osd_txn_keep(txn, OSD_STEAL(v));
	return status;
}

/* The jobs it was submitted after. */
static enum osd_status get_after(struct osd_txn *txn, const struct osd_job_view *v,
				 struct osd_object_id id, struct osd_wr *w)
{
	struct osd_job_predecessor list[OSD_EXEC_AFTER_MAX];
	size_t count = 0;
	enum osd_status status = OSD_OK;

	if (v->record->flags & OSD_JOB_AFTER)
		status = osd_job_after_get(txn, id, list, &count);
	for (size_t i = 0; i < count; i++) {
		osd_wr_be(w, list[i].id.partition_id, 8);
		osd_wr_be(w, list[i].id.object_id, 8);
		osd_wr_be(w, list[i].condition, 4);
		osd_wr_zero(w, 4);
	}
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* How many members of an array are in each state.  Those of an array in memory are of the moment of the view; those of
 * an array that has ended are in the store. */
static enum osd_status get_members(struct osd_txn *txn, const struct osd_job_view *v,
				   struct osd_wr *w)
{
	OSD_CLEANUP_FREE uint8_t *states = NULL;
	size_t ended[OSD_JOB_STATES_END] = {0}, length = 0, members = v->record->array.count;
	const size_t *counts = v->counts;
	enum osd_status status = OSD_OK;

	if (osd_job_state_terminal(v->record->state) && members) {
		states = malloc(members);
		if (!states)
			return OSD_E_NO_MEMORY;
		status = osd_job_payload_any(txn, v->record->id, OSD_PAYLOAD_STATES, states,
					     members, &length);
		for (size_t i = 0; status == OSD_OK && i < OSD_MIN(length, members); i++)
			ended[OSD_MIN((size_t)states[i], (size_t)OSD_JOB_STATES_END - 1)]++;
		counts = ended;
	}
	for (unsigned state = 1; state < OSD_JOB_STATES_END; state++) {
		if (counts[state] == 0)
			continue;
		osd_wr_be(w, state, 4);
		osd_wr_be(w, counts[state], 4);
	}
	return status;
}

/* They are stored once for an array, with it. */
static enum osd_status get_tags(struct osd_txn *txn, const struct osd_job_view *v, uint8_t *buffer,
				size_t capacity, size_t *ret_length)
{
	struct osd_object_id id = v->record->id;

	if (v->record->flags & OSD_JOB_MEMBER)
		id.object_id = v->record->array.object_id;
	return osd_job_payload_any(txn, id, OSD_PAYLOAD_TAGS, buffer, capacity, ret_length);
}

static enum osd_status status_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				  uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				  size_t *ret_length)
{
	struct osd_wr w = osd_wr_init(buffer, capacity);
	const struct osd_job_view *v;
	enum osd_status status = get_view(context, txn, id, &v);

	(void)page;
	*ret_length = 0;
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	switch (number) {
	case OSD_STATUS_TAGS:
		return get_tags(txn, v, buffer, capacity, ret_length);
	case OSD_STATUS_STATES:
		if (v->record->array.count && !v->members)
			return osd_job_payload_any(txn, id, OSD_PAYLOAD_STATES, buffer, capacity,
						   ret_length);
		osd_wr_bytes(&w, v->states, OSD_MIN(capacity, v->members));
		*ret_length = v->members;
		return OSD_OK;
	case OSD_STATUS_INDICES:
		return v->record->flags & OSD_JOB_RANGES
			       ? osd_job_payload_any(txn, id, OSD_PAYLOAD_INDICES, buffer, capacity,
						     ret_length)
			       : OSD_OK;
	case OSD_STATUS_AFTER:
		status = get_after(txn, v, id, &w);
		break;
	case OSD_STATUS_MEMBERS:
		status = get_members(txn, v, &w);
		break;
	default:
		osd_job_status_put(&w, v, number);
	}
	*ret_length = osd_wr_used(&w);
	return status;
}

static enum osd_status status_form(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint8_t bytes[OSD_PAGE_FORM_MAX], size_t *ret_length)
{
	const struct osd_job_view *v;
	enum osd_status status = get_view(context, txn, id, &v);

	*ret_length = status == OSD_OK ? osd_job_status_form(v, bytes) : 0;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static void tell(const struct osd_job_view *v, struct osd_peek *peek)
{
	struct osd_attr_list list = peek->list;
	struct osd_attr attr;

	if (!peek->writer)
		peek->form_length = osd_job_status_form(v, peek->form);
	while (peek->writer && osd_attr_list_next(&list, &attr)) {
		uint8_t value[8];
		struct osd_wr w = osd_wr_init(value, sizeof(value));

		osd_job_status_put(&w, v, attr.number);
		osd_attr_writer_add(peek->writer, attr.page, attr.number, value, osd_wr_used(&w));
	}
}

static void tell_live(struct osd_exec *exec, const struct osd_job *job, struct osd_peek *peek)
{
	struct osd_job_view v;

	osd_assert_held(&exec->lock);
	v.record = &v.own;
	view_memory(job, &v);
	if (job->run)
		osd_run_sample_lengths(job->run, &v.own);
	view_waiting(exec, job, &v);
	tell(&v, peek);
}

static void tell_ended(const struct osd_job_record *record, struct osd_peek *peek)
{
	struct osd_job_view v;

	v.record = record;
	v.ahead = v.waits_for = 0;
	tell(&v, peek);
}

/* A poll answered from memory: of an unfinished job, or of one that ended lately. */
static bool status_peek(void *context, struct osd_object_id id, struct osd_peek *peek)
{
	struct osd_exec *exec = context;
	const struct osd_job_record *ended;
	struct osd_job *job;
	bool live;

	if (id.object_id == 0)
		return false;
	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	live = job && !job->forget;
	ended = job ? NULL : osd_exec_find_ended(exec, id);
	if (live)
		tell_live(exec, job, peek);
	else if (ended)
		tell_ended(ended, peek);
	osd_unlock(&exec->lock);
	return live || ended;
}

/* ---- control --------------------------------------------------------------------------------- */

#define CONTROL_ACTION 1
#define CONTROL_EXPIRY 2

static enum osd_status control_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				   size_t *ret_length)
{
	if (number == CONTROL_EXPIRY)
		return status_get(context, txn, id, page, OSD_STATUS_EXPIRY, buffer, capacity,
				  ret_length);
	*ret_length = 0;
	return OSD_OK;
}

static enum osd_status control_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, uint32_t number, const uint8_t *value,
				   size_t length)
{
	const struct osd_job_view *v;
	enum osd_status status = get_view(context, txn, id, &v);

	(void)page;
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_E_PARAM_FIELD : status;
	osd_txn_keep(txn, NULL); /* what follows changes it */
	if (number == CONTROL_ACTION && length == 1)
		return osd_job_control(context, txn, id, value[0]);
	if (number == CONTROL_EXPIRY && (length == 6 || length == 8))
		return osd_job_set_expiry(context, txn, id, osd_get_be(value, length));
	return OSD_E_PARAM_FIELD;
}

/* ---- all pages ----------------------------------------------------------------------------------- */

void osd_tell_add_pages(struct osd_exec *exec, struct osd_page_provider added[OSD_JOB_PAGES])
{
	struct osd_page_provider pages[] = {
		{OSD_PAGE_JOB_STATUS, "iosd job status", status_get, exec, .last = OSD_STATUS_LAST,
		 .form = status_form, .vouches = true, .peek = status_peek,
		 .has_peek = osd_job_status_polled},
		{OSD_PAGE_JOB_PAYLOAD, "iosd job payload", osd_payload_get, exec,
		 .last = OSD_PAYLOAD_PAGE_LAST},
		{OSD_PAGE_JOB_USED, "iosd job used", osd_used_get, exec, .each = osd_used_each},
		{OSD_PAGE_JOB_CONTROL, "iosd job control", control_get, exec,
		 .last = CONTROL_EXPIRY, .set = control_set, .controls = true},
		{OSD_PAGE_EXEC_ROOT, "iosd EXEC", osd_root_page_get, exec,
		 .last = OSD_ROOT_PAGE_LAST},
		{OSD_PAGE_FUNCTIONS_ROOT, "iosd functions", osd_function_page_get, exec,
		 .last = OSD_FUNCTIONS_PAGE_LAST},
	};

	_Static_assert(OSD_ARRAY_SIZE(pages) == OSD_JOB_PAGES, "one provider per page");
	memcpy(added, pages, sizeof(pages));
	for (size_t i = 0; i < OSD_JOB_PAGES; i++)
		osd_objects_add_page(exec->objects, &added[i]);
}
