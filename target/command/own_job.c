/* SPDX-License-Identifier: GPL-2.0-or-later */
/* own_job.c -- see own_job.h. */
#include "command/own_job.h"

#include <string.h>

#include "exec/exec.h"
#include "security/grant.h"

/* READ, GET ATTRIBUTES, SET ATTRIBUTES (of its control page), REMOVE. */
#define FOLLOWS (OSD_PERM_READ | OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR | OSD_PERM_REMOVE)

static bool same_audit(const struct osd_request *request, const struct osd_job_owner *owner)
{
	const struct osd_grant *grant = &request->security.proof.grant;

	return memcmp(grant->capability.audit, owner->audit, sizeof(owner->audit)) == 0;
}

/* Whether EXEC would be permitted in the zone now. */
static enum osd_status may_exec(struct osd_objects *objects, const struct osd_request *request,
				const struct osd_zone *zone, bool nowait, bool *ret_may)
{
	static const struct osd_access run = {.permissions = OSD_PERM_FUN_EXE};
	const struct osd_grant *grant = &request->security.proof.grant;
	bool with_tag = grant->capability.policy_access_tag != 0;
	struct osd_object_facts facts = {
		.id = zone->id, .type = zone->type, .boot_epoch = osd_objects_boot_epoch(objects)};
	enum osd_status status = OSD_OK;
	uint16_t field;

	if (with_tag || grant->capability.object_created_ms)
		status = nowait ? OSD_E_WOULD_BLOCK
				: osd_objects_facts(objects, zone->id, with_tag, &facts);
	if (status == OSD_OK)
		*ret_may = osd_grant_permits(grant, &facts, &run, request->security.now_ms, false,
					     &field) == OSD_OK;
	return status;
}

/* Whether the capability is for all user objects of the partition: then it also covers the sender's
 * own surrogates. */
static bool has_all(const struct osd_request *request, const struct osd_object_facts *facts,
		    uint16_t permissions)
{
	const struct osd_access access = {.permissions = permissions};
	struct osd_object_facts as_any = *facts;
	uint16_t field;

	as_any.surrogate = false;
	return osd_grant_permits(&request->security.proof.grant, &as_any, &access,
				 request->security.now_ms, false, &field) == OSD_OK;
}

enum osd_status osd_own_job(const struct osd_command_context *ctx, uint16_t permissions,
			    bool *ret_own)
{
	const struct osd_request *request = ctx->request;
	const struct osd_object_facts *facts = &ctx->facts;
	bool nowait = ctx->data_flags & OSD_DATA_NOWAIT;
	struct osd_job_owner owner;
	enum osd_status status;

	*ret_own = false;
	if (!ctx->exec || !facts->surrogate || permissions & ~FOLLOWS ||
	    !request->security.proof.grant.verified)
		return OSD_OK;
	status = osd_exec_owner(ctx->exec, facts->id, nowait, &owner);
	if (status == OSD_OK && same_audit(request, &owner)) {
		*ret_own = has_all(request, facts, permissions);
		if (!*ret_own)
			status = may_exec(ctx->objects, request, &owner.zone, nowait, ret_own);
	}
	return status == OSD_E_WOULD_BLOCK && nowait ? status : OSD_OK;
}

enum osd_status osd_own_job_inside(const struct osd_request *request, struct osd_txn *txn,
				   struct osd_object_id id, bool *ret_own)
{
	struct osd_job_owner owner;
	enum osd_status status = osd_exec_owner_in(request->security.exec, txn, id, &owner);

	*ret_own = status == OSD_OK && same_audit(request, &owner);
	/* Nobody owns a job whose record is damaged. */
	return status == OSD_E_NO_OBJECT || status == OSD_E_MEDIUM ? OSD_OK : status;
}
