/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_pages.c -- attribute pages of jobs: status 2000_0001h and control 2000_0003h of a surrogate
 * (design D13).  An unfinished job's status comes from memory, a
 * finished one's from its record.  Not here: payload (job_payload.c), the root's page (root_page.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/proxy.h"
#include "wire/cursor.h"

/* What a status attribute is made from. */
struct view {
	const struct osd_job_record *record; /* own, or borrowed */
	size_t ahead;
	size_t waits_for; /* so many other jobs, and this is the first */
	struct osd_object_id awaited;
	size_t counts[OSD_JOB_STATES_END]; /* of an unfinished array's members, by state */
	char why[OSD_POOL_WHY_MAX];	   /* its pool does not serve; "" */
	struct osd_job_record own;	   /* as it is now; unset while another's is borrowed */
	size_t members;			   /* of an unfinished array, and the state of each */
	uint8_t states[];
};

/* ---- status ---------------------------------------------------------------------------------- */

static void put_text(struct osd_wr *w, const char *text)
{
	osd_wr_bytes(w, text, strlen(text));
}

static void put_poll(struct osd_wr *w, const struct view *v)
{
	uint64_t msec = 0;

	if (v->record->state == OSD_STATE_HELD)
		msec = 1000;
	else if (v->waits_for)
		msec = 100;
	else if (v->record->state == OSD_STATE_QUEUED)
		msec = 5 + 5 * v->ahead;
	else if (!osd_job_state_terminal(v->record->state))
		msec = 2 + v->record->run_usec / 20000; /* a twentieth of the time it has run */
	osd_wr_be(w, OSD_MIN(msec, 1000), 4);
}

static void put_limits(struct osd_wr *w, const struct view *v)
{
#define X(field, row) osd_wr_be(w, v->record->limits.field, 8);
	OSD_JOB_LIMITS(X)
#undef X
}

static void put_zone(struct osd_wr *w, const struct view *v)
{
	osd_wr_be(w, v->record->zone.type, 1);
	osd_wr_be(w, v->record->zone.id.partition_id, 8);
	osd_wr_be(w, v->record->zone.id.object_id, 8);
}

static void put_pool(struct osd_wr *w, const struct view *v)
{
	put_text(w, v->record->pool[0] ? v->record->pool : OSD_POOL_DEFAULT);
}

/* What to do about it: the reason's sentence, with figures where they help. */
static void put_hint(struct osd_wr *w, const struct view *v)
{
	const struct osd_job_record *record = v->record;
	char text[160];

	put_text(w, osd_job_reason_info(record->reason)->hint);
	if (record->reason == OSD_REASON_WAITS_FOR_JOB && v->waits_for) {
		snprintf(text, sizeof(text), "; it waits for %zu, the first is 0x%llx/0x%llx",
			 v->waits_for, (unsigned long long)v->awaited.partition_id,
			 (unsigned long long)v->awaited.object_id);
		put_text(w, text);
	}
	if (v->why[0]) {
		put_text(w, "; pool ");
		put_pool(w, v);
		put_text(w, ": ");
		put_text(w, v->why);
	}
	if (record->reason != OSD_REASON_MEMORY_LIMIT)
		return;
	snprintf(text, sizeof(text), "; the limit was %llu MiB, the peak %llu MiB: try %llu MiB",
		 (unsigned long long)(record->limits.memory_bytes >> 20),
		 (unsigned long long)(record->peak_bytes >> 20),
		 (unsigned long long)(record->limits.memory_bytes >> 19));
	put_text(w, text);
}

static void put_version(struct osd_wr *w, const struct view *v)
{
	(void)v;
	osd_wr_be(w, OSD_JOB_STATUS_VERSION, 2);
}

static void put_message(struct osd_wr *w, const struct view *v)
{
	put_text(w, v->record->message);
}

static void put_position(struct osd_wr *w, const struct view *v)
{
	osd_wr_be(w, v->ahead, 4);
}

static void put_digest(struct osd_wr *w, const struct view *v)
{
	osd_wr_bytes(w, v->record->code_sha256, sizeof(v->record->code_sha256));
}

/* The engine, and the package set the last attempt had. */
static void put_engine(struct osd_wr *w, const struct view *v)
{
	put_text(w, "python");
	if (v->record->set[0])
		put_text(w, " ");
	put_text(w, v->record->set);
}

static void put_key(struct osd_wr *w, const struct view *v)
{
	osd_wr_bytes(w, v->record->key, v->record->key_length);
}

static void put_label(struct osd_wr *w, const struct view *v)
{
	put_text(w, osd_job_reason_info(v->record->reason)->label);
}

static void put_name(struct osd_wr *w, const struct view *v)
{
	put_text(w, v->record->name);
}

static void put_id(struct osd_wr *w, struct osd_object_id id)
{
	if (id.object_id == 0)
		return;
	osd_wr_be(w, id.partition_id, 8);
	osd_wr_be(w, id.object_id, 8);
}

/* The job this one is run for again. */
static void put_predecessor(struct osd_wr *w, const struct view *v)
{
	put_id(w, v->record->predecessor);
}

/* The status page by number, from 1: a number of the record shown in so many bytes, or a
 * function. */
static const struct status_row {
	uint16_t offset;
	uint8_t size, shown;
	void (*put)(struct osd_wr *w, const struct view *v);
} status_rows[] = {
#define NUMBER(member, bytes)                                                                      \
	{                                                                                          \
		offsetof(struct osd_job_record, member),                                           \
			sizeof(((struct osd_job_record *)0)->member), bytes, NULL                  \
	}
#define FUNCTION(function)                                                                         \
	{                                                                                          \
		0, 0, 0, function                                                                  \
	}
	FUNCTION(put_version),	   NUMBER(generation, 8),      NUMBER(state, 1),
	NUMBER(reason, 2),	   NUMBER(exit_code, 4),       NUMBER(signal, 1),
	NUMBER(attempt, 2),	   NUMBER(progress, 2),	       FUNCTION(put_message),
	NUMBER(submitted_msec, 6), NUMBER(started_msec, 6),    NUMBER(ended_msec, 6),
	NUMBER(queue_usec, 8),	   NUMBER(run_usec, 8),	       FUNCTION(put_position),
	FUNCTION(put_poll), /* 10h */
	NUMBER(cpu_user_usec, 8),  NUMBER(cpu_system_usec, 8), NUMBER(peak_bytes, 8),
	NUMBER(bytes_read, 8),	   NUMBER(bytes_written, 8),   NUMBER(calls, 8),
	NUMBER(result_length, 8),  NUMBER(stdout_length, 8),   NUMBER(stderr_length, 8),
	NUMBER(flags, 4),	   NUMBER(result_object, 8),   FUNCTION(put_digest),
	FUNCTION(put_zone),	   FUNCTION(put_pool),	       NUMBER(sandbox_id, 8),
	FUNCTION(put_engine), /* 20h */
	FUNCTION(put_limits),	   FUNCTION(put_key),	       NUMBER(expiry_msec, 6),
	FUNCTION(put_label),	   FUNCTION(put_hint),	       FUNCTION(put_name),
	FUNCTION(put_predecessor),
#undef NUMBER
#undef FUNCTION
};

static uint64_t record_number(const struct osd_job_record *record, const struct status_row *row)
{
	const uint8_t *at = (const uint8_t *)record + row->offset;
	uint16_t two;
	uint32_t four;
	uint64_t eight;

	switch (row->size) {
	case 1:
		return *at;
	case 2:
		memcpy(&two, at, sizeof(two));
		return two;
	case 4:
		memcpy(&four, at, sizeof(four));
		return four;
	default:
		memcpy(&eight, at, sizeof(eight));
		return eight;
	}
}

/* One attribute of the status page; nothing written: undefined. */
static void put_status(struct osd_wr *w, const struct view *v, uint32_t number)
{
	const struct status_row *row;

	if (number < 1 || number > OSD_ARRAY_SIZE(status_rows))
		return;
	row = &status_rows[number - 1];
	if (row->put)
		row->put(w, v);
	else
		osd_wr_be(w, record_number(v->record, row), row->shown);
}

#define STATUS_LAST   OSD_ARRAY_SIZE(status_rows)
#define STATUS_EXPIRY 0x23
/* Not in struct view: */
enum {
	STATUS_TAGS = 0x28,    /* key=value lines */
	STATUS_AFTER = 0x29,   /* entries of EXEC parameter AFTER */
	STATUS_AWAITED = 0x2a, /* the first job it still waits for: partition, object */
	STATUS_ARRAY = 0x2b,   /* be64 object, be32 index or first, be32 members, be32 at once */
	STATUS_MEMBERS = 0x2c, /* of an array: {be32 state, be32 members in it} */
	STATUS_STATES = 0x2d,  /* of an array: a byte a member, its state */
	STATUS_END
};

/* exec->lock held.  What an array shows follows from its members. */
static void view_array(const struct osd_job *job, struct view *v)
{
	const struct osd_array *array = job->array;
	uint8_t state = osd_array_state(array);

	memcpy(v->counts, array->counts, sizeof(v->counts));
	if (state == v->own.state)
		return;
	v->own.state = state;
	v->own.reason = state == OSD_STATE_RUNNING ? OSD_REASON_NONE
			: state == OSD_STATE_HELD  ? OSD_REASON_HELD
						   : OSD_REASON_WAITS_FOR_SLOT;
	if (v->own.started_msec)
		v->own.run_usec =
			1000 * (osd_wall_msec() - OSD_MIN(osd_wall_msec(), v->own.started_msec));
}

/* exec->lock held.  What a member waits for is its array's business, too. */
static void view_member(const struct osd_job *job, struct view *v)
{
	const struct osd_job *head = job->head;
	uint32_t at_once = head->record.array.at_once;

	v->ahead = osd_fair_queue_ahead(&job->pool->queue, &head->entry) + osd_array_ahead(job);
	v->waits_for = osd_after_waits_for(head, &v->awaited);
	if (v->own.reason != OSD_REASON_WAITS_FOR_SLOT)
		return;
	if (v->waits_for)
		v->own.reason = OSD_REASON_WAITS_FOR_JOB;
	else if (at_once && head->array->running >= at_once)
		v->own.reason = OSD_REASON_WAITS_FOR_TURN;
}

/* exec->lock held.  It may have to wait for more than other jobs. */
static void view_waiting(const struct osd_exec *exec, const struct osd_job *job, struct view *v)
{
	const struct osd_pool *pool = job->pool;

	if (job->run || v->own.reason != OSD_REASON_WAITS_FOR_SLOT)
		return;
	if (pool->mode == OSD_POOL_PAUSED) {
		v->own.reason = OSD_REASON_WAITS_FOR_RESUME;
	} else if (pool->failed) {
		v->own.reason = OSD_REASON_WAITS_FOR_POOL;
		memcpy(v->why, pool->why, sizeof(v->why));
	} else if (!exec->pool.welcomed) {
		v->own.reason = OSD_REASON_WAITS_FOR_SERVICE;
		snprintf(v->why, sizeof(v->why), "%s", exec->pool.unfit);
	} else if (osd_pool_lacks(exec, pool)) {
		v->own.reason = OSD_REASON_WAITS_FOR_SANDBOX;
		snprintf(v->why, sizeof(v->why), "%s", osd_pool_lacks(exec, pool));
	}
}

/* exec->lock held.  But for what its run knows. */
static void view_memory(struct osd_job *job, struct view *v)
{
	osd_job_show_progress(job, osd_monotonic_usec(), false);
	v->own = job->record;
	v->ahead = osd_fair_queue_ahead(&job->pool->queue, &job->entry);
	v->waits_for = osd_after_waits_for(job, &v->awaited);
	memset(v->counts, 0, sizeof(v->counts));
	v->why[0] = '\0';
	if (job->array)
		view_array(job, v);
	else if (job->head)
		view_member(job, v);
}

/* exec->lock held. */
static void view_live(struct osd_exec *exec, struct osd_job *job, const struct osd_txn *txn,
		      struct view *v)
{
	view_memory(job, v);
	if (job->pending.txn == txn &&
	    (!job->array || (v->own.state != OSD_STATE_RUNNING && !job->array->ending_next))) {
		v->own.state = job->pending.state;
		v->own.reason = job->pending.reason;
		v->own.generation++;
	}
	if (job->array)
		osd_array_view(job->array, txn, v->counts, v->states);
	if (job->started_usec == 0 && !v->own.started_msec)
		v->own.queue_usec = osd_monotonic_usec() - job->accepted_usec;
	if (job->run)
		osd_run_sample(job->run, &v->own);
	view_waiting(exec, job, v);
}

static bool is_of(const struct view *v, struct osd_object_id id)
{
	return v->record->id.partition_id == id.partition_id &&
	       v->record->id.object_id == id.object_id;
}

/* The same view for all attributes one command reads: the job goes on meanwhile.  Borrowed from txn.
 * OSD_E_NO_OBJECT: not a job's surrogate. */
static enum osd_status get_view(struct osd_exec *exec, struct osd_txn *txn, struct osd_object_id id,
				const struct view **ret_view)
{
	OSD_CLEANUP_FREE struct view *v = NULL;
	const struct osd_job_record *ended = NULL;
	struct osd_job *job;
	uint32_t members;
	enum osd_status status = OSD_OK;

	*ret_view = osd_txn_kept(txn);
	if (*ret_view && is_of(*ret_view, id))
		return OSD_OK;
	pthread_mutex_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	members = job && job->array ? job->record.array.count : 0;
	v = calloc(1, sizeof(*v) + members);
	if (v && job)
		view_live(exec, job, txn, v);
	else
		ended = osd_exec_find_ended(exec, id);
	if (v && ended)
		v->own = *ended;
	pthread_mutex_unlock(&exec->lock);
	if (!v)
		return OSD_E_NO_MEMORY;
	v->members = members;
	v->record = &v->own;
	if (!job && !ended)
		status = osd_job_record_get(txn, id, &v->own);
	if (status != OSD_OK)
		return status;
	*ret_view = v;
	osd_txn_keep(txn, OSD_STEAL(v));
	return OSD_OK;
}

/* The jobs it was submitted after. */
static enum osd_status get_after(struct osd_txn *txn, const struct view *v, struct osd_object_id id,
				 struct osd_wr *w)
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

/* One of the attributes behind the rows. */
static enum osd_status get_more(struct osd_txn *txn, const struct view *v, struct osd_object_id id,
				uint32_t number, struct osd_wr *w)
{
	switch (number) {
	case STATUS_AFTER:
		return get_after(txn, v, id, w);
	case STATUS_AWAITED:
		put_id(w, v->awaited);
		return OSD_OK;
	case STATUS_ARRAY:
		osd_array_put_place(w, &v->record->array);
		return OSD_OK;
	case STATUS_MEMBERS:
		return osd_array_put_counts(txn, v->record, v->counts, w);
	default:
		return OSD_OK;
	}
}

static enum osd_status status_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				  uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				  size_t *ret_length)
{
	struct osd_wr w = osd_wr_init(buffer, capacity);
	const struct view *v;
	enum osd_status status;

	(void)page;
	if (number == STATUS_TAGS)
		return osd_job_payload_any(txn, id, OSD_PAYLOAD_TAGS, buffer, capacity, ret_length);
	status = get_view(context, txn, id, &v);
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	if (status == OSD_OK && number == STATUS_STATES && v->members) {
		*ret_length = v->members;
		memcpy(buffer, v->states, OSD_MIN(capacity, v->members));
		return OSD_OK;
	}
	if (status == OSD_OK && number == STATUS_STATES)
		return osd_array_get_states(txn, v->record, buffer, capacity, ret_length);
	if (status == OSD_OK && number > STATUS_LAST)
		status = get_more(txn, v, id, number, &w);
	else if (status == OSD_OK)
		put_status(&w, v, number);
	*ret_length = osd_wr_used(&w);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status status_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, osd_attr_fn *fn, void *arg)
{
	uint8_t value[OSD_JOB_TAGS_MAX];
	size_t length = 0;
	const struct view *v;
	enum osd_status status = get_view(context, txn, id, &v);

	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	for (uint32_t number = 1; number <= STATUS_LAST && status == OSD_OK; number++) {
		struct osd_wr w = osd_wr_init(value, sizeof(value));

		put_status(&w, v, number);
		if (osd_wr_used(&w))
			status = fn(arg, page, number, value, osd_wr_used(&w));
	}
	if (status == OSD_OK)
		status = osd_job_payload_any(txn, id, OSD_PAYLOAD_TAGS, value, sizeof(value),
					     &length);
	if (status == OSD_OK && length)
		status = fn(arg, page, STATUS_TAGS, value, length);
	for (uint32_t number = STATUS_AFTER; number < STATUS_STATES && status == OSD_OK; number++) {
		struct osd_wr w = osd_wr_init(value, sizeof(value));

		status = get_more(txn, v, id, number, &w);
		if (status == OSD_OK && osd_wr_used(&w))
			status = fn(arg, page, number, value, osd_wr_used(&w));
	}
	if (status != OSD_OK)
		return status;
	return v->members ? fn(arg, page, STATUS_STATES, v->states, v->members)
			  : osd_array_each_states(txn, v->record, STATUS_STATES, fn, arg);
}

/* What polling needs, without a list of names to send and of values to take apart: version, state,
 * signal, exit code, generation, reason, attempt, progress, poll ms, position, lengths of stdout and
 * result (docs/jobs.md). */
static const uint8_t polled[] = {0x01, 0x03, 0x06, 0x05, 0x02, 0x04,
				 0x07, 0x08, 0x10, 0x0f, 0x18, 0x17};

bool osd_exec_is_polled(uint32_t page, uint32_t number)
{
	return page == OSD_PAGE_JOB_STATUS && number <= UINT8_MAX &&
	       memchr(polled, (int)number, sizeof(polled));
}

static size_t put_form(const struct view *v, uint8_t bytes[OSD_PAGE_FORM_MAX])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_PAGE_FORM_MAX);

	for (size_t i = 0; i < sizeof(polled); i++)
		put_status(&w, v, polled[i]);
	return osd_wr_used(&w);
}

static enum osd_status status_form(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint8_t bytes[OSD_PAGE_FORM_MAX], size_t *ret_length)
{
	const struct view *v;
	enum osd_status status = get_view(context, txn, id, &v);

	*ret_length = status == OSD_OK ? put_form(v, bytes) : 0;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static void tell(const struct view *v, struct osd_job_answer *answer)
{
	struct osd_attr_list list = answer->list;
	struct osd_attr attr;

	if (!answer->writer)
		answer->form_length = put_form(v, answer->form);
	while (answer->writer && osd_attr_list_next(&list, &attr)) {
		uint8_t value[8];
		struct osd_wr w = osd_wr_init(value, sizeof(value));

		put_status(&w, v, attr.number);
		osd_attr_writer_add(answer->writer, attr.page, attr.number, value, osd_wr_used(&w));
	}
}

void osd_job_tell_live(struct osd_exec *exec, struct osd_job *job, struct osd_job_answer *answer)
{
	struct view v;

	v.record = &v.own;
	view_memory(job, &v);
	if (job->run)
		osd_run_sample_lengths(job->run, &v.own);
	view_waiting(exec, job, &v);
	tell(&v, answer);
}

void osd_job_tell_ended(const struct osd_job_record *record, struct osd_job_answer *answer)
{
	struct view v;

	v.record = record;
	v.ahead = v.waits_for = 0;
	tell(&v, answer);
}

static enum osd_status read_only(void *context, struct osd_txn *txn, struct osd_object_id id,
				 uint32_t page, uint32_t number, const uint8_t *value,
				 size_t length)
{
	(void)context, (void)txn, (void)id, (void)page, (void)number, (void)value, (void)length;
	return OSD_E_PARAM_FIELD;
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

static enum osd_status control_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				    uint32_t page, osd_attr_fn *fn, void *arg)
{
	uint8_t value[8];
	size_t length = 0;
	enum osd_status status =
		control_get(context, txn, id, page, CONTROL_EXPIRY, value, sizeof(value), &length);

	if (status == OSD_OK && length)
		status = fn(arg, page, CONTROL_EXPIRY, value, length);
	return status;
}

static enum osd_status control_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				   uint32_t page, uint32_t number, const uint8_t *value,
				   size_t length)
{
	const struct view *v;
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

void osd_job_pages_add(struct osd_exec *exec)
{
	struct osd_page_provider pages[] = {
		{OSD_PAGE_JOB_STATUS, "iosd job status", status_get, status_each, read_only, exec,
		 status_form, true},
		{OSD_PAGE_JOB_PAYLOAD, "iosd job payload", osd_payload_get, osd_payload_each,
		 read_only, exec, NULL, false},
		{OSD_PAGE_JOB_CONTROL, "iosd job control", control_get, control_each, control_set,
		 exec, NULL, false},
		{OSD_PAGE_EXEC_ROOT, "iosd EXEC", osd_root_page_get, osd_root_page_each, read_only,
		 exec, NULL, false},
	};

	_Static_assert(OSD_ARRAY_SIZE(status_rows) == 0x27, "design D13");
	_Static_assert(sizeof(pages) == sizeof(exec->pages), "one provider per page");
	memcpy(exec->pages, pages, sizeof(pages));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(exec->pages); i++)
		osd_objects_add_page(exec->objects, &exec->pages[i]);
}
