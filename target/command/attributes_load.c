/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attributes_load.c -- the attributes that a command sets and gets, from its CDB and Data-Out (attributes.h). */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/context.h"
#include "command/integrity.h"
#include "command/osc.h"

#define FIELD_PAGE 52 /* of the CDB */

/* Copies the lists out of Data-Out; the dispatcher has checked that they lie inside. */
static enum osd_status copy_lists(const struct osd_request *request, struct osd_attr_params *params,
				  const uint8_t **ret_set, const uint8_t **ret_get)
{
	const struct osd_cdb_attributes *cdb = &request->decoded.attributes;
	size_t set_length = cdb->format != OSD_CDBFMT_SET_ONE && params->sets ? cdb->set_length : 0;
	size_t get_length = cdb->get_list_length;

	params->copy = malloc(set_length + get_length + 1);
	if (!params->copy)
		return OSD_E_NO_MEMORY;
	if (set_length)
		memcpy(params->copy, request->data_out + cdb->set_offset, set_length);
	if (get_length)
		memcpy(params->copy + set_length, request->data_out + cdb->get_list_offset,
		       get_length);
	*ret_set = params->copy;
	*ret_get = params->copy + set_length;
	return OSD_OK;
}

/* Whether it reads further records: up to as many as the object has attributes or collections. */
static bool is_walk(uint32_t page, uint32_t number)
{
	if (page == OSD_PAGE_CURRENT_COMMAND)
		return false; /* no record is read */
	return number == OSD_NUMBER_ALL || page == OSD_PAGE_ALL || page == OSD_REL_COLLECTIONS;
}

static void look_through_gets(struct osd_attr_params *params)
{
	struct osd_attr_list list = params->get_list;
	struct osd_attr attr;

	if (params->format != OSD_CDBFMT_LIST) {
		params->wants_capacity_change = params->get_page == OSD_PAGE_CURRENT_COMMAND;
		params->current_only = params->wants_capacity_change && !params->sets;
		params->walks = is_walk(params->get_page, 0);
		return;
	}
	params->current_only = !params->sets;
	while (osd_attr_list_next(&list, &attr)) {
		if (attr.page == OSD_PAGE_CURRENT_COMMAND)
			params->wants_capacity_change = true;
		else
			params->current_only = false;
		params->walks |= is_walk(attr.page, attr.number);
	}
}

/* The value is longer than any attribute may be; then the list has nothing else. */
static enum osd_status name_too_long(struct osd_request *request, struct osd_attr_list list)
{
	struct osd_attr attr;

	if (!list.at || !osd_attr_list_next(&list, &attr))
		return OSD_E_PARAM_FIELD; /* no such list at all */
	return osd_command_fail_attribute(request, OSD_E_PARAM_FIELD, attr.page, attr.number);
}

static enum osd_status load_list_format(struct osd_request *request, struct osd_attr_params *params,
					const uint8_t *set, const uint8_t *get)
{
	const struct osd_cdb_attributes *cdb = &request->decoded.attributes;
	enum osd_status status = OSD_OK;

	if (params->sets)
		status = osd_attr_list_open(set, cdb->set_length, OSD_LIST_SET, &params->set_list);
	if (status == OSD_E_PARAM_FIELD)
		return name_too_long(request, params->set_list);
	if (status == OSD_OK && params->gets)
		status = osd_attr_list_open(get, cdb->get_list_length, OSD_LIST_GET,
					    &params->get_list);
	return status;
}

static enum osd_status load(struct osd_request *request, struct osd_attr_params *params)
{
	const struct osd_cdb_attributes *cdb = &request->decoded.attributes;
	const uint8_t *set, *get;
	enum osd_status status;

	status = copy_lists(request, params, &set, &get);
	if (status == OSD_OK)
		status = osd_integrity_data_out(request, set, get);
	if (status != OSD_OK)
		return status;
	if (cdb->format == OSD_CDBFMT_LIST) {
		status = load_list_format(request, params, set, get);
	} else {
		params->get_page = cdb->get_page;
		params->set_one =
			(struct osd_attr){cdb->set_page, cdb->set_number,
					  cdb->format == OSD_CDBFMT_PAGE ? set : cdb->set_value,
					  (uint16_t)cdb->set_length};
	}
	if (status == OSD_OK && params->gets)
		look_through_gets(params);
	return status;
}

enum osd_status osd_attributes_load(struct osd_request *request,
				    struct osd_attr_params **ret_params)
{
	struct osd_attr_params *params;
	enum osd_status status;

	*ret_params = NULL;
	if (osd_osc_refuses_page_zero(request))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_PAGE);
	if (!osd_cdb_sets(&request->decoded) && !osd_cdb_gets(&request->decoded))
		return osd_integrity_data_out(request, NULL, NULL);
	params = malloc(sizeof(*params)); /* malloc() reuses the block that this thread has just
					   * freed; calloc() does not */
	if (!params)
		return OSD_E_NO_MEMORY;
	*params = (struct osd_attr_params){.format = request->decoded.attributes.format,
					   .sets = osd_cdb_sets(&request->decoded),
					   .gets = osd_cdb_gets(&request->decoded)};
	status = load(request, params);
	if (status != OSD_OK) {
		osd_attributes_free(params);
		return status;
	}
	*ret_params = params;
	return OSD_OK;
}

void osd_attributes_forget(struct osd_request *request)
{
	osd_attributes_free(request->attributes);
	request->attributes = NULL;
}

void osd_attributes_free(struct osd_attr_params *params)
{
	if (!params)
		return;
	free(params->copy);
	free(params);
}
