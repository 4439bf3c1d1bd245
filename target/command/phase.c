/* SPDX-License-Identifier: GPL-2.0-or-later */
/* phase.c -- see phase.h. */
#include "command/phase.h"

#include "base/util.h"
#include "command/attributes.h"
#include "command/context.h"
#include "command/osc.h"
#include "command/precondition.h"
#include "command/validate.h"
#include "object/txn_run.h"
#include "security/security.h"
#include "wire/sense.h"

unsigned osd_phase_txn_flags(const struct osd_request *request)
{
	unsigned flags = request->def->object_types & OSD_USER_OBJECT ? OSD_TXN_CHECKED : 0;

	if (request->decoded.timestamps_control == OSD_TIMESTAMPS_BYPASS)
		flags |= OSD_TXN_NO_TIMESTAMPS;
	if ((request->def->flags & OSD_CMD_NO_CHANGE || !(request->def->flags & OSD_CMD_TXN)) &&
	    !(request->attributes && request->attributes->sets))
		flags |= OSD_TXN_READ_ONLY;
	return flags;
}

/* The objects that the command made, or the one addressed. */
static uint32_t object_count(const struct osd_request *request)
{
	return OSD_MAX(request->made_count, 1u);
}

static struct osd_object_id object_at(const struct osd_request *request, uint32_t index)
{
	struct osd_object_id id = request->object; /* the last one */

	id.object_id -= object_count(request) - 1 - index;
	return id;
}

/* The used capacity is read only if the Current Command page is requested. */
static bool measures(const struct osd_request *request)
{
	return request->attributes->wants_capacity_change;
}

/* Whether the page is that of stages or of hooks, of any type of object. */
static bool has_functions(uint32_t page)
{
	page %= OSD_PAGE_PARTITION_BASE;
	return page == OSD_PAGE_STACK || page == OSD_PAGE_HOOKS;
}

static bool attaches(const struct osd_attr_params *params)
{
	struct osd_attr_walk walk = osd_attributes_to_set(params);
	struct osd_attr attr;

	while (osd_attr_walk_next(&walk, &attr))
		if (has_functions(attr.page))
			return true;
	return false;
}

/* A function keeps the name of the user who attaches it. */
static enum osd_status set(struct osd_request *request, struct osd_txn *txn,
			   struct osd_object_id id, bool unfinished)
{
	struct osd_principal principal;
	enum osd_status status;

	if (!attaches(request->attributes))
		return osd_attributes_set(request, txn, id, unfinished);
	osd_command_principal(request, &principal);
	osd_txn_act_for(txn, principal.key);
	status = osd_attributes_set(request, txn, id, unfinished);
	osd_txn_act_for(txn, NULL);
	return status;
}

enum osd_status osd_phase_set_of(struct osd_request *request, struct osd_txn *txn,
				 struct osd_object_id id, bool unfinished, int64_t *change)
{
	uint64_t before = 0, after = 0;
	enum osd_status status = OSD_OK;

	if (measures(request))
		status = osd_object_used(txn, id, &before);
	if (status == OSD_OK)
		status = set(request, txn, id, unfinished);
	if (status == OSD_OK && measures(request))
		status = osd_object_used(txn, id, &after);
	if (status == OSD_OK)
		*change += (int64_t)(after - before);
	return status;
}

enum osd_status osd_phase_set(struct osd_request *request, struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;
	bool unfinished;

	if (!request->attributes || !request->attributes->sets)
		return OSD_OK;
	request->initiated |= OSD_FN_SET_ATTR;
	request->set_change = 0; /* an attempt before this one was rolled back */
	if (!request->made_count)
		status = osd_validate_unmarked(txn, request->object, request->object_type);
	unfinished = status == OSD_E_JOB_IN_WAY;
	if (unfinished)
		status = OSD_OK;
	for (uint32_t i = 0; status == OSD_OK && i < object_count(request); i++)
		status = osd_phase_set_of(request, txn, object_at(request, i), unfinished,
					  &request->set_change);
	if (status == OSD_OK)
		request->completed |= OSD_FN_SET_ATTR;
	return status;
}

static enum osd_status get_of_each(struct osd_request *request, struct osd_txn *txn,
				   struct osd_attr_writer *writer)
{
	enum osd_status status = OSD_OK;

	for (uint32_t i = 0; status == OSD_OK && i < object_count(request); i++)
		status = osd_attributes_group(request, txn, object_at(request, i), writer);
	return status;
}

/* The first attribute of all objects, then the second. */
static enum osd_status get_by_attribute(struct osd_request *request, struct osd_txn *txn,
					struct osd_attr_writer *writer)
{
	struct osd_attr_list *list = &request->attributes->get_list;
	const struct osd_attr_list all = *list;
	struct osd_attr_list rest = all;
	enum osd_status status = OSD_OK;
	struct osd_attr attr;

	while (status == OSD_OK && osd_attr_list_next(&rest, &attr)) {
		list->end = rest.at; /* one entry of it */
		status = get_of_each(request, txn, writer);
		list->at = rest.at;
	}
	*list = all;
	return status;
}

static enum osd_status get_groups(struct osd_request *request, struct osd_txn *txn)
{
	struct osd_attr_writer writer;
	enum osd_status status;

	osd_attributes_groups_begin(request, &writer);
	status = osd_osc_lists_pairs(request) ? get_by_attribute(request, txn, &writer)
					      : get_of_each(request, txn, &writer);
	if (status == OSD_OK)
		osd_attributes_list_end(request, &writer);
	return status;
}

enum osd_status osd_phase_get(struct osd_request *request, struct osd_txn *txn)
{
	enum osd_status status;

	if (!request->attributes || !request->attributes->gets)
		return OSD_OK;
	request->initiated |= OSD_FN_GET_ATTR;
	if (request->shows_version && txn)
		osd_txn_show_version(txn, request->object, request->version);
	if (request->made_count > 1 && request->attributes->format == OSD_CDBFMT_LIST)
		status = get_groups(request, txn);
	else
		status = osd_attributes_get(request, txn, request->object);
	if (status == OSD_OK)
		request->completed |= OSD_FN_GET_ATTR;
	return status;
}

/* While the command ran, another object may have got the id. */
static enum osd_status check_same(const struct osd_request *request, struct osd_txn *txn)
{
	const struct osd_object_facts *addressed = &request->security.addressed;

	return osd_same_id(addressed->id, request->object)
		       ? osd_txn_same(txn, request->object, addressed->created_ms)
		       : OSD_OK;
}

enum osd_status osd_phase_set_then_get(struct osd_request *request, struct osd_txn *txn)
{
	const bool sets = request->attributes && request->attributes->sets;
	enum osd_status status = sets ? osd_object_hold(txn, request->object) : OSD_OK;

	if (status == OSD_OK)
		status = check_same(request, txn);
	if (status == OSD_OK)
		status = osd_phase_set(request, txn);
	return status == OSD_OK ? osd_phase_get(request, txn) : status;
}

enum osd_status osd_phase_before_removal(struct osd_request *request, struct osd_txn *txn)
{
	uint64_t used = 0;
	enum osd_status status = osd_phase_set(request, txn);

	if (status == OSD_OK && request->attributes && measures(request))
		status = osd_object_used(txn, request->object, &used);
	request->capacity_change = -(int64_t)used;
	return status == OSD_OK ? osd_phase_get(request, txn) : status;
}

struct alone {
	struct osd_request *request;
	struct osd_pin *pin; /* NULL: no check was asked about the data of the object */
};

/* Others may have changed the data while the command ran. */
static enum osd_status check_permitted(const struct alone *alone, struct osd_txn *txn)
{
	const struct osd_request *request = alone->request;
	enum osd_status status = osd_object_hold(txn, request->object);

	if (status == OSD_OK)
		status = osd_pin_hold(alone->pin, txn);
	return status == OSD_OK ? osd_precondition_compare(txn, request->object, OSD_PAGE_VERSION,
							   request->checked_version)
				: status;
}

static enum osd_status set_then_get_in(struct osd_txn *txn, void *arg)
{
	const struct alone *alone = arg;
	enum osd_status status = alone->pin ? check_permitted(alone, txn) : OSD_OK;

	return status == OSD_OK ? osd_phase_set_then_get(alone->request, txn) : status;
}

/* EXEC sets attributes of its job, about which no check was asked. */
static bool sets_checked(const struct osd_request *request)
{
	const struct osd_object_id addressed = {request->decoded.partition_id,
						request->decoded.object_id};

	return request->checked_version && request->attributes->sets &&
	       osd_same_id(request->object, addressed);
}

static enum osd_status pin_checked(struct osd_objects *objects, const struct osd_request *request,
				   struct osd_object **ret_object, struct osd_pin **ret_pin)
{
	enum osd_status status = sets_checked(request)
					 ? osd_object_get(objects, request->object, ret_object)
					 : OSD_OK;

	return status == OSD_OK && *ret_object ? osd_pin_begin(*ret_object, ret_pin) : status;
}

static enum osd_status set_then_get_alone(struct osd_objects *objects, struct osd_request *request)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct alone alone = {.request = request};
	enum osd_status status = pin_checked(objects, request, &object, &alone.pin);

	if (status == OSD_OK)
		status = osd_txn_run(objects,
				     osd_phase_txn_flags(request) | osd_command_commit(request),
				     set_then_get_in, &alone);
	osd_pin_end(alone.pin);
	return status;
}

enum osd_status osd_phase_alone(struct osd_objects *objects, struct osd_request *request)
{
	if (!request->attributes)
		return OSD_OK;
	if (request->attributes->current_only)
		return osd_phase_get(request, NULL);
	return set_then_get_alone(objects, request);
}

enum osd_status osd_phase_rehearse(struct osd_objects *objects, struct osd_request *request)
{
	uint32_t initiated = request->initiated, completed = request->completed;
	struct osd_txn *txn;
	enum osd_status status;

	if (!request->attributes)
		return OSD_OK;
	status = osd_txn_begin(objects, osd_phase_txn_flags(request), &txn);
	if (status != OSD_OK)
		return status;
	status = osd_phase_set_then_get(request, txn);
	osd_txn_abort(txn);
	request->retrieved_length = 0;
	request->retrieved_needed = 0;
	request->set_change = 0;
	if (status == OSD_E_CONFLICT) /* caused by the target's own work: the second attempt will
				       * succeed */
		status = OSD_OK;
	if (status == OSD_OK) {
		request->initiated = initiated;
		request->completed = completed;
	} else {
		request->completed &= ~OSD_FN_SET_ATTR; /* it was rolled back */
	}
	return status;
}
