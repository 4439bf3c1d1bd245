/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_listing.c -- see name_listing.h.  The scan writes the entries into Data-In, and what else is asked about
 * them is filled in behind it: the function that a scan calls must not call the store. */
#include "command/name_listing.h"

#include "base/util.h"
#include "command/authorise.h"
#include "object/names.h"
#include "wire/cursor.h"

#define LIST_BYTES_MAX (1u << 20)

enum { FIELD_ALLOCATION = 40 };

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
	static const uint32_t bases[] = {[OSD_PARTITION] = OSD_PAGE_PARTITION_BASE,
					 [OSD_COLLECTION] = OSD_PAGE_COLLECTION_BASE,
					 [OSD_USER_OBJECT] = 0};
	uint32_t times = bases[entry->type] + OSD_REL_TIMESTAMPS;
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
				struct osd_object_id id, bool *ret_permitted)
{
	return id.object_id ? osd_authorise_inside(ctx->request, txn, id,
						   osd_access_whole(OSD_PERM_READ), ret_permitted)
			    : osd_authorise_listed(ctx, id, ret_permitted);
}

/* Facts of objects that the capability does not reach are left out. */
static enum osd_status fill_in(struct osd_command_context *ctx, struct osd_txn *txn,
			       uint64_t partition_id, struct listing *listing)
{
	uint8_t *at = listing->bytes;
	enum osd_status status = OSD_OK;

	for (uint32_t i = 0; status == OSD_OK && i < listing->count; i++) {
		uint64_t listed = osd_get_be(at, 8);
		struct osd_object_id id = {partition_id ? partition_id : listed,
					   partition_id ? listed : 0};
		struct osd_name_list_entry entry = {
			.type = at[8],
			.name_length = (size_t)osd_get_be(at + 14, 2),
		};
		bool permitted = false;

		status = may_tell(ctx, txn, id, &permitted);
		if (status == OSD_OK && permitted)
			status = add_facts(txn, id, &entry);
		/* Another command has removed it since the scan: it has no facts.  An object of another type
		 * may have got the id. */
		if (status == OSD_E_NO_OBJECT || status == OSD_E_NO_PARTITION ||
		    status == OSD_E_PARAM_FIELD)
			status = OSD_OK;
		else if (status == OSD_OK)
			osd_name_list_facts_encode(&entry, at);
		at += osd_name_list_entry_bytes(entry.name_length);
	}
	return status;
}

/* Which attributes a capability permits is an attribute itself, which is not read here. */
static bool may_get_facts(const struct osd_request *request)
{
	const struct osd_grant *grant = &request->security.proof.grant;

	return grant->open || !grant->capability.allowed_attributes_access;
}

enum osd_status osd_names_listing(struct osd_command_context *ctx, struct osd_txn *txn,
				  struct osd_object_id directory,
				  const struct osd_name_params *params)
{
	struct osd_request *request = ctx->request;
	uint64_t room =
		OSD_MIN(request->decoded.result_allocation_length, request->data_in_capacity);
	struct listing listing = {.most = params->most ? params->most : UINT32_MAX};
	const struct osd_name_range range = {
		.after = {params->other.bytes, params->other.length},
		.prefix = {params->prefix.bytes, params->prefix.length},
	};
	enum osd_status status;

	if (room < OSD_NAME_LIST_HEADER)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	if (range.after.length > OSD_NAME_MAX || range.prefix.length > OSD_NAME_MAX)
		return OSD_E_PARAM_FIELD;
	listing.room = (size_t)OSD_MIN(room - OSD_NAME_LIST_HEADER, LIST_BYTES_MAX);
	listing.bytes = request->data_in + OSD_NAME_LIST_HEADER;
	status = osd_name_list(txn, directory, &range, place_entry, &listing);
	if (status == OSD_OK && listing.more && listing.count == 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	if (status == OSD_OK && params->flags & OSD_NAME_ATTRIBUTES && may_get_facts(request))
		status = fill_in(ctx, txn, directory.partition_id, &listing);
	if (status != OSD_OK)
		return status;
	osd_name_list_header_encode(listing.count, listing.more, request->data_in);
	request->command_data_in = OSD_NAME_LIST_HEADER + listing.used;
	return OSD_OK;
}
