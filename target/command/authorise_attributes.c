/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise_attributes.c -- whether the command may touch the attributes that its lists, its page
 * or its criteria name (authorise.h).  security/decide.c has the access that each needs. */
#include "command/authorise.h"

#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise_impl.h"
#include "object/page_provider.h"
#include "wire/cursor.h"

static enum osd_status load_allowed(struct osd_objects *objects, const struct osd_request *request,
				    struct osd_allowed *allowed)
{
	return osd_allowed_load(objects, request->object.partition_id,
				&request->security.proof.grant.capability, allowed);
}

static enum osd_status refused(struct osd_request *request, enum osd_status status, uint16_t field,
			       uint32_t page, uint32_t number)
{
	osd_command_fail_attribute(request, status, page, number);
	return osd_command_fail(request, status, field);
}

static enum osd_status check_one(const struct osd_objects *objects, struct osd_request *request,
				 const struct osd_allowed *allowed, uint32_t page, uint32_t number,
				 struct osd_access access)
{
	const struct osd_request_security *security = &request->security;
	struct osd_attribute_act act = {
		.page = page,
		.number = number,
		.access = access,
		.named = request->object_type == OSD_USER_OBJECT,
	};
	uint16_t field;
	enum osd_status status;

	if (security->own_job)
		act.lent = OSD_PERM_GET_ATTR |
			   (osd_page_controls(objects, page) ? OSD_PERM_SET_ATTR : 0);
	status = osd_decide_attribute(&security->proof.grant, allowed, &act, &field);
	return status == OSD_OK ? OSD_OK : refused(request, status, field, page, number);
}

/* ---- setting --------------------------------------------------------------------------------- */

/* A collection joined is reached through the object: its policy access tag must be the capability's. */
static enum osd_status check_joined(struct osd_command_context *ctx, const struct osd_attr *attr)
{
	struct osd_request *request = ctx->request;
	const struct osd_request_security *security = &request->security;
	struct osd_object_id id = {request->object.partition_id, osd_get_be(attr->value, 8)};
	struct osd_object_facts facts;
	struct osd_act act = {
		.facts = &facts, .access = {.permissions = OSD_PERM_SET_ATTR}, .inside = true};
	uint16_t field;
	enum osd_status status;

	if (!osd_authorise_tag_matters(request))
		return OSD_OK;
	if (ctx->data_flags & OSD_DATA_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	status = osd_objects_facts(ctx->objects, id, true, &facts);
	if (osd_status_is_gone(status)) /* the tag of one that is made only now was not compared */
		return osd_attributes_set_failed(request, OSD_E_PARAM_FIELD, attr);
	if (status != OSD_OK)
		return status;
	status = osd_decide(&security->proof.grant, &act, security->now_ms, &field);
	return status == OSD_OK ? OSD_OK
				: refused(request, status, field, attr->page, attr->number);
}

static enum osd_status check_set(struct osd_command_context *ctx, const struct osd_allowed *allowed,
				 const struct osd_attr *attr)
{
	enum osd_status status =
		check_one(ctx->objects, ctx->request, allowed, attr->page, attr->number,
			  osd_access_to_set(attr->page, attr->number, attr->length == 0));

	return status == OSD_OK && attr->page == OSD_REL_COLLECTIONS && attr->length == 8
		       ? check_joined(ctx, attr)
		       : status;
}

static enum osd_status check_sets(struct osd_command_context *ctx,
				  const struct osd_allowed *allowed)
{
	struct osd_attr_walk walk = osd_attributes_to_set(ctx->attributes);
	enum osd_status status = OSD_OK;
	struct osd_attr attr;

	while (status == OSD_OK && osd_attr_walk_next(&walk, &attr))
		status = check_set(ctx, allowed, &attr);
	return status;
}

struct osd_access osd_authorise_sets_access(const struct osd_request *request)
{
	struct osd_attr_walk walk = osd_attributes_to_set(request->attributes);
	struct osd_access all = {.permissions = OSD_PERM_SET_ATTR}, one;
	struct osd_attr attr;

	while (osd_attr_walk_next(&walk, &attr)) {
		one = osd_access_to_set(attr.page, attr.number, attr.length == 0);
		all.permissions |= one.permissions;
		all.end = OSD_MAX(all.end, one.end);
	}
	return all;
}

/* ---- getting --------------------------------------------------------------------------------- */

static enum osd_status check_gets(struct osd_command_context *ctx,
				  const struct osd_allowed *allowed)
{
	struct osd_attr_walk walk = osd_attributes_to_get(ctx->attributes);
	enum osd_status status = OSD_OK;
	struct osd_attr attr;

	while (status == OSD_OK && osd_attr_walk_next(&walk, &attr))
		status = check_one(ctx->objects, ctx->request, allowed, attr.page, attr.number,
				   osd_access_to_get(attr.page, attr.number));
	return status;
}

/* Some commands touch an attribute that no list names. */
static enum osd_status check_counter(struct osd_command_context *ctx,
				     const struct osd_allowed *allowed)
{
	struct osd_access access = {.permissions = ctx->def->permissions};

	return ctx->def->counter ? check_one(ctx->objects, ctx->request, allowed, OSD_PAGE_COUNTERS,
					     ctx->def->counter, access)
				 : OSD_OK;
}

/* ---- all of a command ------------------------------------------------------------------------ */

enum osd_status osd_authorise_attributes(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_allowed_release) struct osd_allowed allowed = {0};
	struct osd_request *request = ctx->request;
	enum osd_status status = OSD_OK;

	if (osd_authorise_is_open(request))
		return OSD_OK;
	if (request->security.proof.grant.capability.allowed_attributes_access) {
		if (ctx->data_flags & OSD_DATA_NOWAIT)
			return OSD_E_WOULD_BLOCK;
		status = load_allowed(ctx->objects, request, &allowed);
	}
	if (status == OSD_OK)
		status = check_counter(ctx, &allowed);
	if (status == OSD_OK)
		status = check_sets(ctx, &allowed);
	if (status == OSD_OK)
		status = check_gets(ctx, &allowed);
	return status;
}

enum osd_status osd_authorise_touched(struct osd_objects *objects, struct osd_request *request,
				      uint32_t page, uint32_t number)
{
	OSD_CLEANUP(osd_allowed_release) struct osd_allowed allowed = {0};
	enum osd_status status;

	if (osd_authorise_is_open(request) ||
	    !request->security.proof.grant.capability.allowed_attributes_access)
		return OSD_OK;
	status = load_allowed(objects, request, &allowed);
	return status == OSD_OK
		       ? check_one(objects, request, &allowed, page, number, (struct osd_access){0})
		       : status;
}
