/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_names.c -- READ NAMES and CHANGE NAMES: paths below what the CDB addresses (docs/names.md).
 * Set and get attributes are those of the object that the path names.
 * Not here: the steps of verbs (naming.c), the records (object/names.h), the bytes (wire/name_list.c), LIST
 * (name_listing.c). */
#include "base/util.h"
#include "command/commands.h"
#include "command/name_listing.h"
#include "command/naming.h"
#include "command/phase.h"
#include "command/stack_write.h"
#include "object/name_cache.h"

enum { PARAM_VERB = 0, PARAM_OBJECT = 16 };

/* About the last name of the path. */
static enum osd_status fail(struct osd_naming *naming, enum osd_status status)
{
	return osd_naming_fail_last(naming, status, naming->params.path);
}

/* ---- verbs ----------------------------------------------------------------------------------- */

/* A command that may not wait needs nothing more of the object, or finds it in memory. */
static enum osd_status check_at_hand(struct osd_naming *naming)
{
	struct osd_command_context *ctx = naming->ctx;
	struct osd_object *object = NULL;
	enum osd_status status;

	if (!(ctx->data_flags & OSD_DATA_NOWAIT) ||
	    (!ctx->attributes && ctx->request->security.proof.grant.open))
		return OSD_OK;
	status = osd_object_get_cached(ctx->objects, naming->result.id, &object);
	osd_object_put(object);
	return status;
}

/* The view may lack an object that has a name in the base: it is not complete yet (docs/views.md). */
static enum osd_status check_in_view(struct osd_naming *naming)
{
	enum osd_object_type type;
	enum osd_status status = naming->in_view
					 ? osd_object_type_of(naming->txn, naming->result.id, &type)
					 : OSD_OK;

	return status == OSD_E_NO_OBJECT && osd_name_mark_holds(&naming->place.mark)
		       ? fail(naming, OSD_E_NO_NAME)
		       : status;
}

static enum osd_status look_up(struct osd_naming *naming)
{
	unsigned component = 0;
	enum osd_status status = osd_name_lookup(naming->txn, naming->from, naming->params.path,
						 &naming->place, &component, &naming->names);

	if (status != OSD_OK)
		return osd_naming_fail_at(naming, status, component);
	status = osd_naming_may_use(naming, naming->place.directory, OSD_PERM_READ);
	if (status == OSD_OK)
		status = osd_naming_must_exist(naming);
	naming->result = naming->place.found;
	if (status == OSD_OK)
		status = check_in_view(naming);
	if (status == OSD_OK)
		status = check_at_hand(naming);
	if (status == OSD_OK)
		status = osd_naming_may_touch(naming, &naming->result, OSD_PERM_READ);
	return status == OSD_OK ? osd_naming_read(naming) : status;
}

/* Either both are directories, or neither is. */
static enum osd_status check_kind(struct osd_naming *naming, enum osd_object_type found,
				  enum osd_object_type wanted)
{
	if ((found == OSD_COLLECTION) == (wanted == OSD_COLLECTION))
		return OSD_OK;
	return fail(naming, wanted == OSD_COLLECTION ? OSD_E_NOT_DIRECTORY : OSD_E_IS_DIRECTORY);
}

static enum osd_status open_existing(struct osd_naming *naming, enum osd_object_type type)
{
	enum osd_status status;

	if (!(naming->params.flags & OSD_NAME_OPEN_EXISTING))
		return fail(naming, OSD_E_NAME_EXISTS);
	status = check_kind(naming, naming->place.found.type, type);
	naming->result = naming->place.found;
	return status == OSD_OK ? osd_naming_may_touch(naming, &naming->result, OSD_PERM_WRITE)
				: status;
}

/* CREATE and MKDIR. */
static enum osd_status make(struct osd_naming *naming)
{
	enum osd_object_type type =
		naming->params.verb == OSD_NAME_MKDIR ? OSD_COLLECTION : OSD_USER_OBJECT;
	const struct osd_stack_making making = {
		.partition_id = naming->from.partition_id, .count = 1, .named = true};
	struct osd_named made = {{naming->from.partition_id, 0}, type};
	enum osd_status status;

	if (naming->from.partition_id == 0)
		return fail(naming, OSD_E_NAME_TARGET);
	if (naming->place.exists)
		return open_existing(naming, type);
	status = type == OSD_COLLECTION
			 ? osd_directory_make(naming->txn, made.id.partition_id, &made.id)
			 : osd_stack_make(naming->ctx->request, naming->txn, &making,
					  &made.id.object_id);
	if (status == OSD_OK)
		status = osd_naming_give(naming, &naming->place, &made);
	naming->outcome |= OSD_NAME_MADE;
	naming->result = made;
	return status;
}

/* The object that LINK gives a name.  By id only with a capability of the whole partition: the object may
 * be anywhere in it. */
static enum osd_status find_linked(struct osd_naming *naming, struct osd_named *ret_named)
{
	uint64_t id = naming->params.object_id;
	struct osd_name_place place;
	enum osd_status status;

	if (!id) {
		status = osd_naming_follow(naming, naming->params.other, OSD_PERM_WRITE, &place);
		if (status == OSD_OK && !place.exists)
			status = osd_naming_fail_last(naming, OSD_E_NO_NAME, naming->params.other);
		if (status == OSD_OK)
			*ret_named = place.found;
		return status;
	}
	if (naming->from.object_id != 0 || id < OSD_FIRST_ID)
		return osd_naming_fail_in_data(naming->ctx->request, OSD_E_PARAM_FIELD,
					       PARAM_OBJECT);
	ret_named->id = naming->from.partition_id
				? (struct osd_object_id){naming->from.partition_id, id}
				: (struct osd_object_id){id, 0};
	status = osd_object_type_of(naming->txn, ret_named->id, &ret_named->type);
	return osd_status_is_gone(status) ? osd_naming_fail_in_data(naming->ctx->request,
								    OSD_E_PARAM_FIELD, PARAM_OBJECT)
					  : status;
}

static enum osd_status check_no_loop(struct osd_naming *naming, struct osd_object_id directory,
				     const struct osd_named *moved)
{
	bool below = false;
	enum osd_status status = OSD_OK;

	if (moved->type == OSD_COLLECTION)
		status = osd_directory_is_below(naming->txn, directory, moved->id, &below);
	return status == OSD_OK && below ? fail(naming, OSD_E_NAME_LOOP) : status;
}

/* The object that has the name gives it up for an object of the same kind. */
static enum osd_status replace(struct osd_naming *naming, const struct osd_name_place *place,
			       enum osd_object_type by)
{
	enum osd_status status;

	if (!(naming->params.flags & OSD_NAME_REPLACE))
		return fail(naming, OSD_E_NAME_EXISTS);
	status = check_kind(naming, place->found.type, by);
	return status == OSD_OK ? osd_naming_take(naming, place) : status;
}

static enum osd_status put(struct osd_naming *naming)
{
	enum osd_status status = osd_naming_check_expected(naming);

	if (status == OSD_OK && naming->place.exists)
		status = replace(naming, &naming->place, OSD_USER_OBJECT);
	return status == OSD_OK ? osd_naming_put(naming) : status;
}

static enum osd_status link_name(struct osd_naming *naming)
{
	struct osd_name_place *place = &naming->place;
	enum osd_status status = osd_naming_check_expected(naming);

	if (status == OSD_OK)
		status = find_linked(naming, &naming->result);
	if (status == OSD_OK)
		status = osd_naming_may_touch(naming, &naming->result, OSD_PERM_WRITE);
	if (status == OSD_OK)
		status = check_no_loop(naming, place->directory, &naming->result);
	if (status != OSD_OK)
		return status;
	if (place->exists && naming->params.flags & OSD_NAME_REPLACE &&
	    osd_same_id(place->found.id, naming->result.id))
		return OSD_OK;
	if (place->exists)
		status = replace(naming, place, naming->result.type);
	return status == OSD_OK ? osd_naming_give(naming, place, &naming->result) : status;
}

/* UNLINK and RMDIR. */
static enum osd_status remove_name(struct osd_naming *naming)
{
	enum osd_status status = osd_naming_must_exist(naming);

	naming->result = naming->place.found;
	if (status == OSD_OK)
		status = check_kind(naming, naming->result.type,
				    naming->params.verb == OSD_NAME_RMDIR ? OSD_COLLECTION
									  : OSD_USER_OBJECT);
	return status == OSD_OK ? osd_naming_take(naming, &naming->place) : status;
}

static enum osd_status exchange(struct osd_naming *naming, const struct osd_name_place *to)
{
	struct osd_txn *txn = naming->txn;
	const struct osd_name_place *from = &naming->place;
	uint32_t left = 0, of_other = 0;
	enum osd_status status = check_no_loop(naming, from->directory, &to->found);

	if (status == OSD_OK)
		status = osd_naming_may_touch(naming, &to->found, OSD_PERM_WRITE);
	if (status == OSD_OK)
		status = osd_name_drop(txn, from->directory, from->name, from->found.id, &left);
	if (status == OSD_OK)
		status = osd_name_drop(txn, to->directory, to->name, to->found.id, &of_other);
	naming->names = left + 1;
	if (status == OSD_OK)
		status = osd_naming_give(naming, from, &to->found);
	return status == OSD_OK ? osd_naming_give(naming, to, &from->found) : status;
}

static enum osd_status move(struct osd_naming *naming, const struct osd_name_place *to)
{
	const struct osd_name_place *from = &naming->place;
	uint32_t left = 0;
	enum osd_status status = OSD_OK;

	if (to->exists)
		status = replace(naming, to, from->found.type);
	if (status == OSD_OK)
		status = osd_name_drop(naming->txn, from->directory, from->name, from->found.id,
				       &left);
	naming->names = left + 1;
	return status == OSD_OK ? osd_naming_give(naming, to, &from->found) : status;
}

static enum osd_status rename_name(struct osd_naming *naming)
{
	bool exchanges = naming->params.flags & OSD_NAME_EXCHANGE;
	struct osd_name_place to;
	enum osd_status status = osd_naming_must_exist(naming);

	naming->result = naming->place.found;
	if (status == OSD_OK)
		status = osd_naming_follow(naming, naming->params.other, OSD_PERM_WRITE, &to);
	if (status == OSD_OK && exchanges && !to.exists)
		status = osd_naming_fail_last(naming, OSD_E_NO_NAME, naming->params.other);
	if (status == OSD_OK)
		status = osd_naming_may_touch(naming, &naming->result, OSD_PERM_WRITE);
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

static enum osd_status answer(struct osd_naming *naming)
{
	struct osd_request *request = naming->ctx->request;
	bool gone = naming->outcome & OSD_NAME_REMOVED && (naming->params.verb == OSD_NAME_UNLINK ||
							   naming->params.verb == OSD_NAME_RMDIR);
	uint8_t bytes[OSD_NAME_ENTRY];
	uint32_t names = naming->names;
	enum osd_status status = OSD_OK;

	if (naming->outcome & OSD_NAME_MADE)
		names = 1;
	else if (!gone && !names && naming->params.verb != OSD_NAME_LOOKUP)
		status = osd_name_count(naming->txn, naming->result.id, &names);
	if (status == OSD_OK && names > OSD_NAMES_MAX && naming->params.verb == OSD_NAME_LINK)
		status = OSD_E_QUOTA;
	if (status != OSD_OK)
		return status;
	osd_name_entry_encode(naming->result.id.partition_id, naming->result.id.object_id,
			      (uint8_t)naming->result.type, naming->outcome, names, bytes);
	osd_command_data_in(request, bytes,
			    OSD_MIN(sizeof(bytes), request->decoded.result_allocation_length));
	request->command_data_in += naming->data_bytes; /* it is there */
	if (gone)
		return OSD_OK;
	request->object = naming->result.id;
	request->object_type = naming->result.type;
	request->made_count = naming->outcome & OSD_NAME_MADE ? 1 : 0;
	return OSD_OK;
}

static enum osd_status list(struct osd_naming *naming)
{
	enum osd_status status;

	if (naming->ctx->data_flags & OSD_DATA_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	status = osd_naming_follow(naming, naming->params.path, OSD_PERM_READ, &naming->place);
	if (status != OSD_OK)
		return status;
	status = osd_naming_must_exist(naming);
	if (status == OSD_OK && naming->place.found.type == OSD_USER_OBJECT)
		status = OSD_E_NOT_DIRECTORY;
	if (status == OSD_OK)
		status = osd_naming_may_use(naming, naming->place.found.id, OSD_PERM_READ);
	if (status == OSD_OK)
		status = osd_names_listing(naming->ctx, naming->txn, naming->place.found.id,
					   &naming->params);
	return status == OSD_OK ? OSD_OK : fail(naming, status);
}

static enum osd_status act(struct osd_naming *naming)
{
	static enum osd_status (*const verbs[])(struct osd_naming *) = {
		[OSD_NAME_LOOKUP] = look_up,	 [OSD_NAME_CREATE] = make,
		[OSD_NAME_MKDIR] = make,	 [OSD_NAME_LINK] = link_name,
		[OSD_NAME_UNLINK] = remove_name, [OSD_NAME_RMDIR] = remove_name,
		[OSD_NAME_RENAME] = rename_name, [OSD_NAME_PUT] = put,
	};
	enum osd_name_verb verb = naming->params.verb;
	enum osd_status status = osd_naming_begin(naming);

	if (status != OSD_OK)
		return status;
	if (verb == OSD_NAME_LIST)
		return list(naming);
	if (verb != OSD_NAME_LOOKUP)
		status = osd_naming_follow(naming, naming->params.path, OSD_PERM_WRITE,
					   &naming->place);
	if (status == OSD_OK)
		status = verbs[verb](naming);
	return status == OSD_OK ? answer(naming) : status;
}

/* The name found has changed since: it, or another in its directory. */
static bool has_changed(const struct osd_name_place *place)
{
	return place->exists && place->name.length && !osd_name_mark_holds(&place->mark);
}

/* A read holds no lock of the object found: another command may remove it, and so its name, at any moment. */
static enum osd_status act_on_found(struct osd_naming *naming)
{
	enum osd_status status = act(naming);

	if (status == OSD_OK && !(naming->params.flags & OSD_NAME_EACH))
		status = osd_phase_set_then_get(naming->ctx->request, naming->txn);
	if (osd_status_is_gone(status) &&
	    (has_changed(&naming->place) || has_changed(&naming->entrance)))
		return OSD_E_CONFLICT;
	return status;
}

static enum osd_status perform(struct osd_command_context *ctx, enum osd_name_verb first,
			       enum osd_name_verb last)
{
	struct osd_naming naming = {.ctx = ctx, .txn = ctx->txn};
	OSD_CLEANUP_FREE uint8_t *copy = NULL;
	enum osd_status status = osd_naming_load(ctx, &copy, &naming.params);

	if (status != OSD_OK)
		return status;
	if (naming.params.verb < first || naming.params.verb > last)
		return osd_naming_fail_in_data(ctx->request, OSD_E_PARAM_FIELD, PARAM_VERB);
	return ctx->def->flags & OSD_CMD_OWN_ATTRS ? act_on_found(&naming) : act(&naming);
}

enum osd_status osd_cmd_read_names(struct osd_command_context *ctx)
{
	return perform(ctx, OSD_NAME_LOOKUP, OSD_NAME_LIST);
}

enum osd_status osd_cmd_change_names(struct osd_command_context *ctx)
{
	return perform(ctx, OSD_NAME_CREATE, OSD_NAME_PUT);
}
