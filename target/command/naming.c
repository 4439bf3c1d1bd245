/* SPDX-License-Identifier: GPL-2.0-or-later */
/* naming.c -- see naming.h. */
#include "command/naming.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "command/stack_run.h"
#include "command/validate.h"
#include "object/view.h"
#include "security/decide.h"
#include "security/grant.h"

enum { FIELD_PARTITION = 16, FIELD_OBJECT = 24, FIELD_LENGTH = 32 };

/* ---- failures -------------------------------------------------------------------------------- */

enum osd_status osd_naming_fail_in_data(struct osd_request *request, enum osd_status status,
					uint16_t field)
{
	request->fault.field_in_data_out = true;
	return osd_command_fail(request, status, field);
}

enum osd_status osd_naming_fail_at(struct osd_naming *naming, enum osd_status status,
				   unsigned component)
{
	struct osd_request *request = naming->ctx->request;

	switch (status) {
	case OSD_E_NO_PARTITION:
		return osd_command_fail(request, status, FIELD_PARTITION);
	case OSD_E_NO_OBJECT:
		return osd_command_fail(request, status, FIELD_OBJECT);
	case OSD_E_PARAM_FIELD:
		return osd_naming_fail_in_data(request, status, OSD_NAME_PARAMS_HEADER);
	case OSD_E_NO_NAME:
	case OSD_E_NAME_EXISTS:
	case OSD_E_NOT_DIRECTORY:
	case OSD_E_IS_DIRECTORY:
	case OSD_E_NAME_LOOP:
	case OSD_E_NAME_CHANGED:
	case OSD_E_NAME_TARGET:
		osd_fault_inform(&request->fault, naming->entered + component);
		return status;
	default:
		return status;
	}
}

enum osd_status osd_naming_fail_last(struct osd_naming *naming, enum osd_status status,
				     struct osd_name path)
{
	unsigned last = 0;

	for (size_t i = 0; i < path.length; i++)
		last += path.bytes[i] == '/';
	return osd_naming_fail_at(naming, status, last);
}

/* ---- parameters ------------------------------------------------------------------------------ */

enum osd_status osd_naming_load(struct osd_command_context *ctx, uint8_t **ret_copy,
				struct osd_name_params *ret_params)
{
	const size_t length = ctx->command_data_length;
	const size_t head = OSD_MIN(length, (size_t)OSD_NAME_PARAMS_MAX);
	uint16_t field = 0;
	enum osd_status status;

	if (length < OSD_NAME_PARAMS_HEADER || length > OSD_NAME_PARAMS_MAX + OSD_NAME_DATA_MAX)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	*ret_copy = malloc(head);
	if (!*ret_copy)
		return OSD_E_NO_MEMORY;
	memcpy(*ret_copy, ctx->command_data, head);
	status = osd_name_params_decode(*ret_copy, length, ret_params, &field);
	return status == OSD_E_PARAM_FIELD ? osd_naming_fail_in_data(ctx->request, status, field)
					   : status;
}

/* ---- rights ---------------------------------------------------------------------------------- */

static const struct osd_grant *grant_of(const struct osd_naming *naming)
{
	return &naming->ctx->request->security.proof.grant;
}

/* The command, which addresses the root, may reach into the partition. */
static enum osd_status may_enter(struct osd_naming *naming, uint64_t partition_id)
{
	struct osd_request *request = naming->ctx->request;
	uint8_t least_method = OSD_NOSEC;
	enum osd_status status;

	if (!grant_of(naming)->open)
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_GRANT_FIELD_PARTITION);
	status = osd_least_method(naming->ctx->keyring, naming->txn, partition_id, &least_method);
	if (status == OSD_OK && !osd_method_suffices(grant_of(naming), least_method))
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_GRANT_FIELD_METHOD);
	return status;
}

/* A partition's name is the root's matter.  Its attributes are its own, but for those about the command. */
static enum osd_status may_touch_partition(struct osd_naming *naming, uint64_t partition_id)
{
	const struct osd_attr_params *attributes = naming->ctx->attributes;

	return attributes && !attributes->current_only ? may_enter(naming, partition_id) : OSD_OK;
}

enum osd_status osd_naming_may_touch(struct osd_naming *naming, const struct osd_named *named,
				     uint16_t permissions)
{
	struct osd_request *request = naming->ctx->request;
	bool permitted = false;
	enum osd_status status;

	if (named->type == OSD_PARTITION && naming->from.partition_id == 0)
		return may_touch_partition(naming, named->id.partition_id);
	status = osd_authorise_inside(request, naming->txn, named->id,
				      osd_access_whole(permissions), &permitted);
	if (status == OSD_OK && !permitted)
		return osd_command_fail(request, OSD_E_PERMISSION, OSD_GRANT_FIELD_PERMISSIONS);
	return status;
}

enum osd_status osd_naming_may_use(struct osd_naming *naming, struct osd_object_id directory,
				   uint16_t permissions)
{
	const struct osd_named named = {directory, OSD_COLLECTION};

	if (grant_of(naming)->open || osd_same_id(directory, naming->from))
		return OSD_OK;
	if (naming->ctx->data_flags & OSD_DATA_NOWAIT) /* its record may not be in memory */
		return OSD_E_WOULD_BLOCK;
	return osd_naming_may_touch(naming, &named, permissions);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Takes the name of a partition off a path. */
static enum osd_status enter(struct osd_naming *naming, struct osd_name *path,
			     uint64_t *ret_partition_id)
{
	const uint8_t *slash = memchr(path->bytes, '/', path->length);
	struct osd_name first = {path->bytes, slash ? (size_t)(slash - path->bytes) : path->length};
	struct osd_name_place place = {.exists = false};
	unsigned component = 0;
	uint32_t names;
	enum osd_status status = osd_name_lookup(naming->txn, naming->ctx->addressed, first,
						 &place, &component, &names);

	naming->entrance = place;

	if (status == OSD_OK && !place.exists)
		status = OSD_E_NO_NAME;
	if (first.length == 0 || (status == OSD_OK && slash && first.length + 1 == path->length))
		status = OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return osd_naming_fail_at(naming, status, 0);
	*ret_partition_id = place.found.id.partition_id;
	path->bytes += first.length + (slash ? 1 : 0);
	path->length -= first.length + (slash ? 1 : 0);
	return may_enter(naming, *ret_partition_id);
}

static bool has_slash(struct osd_name path)
{
	return path.length && memchr(path.bytes, '/', path.length);
}

/* Of a RENAME, or of a LINK that names the object by a path. */
static bool has_second_path(const struct osd_name_params *params)
{
	return (params->verb == OSD_NAME_RENAME || params->verb == OSD_NAME_LINK) &&
	       params->object_id == 0;
}

/* Names in a view are those of its base. */
static enum osd_status check_view(struct osd_naming *naming)
{
	enum osd_name_verb verb = naming->params.verb;
	bool makes = verb == OSD_NAME_CREATE || verb == OSD_NAME_PUT || verb == OSD_NAME_MKDIR;
	bool reads = verb == OSD_NAME_LOOKUP || verb == OSD_NAME_LIST;
	struct osd_place tree;
	enum osd_status status =
		osd_view_tree(naming->txn, naming->from.partition_id, !reads, &tree);

	naming->in_view = tree.partition_id != naming->from.partition_id;
	return status == OSD_E_CONTRACT
		       ? osd_stack_refuse(naming->ctx->request,
					  makes ? OSD_CONTRACT_VIEW : OSD_CONTRACT_NAMES)
		       : osd_naming_fail_at(naming, status, 0);
}

static enum osd_status begin_below_root(struct osd_naming *naming)
{
	struct osd_name_params *params = &naming->params;
	bool lists = params->verb == OSD_NAME_LIST && params->path.length;
	uint64_t first = 0, second = 0;
	enum osd_status status;

	/* The root has the names of partitions and no others: no name moves into or out of it. */
	if (has_second_path(params) && has_slash(params->path) != has_slash(params->other))
		return osd_naming_fail_at(naming, OSD_E_NAME_TARGET, 0);
	/* One name is that of the partition itself; LIST lists what is in the partition. */
	if (!lists && !has_slash(params->path))
		return OSD_OK;
	status = enter(naming, &params->path, &first);
	if (status == OSD_OK && has_second_path(params)) {
		status = enter(naming, &params->other, &second);
		if (status == OSD_OK && first != second)
			status = osd_naming_fail_at(naming, OSD_E_NAME_TARGET, 0);
	}
	naming->from = (struct osd_object_id){first, 0};
	naming->entered = 1;
	return status;
}

enum osd_status osd_naming_begin(struct osd_naming *naming)
{
	enum osd_status status = OSD_OK;

	naming->from = naming->ctx->addressed;
	if (naming->from.partition_id == 0)
		status = begin_below_root(naming);
	return status == OSD_OK && naming->from.partition_id ? check_view(naming) : status;
}

enum osd_status osd_naming_follow(struct osd_naming *naming, struct osd_name path,
				  uint16_t permissions, struct osd_name_place *ret_place)
{
	const struct osd_name_params *params = &naming->params;
	bool is_new = params->verb == OSD_NAME_PUT
			      ? !(params->flags & OSD_NAME_REPLACE) && !params->expected
			      : params->verb == OSD_NAME_CREATE &&
					!(params->flags & OSD_NAME_OPEN_EXISTING);
	unsigned component = 0;
	enum osd_status status =
		osd_name_follow(naming->txn, naming->from, path, !is_new, ret_place, &component);

	if (status == OSD_OK && path.length == 0 && naming->params.verb != OSD_NAME_LIST)
		status = OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return osd_naming_fail_at(naming, status, component);
	return osd_naming_may_use(naming, ret_place->directory, permissions);
}

enum osd_status osd_naming_check_expected(struct osd_naming *naming)
{
	const struct osd_name_place *place = &naming->place;
	uint64_t expected = naming->params.expected;
	uint64_t found = place->found.type == OSD_PARTITION ? place->found.id.partition_id
							    : place->found.id.object_id;

	if (!expected || (place->exists && found == expected))
		return OSD_OK;
	return osd_naming_fail_last(naming, place->exists ? OSD_E_NAME_CHANGED : OSD_E_NO_NAME,
				    naming->params.path);
}

enum osd_status osd_naming_must_exist(struct osd_naming *naming)
{
	return naming->place.exists
		       ? osd_naming_check_expected(naming)
		       : osd_naming_fail_last(naming, OSD_E_NO_NAME, naming->params.path);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* An object of a view has its names in the base. */
static enum osd_status find_stored(struct osd_naming *naming, struct osd_object_id *id)
{
	struct osd_place tree;
	enum osd_status status = OSD_OK;

	if (!naming->in_view)
		return OSD_OK;
	status = osd_view_tree(naming->txn, id->partition_id, true, &tree);
	id->partition_id = tree.partition_id;
	return status;
}

static enum osd_status set_username(struct osd_naming *naming, struct osd_object_id id,
				    enum osd_object_type type, struct osd_name name)
{
	return osd_attr_set(naming->txn, id, osd_page_base(type) + OSD_REL_INFORMATION,
			    OSD_INFO_USERNAME, name.bytes, name.length);
}

enum osd_status osd_naming_give(struct osd_naming *naming, const struct osd_name_place *place,
				const struct osd_named *named)
{
	struct osd_object_id stored = named->id;
	enum osd_status status =
		osd_name_put(naming->txn, place->directory, place->name, named->id);

	if (status == OSD_E_EXISTS)
		status = OSD_E_NAME_EXISTS;
	if (status != OSD_OK)
		return osd_naming_fail_last(naming, status, naming->params.path);
	status = find_stored(naming, &stored);
	if (status == OSD_OK)
		status = set_username(naming, stored, named->type, place->name);
	/* Objects of a view have attributes besides those in the base; directories have none. */
	if (status != OSD_OK || !naming->in_view || named->type != OSD_USER_OBJECT)
		return status;
	return set_username(naming, named->id, named->type, place->name);
}

enum osd_status osd_naming_take(struct osd_naming *naming, const struct osd_name_place *place)
{
	struct osd_object_id id = place->found.id, stored = id;
	uint32_t names = 0;
	enum osd_status status = osd_naming_may_touch(naming, &place->found, OSD_PERM_REMOVE);

	if (status == OSD_OK)
		status = osd_name_drop(naming->txn, place->directory, place->name, id, &names);
	if (status != OSD_OK || names || place->found.type == OSD_PARTITION)
		return status;
	naming->outcome |= OSD_NAME_REMOVED;
	status = find_stored(naming, &stored);
	/* The record of a directory is in the base; a user object is removed through the view. */
	if (status == OSD_OK && place->found.type == OSD_COLLECTION)
		return osd_collection_remove(naming->txn, stored, false);
	if (status == OSD_OK)
		status = osd_validate_unmarked(naming->txn, id, OSD_USER_OBJECT);
	return status == OSD_OK ? osd_user_object_remove(naming->txn, id) : status;
}
