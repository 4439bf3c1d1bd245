/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status.c -- the bytes of a job's status page, made from a view of the job (tell.h).  Nothing here takes a lock or
 * asks the store. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "exec/pool/pool.h"
#include "exec/tell/tell.h"

#define STARVED_SHOWN_USEC 100000 /* less is noise of the scheduler */

static void put_poll(struct osd_wr *w, const struct osd_job_view *v)
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

static void put_limits(struct osd_wr *w, const struct osd_job_view *v)
{
#define X(field, row) osd_wr_be(w, v->record->limits.field, 8);
	OSD_JOB_LIMITS(X)
#undef X
}

static void put_zone(struct osd_wr *w, const struct osd_job_view *v)
{
	osd_wr_be(w, v->record->zone.type, 1);
	osd_wr_be(w, v->record->zone.id.partition_id, 8);
	osd_wr_be(w, v->record->zone.id.object_id, 8);
}

static void put_pool(struct osd_wr *w, const struct osd_job_view *v)
{
	osd_wr_text(w, v->record->pool[0] ? v->record->pool : OSD_POOL_DEFAULT);
}

/* The hint: the reason's sentence, with figures where they help. */
static void put_hint(struct osd_wr *w, const struct osd_job_view *v)
{
	const struct osd_job_record *record = v->record;
	char text[160];

	osd_wr_text(w, osd_job_reason_info(record->reason)->hint);
	if (record->reason == OSD_REASON_WAITS_FOR_JOB && v->waits_for) {
		snprintf(text, sizeof(text), "; it waits for %zu, the first is 0x%llx/0x%llx",
			 v->waits_for, (unsigned long long)v->awaited.partition_id,
			 (unsigned long long)v->awaited.object_id);
		osd_wr_text(w, text);
	}
	if (record->reason == OSD_REASON_WALL_LIMIT && record->starved_usec >= STARVED_SHOWN_USEC) {
		snprintf(text, sizeof(text),
			 "; it starved for %.1f s: other programs of the target's host take its "
			 "processors; raise --cpu-share of osd target serve",
			 (double)record->starved_usec / 1e6);
		osd_wr_text(w, text);
	}
	if (v->why[0]) {
		osd_wr_text(w, "; pool ");
		put_pool(w, v);
		osd_wr_text(w, ": ");
		osd_wr_text(w, v->why);
	}
	if (record->reason != OSD_REASON_MEMORY_LIMIT)
		return;
	snprintf(text, sizeof(text), "; the limit was %llu MiB, the peak %llu MiB",
		 (unsigned long long)(record->limits.memory_bytes >> 20),
		 (unsigned long long)(record->peak_bytes >> 20));
	osd_wr_text(w, text);
	/* The size of the refused request is not known, so no limit can be suggested. */
	if (record->peak_bytes < record->limits.memory_bytes / 2) {
		osd_wr_text(w, ": it asked for much more than it used");
		return;
	}
	snprintf(text, sizeof(text), ": try %llu MiB",
		 (unsigned long long)(record->limits.memory_bytes >> 19));
	osd_wr_text(w, text);
}

static void put_version(struct osd_wr *w, const struct osd_job_view *v)
{
	(void)v;
	osd_wr_be(w, OSD_JOB_STATUS_VERSION, 2);
}

static void put_position(struct osd_wr *w, const struct osd_job_view *v)
{
	osd_wr_be(w, v->ahead, 4);
}

static void put_digest(struct osd_wr *w, const struct osd_job_view *v)
{
	osd_wr_bytes(w, v->record->code_sha256, sizeof(v->record->code_sha256));
}

/* The engine, and the package set the last attempt had. */
static void put_engine(struct osd_wr *w, const struct osd_job_view *v)
{
	osd_wr_text(w, v->engine[0] ? v->engine : "python");
	if (v->record->set[0])
		osd_wr_text(w, " ");
	osd_wr_text(w, v->record->set);
}

static void put_key(struct osd_wr *w, const struct osd_job_view *v)
{
	osd_wr_bytes(w, v->record->key, v->record->key_length);
}

static void put_label(struct osd_wr *w, const struct osd_job_view *v)
{
	osd_wr_text(w, osd_job_reason_info(v->record->reason)->label);
}

static void put_id(struct osd_wr *w, const struct osd_object_id *id)
{
	if (id->object_id == 0)
		return;
	osd_wr_be(w, id->partition_id, 8);
	osd_wr_be(w, id->object_id, 8);
}

static void put_awaited(struct osd_wr *w, const struct osd_job_view *v)
{
	put_id(w, &v->awaited);
}

static void put_array(struct osd_wr *w, const struct osd_job_view *v)
{
	const struct osd_job_array *place = &v->record->array;

	if (place->object_id == 0)
		return;
	osd_wr_be(w, place->object_id, 8);
	osd_wr_be(w, place->index, 4);
	osd_wr_be(w, place->count, 4);
	osd_wr_be(w, place->at_once, 4);
}

static void put_offload(struct osd_wr *w, const struct osd_job_view *v)
{
	const struct osd_job_offload *offload = &v->record->offload;

	if (!(v->record->flags & OSD_JOB_PURE))
		return;
	osd_wr_be(w, offload->home_usec, 8);
	osd_wr_be(w, offload->home_bytes, 8);
	osd_wr_be(w, offload->near_usec, 8);
	osd_wr_be(w, offload->wait_usec, 8);
	osd_wr_be(w, offload->weighed_usec, 8);
}

/* An attribute of the status page: a member of the record, or a function. */
struct status_row {
	enum { UNDEFINED, IS_NUMBER, IS_NUMBER_BUT_0, IS_TEXT, IS_ID, IS_MADE } kind;
	uint16_t offset, size;
	uint8_t shown; /* bytes of a number on the page */
	void (*put)(struct osd_wr *w, const struct osd_job_view *v);
};

#define MEMBER(is, member, bytes)                                                                  \
	{                                                                                          \
		is, offsetof(struct osd_job_record, member),                                       \
			sizeof(((struct osd_job_record *)0)->member), bytes, NULL                  \
	}
#define NUMBER(member, bytes) MEMBER(IS_NUMBER, member, bytes)
#define TEXT(member)	      MEMBER(IS_TEXT, member, 0)
#define ID(member)	      MEMBER(IS_ID, member, 0)
#define FUNCTION(function)                                                                         \
	{                                                                                          \
		IS_MADE, 0, 0, 0, function                                                         \
	}
/* From 1 on. */
static const struct status_row status_rows[] = {
	FUNCTION(put_version),	   NUMBER(generation, 8),      NUMBER(state, 1),
	NUMBER(reason, 2),	   NUMBER(exit_code, 4),       NUMBER(signal, 1),
	NUMBER(attempt, 2),	   NUMBER(progress, 2),	       TEXT(message),
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
	FUNCTION(put_label),	   FUNCTION(put_hint),	       TEXT(name),
	ID(predecessor), /* the job this one is run for again */
};
_Static_assert(OSD_ARRAY_SIZE(status_rows) == OSD_STATUS_TAGS - 1, "a row for each attribute");

/* From OSD_STATUS_TAGS on. */
static const struct status_row later_rows[] = {
#define LATER(name) [OSD_STATUS_##name - OSD_STATUS_TAGS]
	LATER(AWAITED) = FUNCTION(put_awaited),
	LATER(ARRAY) = FUNCTION(put_array),
	LATER(STARVED) = MEMBER(IS_NUMBER_BUT_0, starved_usec, 8),
	LATER(BEGIN) = MEMBER(IS_NUMBER_BUT_0, begin_msec, 6),
	LATER(PRINCIPAL) = TEXT(principal),
	LATER(FUNCTION) = ID(function.id),
	LATER(SIGNER) = TEXT(function.signer),
	LATER(OFFLOAD) = FUNCTION(put_offload),
#undef LATER
};

static inline uint64_t get_number(const void *member, size_t size)
{
	if (size == 8)
		return *(const uint64_t *)member;
	if (size == 4)
		return *(const uint32_t *)member;
	return size == 2 ? *(const uint16_t *)member : *(const uint8_t *)member;
}

static inline void put_row(struct osd_wr *w, const struct osd_job_view *v,
			   const struct status_row *row)
{
	const void *member = (const char *)v->record + row->offset;

	if (row->kind == IS_NUMBER && row->shown == 8) /* a constant width is quicker */
		osd_wr_be(w, get_number(member, row->size), 8);
	else if (row->kind == IS_NUMBER)
		osd_wr_be(w, get_number(member, row->size), row->shown);
	else if (row->kind == IS_MADE)
		row->put(w, v);
	else if (row->kind == IS_TEXT)
		osd_wr_text(w, member);
	else if (row->kind == IS_ID)
		put_id(w, member);
	else if (row->kind == IS_NUMBER_BUT_0 && get_number(member, row->size))
		osd_wr_be(w, get_number(member, row->size), row->shown);
}

void osd_job_status_put(struct osd_wr *w, const struct osd_job_view *v, uint32_t number)
{
	if (number >= 1 && number <= OSD_ARRAY_SIZE(status_rows))
		put_row(w, v, &status_rows[number - 1]);
	else if (number >= OSD_STATUS_TAGS && number <= OSD_STATUS_LAST)
		put_row(w, v, &later_rows[number - OSD_STATUS_TAGS]);
}

/* The attributes of the page's fixed form, which saves a poll the list of names and values (docs/jobs.md):
 * version, state, signal, exit code, generation, reason.  Then attempt, progress, poll ms, position, and
 * the lengths of stdout and result. */
static const uint8_t polled[] = {0x01, 0x03, 0x06, 0x05, 0x02, 0x04,
				 0x07, 0x08, 0x10, 0x0f, 0x18, 0x17};

bool osd_job_status_polled(uint32_t number)
{
	return number <= UINT8_MAX && memchr(polled, (int)number, sizeof(polled));
}

size_t osd_job_status_form(const struct osd_job_view *v, uint8_t bytes[OSD_PAGE_FORM_MAX])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_PAGE_FORM_MAX);

	for (size_t i = 0; i < sizeof(polled); i++)
		put_row(&w, v, &status_rows[polled[i] - 1]);
	return osd_wr_used(&w);
}
