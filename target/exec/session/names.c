/* SPDX-License-Identifier: GPL-2.0-or-later */
/* names.c -- paths for scripts: LOOKUP and LIST, as READ NAMES has them, below a partition or directory of
 * the zone. */
#include <string.h>

#include "exec/session/session.h"
#include "object/names.h"
#include "wire/cursor.h"
#include "wire/name_list.h"

struct listing {
	uint8_t *at; /* in the answer's body */
	size_t left;
	uint32_t count, most;
	bool more;
};

static bool place_entry(void *arg, struct osd_name name, struct osd_named entry)
{
	struct listing *listing = arg;
	size_t length = osd_name_list_entry_bytes(name.length);
	const struct osd_name_list_entry item = {
		.object_id = entry.id.object_id,
		.type = (uint8_t)entry.type,
		.name = name.bytes,
		.name_length = name.length,
	};

	if (listing->count == listing->most || length > listing->left) {
		listing->more = true;
		return false;
	}
	osd_name_list_entry_encode(&item, listing->at);
	listing->at += length;
	listing->left -= length;
	listing->count++;
	return true;
}

static enum osd_status list(struct osd_txn *txn, struct osd_op *op, struct osd_object_id directory,
			    const struct osd_name_params *params)
{
	struct listing listing = {.at = op->out,
				  .left = OSD_CALL_IO_MAX,
				  .most = params->most ? params->most : UINT32_MAX};
	const struct osd_name_range range = {
		.after = {params->other.bytes, params->other.length},
		.prefix = {params->prefix.bytes, params->prefix.length},
	};
	enum osd_status status;

	if (range.after.length > OSD_NAME_MAX || range.prefix.length > OSD_NAME_MAX)
		return OSD_E_PARAM_FIELD;
	status = osd_name_list(txn, directory, &range, place_entry, &listing);
	op->answer.a = listing.count;
	op->answer.b = listing.more;
	op->answer.body_bytes = (uint32_t)(listing.at - op->out);
	return status;
}

/* The call named from, so that was checked.  A directory on the way to a name may have another policy access tag. */
static enum osd_status check_directory(struct osd_txn *txn, struct osd_op *op,
				       struct osd_object_id from, struct osd_object_id directory)
{
	return osd_same_id(from, directory) ? OSD_OK
					    : osd_session_check_zone(op->session, txn, directory);
}

enum osd_status osd_op_names(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_object_id from = osd_op_id(op);
	struct osd_name_params params;
	struct osd_name_place place;
	unsigned component;
	uint16_t field;
	enum osd_status status;

	if (from.partition_id == 0) /* its paths lead into partitions with policies of their own */
		return OSD_E_PARAM_FIELD;
	status = osd_session_check_zone(op->session, txn, from);
	if (status == OSD_OK)
		status = osd_name_params_decode(op->session->scratch, op->call.body_bytes, &params,
						&field);
	if (status == OSD_OK && params.verb != OSD_NAME_LOOKUP && params.verb != OSD_NAME_LIST)
		status = OSD_E_PARAM_FIELD;
	if (status == OSD_OK && (params.flags || params.expected ||
				 (params.verb == OSD_NAME_LOOKUP && params.most)))
		status = OSD_E_PARAM_FIELD;
	if (status == OSD_OK)
		status = osd_name_follow(txn, from,
					 (struct osd_name){params.path.bytes, params.path.length},
					 true, &place, &component);
	if (status == OSD_OK)
		status = check_directory(txn, op, from, place.directory);
	if (status == OSD_OK && !place.exists)
		status = OSD_E_NO_NAME;
	if (status == OSD_OK)
		status = check_directory(txn, op, from, place.found.id);
	if (status != OSD_OK)
		return status;
	if (params.verb == OSD_NAME_LIST)
		return place.found.type == OSD_USER_OBJECT
			       ? OSD_E_NOT_DIRECTORY
			       : list(txn, op, place.found.id, &params);
	op->answer.a = place.found.id.object_id;
	op->answer.b = place.found.type;
	return OSD_OK;
}
