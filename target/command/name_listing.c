/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_listing.c -- see name_listing.h.  The scan writes the entries into Data-In, and what else is asked about
 * them is filled in behind it: the function that a scan calls must not call the store. */
#include "command/name_listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/id_map.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "command/naming.h"
#include "wire/cursor.h"

#define LIST_BYTES_MAX (1u << 20)

enum { FIELD_ALLOCATION = 40, PARAM_FLAGS = 1 };

struct listing {
	uint8_t *bytes; /* of Data-In */
	size_t room, used;
	uint32_t count, most;
	bool more;
};

static bool place_entry(void *arg, struct osd_name name, struct osd_named entry)
{
	struct listing *listing = arg;
	size_t length = osd_name_list_entry_bytes(name.length);
	const struct osd_name_list_entry item = {
		.object_id = entry.id.object_id ? entry.id.object_id : entry.id.partition_id,
		.type = (uint8_t)entry.type,
		.name = name.bytes,
		.name_length = name.length,
	};

	if (listing->count == listing->most || length > listing->room - listing->used) {
		listing->more = true;
		return false;
	}
	osd_name_list_entry_encode(&item, listing->bytes + listing->used);
	listing->used += length;
	listing->count++;
	return true;
}

static enum osd_status get_number(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				  uint32_t number, uint64_t *ret_value)
{
	uint8_t bytes[8];
	size_t length;
	enum osd_status status =
		osd_attr_get(txn, id, page, number, bytes, sizeof(bytes), &length);

	*ret_value = status == OSD_OK ? osd_get_be(bytes, OSD_MIN(length, sizeof(bytes))) : 0;
	return status;
}

static enum osd_status add_facts(struct osd_txn *txn, struct osd_object_id id,
				 struct osd_name_list_entry *entry)
{
	uint32_t times = osd_page_base((enum osd_object_type)entry->type) + OSD_REL_TIMESTAMPS;
	size_t length = 0;
	enum osd_status status = get_number(txn, id, times, OSD_TIME_CREATED, &entry->created_ms);

	if (status == OSD_OK)
		status = get_number(txn, id, times, OSD_TIME_DATA_MODIFIED, &entry->modified_ms);
	if (status == OSD_OK && entry->type == OSD_USER_OBJECT)
		status = get_number(txn, id, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH,
				    &entry->length);
	if (status != OSD_OK || entry->type == OSD_PARTITION)
		return status;
	return osd_attr_get(txn, id,
			    entry->type == OSD_COLLECTION ? OSD_PAGE_MEMBERS_VERSION
							  : OSD_PAGE_VERSION,
			    OSD_VERSION_NUMBER, entry->version, sizeof(entry->version), &length);
}

/* Of what the root directory lists, a partition decides itself. */
static enum osd_status may_tell(struct osd_command_context *ctx, struct osd_txn *txn,
				struct osd_object_id id, uint16_t permissions, bool *ret_permitted)
{
	return id.object_id ? osd_authorise_inside(ctx->request, txn, id,
						   osd_access_whole(permissions), ret_permitted)
			    : osd_authorise_listed(ctx, id, ret_permitted);
}

static struct osd_object_id listed_id(uint64_t partition_id, const uint8_t *entry)
{
	uint64_t listed = osd_get_be(entry, 8);

	return partition_id ? (struct osd_object_id){partition_id, listed}
			    : (struct osd_object_id){listed, 0};
}

static size_t entry_bytes(const uint8_t *entry)
{
	return osd_name_list_entry_bytes((size_t)osd_get_be(entry + 14, 2));
}

/* The first entry of the object that the one at from is of, among those from bytes on; NULL: the one at place will be
 * the first.  One object may have all names of a directory, and much that must be looked up: so that is done once. */
static enum osd_status find_earlier(struct osd_id_map *places, const uint8_t *bytes,
				    const uint8_t *place, const uint8_t *from,
				    const uint8_t **ret_earlier)
{
	bool is_new = false;
	uint32_t *offset = osd_id_map_at(places, osd_get_be(from, 8), &is_new);

	if (!offset)
		return OSD_E_NO_MEMORY;
	if (is_new)
		*offset = (uint32_t)(place - bytes);
	*ret_earlier = is_new ? NULL : bytes + *offset;
	return OSD_OK;
}

/* Another command has removed it since the scan: it has no facts.  An object of another type may have got the
 * id. */
static bool is_gone(enum osd_status status)
{
	return osd_status_is_gone(status) || status == OSD_E_PARAM_FIELD;
}

/* Facts of objects that the capability does not reach are left out. */
static enum osd_status fill_in_one(struct osd_command_context *ctx, struct osd_txn *txn,
				   struct osd_object_id id, uint8_t *at)
{
	struct osd_name_list_entry entry = {.type = at[8]};
	bool permitted = false;
	enum osd_status status = may_tell(ctx, txn, id, OSD_PERM_READ, &permitted);

	if (status == OSD_OK && permitted)
		status = add_facts(txn, id, &entry);
	if (status == OSD_OK)
		osd_name_list_facts_encode(&entry, at);
	return is_gone(status) ? OSD_OK : status;
}

static enum osd_status fill_in(struct osd_command_context *ctx, struct osd_txn *txn,
			       uint64_t partition_id, struct listing *listing)
{
	OSD_CLEANUP(osd_id_map_release) struct osd_id_map places = {0};
	uint8_t *at = listing->bytes;
	enum osd_status status = OSD_OK;

	for (uint32_t i = 0; status == OSD_OK && i < listing->count; i++) {
		const uint8_t *earlier = NULL;

		status = find_earlier(&places, listing->bytes, at, at, &earlier);
		if (status == OSD_OK && earlier)
			osd_name_list_facts_copy(earlier, at);
		else if (status == OSD_OK)
			status = fill_in_one(ctx, txn, listed_id(partition_id, at), at);
		at += entry_bytes(at);
	}
	return status;
}

/* The attributes that a capability permits are an attribute themselves, which is not read here. */
static bool may_get_facts(const struct osd_request *request)
{
	const struct osd_grant *grant = &request->security.proof.grant;

	return grant->open || !grant->capability.allowed_attributes_access;
}

/* ---- attributes of each entry ---------------------------------------------------------------- */

static bool is_of_entry(enum osd_object_type type, uint32_t page)
{
	return osd_page_is_of(type, page) || page >= OSD_PAGE_ANY_BASE;
}

/* Those of an entry in Data-In, behind it.  0 names: they are left out. */
static enum osd_status collect_for(struct osd_command_context *ctx, struct osd_txn *txn,
				   struct osd_object_id id, uint8_t *entry,
				   struct osd_attr_writer *writer)
{
	const struct osd_page_filter filter = {
		is_of_entry, entry[8] == OSD_USER_OBJECT ? OSD_USER_OBJECT : OSD_COLLECTION};
	bool permitted = false;
	uint32_t names = 0;
	enum osd_status status = OSD_OK;

	if (may_get_facts(ctx->request))
		status = may_tell(ctx, txn, id, OSD_PERM_READ | OSD_PERM_GET_ATTR, &permitted);
	if (status == OSD_OK && permitted)
		status = osd_name_count(txn, id, &names);
	if (status == OSD_OK && names)
		status = osd_attributes_collect(ctx->request, txn, id, &filter, writer);
	if (is_gone(status)) {
		ctx->request->fault = (struct osd_fault){0};
		writer->placed = 0;
		writer->full = false;
		names = 0;
		status = OSD_OK;
	}
	if (status == OSD_OK)
		osd_name_list_each_encode(names, (uint32_t)writer->placed, entry);
	return status;
}

/* Copies the attributes that an earlier entry has of the same object. */
static void copy_attributes(const uint8_t *earlier, uint8_t *entry, struct osd_attr_writer *writer)
{
	size_t length = (size_t)osd_name_list_attribute_bytes(earlier);

	writer->full = length > writer->capacity;
	if (writer->full)
		return;
	osd_name_list_each_copy(earlier, entry);
	memcpy(writer->start, earlier + entry_bytes(earlier), length);
	writer->placed = length;
}

/* Entries are copied, and come back one after the other with their attributes, as long as there is room. */
static enum osd_status add_attributes(struct osd_command_context *ctx, struct osd_txn *txn,
				      uint64_t partition_id, struct listing *listing)
{
	OSD_CLEANUP_FREE uint8_t *copy = malloc(listing->used + 1);
	OSD_CLEANUP(osd_id_map_release) struct osd_id_map places = {0};
	const uint8_t *from = copy;
	uint32_t count = listing->count;
	enum osd_status status = OSD_OK;

	if (!copy)
		return OSD_E_NO_MEMORY;
	memcpy(copy, listing->bytes, listing->used);
	listing->used = listing->count = 0;
	for (; listing->count < count; listing->count++) {
		uint8_t *entry = listing->bytes + listing->used;
		size_t length = entry_bytes(from), left = listing->room - listing->used;
		const uint8_t *earlier = NULL;
		struct osd_attr_writer writer;

		if (length > left)
			break;
		status = find_earlier(&places, listing->bytes, entry, from, &earlier);
		if (status != OSD_OK)
			return status;
		memcpy(entry, from, length);
		osd_attr_writer_init(&writer, entry + length, left - length, OSD_LIST_BARE);
		if (earlier)
			copy_attributes(earlier, entry, &writer);
		else
			status = collect_for(ctx, txn, listed_id(partition_id, from), entry,
					     &writer);
		if (status != OSD_OK)
			return status;
		if (writer.full)
			break;
		from += length;
		listing->used += length + writer.placed;
	}
	listing->more = listing->more || listing->count < count;
	return OSD_OK;
}

/* Nothing of the addressed directory is set or retrieved then. */
static bool is_right_for_each(const struct osd_attr_params *attributes)
{
	return attributes && attributes->gets && !attributes->sets &&
	       attributes->format == OSD_CDBFMT_LIST;
}

enum osd_status osd_names_listing(struct osd_command_context *ctx, struct osd_txn *txn,
				  struct osd_object_id directory,
				  const struct osd_name_params *params)
{
	struct osd_request *request = ctx->request;
	uint64_t room =
		OSD_MIN(request->decoded.result_allocation_length, request->data_in_capacity);
	struct listing listing = {.most = params->most ? params->most : UINT32_MAX};
	const struct osd_name_range range = {.after = params->other, .prefix = params->prefix};
	enum osd_status status;

	if (room < OSD_NAME_LIST_HEADER)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	if (range.after.length > OSD_NAME_MAX || range.prefix.length > OSD_NAME_MAX)
		return OSD_E_PARAM_FIELD;
	if (params->flags & OSD_NAME_EACH && !is_right_for_each(ctx->attributes))
		return osd_naming_fail_in_data(request, OSD_E_PARAM_FIELD, PARAM_FLAGS);
	listing.room = (size_t)OSD_MIN(room - OSD_NAME_LIST_HEADER, LIST_BYTES_MAX);
	listing.bytes = request->data_in + OSD_NAME_LIST_HEADER;
	status = osd_name_list(txn, directory, &range, place_entry, &listing);
	if (status == OSD_OK && params->flags & OSD_NAME_ATTRIBUTES && may_get_facts(request))
		status = fill_in(ctx, txn, directory.partition_id, &listing);
	if (status == OSD_OK && params->flags & OSD_NAME_EACH)
		status = add_attributes(ctx, txn, directory.partition_id, &listing);
	if (status == OSD_OK && listing.more && listing.count == 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	if (status != OSD_OK)
		return status;
	osd_name_list_header_encode(listing.count, listing.more, request->data_in);
	request->command_data_in = OSD_NAME_LIST_HEADER + listing.used;
	return OSD_OK;
}
