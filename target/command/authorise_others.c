/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise_others.c -- extension capabilities, and objects that a command touches besides the
 * addressed one (authorise.h). */
#include "command/authorise.h"

#include <stdlib.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise_impl.h"
#include "command/own_job.h"
#include "object/stack.h"
#include "object/view.h"
#include "wire/cursor.h"
#include "wire/stage.h"

#define EXTENSIONS_MAX	 16u
#define EXTENSION_HEADER 8u

/* ---- extension capabilities ------------------------------------------------------------------ */

void osd_authorise_release(struct osd_request_security *security)
{
	for (unsigned i = 0; i < security->extension_count; i++)
		osd_allowed_release(&security->extensions[i].allowed);
	free(security->extensions);
	security->extensions = NULL;
	security->extension_count = 0;
}

static enum osd_status verify_entry(const struct osd_checker *checker, struct osd_objects *objects,
				    struct osd_request *request, const uint8_t *entry,
				    struct osd_extension *extension)
{
	struct osd_request_security *security = &request->security;
	struct osd_grant *grant = &extension->grant;
	enum osd_status status = OSD_OK;

	/* A command that was accepted for the background keeps the permissions of that time. */
	if (!security->accepted)
		status = osd_check_extension(checker, &security->proof, request->cdb, entry, grant);
	else
		osd_capability_decode(entry, &grant->capability);
	grant->verified = status == OSD_OK;
	if (status != OSD_OK || !grant->capability.allowed_attributes_access)
		return status;
	return osd_allowed_load(objects, grant->capability.allowed_partition_id, &grant->capability,
				&extension->allowed);
}

static enum osd_status verify_entries(const struct osd_checker *checker,
				      struct osd_objects *objects, struct osd_request *request,
				      const uint8_t *entries)
{
	struct osd_request_security *security = &request->security;
	enum osd_status status = OSD_OK;

	for (unsigned i = 0; status == OSD_OK && i < security->extension_count; i++)
		status = verify_entry(checker, objects, request,
				      entries + (size_t)i * OSD_EXTENSION_ENTRY,
				      &security->extensions[i]);
	return status == OSD_E_CDB_FIELD ? osd_command_fail(request, status, OSD_CONTINUATION_FIELD)
					 : status;
}

enum osd_status osd_authorise_extensions(const struct osd_checker *checker,
					 struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	struct osd_request_security *security = &request->security;
	struct osd_descriptor descriptor;
	size_t count;

	if (security->proof.grant.open ||
	    !osd_continuation_find(&ctx->continuation, OSD_DESC_EXTENSION_CAPS, &descriptor))
		return OSD_OK;
	count = descriptor.length < EXTENSION_HEADER ? 0
						     : (size_t)osd_get_be(descriptor.content, 2);
	if (count == 0 || count > EXTENSIONS_MAX ||
	    descriptor.length != EXTENSION_HEADER + count * OSD_EXTENSION_ENTRY)
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	/* A request that is dispatched again has those of the dispatch before. */
	osd_authorise_release(security);
	security->extensions = calloc(count, sizeof(*security->extensions));
	if (!security->extensions)
		return OSD_E_NO_MEMORY;
	security->extension_count = (unsigned)count;
	return verify_entries(checker, ctx->objects, request, descriptor.content + EXTENSION_HEADER);
}

/* Whether all that the lists name is among what a capability may touch. */
static bool lists_permit(const struct osd_request *request, const struct osd_allowed *allowed)
{
	struct osd_attr_walk sets = osd_attributes_to_set(request->attributes);
	struct osd_attr_walk gets = osd_attributes_to_get(request->attributes);
	struct osd_attr attr;
	bool has = true;

	if (!allowed->limited)
		return true;
	while (has && osd_attr_walk_next(&sets, &attr))
		has = osd_allowed_has(allowed, attr.page, attr.number);
	while (has && osd_attr_walk_next(&gets, &attr))
		has = osd_allowed_has(allowed, attr.page, attr.number);
	return has;
}

/* How the command uses attributes of an object that only an extension capability permits. */
static bool list_permits(const struct osd_request *request, const struct osd_allowed *allowed,
			 enum osd_uses uses)
{
	switch (uses) {
	case OSD_USES_LISTS:
		return lists_permit(request, allowed);
	case OSD_USES_ALL:
		return osd_allowed_has(allowed, OSD_PAGE_ALL, OSD_NUMBER_ALL);
	case OSD_USES_NONE:
		break;
	}
	return true;
}

static bool extensions_permit(const struct osd_request *request, const struct osd_act *act,
			      enum osd_uses uses)
{
	const struct osd_request_security *security = &request->security;
	uint16_t field;

	for (unsigned i = 0; i < security->extension_count; i++)
		if (osd_decide(&security->extensions[i].grant, act, security->now_ms, &field) ==
			    OSD_OK &&
		    list_permits(request, &security->extensions[i].allowed, uses))
			return true;
	return false;
}

bool osd_authorise_by_tag(const struct osd_request *request)
{
	bool matters = osd_authorise_tag_matters(request);

	for (unsigned i = 0; i < request->security.extension_count; i++)
		matters |= request->security.extensions[i].grant.capability.policy_access_tag != 0;
	return matters;
}

/* ---- objects that the command names ---------------------------------------------------------- */

/* An absent object has facts, too: only a user with a permission for its id may learn that it is
 * absent (docs/security-protocol.md). */
static enum osd_status find_facts(struct osd_objects *objects, struct osd_object_id id,
				  enum osd_object_type type, bool with_tag,
				  struct osd_object **ret_object, struct osd_object_facts *facts)
{
	bool all = type == OSD_USER_OBJECT && id.object_id == 0;
	enum osd_status status =
		all ? OSD_E_NO_OBJECT : osd_objects_find(objects, id, with_tag, ret_object, facts);

	if (!osd_status_is_gone(status))
		return status;
	/* All user objects may have any tags, so a capability with a tag does not permit them. */
	*facts = (struct osd_object_facts){.id = id,
					   .type = type,
					   .boot_epoch = osd_objects_boot_epoch(objects),
					   .missing = !all};
	return OSD_OK;
}

/* Checked by method alone.  An object in a partition that requires more than NOSEC is treated as absent. */
static enum osd_status open_other(struct osd_command_context *ctx, struct osd_object_id id,
				  uint8_t least_method, struct osd_object **ret_object)
{
	if (!osd_method_suffices(&ctx->request->security.proof.grant, least_method))
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	return ret_object ? osd_object_get(ctx->objects, id, ret_object) : OSD_OK;
}

/* The tag of one that is made only now was not compared. */
static enum osd_status found(const struct osd_object_facts *facts, struct osd_object **ret_object)
{
	return facts->missing || (ret_object && !*ret_object) ? OSD_E_NO_OBJECT : OSD_OK;
}

enum osd_status osd_authorise_other(struct osd_command_context *ctx, struct osd_object_id id,
				    enum osd_object_type type, uint16_t permissions,
				    enum osd_uses uses, struct osd_object **ret_object)
{
	struct osd_request *request = ctx->request;
	const struct osd_request_security *security = &request->security;
	bool elsewhere = id.partition_id != request->object.partition_id;
	struct osd_object_facts facts;
	struct osd_act act = {.facts = &facts, .access = osd_access_whole(permissions)};
	uint16_t field = OSD_NO_FIELD;
	enum osd_status status = OSD_OK;

	request->security.other_created_ms = 0;
	if (elsewhere)
		status = osd_least_method(ctx->keyring, NULL, id.partition_id, &act.least_method);
	if (status == OSD_OK &&
	    (security->proof.grant.open || (!elsewhere && osd_authorise_is_open(request))))
		return open_other(ctx, id, act.least_method, ret_object);
	if (status == OSD_OK)
		status = find_facts(ctx->objects, id, type, osd_authorise_by_tag(request),
				    ret_object, &facts);
	if (status != OSD_OK)
		return status;
	request->security.other_created_ms = facts.created_ms;
	if (extensions_permit(request, &act, uses))
		return found(&facts, ret_object);
	if (security->extension_count)
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	status = osd_decide(&security->proof.grant, &act, security->now_ms, &field);
	if (status != OSD_OK)
		return osd_command_fail(request, status, field);
	if (uses == OSD_USES_ALL)
		status = osd_authorise_touched(ctx->objects, request, OSD_PAGE_ALL, OSD_NUMBER_ALL);
	return status == OSD_OK ? found(&facts, ret_object) : status;
}

/* ---- objects that attributes name ------------------------------------------------------------ */

/* The transaction that sets the attribute compares what it finds then.  Of several, the last one counts. */
static enum osd_status note_source(struct osd_command_context *ctx, struct osd_object_id id)
{
	struct osd_attr_params *params = ctx->request->attributes;
	struct osd_object_facts facts;
	enum osd_status status = osd_objects_facts(ctx->objects, id, false, &facts);

	params->source = id;
	params->source_created_ms = status == OSD_OK ? facts.created_ms : 0;
	return osd_status_is_gone(status) ? OSD_OK : status;
}

/* A view shows all objects that its base has and will have to those who may read the view, and lets others change them:
 * the user who makes it one must be permitted to do the same. */
static enum osd_status check_base(struct osd_command_context *ctx, const struct osd_attr *attr)
{
	uint16_t permissions = OSD_PERM_READ;
	struct osd_object_id base;
	struct osd_view view;
	enum osd_status status;

	if (!osd_view_value_decode(attr->value, attr->length, &view))
		return OSD_OK;
	if (view.writable)
		permissions |= OSD_PERM_WRITE | OSD_PERM_CREATE | OSD_PERM_REMOVE;
	base = (struct osd_object_id){view.base, 0};
	status = note_source(ctx, base);
	if (status == OSD_OK)
		status = osd_authorise_other(ctx, base, OSD_PARTITION, permissions, OSD_USES_NONE,
					     NULL);
	return status == OSD_OK ? osd_authorise_other(ctx, base, OSD_USER_OBJECT, permissions,
						      OSD_USES_NONE, NULL)
				: status;
}

/* The same for the data of one object. */
static enum osd_status check_source(struct osd_command_context *ctx, const struct osd_attr *attr)
{
	struct osd_source_value source;
	struct osd_object_id id;
	enum osd_status status;

	if (!osd_attr_names_source(attr))
		return OSD_OK;
	/* The facts of the other object may have to be read. */
	if (ctx->data_flags & OSD_DATA_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	if (attr->page != OSD_PAGE_STACK)
		return check_base(ctx, attr);
	if (!osd_source_value_decode(attr->value, attr->length, &source))
		return OSD_OK;
	id = (struct osd_object_id){source.partition_id, source.object_id};
	status = note_source(ctx, id);
	return status == OSD_OK
		       ? osd_authorise_other(ctx, id, OSD_USER_OBJECT,
					     source.writable ? OSD_PERM_READ | OSD_PERM_WRITE
							     : OSD_PERM_READ,
					     OSD_USES_NONE, NULL)
		       : status;
}

enum osd_status osd_authorise_sources(struct osd_command_context *ctx)
{
	enum osd_status status = OSD_OK;
	struct osd_attr_walk walk;
	struct osd_attr attr;

	if (!ctx->attributes || !ctx->attributes->sets)
		return OSD_OK;
	walk = osd_attributes_to_set(ctx->attributes);
	while (status == OSD_OK && osd_attr_walk_next(&walk, &attr))
		status = check_source(ctx, &attr);
	return osd_status_is_gone(status)
		       ? osd_attributes_set_failed(ctx->request, OSD_E_PARAM_FIELD, &attr)
		       : status;
}

/* ---- objects reached through the one addressed ----------------------------------------------- */

static bool permits_inside(const struct osd_request *request, struct osd_act *act,
			   enum osd_uses uses)
{
	const struct osd_request_security *security = &request->security;
	uint16_t field;

	act->inside = true;
	if (osd_decide(&security->proof.grant, act, security->now_ms, &field) == OSD_OK)
		return true;
	act->inside = false;
	return extensions_permit(request, act, uses);
}

static enum osd_status decide_inside(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, struct osd_access access,
				     uint8_t least_method, bool *ret_permitted)
{
	struct osd_object_facts facts;
	struct osd_act act = {.facts = &facts, .access = access, .least_method = least_method};
	enum osd_status status = osd_txn_facts(txn, id, osd_authorise_by_tag(request), &facts);

	if (status == OSD_OK && facts.surrogate)
		return osd_own_job_inside(request, txn, id, ret_permitted);
	if (status == OSD_OK)
		*ret_permitted = permits_inside(request, &act, OSD_USES_LISTS);
	return status;
}

enum osd_status osd_authorise_inside(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, struct osd_access access,
				     bool *ret_permitted)
{
	*ret_permitted = true;
	if (request->security.proof.grant.open)
		return OSD_OK;
	return decide_inside(request, txn, id, access, OSD_NOSEC, ret_permitted);
}

enum osd_status osd_authorise_listed(struct osd_command_context *ctx, struct osd_object_id id,
				     bool *ret_permitted)
{
	static const struct osd_access access = {.permissions = OSD_PERM_GET_ATTR};
	struct osd_request *request = ctx->request;
	uint8_t least_method;
	enum osd_status status;

	if (id.partition_id == request->object.partition_id)
		return osd_authorise_inside(request, ctx->txn, id, access, ret_permitted);
	status = osd_least_method(ctx->keyring, ctx->txn, id.partition_id, &least_method);
	if (status != OSD_OK)
		return status;
	*ret_permitted = osd_method_suffices(&request->security.proof.grant, least_method);
	if (request->security.proof.grant.open)
		return OSD_OK;
	return decide_inside(request, ctx->txn, id, access, least_method, ret_permitted);
}

/* ---- matches of a query ---------------------------------------------------------------------- */

/* A match tells the values of attributes in the criteria, and no list of the command names these.
 * So an extension capability must permit all attributes. */
enum osd_status osd_authorise_sees(void *arg, struct osd_txn *txn,
				   const struct osd_object_facts *facts, bool *ret_sees)
{
	struct osd_act act = {.facts = facts, .access = {.permissions = OSD_PERM_QUERY}};
	struct osd_request *request = arg;

	if (facts->surrogate)
		return osd_own_job_inside(request, txn, facts->id, ret_sees);
	*ret_sees = permits_inside(request, &act, OSD_USES_ALL);
	return OSD_OK;
}
