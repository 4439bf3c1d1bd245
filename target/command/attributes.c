/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attributes.c -- see attributes.h (osd2-wire 2.5-2.7, 3.7, 5).  Elsewhere: the lists from Data-Out
 * (attributes_load.c). */
#include "command/attributes.h"

#include "base/util.h"
#include "command/context.h"
#include "command/current.h"
#include "command/integrity.h"
#include "command/osc.h"
#include "command/task_management.h"
#include "object/page_provider.h"
#include "object/stack.h"
#include "security/security.h"

/* CDB bytes that failures point at. */
enum {
	FIELD_GET_PAGE = 52,
	FIELD_SET_ONE_PAGE = 52,
};

/* The most attributes that one get list may visit by asking repeatedly for all of a page or of all
 * pages: more than any object has, and quickly done. */
#define WALK_MAX (1u << 17)
/* The count of each such entry, whatever it finds: one number of all pages is looked up on each page. */
#define WALK_OF_PAGE  16u
#define WALK_OF_PAGES (WALK_MAX / 8)

/* ---- set ------------------------------------------------------------------------------------- */

/* A refused attribute is an error in the parameter list, or in the CDB if it was there. */
enum osd_status osd_attributes_set_failed(struct osd_request *request, enum osd_status status,
					  const struct osd_attr *attr)
{
	if (status == OSD_E_CONFLICT)
		return status;
	if (status == OSD_E_PARAM_FIELD && request->attributes->format == OSD_CDBFMT_SET_ONE)
		status = osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_SET_ONE_PAGE);
	return osd_command_fail_attribute(request, status, attr->page, attr->number);
}

bool osd_attr_names_source(const struct osd_attr *attr)
{
	return attr->number == OSD_STACK_SOURCE && attr->length &&
	       (attr->page == OSD_PAGE_STACK ||
		attr->page == OSD_PAGE_PARTITION_BASE + OSD_PAGE_STACK);
}

/* Rights were compared with an object or a partition that another one may have taken the place of. */
static enum osd_status check_source(struct osd_txn *txn, const struct osd_attr_params *params)
{
	enum osd_status status = osd_txn_same(txn, params->source, params->source_created_ms);

	return osd_status_is_gone(status) ? OSD_E_PARAM_FIELD : status;
}

enum osd_status osd_attributes_set_one(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id id, const struct osd_attr *attr)
{
	enum osd_status status =
		osd_attr_set(txn, id, attr->page, attr->number, attr->value, attr->length);

	return status == OSD_OK && osd_attr_names_source(attr)
		       ? check_source(txn, request->attributes)
		       : status;
}

static enum osd_status set_attribute(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, bool unfinished,
				     const struct osd_attr *attr)
{
	if (unfinished && !osd_page_controls(osd_txn_objects(txn), attr->page))
		return OSD_E_JOB_IN_WAY;
	if (attr->page != OSD_PAGE_CURRENT_COMMAND && attr->page != OSD_PAGE_ALL &&
	    attr->number != OSD_NUMBER_ALL)
		return osd_attributes_set_one(request, txn, id, attr);
	return OSD_E_PARAM_FIELD;
}

/* The first failure counts.  After it the rest are still tried, only to name all refused
 * attributes: the transaction is aborted in any case. */
enum osd_status osd_attributes_set_rest(struct osd_request *request, struct osd_txn *txn,
					struct osd_object_id id, bool unfinished,
					struct osd_attr_walk rest)
{
	enum osd_status status = OSD_OK, next;
	struct osd_attr attr;

	while (osd_attr_walk_next(&rest, &attr)) {
		next = set_attribute(request, txn, id, unfinished, &attr);
		if (next == OSD_OK)
			continue;
		if (status != OSD_OK && next != OSD_E_PARAM_FIELD)
			break;
		status = osd_attributes_set_failed(request, next, &attr);
		if (status != OSD_E_PARAM_FIELD)
			break;
	}
	return status;
}

struct osd_attr_walk osd_attributes_to_set(const struct osd_attr_params *params)
{
	if (!params || !params->sets)
		return (struct osd_attr_walk){.has_one = false};
	return params->format == OSD_CDBFMT_LIST
		       ? (struct osd_attr_walk){.list = params->set_list}
		       : (struct osd_attr_walk){.one = params->set_one, .has_one = true};
}

struct osd_attr_walk osd_attributes_to_get(const struct osd_attr_params *params)
{
	if (!params || !params->gets)
		return (struct osd_attr_walk){.has_one = false};
	return params->format == OSD_CDBFMT_LIST
		       ? (struct osd_attr_walk){.list = params->get_list}
		       : (struct osd_attr_walk){
				 .one = {.page = params->get_page, .number = OSD_NUMBER_ALL},
				 .has_one = true};
}

bool osd_attr_walk_next(struct osd_attr_walk *walk, struct osd_attr *ret_attr)
{
	if (!walk->has_one)
		return osd_attr_list_next(&walk->list, ret_attr);
	*ret_attr = walk->one;
	walk->has_one = false;
	return true;
}

bool osd_attributes_sets(const struct osd_attr_params *params, uint32_t page, uint32_t number)
{
	struct osd_attr_walk walk = osd_attributes_to_set(params);
	struct osd_attr attr;

	while (osd_attr_walk_next(&walk, &attr))
		if (attr.page == page && attr.number == number)
			return true;
	return false;
}

enum osd_status osd_attributes_set(struct osd_request *request, struct osd_txn *txn,
				   struct osd_object_id id, bool unfinished)
{
	return osd_attributes_set_rest(request, txn, id, unfinished,
				       osd_attributes_to_set(request->attributes));
}

/* ---- get ------------------------------------------------------------------------------------- */

/* The get list applied to one object. */
struct collecting {
	struct osd_request *request;
	struct osd_txn *txn;
	struct osd_object_id id;
	struct osd_attr_writer *writer;
	uint8_t *buffer; /* OSD_ATTRIBUTE_MAX bytes */
	size_t walked;
};

static enum osd_status add_entry(void *argument, uint32_t page, uint32_t number,
				 const uint8_t *value, size_t length)
{
	struct collecting *c = argument;

	if (++c->walked > WALK_MAX)
		return OSD_E_NO_MEMORY;
	return osd_attr_writer_add(c->writer, page, number, value, length);
}

static enum osd_status get_entry(struct collecting *c, const struct osd_attr *attr)
{
	enum osd_status status;
	size_t length;

	if (attr->page == OSD_PAGE_CURRENT_COMMAND)
		return osd_current_entries(c->request, attr->number, c->writer);
	if (attr->page == OSD_PAGE_ALL || attr->number == OSD_NUMBER_ALL)
		c->walked += attr->number == OSD_NUMBER_ALL ? WALK_OF_PAGE : WALK_OF_PAGES;
	if (c->walked > WALK_MAX)
		return OSD_E_NO_MEMORY;
	if (attr->page == OSD_PAGE_ALL && attr->number != OSD_NUMBER_ALL)
		return osd_attr_each_page(c->txn, c->id, attr->number, add_entry, c);
	if (attr->number == OSD_NUMBER_ALL)
		return osd_attr_each(c->txn, c->id, attr->page, add_entry, c);
	status = osd_attr_get(c->txn, c->id, attr->page, attr->number, c->buffer, OSD_ATTRIBUTE_MAX,
			      &length);
	if (status != OSD_OK)
		return status;
	return osd_attr_writer_add(c->writer, attr->page, attr->number, c->buffer, length);
}

/* A request for the whole Current Command page.  In a proved answer about several objects, the page
 * appears once, before them. */
static bool is_proof(const struct osd_attr *attr)
{
	return attr->page == OSD_PAGE_CURRENT_COMMAND && attr->number == OSD_NUMBER_ALL;
}

/* The user for whom attributes are read: the page of a function has texts that are for one user alone.  txn NULL:
 * the attributes are the command's own. */
static void get_for(struct osd_request *request, struct osd_txn *txn, uint32_t page,
		    struct osd_principal *principal)
{
	if (!txn || (page != OSD_PAGE_FUNCTION && page != OSD_PAGE_ALL))
		return;
	osd_command_principal(request, principal);
	osd_txn_act_for(txn, principal->key);
}

/* As for set: names all attributes that are refused. */
static enum osd_status collect(struct osd_request *request, struct osd_txn *txn,
			       struct osd_object_id id, const struct osd_page_filter *filter,
			       bool without_proof, struct osd_attr_writer *writer)
{
	OSD_CLEANUP_FREE uint8_t *buffer = malloc(OSD_ATTRIBUTE_MAX);
	struct osd_attr_list list = request->attributes->get_list;
	struct collecting collecting = {request, txn, id, writer, buffer, 0};
	struct osd_principal principal;
	enum osd_status status = OSD_OK, next;
	struct osd_attr attr;

	if (!buffer)
		return OSD_E_NO_MEMORY;
	while (osd_attr_list_next(&list, &attr)) {
		get_for(request, txn, attr.page, &principal);
		if ((filter && !filter->accepts(filter->type, attr.page)) ||
		    (without_proof && is_proof(&attr)))
			continue;
		next = osd_command_aborted(request) ? OSD_E_TASK_ABORTED
						    : get_entry(&collecting, &attr);
		if (next == OSD_OK)
			continue;
		if (status != OSD_OK && next != OSD_E_PARAM_FIELD)
			break;
		status = next;
		if (status != OSD_E_CONFLICT && status != OSD_E_WOULD_BLOCK)
			osd_command_fail_attribute(request, status, attr.page, attr.number);
		if (status != OSD_E_PARAM_FIELD)
			break;
	}
	if (txn)
		osd_txn_act_for(txn, NULL);
	return status;
}

enum osd_status osd_attributes_collect(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id id,
				       const struct osd_page_filter *filter,
				       struct osd_attr_writer *writer)
{
	return collect(request, txn, id, filter, false, writer);
}

/* The retrieved attributes segment, as far as Data-In reaches. */
static uint8_t *retrieved_segment(const struct osd_request *request, size_t *ret_capacity)
{
	const struct osd_cdb_attributes *cdb = &request->decoded.attributes;

	*ret_capacity = 0;
	if (!cdb->get_allocation_length || cdb->retrieved_offset >= request->data_in_capacity)
		return NULL;
	*ret_capacity = OSD_MIN((size_t)cdb->get_allocation_length,
				request->data_in_capacity - (size_t)cdb->retrieved_offset);
	return request->data_in + cdb->retrieved_offset;
}

/* Sets the length of the segment now, and the length it would have with unlimited Data-In. */
static void set_retrieved(struct osd_request *request, size_t capacity, size_t placed,
			  uint64_t needed)
{
	uint64_t allocation = request->decoded.attributes.get_allocation_length;

	request->retrieved_length = placed;
	request->retrieved_needed = capacity < allocation ? OSD_MIN(needed, allocation) : placed;
}

static void put_page(struct osd_request *request, const uint8_t *page, size_t length)
{
	size_t capacity;
	uint8_t *segment = retrieved_segment(request, &capacity);

	set_retrieved(request, capacity, osd_page_place(page, length, segment, capacity), length);
}

static enum osd_status get_page_form(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id)
{
	uint32_t number = request->attributes->get_page;
	uint8_t current[OSD_CURRENT_PAGE_BYTES];
	size_t length, capacity;
	uint8_t *segment;
	enum osd_status status;

	if (number == OSD_PAGE_CURRENT_COMMAND) {
		put_page(request, current, osd_current_page(request, current));
		return OSD_OK;
	}
	segment = retrieved_segment(request, &capacity);
	status = osd_attr_page_form(txn, id, number, segment, capacity, &length);
	if (status == OSD_E_PARAM_FIELD)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_GET_PAGE);
	if (status == OSD_OK)
		set_retrieved(request, capacity, OSD_MIN(length, capacity), length);
	return status;
}

void osd_attributes_list_begin(struct osd_request *request, uint8_t type,
			       struct osd_attr_writer *ret_writer)
{
	size_t capacity;
	uint8_t *segment = retrieved_segment(request, &capacity);

	osd_attr_writer_init(ret_writer, segment, capacity, type);
}

void osd_attributes_list_end(struct osd_request *request, struct osd_attr_writer *writer)
{
	set_retrieved(request, writer->capacity, osd_attr_writer_finish(writer), writer->needed);
}

enum osd_status osd_attributes_get_filtered(struct osd_request *request, struct osd_txn *txn,
					    struct osd_object_id id,
					    const struct osd_page_filter *filter)
{
	struct osd_attr_writer writer;
	enum osd_status status;

	osd_attributes_list_begin(request, OSD_LIST_SET, &writer);
	status = osd_attributes_collect(request, txn, id, filter, &writer);
	if (status == OSD_OK)
		osd_attributes_list_end(request, &writer);
	return status;
}

bool osd_attributes_peek(struct osd_request *request, const struct osd_objects *objects)
{
	const struct osd_attr_params *params = request->attributes;
	const struct osd_page_provider *provider;
	uint8_t page[8 + OSD_PAGE_FORM_MAX];
	struct osd_peek peek = {.form = page + 8};

	if (params->format != OSD_CDBFMT_PAGE || params->sets)
		return false;
	provider = osd_objects_page(objects, params->get_page);
	if (!provider || !provider->peek ||
	    !provider->peek(provider->context, request->object, &peek))
		return false;
	osd_page_header(page, provider->page, (uint32_t)peek.form_length);
	put_page(request, page, 8 + peek.form_length);
	return true;
}

enum osd_status osd_attributes_get(struct osd_request *request, struct osd_txn *txn,
				   struct osd_object_id id)
{
	const struct osd_attr_params *params = request->attributes;

	if (!params || !params->gets)
		return OSD_OK;
	if (params->format == OSD_CDBFMT_PAGE)
		return get_page_form(request, txn, id);
	return osd_attributes_get_filtered(request, txn, id, NULL);
}

/* Adds a group of the addressed object, so that even an answer about no objects can be proved. */
static void put_proof(struct osd_request *request, struct osd_attr_writer *writer)
{
	struct osd_attr_list list = request->attributes->get_list;
	struct osd_attr attr;

	while (osd_attr_list_next(&list, &attr)) {
		if (!is_proof(&attr))
			continue;
		osd_attr_writer_begin_group(writer, request->object.object_id,
					    (uint8_t)request->object_type);
		osd_current_entries(request, OSD_NUMBER_ALL, writer);
		osd_attr_writer_end_group(writer);
		return;
	}
}

void osd_attributes_groups_begin(struct osd_request *request, struct osd_attr_writer *ret_writer)
{
	osd_attributes_list_begin(request, OSD_LIST_MULTI_OBJECT, ret_writer);
	if (osd_osc_lists_pairs(request))
		osd_attr_writer_pairs(ret_writer, OSD_LIST_MULTI_OSC);
	else if (osd_integrity_responds(request))
		put_proof(request, ret_writer);
}

enum osd_status osd_attributes_group(struct osd_request *request, struct osd_txn *txn,
				     struct osd_object_id id, struct osd_attr_writer *writer)
{
	const struct osd_page_provider *peeks = request->attributes->peeks;
	struct osd_peek peek = {.list = request->attributes->get_list, .writer = writer};
	enum osd_status status;

	osd_attr_writer_begin_group(writer, id.object_id, OSD_USER_OBJECT);
	if (peeks && peeks->peek(peeks->context, id, &peek))
		status = OSD_OK;
	else if (request->attributes->only_peeks)
		status = OSD_E_WOULD_BLOCK;
	else
		status = collect(request, txn, id, NULL, osd_integrity_responds(request), writer);
	osd_attr_writer_end_group(writer);
	return status;
}
