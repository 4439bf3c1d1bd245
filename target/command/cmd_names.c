/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_names.c -- READ NAMES and CHANGE NAMES: paths below the directory that the CDB addresses (docs/names.md).
 * Set and get attributes are those of the object that the path names.
 * Not here: the records (object/names.c), the bytes (wire/name_list.c), LIST (name_listing.c). */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "command/name_listing.h"
#include "command/validate.h"
#include "object/names.h"
#include "wire/name_list.h"

enum { FIELD_PARTITION = 16, FIELD_OBJECT = 24, FIELD_LENGTH = 32, FIELD_PERMISSIONS = 129 };
enum { PARAM_OBJECT = 16 };

struct naming {
	struct osd_command_context *ctx;
	struct osd_txn *txn;
	struct osd_name_params params; /* borrows from the copy of Data-Out */
	struct osd_name_place place;   /* where the path leads */
	struct osd_named result;
	uint8_t outcome; /* enum osd_name_outcome */
};

/* ---- failures -------------------------------------------------------------------------------- */

static enum osd_status fail_in_data(struct osd_request *request, enum osd_status status,
				    uint16_t field)
{
	request->fault.field_in_data_out = true;
	return osd_command_fail(request, status, field);
}

/* A failure about one name of a path. */
static enum osd_status fail_at(struct naming *naming, enum osd_status status, unsigned component)
{
	struct osd_request *request = naming->ctx->request;

	switch (status) {
	case OSD_E_NO_PARTITION:
		return osd_command_fail(request, status, FIELD_PARTITION);
	case OSD_E_NO_OBJECT:
		return osd_command_fail(request, status, FIELD_OBJECT);
	case OSD_E_PARAM_FIELD:
		return fail_in_data(request, status, OSD_NAME_PARAMS_HEADER);
	case OSD_E_NO_NAME:
	case OSD_E_NAME_EXISTS:
	case OSD_E_NOT_DIRECTORY:
	case OSD_E_IS_DIRECTORY:
	case OSD_E_NAME_LOOP:
	case OSD_E_NAME_CHANGED:
	case OSD_E_NAME_TARGET:
		request->fault.has_information = true;
		request->fault.information = component;
		return status;
	default:
		return status;
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

static struct osd_name as_name(struct osd_name_text text)
{
	return (struct osd_name){text.bytes, text.length};
}

static unsigned last_component(struct osd_name_text path)
{
	unsigned count = 0;

	for (size_t i = 0; i < path.length; i++)
		count += path.bytes[i] == '/';
	return count;
}

/* needs: a name, which an empty path has not. */
static enum osd_status follow(struct naming *naming, struct osd_name_text path, bool needs,
			      struct osd_name_place *ret_place)
{
	unsigned component = 0;
	enum osd_status status = osd_name_follow(naming->txn, naming->ctx->addressed,
						 as_name(path), ret_place, &component);

	if (status == OSD_OK && needs && path.length == 0)
		status = OSD_E_PARAM_FIELD;
	return status == OSD_OK ? OSD_OK : fail_at(naming, status, component);
}

static enum osd_status fail_last(struct naming *naming, enum osd_status status)
{
	return fail_at(naming, status, last_component(naming->params.path));
}

static enum osd_status check_expected(struct naming *naming)
{
	const struct osd_name_place *place = &naming->place;
	uint64_t expected = naming->params.expected;

	if (!expected || (place->exists && place->found.id.object_id == expected))
		return OSD_OK;
	return fail_last(naming, place->exists ? OSD_E_NAME_CHANGED : OSD_E_NO_NAME);
}

static enum osd_status must_exist(struct naming *naming)
{
	return naming->place.exists ? check_expected(naming) : fail_last(naming, OSD_E_NO_NAME);
}

/* The object has the policy access tag that the capability wants, and no unfinished job. */
static enum osd_status may_touch(struct naming *naming, const struct osd_named *named,
				 uint16_t permissions)
{
	struct osd_request *request = naming->ctx->request;
	bool permitted = false;
	enum osd_status status = osd_authorise_inside(request, naming->txn, named->id,
						      osd_access_whole(permissions), &permitted);

	if (status == OSD_OK && !permitted)
		return osd_command_fail(request, OSD_E_PERMISSION, FIELD_PERMISSIONS);
	return status;
}

/* The object takes the name, and remembers it as its username. */
static enum osd_status give(struct naming *naming, const struct osd_name_place *place,
			    const struct osd_named *named)
{
	uint32_t page = OSD_REL_INFORMATION;
	enum osd_status status =
		osd_name_put(naming->txn, place->directory, place->name, named->id);

	if (named->type == OSD_COLLECTION)
		page |= OSD_PAGE_COLLECTION_BASE;
	return status == OSD_OK ? osd_attr_set(naming->txn, named->id, page, OSD_INFO_USERNAME,
					       place->name.bytes, place->name.length)
				: fail_last(naming, status);
}

/* The object loses the name; without another one it is removed. */
static enum osd_status take(struct naming *naming, const struct osd_name_place *place)
{
	struct osd_object_id id = place->found.id;
	uint32_t names = 0;
	enum osd_status status = may_touch(naming, &place->found, OSD_PERM_REMOVE);

	if (status == OSD_OK)
		status = osd_name_drop(naming->txn, place->directory, place->name, id);
	if (status == OSD_OK)
		status = osd_name_count(naming->txn, id, &names);
	if (status != OSD_OK || names)
		return status;
	naming->outcome |= OSD_NAME_REMOVED;
	if (place->found.type == OSD_COLLECTION)
		return osd_collection_remove(naming->txn, id, false);
	status = osd_validate_unmarked(naming->txn, id, OSD_USER_OBJECT);
	return status == OSD_OK ? osd_user_object_remove(naming->txn, id) : status;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static enum osd_status look_up(struct naming *naming)
{
	enum osd_status status = must_exist(naming);

	naming->result = naming->place.found;
	return status == OSD_OK ? may_touch(naming, &naming->result, OSD_PERM_READ) : status;
}

static enum osd_status open_existing(struct naming *naming, enum osd_object_type type)
{
	if (!(naming->params.flags & OSD_NAME_OPEN_EXISTING))
		return fail_last(naming, OSD_E_NAME_EXISTS);
	if (naming->place.found.type != type)
		return fail_last(naming, type == OSD_COLLECTION ? OSD_E_NOT_DIRECTORY
								: OSD_E_IS_DIRECTORY);
	naming->result = naming->place.found;
	return may_touch(naming, &naming->result, OSD_PERM_WRITE);
}

static enum osd_status make(struct naming *naming, enum osd_object_type type)
{
	struct osd_named made = {{naming->ctx->addressed.partition_id, 0}, type};
	enum osd_status status;

	if (naming->place.exists)
		return open_existing(naming, type);
	status = type == OSD_COLLECTION
			 ? osd_directory_make(naming->txn, made.id.partition_id, &made.id)
			 : osd_user_object_create(naming->txn, made.id.partition_id, 0, 1,
						  &made.id.object_id);
	if (status == OSD_OK)
		status = give(naming, &naming->place, &made);
	naming->outcome |= OSD_NAME_MADE;
	naming->result = made;
	return status;
}

static enum osd_status create(struct naming *naming)
{
	return make(naming, OSD_USER_OBJECT);
}

static enum osd_status make_directory(struct naming *naming)
{
	return make(naming, OSD_COLLECTION);
}

/* The object that LINK gives a name.  By id only with a capability of the whole partition: the object may
 * be anywhere in it. */
static enum osd_status find_linked(struct naming *naming, struct osd_named *ret_named)
{
	uint64_t id = naming->params.object_id;
	struct osd_name_place place;
	enum osd_status status;

	if (!id) {
		status = follow(naming, naming->params.other, true, &place);
		if (status == OSD_OK && !place.exists)
			status = fail_at(naming, OSD_E_NO_NAME,
					 last_component(naming->params.other));
		if (status == OSD_OK)
			*ret_named = place.found;
		return status;
	}
	if (naming->ctx->addressed.object_id != 0 || id < OSD_FIRST_ID)
		return fail_in_data(naming->ctx->request, OSD_E_PARAM_FIELD, PARAM_OBJECT);
	ret_named->id = (struct osd_object_id){naming->ctx->addressed.partition_id, id};
	status = osd_object_type_of(naming->txn, ret_named->id, &ret_named->type);
	return status == OSD_E_NO_OBJECT
		       ? fail_in_data(naming->ctx->request, OSD_E_PARAM_FIELD, PARAM_OBJECT)
		       : status;
}

static enum osd_status check_no_loop(struct naming *naming, struct osd_object_id directory,
				     const struct osd_named *moved)
{
	bool below = false;
	enum osd_status status = OSD_OK;

	if (moved->type == OSD_COLLECTION)
		status = osd_directory_is_below(naming->txn, directory, moved->id, &below);
	return status == OSD_OK && below ? fail_last(naming, OSD_E_NAME_LOOP) : status;
}

/* What has the name gives it up for an object of the same kind. */
static enum osd_status replace(struct naming *naming, const struct osd_name_place *place,
			       enum osd_object_type by)
{
	if (!(naming->params.flags & OSD_NAME_REPLACE))
		return fail_last(naming, OSD_E_NAME_EXISTS);
	if (place->found.type == OSD_COLLECTION && by != OSD_COLLECTION)
		return fail_last(naming, OSD_E_IS_DIRECTORY);
	if (place->found.type != OSD_COLLECTION && by == OSD_COLLECTION)
		return fail_last(naming, OSD_E_NOT_DIRECTORY);
	return take(naming, place);
}

static enum osd_status link_name(struct naming *naming)
{
	struct osd_name_place *place = &naming->place;
	enum osd_status status = check_expected(naming);

	if (status == OSD_OK)
		status = find_linked(naming, &naming->result);
	if (status == OSD_OK)
		status = may_touch(naming, &naming->result, OSD_PERM_WRITE);
	if (status == OSD_OK)
		status = check_no_loop(naming, place->directory, &naming->result);
	if (status != OSD_OK)
		return status;
	if (place->exists && naming->params.flags & OSD_NAME_REPLACE &&
	    osd_same_id(place->found.id, naming->result.id))
		return OSD_OK;
	if (place->exists)
		status = replace(naming, place, naming->result.type);
	return status == OSD_OK ? give(naming, place, &naming->result) : status;
}

static enum osd_status unlink_name(struct naming *naming)
{
	enum osd_status status = must_exist(naming);

	naming->result = naming->place.found;
	if (status == OSD_OK && naming->result.type == OSD_COLLECTION)
		return fail_last(naming, OSD_E_IS_DIRECTORY);
	return status == OSD_OK ? take(naming, &naming->place) : status;
}

static enum osd_status remove_directory(struct naming *naming)
{
	enum osd_status status = must_exist(naming);

	naming->result = naming->place.found;
	if (status == OSD_OK && naming->result.type != OSD_COLLECTION)
		return fail_last(naming, OSD_E_NOT_DIRECTORY);
	return status == OSD_OK ? take(naming, &naming->place) : status;
}

static enum osd_status exchange(struct naming *naming, const struct osd_name_place *to)
{
	struct osd_txn *txn = naming->txn;
	const struct osd_name_place *from = &naming->place;
	enum osd_status status = check_no_loop(naming, from->directory, &to->found);

	if (status == OSD_OK)
		status = may_touch(naming, &to->found, OSD_PERM_WRITE);
	if (status == OSD_OK)
		status = osd_name_drop(txn, from->directory, from->name, from->found.id);
	if (status == OSD_OK)
		status = osd_name_drop(txn, to->directory, to->name, to->found.id);
	if (status == OSD_OK)
		status = give(naming, from, &to->found);
	return status == OSD_OK ? give(naming, to, &from->found) : status;
}

static enum osd_status move(struct naming *naming, const struct osd_name_place *to)
{
	const struct osd_name_place *from = &naming->place;
	enum osd_status status = OSD_OK;

	if (to->exists)
		status = replace(naming, to, from->found.type);
	if (status == OSD_OK)
		status = osd_name_drop(naming->txn, from->directory, from->name, from->found.id);
	return status == OSD_OK ? give(naming, to, &from->found) : status;
}

static enum osd_status rename_name(struct naming *naming)
{
	bool exchanges = naming->params.flags & OSD_NAME_EXCHANGE;
	struct osd_name_place to;
	enum osd_status status = must_exist(naming);

	naming->result = naming->place.found;
	if (status == OSD_OK)
		status = follow(naming, naming->params.other, true, &to);
	if (status == OSD_OK && exchanges && !to.exists)
		status = fail_at(naming, OSD_E_NO_NAME, last_component(naming->params.other));
	if (status == OSD_OK)
		status = may_touch(naming, &naming->result, OSD_PERM_WRITE);
	if (status == OSD_OK)
		status = check_no_loop(naming, to.directory, &naming->result);
	if (status != OSD_OK)
		return status;
	if (to.exists && osd_same_id(to.found.id, naming->result.id) &&
	    (exchanges || naming->params.flags & OSD_NAME_REPLACE))
		return OSD_OK; /* both names are its own, as rename(2) leaves them */
	return exchanges ? exchange(naming, &to) : move(naming, &to);
}

/* ---- the commands ---------------------------------------------------------------------------- */

static enum osd_status answer(struct naming *naming)
{
	struct osd_request *request = naming->ctx->request;
	bool gone = naming->outcome & OSD_NAME_REMOVED &&
		    (naming->params.verb == OSD_NAME_UNLINK || naming->params.verb == OSD_NAME_RMDIR);
	uint8_t bytes[OSD_NAME_ENTRY];
	uint32_t names = 0;
	enum osd_status status = OSD_OK;

	if (!gone)
		status = osd_name_count(naming->txn, naming->result.id, &names);
	if (status != OSD_OK)
		return status;
	osd_name_entry_encode(naming->result.id.object_id, (uint8_t)naming->result.type,
			      naming->outcome, names, bytes);
	osd_command_data_in(request, bytes,
			    OSD_MIN(sizeof(bytes), request->decoded.result_allocation_length));
	if (gone)
		return OSD_OK;
	request->object = naming->result.id;
	request->object_type = naming->result.type;
	request->made_count = naming->outcome & OSD_NAME_MADE ? 1 : 0;
	return OSD_OK;
}

static enum osd_status act(struct naming *naming)
{
	static enum osd_status (*const verbs[])(struct naming *) = {
		[OSD_NAME_LOOKUP] = look_up,	    [OSD_NAME_CREATE] = create,
		[OSD_NAME_MKDIR] = make_directory,  [OSD_NAME_LINK] = link_name,
		[OSD_NAME_UNLINK] = unlink_name,    [OSD_NAME_RMDIR] = remove_directory,
		[OSD_NAME_RENAME] = rename_name,
	};
	enum osd_name_verb verb = naming->params.verb;
	enum osd_status status =
		follow(naming, naming->params.path, verb != OSD_NAME_LOOKUP && verb != OSD_NAME_LIST,
		       &naming->place);

	if (status != OSD_OK)
		return status;
	if (verb == OSD_NAME_LIST) {
		status = must_exist(naming);
		if (status == OSD_OK && naming->place.found.type == OSD_USER_OBJECT)
			status = OSD_E_NOT_DIRECTORY;
		if (status == OSD_OK)
			status = osd_names_listing(naming->ctx, naming->txn, naming->place.found.id,
						   &naming->params);
		return status == OSD_OK ? OSD_OK : fail_last(naming, status);
	}
	status = verbs[verb](naming);
	return status == OSD_OK ? answer(naming) : status;
}

/* Data-Out may change while it is read: the paths are those of a copy. */
static enum osd_status perform(struct osd_command_context *ctx, enum osd_name_verb first,
			       enum osd_name_verb last)
{
	struct naming naming = {.ctx = ctx, .txn = ctx->txn};
	OSD_CLEANUP_FREE uint8_t *copy = NULL;
	struct osd_request *request = ctx->request;
	uint16_t field = 0;
	enum osd_status status;

	request->object = ctx->addressed;
	request->object_type = ctx->addressed.object_id ? OSD_COLLECTION : OSD_PARTITION;
	if (ctx->command_data_length < OSD_NAME_PARAMS_HEADER ||
	    ctx->command_data_length > OSD_NAME_PARAMS_MAX)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LENGTH);
	copy = malloc(ctx->command_data_length);
	if (!copy)
		return OSD_E_NO_MEMORY;
	memcpy(copy, ctx->command_data, ctx->command_data_length);
	status = osd_name_params_decode(copy, ctx->command_data_length, &naming.params, &field);
	if (status == OSD_OK && (naming.params.verb < first || naming.params.verb > last))
		status = OSD_E_PARAM_FIELD;
	if (status == OSD_E_PARAM_FIELD)
		return fail_in_data(request, status, field);
	return status == OSD_OK ? act(&naming) : status;
}

enum osd_status osd_cmd_read_names(struct osd_command_context *ctx)
{
	return perform(ctx, OSD_NAME_LOOKUP, OSD_NAME_LIST);
}

enum osd_status osd_cmd_change_names(struct osd_command_context *ctx)
{
	return perform(ctx, OSD_NAME_CREATE, OSD_NAME_RENAME);
}
