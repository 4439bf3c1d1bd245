/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copies.c -- see copies.h. */
#include "command/copies.h"

#include "base/lock.h"
#include "command/attributes.h"
#include "command/context.h"
#include "wire/continuation.h"

/* One moment, the present; nothing is frozen (root information 300h-310h have no value). */
enum osd_status osd_copies_source(const struct osd_command_context *ctx,
				  struct osd_copy_source *ret_source)
{
	struct osd_descriptor descriptor;
	enum osd_status status = OSD_E_CDB_FIELD;

	if (osd_continuation_find(&ctx->continuation, OSD_DESC_COPY_SOURCE, &descriptor))
		status = osd_copy_source_decode(&descriptor, ret_source);
	if (status == OSD_OK &&
	    (ret_source->freeze || ret_source->time_of_duplication != 0 ||
	     ret_source->partition_id == 0 || ret_source->object_id < OSD_FIRST_ID))
		status = OSD_E_CDB_FIELD;
	return status;
}

static bool names_source(const struct osd_command_context *ctx, struct osd_object_id *ret_id)
{
	struct osd_copy_source source;

	if (osd_copies_source(ctx, &source) != OSD_OK)
		return false;
	*ret_id = (struct osd_object_id){source.partition_id, source.object_id};
	return true;
}

void osd_copies_init(struct osd_copies *copies, void (*requeue)(struct osd_request *request))
{
	copies->requeue = requeue;
	copies->list = NULL;
	atomic_init(&copies->count, 0);
	osd_lock_init(&copies->lock, OSD_RANK_COPIES);
}

void osd_copies_release(struct osd_copies *copies)
{
	osd_lock_destroy(&copies->lock);
}

void osd_copies_begin(struct osd_copies *copies, struct osd_copying *copying,
		      struct osd_object_id source, bool excludes_readers)
{
	*copying = (struct osd_copying){.source = source, .excludes_readers = excludes_readers};
	copying->last = &copying->waiting;
	if (!copies)
		return;
	osd_lock(&copies->lock);
	copying->next = copies->list;
	copies->list = copying;
	atomic_fetch_add(&copies->count, 1);
	osd_unlock(&copies->lock);
}

static void requeue_all(struct osd_copies *copies, struct osd_request *list)
{
	while (list) {
		struct osd_request *request = list;

		list = request->next;
		copies->requeue(request);
	}
}

void osd_copies_end(struct osd_copies *copies, struct osd_copying *copying)
{
	struct osd_copying **at;

	if (!copies)
		return;
	osd_lock(&copies->lock);
	at = &copies->list;
	while (*at != copying)
		at = &(*at)->next;
	*at = copying->next;
	atomic_fetch_sub(&copies->count, 1);
	osd_unlock(&copies->lock);
	requeue_all(copies, copying->waiting);
}

/* A command that does not use the data may still set its length, with an attribute. */
static enum osd_data_use use_of(const struct osd_command_context *ctx)
{
	if (ctx->def->data_use == OSD_USE_NONE &&
	    osd_attributes_sets(ctx->attributes, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH))
		return OSD_USE_CHANGES;
	return ctx->def->data_use;
}

static bool excludes(const struct osd_copying *copying, struct osd_object_id object,
		     enum osd_data_use use)
{
	if (!osd_same_id(copying->source, object))
		return false;
	if (copying->excludes_readers || use == OSD_USE_CHANGES)
		return true;
	return use == OSD_USE_COPIES && copying->waiting;
}

/* Under lock.  The copy or PUNCH under way that the command must wait for. */
static struct osd_copying *find(struct osd_copies *copies, const struct osd_command_context *ctx)
{
	struct osd_object_id object = ctx->addressed;
	struct osd_copying *copying = copies->list;
	enum osd_data_use use = use_of(ctx);

	osd_assert_held(&copies->lock);
	if (use == OSD_USE_NONE || (use == OSD_USE_COPIES && !names_source(ctx, &object)))
		return NULL;
	while (copying && !excludes(copying, object, use))
		copying = copying->next;
	return copying;
}

enum osd_status osd_copies_defer(struct osd_copies *copies, const struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	struct osd_copying *copying;
	enum osd_status status = OSD_OK;

	if (!copies || atomic_load(&copies->count) == 0)
		return OSD_OK;
	osd_lock(&copies->lock);
	copying = find(copies, ctx);
	if (copying && osd_command_aborted(request)) {
		status = OSD_E_TASK_ABORTED;
	} else if (copying) {
		osd_attributes_forget(request);
		request->next = NULL;
		*copying->last = request;
		copying->last = &request->next;
		status = OSD_PENDING;
	}
	osd_unlock(&copies->lock);
	return status;
}

void osd_copies_look_at_aborted(struct osd_copies *copies)
{
	struct osd_request *list = NULL;

	if (!copies || atomic_load(&copies->count) == 0)
		return;
	osd_lock(&copies->lock);
	for (struct osd_copying *copying = copies->list; copying; copying = copying->next)
		copying->last = osd_requests_take_aborted(&copying->waiting, &list);
	osd_unlock(&copies->lock);
	requeue_all(copies, list);
}
