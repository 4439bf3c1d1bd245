/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise.c -- see authorise.h.  Here: the object addressed.  Elsewhere: attributes
 * (authorise_attributes.c), other objects (authorise_others.c), the decision
 * (security/decide.c). */
#include "command/authorise.h"

#include "base/util.h"
#include "command/authorise_impl.h"
#include "command/own_job.h"
#include "command/phase.h"
#include "command/resolve.h"

#define SCOPE_MASK 0x7

/* ---- what a command needs -------------------------------------------------------------------- */

/* Permissions that parameters add to those of the row (osd2-wire 6.3).  Reading the Current Command
 * page needs none, so the contents of a list are checked later. */
static uint16_t permissions_of(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->decoded;
	uint16_t permissions = request->def->permissions;

	if (osd_cdb_sets(cdb))
		permissions |= OSD_PERM_SET_ATTR;
	if (cdb->attributes.get_page && cdb->attributes.get_page != OSD_PAGE_CURRENT_COMMAND)
		permissions |= OSD_PERM_GET_ATTR;
	if (cdb->list_attr)
		permissions |= OSD_PERM_M_OBJECT;
	if (cdb->command_bits & SCOPE_MASK)
		permissions |= request->def->scope_permissions;
	return permissions;
}

/* The list is checked when it is read. */
static bool is_scattered(const struct osd_request *request)
{
	return request->def->bytes == OSD_BYTES_SCATTER &&
	       osd_authorise_by_pieces(&request->decoded);
}

static struct osd_access access_of(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->decoded;
	struct osd_access access = {.permissions = permissions_of(request)};

	switch (request->def->bytes) {
	case OSD_BYTES_NONE:
		break;
	case OSD_BYTES_RANGE:
	case OSD_BYTES_SCATTER:
		access.start = cdb->starting_byte_address;
		access.end = osd_add_capped(access.start, is_scattered(request) ? 0 : cdb->length);
		break;
	case OSD_BYTES_AT_END:
		access.start = access.end = UINT64_MAX;
		break;
	case OSD_BYTES_FROM:
		access.start = cdb->starting_byte_address;
		access.end = UINT64_MAX;
		break;
	}
	return access;
}

static enum osd_status permits(struct osd_request *request, const struct osd_object_facts *facts,
			       const struct osd_access *access)
{
	const struct osd_request_security *security = &request->security;
	/* The method was compared with the partition's least method when the request was
	 * admitted. */
	struct osd_act act = {.facts = facts, .access = *access};
	uint16_t field = OSD_NO_FIELD;
	enum osd_status status;

	if (security->own_job && facts->surrogate)
		return OSD_OK;
	status = osd_decide(&security->proof.grant, &act, security->now_ms, &field);
	return status == OSD_OK ? OSD_OK : osd_command_fail(request, status, field);
}

/* ---- the object addressed -------------------------------------------------------------------- */

enum osd_status osd_authorise(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	struct osd_access access;
	enum osd_status status;

	if (osd_authorise_is_open(request))
		return OSD_OK;
	status = osd_resolve_facts(ctx, osd_authorise_tag_matters(request));
	if (status != OSD_OK)
		return status;
	request->security.addressed = ctx->facts;
	access = access_of(request);
	status = osd_own_job(ctx, access.permissions, &request->security.own_job);
	if (status != OSD_OK)
		return status;
	return permits(request, &ctx->facts, &access);
}

/* If the id belongs to another object by now, the check is as if that one had been addressed.  What a command changes is
 * locked first: it is the one that is changed. */
enum osd_status osd_authorise_again(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	struct osd_object_facts facts;
	struct osd_access access;
	enum osd_status status;

	if (osd_authorise_is_open(request))
		return OSD_OK;
	status = osd_phase_txn_flags(request) & OSD_TXN_READ_ONLY
			 ? OSD_OK
			 : osd_object_hold(ctx->txn, request->object);
	if (status == OSD_OK ||
	    status == OSD_E_CONTRACT) /* a directory of a view is never changed */
		status = osd_txn_facts(ctx->txn, request->object, false, &facts);
	if (status != OSD_OK)
		return status;
	if (facts.created_ms == ctx->facts.created_ms && facts.tag == 0)
		facts.tag = ctx->facts.tag; /* it may be among the attributes */
	access = access_of(request);
	return permits(request, &facts, &access);
}

enum osd_status osd_authorise_range(struct osd_command_context *ctx, uint64_t start,
				    uint64_t length)
{
	struct osd_access access = {.start = start, .end = osd_add_capped(start, length)};

	if (osd_authorise_is_open(ctx->request))
		return OSD_OK;
	return permits(ctx->request, &ctx->facts, &access);
}
