/* SPDX-License-Identifier: GPL-2.0-or-later */
/* authorise.c -- see authorise.h. */
#include "command/authorise.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/own_job.h"
#include "command/table.h"
#include "wire/cursor.h"

#define EXTENSIONS_MAX	 16u
#define EXTENSION_HEADER 8u
#define SCOPE_MASK	 0x7
#define PAIR		 8u

/* ---- what a command needs -------------------------------------------------------------------- */

/* Permissions that parameters add to those of the row (osd2-wire 6.3).  Reading the Current Command
 * page needs none, so what a list asks for is looked at later. */
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
	if (cdb->service_action == OSD_SA_REMOVE_PARTITION && cdb->command_bits & SCOPE_MASK)
		permissions |= OSD_PERM_GBL_REM;
	return permissions;
}

/* Bytes of data.  PUNCH moves all that lies behind it; APPEND changes what has no address yet. */
static struct osd_access access_of(const struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->decoded;
	struct osd_access access = {.permissions = permissions_of(request)};

	if (cdb->service_action == OSD_SA_APPEND) {
		access.start = access.end = UINT64_MAX;
	} else if (cdb->service_action == OSD_SA_PUNCH) {
		access.start = cdb->starting_byte_address;
		access.end = UINT64_MAX;
	} else if (request->def->flags & OSD_CMD_RANGE) {
		/* A scatter/gather list says where the bytes are, and is looked at when it is read. */
		bool scattered = cdb->continuation_length || cdb->data_distribution;

		access.start = access.end = cdb->starting_byte_address;
		if (!scattered && !osd_add_u64(access.start, cdb->length, &access.end))
			access.end = UINT64_MAX;
	}
	return access;
}

static bool tag_matters(const struct osd_request *request)
{
	return request->security.proof.grant.capability.policy_access_tag != 0;
}

/* Whether there is nothing to look at: NOSEC, or done before the command went to the background. */
static bool is_open(const struct osd_request *request)
{
	return request->security.proof.grant.open || request->security.accepted;
}

static enum osd_status permits(struct osd_request *request, const struct osd_object_facts *facts,
			       const struct osd_access *access)
{
	const struct osd_request_security *security = &request->security;
	uint16_t field = OSD_NO_FIELD;
	enum osd_status status;

	if (security->own_job && facts->surrogate)
		return OSD_OK;
	status = osd_grant_permits(&security->proof.grant, facts, access, security->now_ms, &field);
	return status == OSD_OK ? OSD_OK : osd_command_fail(request, status, field);
}

/* ---- the object addressed -------------------------------------------------------------------- */

/* Of what does not exist, the types that the CDB can mean. */
static void missing_facts(struct osd_objects *objects, const struct osd_request *request,
			  struct osd_object_facts *facts)
{
	uint8_t types = request->def->object_types;

	if (request->object_type == OSD_PARTITION)
		types = OSD_PARTITION;
	else
		types &= OSD_USER_OBJECT | OSD_COLLECTION;
	*facts = (struct osd_object_facts){.id = request->object,
					   .type = (enum osd_object_type)types,
					   .boot_epoch = osd_objects_boot_epoch(objects),
					   .missing = true};
}

/* Only user objects that are in memory. */
static enum osd_status facts_at_once(struct osd_objects *objects, const struct osd_request *request,
				     struct osd_object_facts *facts)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status = OSD_E_RETRY;

	if (request->object.object_id)
		status = osd_object_get_cached(objects, request->object, &object);
	if (status != OSD_OK)
		return OSD_E_RETRY;
	osd_object_facts(object, facts);
	return facts->tag == 0 && tag_matters(request) ? OSD_E_RETRY : OSD_OK;
}

static enum osd_status find_facts(struct osd_objects *objects, const struct osd_request *request,
				  bool nowait, struct osd_object_facts *facts)
{
	enum osd_status status;

	if (nowait)
		return facts_at_once(objects, request, facts);
	if (request->def->flags & OSD_CMD_REQUESTED_ID)
		status = osd_objects_facts_made(objects, request->object_type, request->object,
						facts);
	else
		status = osd_objects_facts(objects, request->object, tag_matters(request), facts);
	if (status == OSD_E_NO_OBJECT || status == OSD_E_NO_PARTITION) {
		missing_facts(objects, request, facts);
		facts->to_be_made = request->def->flags & OSD_CMD_REQUESTED_ID;
		status = OSD_OK;
	}
	return status;
}

enum osd_status osd_authorise(struct osd_objects *objects, struct osd_request *request, bool nowait)
{
	struct osd_access access;
	enum osd_status status;

	if (is_open(request))
		return OSD_OK;
	status = find_facts(objects, request, nowait, &request->security.facts);
	if (status != OSD_OK)
		return status;
	access = access_of(request);
	status = osd_own_job(objects, request, &request->security.facts, access.permissions, nowait,
			     &request->security.own_job);
	if (status != OSD_OK)
		return status;
	return permits(request, &request->security.facts, &access);
}

/* Where the id means another object by now, it is as if that had been addressed. */
static enum osd_status same_object(struct osd_request *request, struct osd_object_facts *facts)
{
	struct osd_access access = access_of(request);

	if (facts->created_ms == request->security.facts.created_ms && facts->tag == 0)
		facts->tag = request->security.facts.tag; /* it may lie elsewhere */
	return permits(request, facts, &access);
}

enum osd_status osd_authorise_again(struct osd_request *request, struct osd_txn *txn)
{
	struct osd_object_facts facts;
	enum osd_status status;

	if (is_open(request))
		return OSD_OK;
	status = osd_txn_facts(txn, request->object, false, &facts);
	return status == OSD_OK ? same_object(request, &facts) : status;
}

enum osd_status osd_authorise_open(struct osd_command_context *ctx, bool nowait,
				   struct osd_object **ret_object)
{
	struct osd_request *request = ctx->request;
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_object_facts facts;
	enum osd_status status =
		nowait ? osd_object_get_cached(ctx->objects, request->object, &object)
		       : osd_object_get(ctx->objects, request->object, &object);

	if (status == OSD_OK && !is_open(request)) {
		osd_object_facts(object, &facts);
		status = same_object(request, &facts);
	}
	if (status == OSD_OK)
		*ret_object = OSD_STEAL(object);
	return status;
}

enum osd_status osd_authorise_range(struct osd_request *request, uint64_t start, uint64_t length)
{
	struct osd_access access = {.start = start};

	if (is_open(request))
		return OSD_OK;
	if (!osd_add_u64(start, length, &access.end))
		access.end = UINT64_MAX;
	return permits(request, &request->security.facts, &access);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* What decides who may do what. */
static bool is_policy_page(uint32_t page)
{
	return page == OSD_PAGE_ROOT_BASE + OSD_REL_SECURITY ||
	       page == OSD_PAGE_PARTITION_BASE + OSD_REL_SECURITY ||
	       page == OSD_PAGE_COLLECTION_BASE + OSD_REL_SECURITY || page == OSD_REL_SECURITY ||
	       page == OSD_PAGE_PARTITION_BASE + OSD_REL_COLLECTIONS;
}

/* The attributes that a capability with ALLOWED ATTRIBUTES ACCESS may touch; all, where it has none. */
struct allowed {
	bool limited;
	size_t length;
	uint8_t *pairs; /* OSD_ATTRIBUTE_MAX bytes, owned; NULL: not limited */
};

static bool is_allowed(const struct allowed *allowed, uint32_t page, uint32_t number)
{
	if (!allowed->limited)
		return true;
	for (size_t at = 0; at + PAIR <= allowed->length; at += PAIR) {
		uint32_t pair_page = (uint32_t)osd_get_be(allowed->pairs + at, 4);
		uint32_t pair_number = (uint32_t)osd_get_be(allowed->pairs + at + 4, 4);

		if ((pair_page == page || pair_page == OSD_PAGE_ALL) &&
		    (pair_number == number || pair_number == OSD_NUMBER_ALL))
			return true;
	}
	return false;
}

/* The root has no such page: what is limited touches no attributes there. */
static enum osd_status load_allowed(struct osd_objects *objects, const struct osd_request *request,
				    struct allowed *allowed)
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	uint32_t number = request->security.proof.grant.capability.allowed_attributes_access;
	struct osd_object_id partition = {request->object.partition_id, 0};
	enum osd_status status;

	allowed->limited = true;
	if (partition.partition_id == 0 || number == OSD_NUMBER_ALL)
		return OSD_OK;
	allowed->pairs = malloc(OSD_ATTRIBUTE_MAX);
	if (!allowed->pairs)
		return OSD_E_NO_MEMORY;
	status = osd_txn_begin(objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, &txn);
	if (status == OSD_OK)
		status = osd_attr_get(txn, partition, OSD_PAGE_PARTITION_BASE + OSD_REL_COLLECTIONS,
				      number, allowed->pairs, OSD_ATTRIBUTE_MAX, &allowed->length);
	return status == OSD_E_NO_PARTITION ? OSD_OK : status;
}

static enum osd_status fail_permission(struct osd_request *request, uint32_t page, uint32_t number)
{
	osd_command_fail_attribute(request, OSD_E_PERMISSION, page, number);
	return osd_command_fail(request, OSD_E_PERMISSION, OSD_GRANT_FIELD_PERMISSIONS);
}

static bool is_control(const struct osd_attr *attr)
{
	return attr->page == OSD_PAGE_JOB_CONTROL;
}

static enum osd_status check_one(struct osd_request *request, const struct allowed *allowed,
				 const struct osd_attr *attr, uint16_t needed)
{
	uint16_t permissions = request->security.proof.grant.capability.permissions;

	if (attr->page == OSD_PAGE_CURRENT_COMMAND)
		return OSD_OK;
	if (request->security.own_job)
		permissions |= OSD_PERM_GET_ATTR | (is_control(attr) ? OSD_PERM_SET_ATTR : 0);
	if ((permissions & needed) != needed)
		return fail_permission(request, attr->page, attr->number);
	if (is_allowed(allowed, attr->page, attr->number))
		return OSD_OK;
	osd_command_fail_attribute(request, OSD_E_CDB_FIELD, attr->page, attr->number);
	return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_GRANT_FIELD_ATTRIBUTES);
}

static uint16_t needed_to_set(const struct osd_attr *attr)
{
	return OSD_PERM_SET_ATTR | (is_policy_page(attr->page) ? OSD_PERM_POL_SEC : 0);
}

static enum osd_status check_sets(struct osd_request *request, const struct allowed *allowed)
{
	const struct osd_attr_params *params = request->attributes;
	struct osd_attr_list list = params->set_list;
	enum osd_status status = OSD_OK;
	struct osd_attr attr;

	if (params->format != OSD_CDBFMT_LIST)
		return check_one(request, allowed, &params->set_one,
				 needed_to_set(&params->set_one));
	while (status == OSD_OK && osd_attr_list_next(&list, &attr))
		status = check_one(request, allowed, &attr, needed_to_set(&attr));
	return status;
}

static enum osd_status check_gets(struct osd_request *request, const struct allowed *allowed)
{
	const struct osd_attr_params *params = request->attributes;
	struct osd_attr page = {.page = params->get_page, .number = OSD_NUMBER_ALL};
	struct osd_attr_list list = params->get_list;
	enum osd_status status = OSD_OK;
	struct osd_attr attr;

	if (params->format != OSD_CDBFMT_LIST)
		return check_one(request, allowed, &page, OSD_PERM_GET_ATTR);
	while (status == OSD_OK && osd_attr_list_next(&list, &attr))
		status = check_one(request, allowed, &attr, OSD_PERM_GET_ATTR);
	return status;
}

/* COMPARE AND SWAP and FETCH AND ADD touch an attribute that no list names. */
static enum osd_status check_counter(struct osd_request *request, const struct allowed *allowed)
{
	uint16_t action = request->decoded.service_action;
	struct osd_attr counter = {.page = OSD_PAGE_COUNTERS};

	if (action == OSD_SA_COMPARE_AND_SWAP)
		counter.number = OSD_COUNTER_SWAP;
	else if (action == OSD_SA_FETCH_AND_ADD)
		counter.number = OSD_COUNTER_ADD;
	else
		return OSD_OK;
	return check_one(request, allowed, &counter, request->def->permissions);
}

enum osd_status osd_authorise_attributes(struct osd_objects *objects, struct osd_request *request,
					 bool nowait)
{
	const struct osd_attr_params *params = request->attributes;
	struct allowed allowed = {0};
	enum osd_status status = OSD_OK;

	if (is_open(request))
		return OSD_OK;
	if (request->security.proof.grant.capability.allowed_attributes_access) {
		if (nowait)
			return OSD_E_RETRY;
		status = load_allowed(objects, request, &allowed);
	}
	if (status == OSD_OK)
		status = check_counter(request, &allowed);
	if (status == OSD_OK && params && params->sets)
		status = check_sets(request, &allowed);
	if (status == OSD_OK && params && params->gets)
		status = check_gets(request, &allowed);
	free(allowed.pairs);
	return status;
}

/* ---- extension capabilities ------------------------------------------------------------------ */

static enum osd_status verify_entries(const struct osd_checker *checker,
				      struct osd_request *request, const uint8_t *entries)
{
	struct osd_request_security *security = &request->security;
	enum osd_status status = OSD_OK;

	for (unsigned i = 0; status == OSD_OK && i < security->extension_count; i++) {
		const uint8_t *entry = entries + (size_t)i * OSD_EXTENSION_ENTRY;
		struct osd_grant *grant = &security->extensions[i];

		if (!security->accepted)
			status = osd_check_extension(checker, &security->proof, request->cdb, entry,
						     grant);
		else
			osd_capability_decode(entry, &grant->capability);
		grant->verified = status == OSD_OK;
	}
	return status == OSD_E_CDB_FIELD ? osd_command_fail(request, status, OSD_CONTINUATION_FIELD)
					 : status;
}

enum osd_status osd_authorise_extensions(const struct osd_checker *checker,
					 struct osd_request *request,
					 const struct osd_continuation *continuation)
{
	struct osd_request_security *security = &request->security;
	struct osd_descriptor descriptor;
	size_t count;

	if (security->proof.grant.open ||
	    !osd_continuation_find(continuation, OSD_DESC_EXTENSION_CAPS, &descriptor))
		return OSD_OK;
	count = descriptor.length < EXTENSION_HEADER ? 0
						     : (size_t)osd_get_be(descriptor.content, 2);
	if (count == 0 || count > EXTENSIONS_MAX ||
	    descriptor.length != EXTENSION_HEADER + count * OSD_EXTENSION_ENTRY)
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	free(security->extensions);
	security->extensions = calloc(count, sizeof(*security->extensions));
	if (!security->extensions)
		return OSD_E_NO_MEMORY;
	security->extension_count = (unsigned)count;
	return verify_entries(checker, request, descriptor.content + EXTENSION_HEADER);
}

static bool extensions_permit(const struct osd_request *request,
			      const struct osd_object_facts *facts, const struct osd_access *access)
{
	const struct osd_request_security *security = &request->security;
	uint16_t field;

	for (unsigned i = 0; i < security->extension_count; i++)
		if (osd_grant_permits(&security->extensions[i], facts, access, security->now_ms,
				      &field) == OSD_OK)
			return true;
	return false;
}

/* Whether any capability names a tag. */
static bool any_tag_matters(const struct osd_request *request)
{
	bool matters = tag_matters(request);

	for (unsigned i = 0; i < request->security.extension_count; i++)
		matters |= request->security.extensions[i].capability.policy_access_tag != 0;
	return matters;
}

/* ---- other objects --------------------------------------------------------------------------- */

/* The whole of it: nothing says which part. */
static struct osd_access whole(uint16_t permissions)
{
	return (struct osd_access){permissions, 0, UINT64_MAX};
}

enum osd_status osd_authorise_other(struct osd_command_context *ctx, struct osd_object_id id,
				    enum osd_object_type type, uint16_t permissions)
{
	struct osd_request *request = ctx->request;
	struct osd_access access = whole(permissions);
	struct osd_object_facts facts;
	enum osd_status status;

	if (is_open(request))
		return OSD_OK;
	status = osd_objects_facts(ctx->objects, id, any_tag_matters(request), &facts);
	if (status == OSD_E_NO_OBJECT || status == OSD_E_NO_PARTITION) {
		facts = (struct osd_object_facts){.id = id,
						  .type = type,
						  .boot_epoch =
							  osd_objects_boot_epoch(ctx->objects),
						  .missing = true};
		status = OSD_OK;
	}
	if (status != OSD_OK || extensions_permit(request, &facts, &access))
		return status;
	if (request->security.extension_count)
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	return permits(request, &facts, &access);
}

static bool permits_inside(const struct osd_request *request, const struct osd_object_facts *facts,
			   uint16_t permissions)
{
	const struct osd_request_security *security = &request->security;
	struct osd_access access = whole(permissions);
	uint16_t field;

	return osd_grant_permits_inside(&security->proof.grant, facts, &access, security->now_ms,
					&field) == OSD_OK ||
	       extensions_permit(request, facts, &access);
}

bool osd_authorise_limits(const struct osd_request *request)
{
	return !request->security.proof.grant.open && tag_matters(request);
}

bool osd_authorise_sees(void *request, const struct osd_object_facts *facts)
{
	return !facts->surrogate && permits_inside(request, facts, OSD_PERM_QUERY);
}

enum osd_status osd_authorise_inside(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, uint16_t permissions,
				     bool *ret_permitted)
{
	struct osd_object_facts facts;
	enum osd_status status;

	*ret_permitted = true;
	if (request->security.proof.grant.open)
		return OSD_OK;
	status = osd_txn_facts(txn, id, any_tag_matters(request), &facts);
	if (status == OSD_OK && facts.surrogate)
		return osd_own_job_inside(request, txn, id, ret_permitted);
	if (status == OSD_OK)
		*ret_permitted = permits_inside(request, &facts, permissions);
	return status;
}
