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

#define STATUS_EXPIRY 0x23
/* Behind the rows: */
enum {
	STATUS_TAGS = 0x28,	 /* key=value lines */
	STATUS_AFTER = 0x29,	 /* entries of EXEC parameter AFTER */
	STATUS_AWAITED = 0x2a,	 /* the first job it still waits for: partition, object */
	STATUS_ARRAY = 0x2b,	 /* be64 object, be32 index or first, be32 members, be32 at once */
	STATUS_MEMBERS = 0x2c,	 /* of an array: {be32 state, be32 members in it} */
	STATUS_STATES = 0x2d,	 /* of an array: a byte a member, its state */
	STATUS_STARVED = 0x2e,	 /* be64 us: how long its run waited for a processor */
	STATUS_INDICES = 0x2f,	 /* of an array with gaps: its indices (wire/index_ranges.h) */
	STATUS_BEGIN = 0x30,	 /* be48 ms since 1970: it is held until then */
	STATUS_PRINCIPAL = 0x32, /* the principal that submitted it */
	STATUS_FUNCTION = 0x33,	 /* the function that it calls: partition, object */
	STATUS_SIGNER = 0x34,	 /* the function's signer */
	STATUS_OFFLOAD = 0x3a,	 /* of a pure job: five be64, struct osd_job_offload */
	STATUS_END
};

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
	pool = osd_pool_find_any(exec, name);
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

static void put_offload(const struct osd_job_record *record, struct osd_wr *w)
{
	const struct osd_job_offload *offload = &record->offload;

	if (!(record->flags & OSD_JOB_PURE))
		return;
	osd_wr_be(w, offload->home_usec, 8);
	osd_wr_be(w, offload->home_bytes, 8);
	osd_wr_be(w, offload->near_usec, 8);
	osd_wr_be(w, offload->wait_usec, 8);
	osd_wr_be(w, offload->weighed_usec, 8);
}

/* One of the attributes behind the rows. */
static enum osd_status get_more(struct osd_txn *txn, const struct osd_job_view *v,
				struct osd_object_id id, uint32_t number, struct osd_wr *w)
{
	switch (number) {
	case STATUS_AFTER:
		return get_after(txn, v, id, w);
	case STATUS_AWAITED:
		osd_job_put_id(w, v->awaited);
		return OSD_OK;
	case STATUS_ARRAY:
		osd_array_put_place(w, &v->record->array);
		return OSD_OK;
	case STATUS_STARVED:
		if (v->record->starved_usec)
			osd_wr_be(w, v->record->starved_usec, 8);
		return OSD_OK;
	case STATUS_PRINCIPAL:
		osd_wr_text(w, v->record->principal);
		return OSD_OK;
	case STATUS_SIGNER:
		osd_wr_text(w, v->record->function.signer);
		return OSD_OK;
	case STATUS_FUNCTION:
		osd_job_put_id(w, v->record->function.id);
		return OSD_OK;
	case STATUS_BEGIN:
		if (v->record->begin_msec)
			osd_wr_be(w, v->record->begin_msec, 6);
		return OSD_OK;
	case STATUS_OFFLOAD:
		put_offload(v->record, w);
		return OSD_OK;
	case STATUS_MEMBERS:
		return osd_array_put_counts(txn, v->record, v->counts, w);
	default:
		return OSD_OK;
	}
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
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	if (status == OSD_OK && number == STATUS_TAGS)
		return get_tags(txn, v, buffer, capacity, ret_length);
	if (status == OSD_OK && number == STATUS_STATES && v->members) {
		*ret_length = v->members;
		memcpy(buffer, v->states, OSD_MIN(capacity, v->members));
		return OSD_OK;
	}
	if (status == OSD_OK && number == STATUS_STATES)
		return osd_array_get_states(txn, v->record, buffer, capacity, ret_length);
	if (status == OSD_OK && number == STATUS_INDICES)
		return osd_array_get_indices(txn, v->record, buffer, capacity, ret_length);
	if (status == OSD_OK && number > OSD_JOB_STATUS_ROWS)
		status = get_more(txn, v, id, number, &w);
	else if (status == OSD_OK)
		osd_job_status_put(&w, v, number);
	*ret_length = osd_wr_used(&w);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
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
		return status_get(context, txn, id, page, STATUS_EXPIRY, buffer, capacity,
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
		{OSD_PAGE_JOB_STATUS, "iosd job status", status_get, exec, .last = STATUS_END - 1,
		 .form = status_form, .vouches = true, .peek = status_peek,
		 .has_peek = osd_job_status_polled},
		{OSD_PAGE_JOB_PAYLOAD, "iosd job payload", osd_payload_get, exec,
		 .last = OSD_PAYLOAD_PAGE_LAST},
		{OSD_PAGE_JOB_USED, "iosd job used", osd_used_get, exec, .each = osd_used_each},
		{OSD_PAGE_JOB_CONTROL, "iosd job control", control_get, exec, .last = CONTROL_EXPIRY,
		 .set = control_set, .controls = true},
		{OSD_PAGE_EXEC_ROOT, "iosd EXEC", osd_root_page_get, exec, .last = OSD_ROOT_PAGE_LAST},
		{OSD_PAGE_FUNCTIONS_ROOT, "iosd functions", osd_function_page_get, exec,
		 .last = OSD_FUNCTIONS_PAGE_LAST},
	};

	_Static_assert(OSD_ARRAY_SIZE(pages) == OSD_JOB_PAGES, "one provider per page");
	memcpy(added, pages, sizeof(pages));
	for (size_t i = 0; i < OSD_JOB_PAGES; i++)
		osd_objects_add_page(exec->objects, &added[i]);
}
