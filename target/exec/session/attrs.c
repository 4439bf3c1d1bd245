/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attrs.c -- a script's calls on attributes, and listing. */
#include <string.h>

#include "exec/session/session.h"
#include "wire/attr_list.h"
#include "wire/cursor.h"

/* ---- getting --------------------------------------------------------------------------------- */

/* The requested list is at the front of scratch; values are built behind it. */
#define VALUE_AT (OSD_CALL_RECORDS * OSD_ATTR_GET_ENTRY)

static enum osd_status check_get(struct osd_op *op, uint32_t page, uint32_t number)
{
	if (osd_rights_may_get(op->session, osd_op_id(op), page, number))
		return OSD_OK;
	op->why = "the job's capability does not let it get this attribute";
	return OSD_E_PERMISSION;
}

enum osd_status osd_op_getattr(struct osd_txn *txn, struct osd_op *op)
{
	uint8_t *value = op->session->scratch + VALUE_AT;
	struct osd_attr_writer writer;
	struct osd_attr_list list;
	struct osd_attr attr;
	enum osd_status status;

	if (op->call.body_bytes == 0 || op->call.body_bytes > VALUE_AT)
		return OSD_E_PARAM_LENGTH;
	status = osd_session_check_zone(op->session, txn, osd_op_id(op));
	if (status == OSD_OK)
		status = osd_attr_entries_open(op->session->scratch, op->call.body_bytes,
					       OSD_LIST_GET, &list);
	osd_attr_writer_init(&writer, op->out, OSD_BODY_MAX, OSD_LIST_BARE);
	while (status == OSD_OK && osd_attr_list_next(&list, &attr)) {
		size_t length = 0;

		if (attr.page == OSD_PAGE_ALL || attr.number == OSD_NUMBER_ALL)
			return OSD_E_PARAM_FIELD;
		status = check_get(op, attr.page, attr.number);
		if (status == OSD_OK)
			status = osd_attr_get(txn, osd_op_id(op), attr.page, attr.number, value,
					      OSD_ATTRIBUTE_MAX, &length);
		if (status == OSD_OK)
			status =
				osd_attr_writer_add(&writer, attr.page, attr.number, value, length);
	}
	if (status != OSD_OK)
		return status;
	op->answer.body_bytes = (uint32_t)osd_attr_writer_finish(&writer);
	if (writer.full) {
		op->why = "the values together are too long for one call; ask for fewer";
		return OSD_E_PARAM_LENGTH;
	}
	return OSD_OK;
}

struct listing {
	struct osd_op *op;
	struct osd_attr_writer writer;
	uint64_t skip;
	size_t count;
	bool more;
};

static enum osd_status list_one(void *arg, uint32_t page, uint32_t number, const uint8_t *value,
				size_t length)
{
	struct listing *listing = arg;
	uint64_t needed = listing->writer.needed + OSD_ATTR_VALUE_ENTRY + length + 8;

	if (!osd_rights_may_get(listing->op->session, osd_op_id(listing->op), page, number))
		return OSD_OK; /* to the script the object has no such attribute */
	if (listing->skip > 0) {
		listing->skip--;
		return OSD_OK;
	}
	if (listing->count == OSD_CALL_RECORDS || needed > OSD_BODY_MAX) {
		listing->more = true;
		return OSD_E_SHORT_READ; /* only to stop here */
	}
	listing->count++;
	return osd_attr_writer_add(&listing->writer, page, number, value, length);
}

enum osd_status osd_op_listattr(struct osd_txn *txn, struct osd_op *op)
{
	struct listing listing = {.op = op, .skip = op->call.b};
	enum osd_status status;

	if (op->call.a > OSD_PAGE_ALL)
		return OSD_E_PARAM_FIELD;
	status = osd_session_check_zone(op->session, txn, osd_op_id(op));
	osd_attr_writer_init(&listing.writer, op->out, OSD_BODY_MAX, OSD_LIST_BARE);
	if (status == OSD_OK)
		status =
			osd_attr_each(txn, osd_op_id(op), (uint32_t)op->call.a, list_one, &listing);
	if (status != OSD_OK && !(status == OSD_E_SHORT_READ && listing.more))
		return status;
	op->answer.body_bytes = (uint32_t)osd_attr_writer_finish(&listing.writer);
	op->answer.a = listing.more;
	return OSD_OK;
}

/* ---- setting --------------------------------------------------------------------------------- */

/* Attributes of membership in collections are hidden when the zone is smaller than a partition. */
static bool is_out_of_zone(const struct osd_op *op, uint32_t page)
{
	return page == OSD_REL_COLLECTIONS &&
	       !osd_session_owns_partition(op->session, op->call.partition_id);
}

/* In a collection zone, the collection itself is read-only. */
static bool is_zone_collection(const struct osd_op *op)
{
	const struct osd_zone *zone = &op->session->zone;

	return zone->type == OSD_COLLECTION && osd_same_id(zone->id, osd_op_id(op));
}

/* The checks common to all changes of attributes, except those of the pages.  It locks the object
 * before reading it: of two calls that change the object, the second then waits instead of losing a
 * conflict and starting again. */
static enum osd_status check_settable(struct osd_txn *txn, struct osd_op *op)
{
	enum osd_status status = osd_session_check_zone(op->session, txn, osd_op_id(op));

	if (status == OSD_OK && is_zone_collection(op))
		status = OSD_E_PERMISSION;
	if (status != OSD_OK || op->call.object_id == 0)
		return status;
	status = osd_object_hold(txn, osd_op_id(op));
	return status == OSD_OK ? osd_session_check_free(txn, osd_op_id(op)) : status;
}

static enum osd_status check_set(struct osd_op *op, const struct osd_attr *attr)
{
	if (!osd_page_is_for_scripts(attr->page) || is_out_of_zone(op, attr->page)) {
		op->why = "scripts may not set this attribute page";
		return OSD_E_PERMISSION;
	}
	if (osd_rights_may_set(op->session, osd_op_id(op), attr->page, attr->number,
			       attr->length == 0))
		return OSD_OK;
	op->why = "the job's capability does not let it set this attribute";
	return OSD_E_PERMISSION;
}

/* Joining a collection makes the collection a second object of the call, with checks of its own. */
static enum osd_status check_joined(struct osd_txn *txn, struct osd_op *op,
				    const struct osd_attr *attr)
{
	struct osd_object_id id = {op->call.partition_id, 0};
	enum osd_status status;

	if (attr->page != OSD_REL_COLLECTIONS || attr->length != 8)
		return OSD_OK;
	id.object_id = osd_get_be(attr->value, 8);
	status = osd_rights_check_also(op->session, txn, id,
				       (struct osd_access){.permissions = OSD_PERM_SET_ATTR});
	return osd_status_is_gone(status) ? OSD_E_PARAM_FIELD : status;
}

static enum osd_status set_one(struct osd_txn *txn, struct osd_op *op, const struct osd_attr *attr)
{
	enum osd_status status = check_set(op, attr);

	if (status == OSD_OK)
		status = check_joined(txn, op, attr);
	return status == OSD_OK ? osd_attr_set(txn, osd_op_id(op), attr->page, attr->number,
					       attr->value, attr->length)
				: status;
}

enum osd_status osd_op_setattr(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_attr_list list;
	struct osd_attr attr;
	enum osd_status status = check_settable(txn, op);

	if (status == OSD_OK)
		status = osd_attr_entries_open(op->session->scratch, op->call.body_bytes,
					       OSD_LIST_SET, &list);
	for (size_t count = 0; status == OSD_OK && osd_attr_list_next(&list, &attr); count++) {
		if (count == OSD_CALL_RECORDS)
			return OSD_E_PARAM_LENGTH;
		status = set_one(txn, op, &attr);
	}
	return status;
}

/* ---- atomics --------------------------------------------------------------------------------- */

/* Offset in scratch of the present value, behind the expected and the new value. */
#define BEFORE_AT (2 * OSD_ATTRIBUTE_MAX)

/* Reads the one attribute of an atomic operation: page and number as the call packs them. */
static enum osd_status take_attribute(struct osd_txn *txn, struct osd_op *op, uint8_t *before,
				      size_t *ret_length)
{
	uint32_t page = (uint32_t)(op->call.a >> 32), number = (uint32_t)op->call.a;
	enum osd_object_type type = 0;
	enum osd_status status = check_settable(txn, op);

	if (status == OSD_OK)
		status = osd_object_type_of(txn, osd_op_id(op), &type);
	if (status == OSD_OK && type != OSD_USER_OBJECT)
		status = OSD_E_NO_OBJECT;
	if (status == OSD_OK && (page == OSD_PAGE_ALL || number == OSD_NUMBER_ALL))
		status = OSD_E_PARAM_FIELD;
	if (status == OSD_OK)
		status = check_get(op, page, number);
	*ret_length = 0;
	if (status == OSD_OK)
		status = osd_attr_get(txn, osd_op_id(op), page, number, before, OSD_ATTRIBUTE_MAX,
				      ret_length);
	return status;
}

/* The attribute with its new value. */
static struct osd_attr new_attribute(const struct osd_op *op, const uint8_t *value, size_t length)
{
	return (struct osd_attr){
		.page = (uint32_t)(op->call.a >> 32),
		.number = (uint32_t)op->call.a,
		.length = (uint16_t)length,
		.value = value,
	};
}

static enum osd_status swapattr_in(struct osd_txn *txn, struct osd_op *op)
{
	const uint8_t *expected = op->session->scratch;
	uint8_t *before = op->session->scratch + BEFORE_AT;
	size_t expected_length = (size_t)op->call.b, length;
	struct osd_attr attr = new_attribute(op, expected + expected_length,
					     op->call.body_bytes - expected_length);
	enum osd_status status = take_attribute(txn, op, before, &length);
	bool same;

	/* Checked whether or not the present value is the expected one, so that the answer reveals
	 * nothing. */
	if (status == OSD_OK)
		status = check_set(op, &attr);
	if (status != OSD_OK)
		return status;
	same = length == expected_length && !memcmp(before, expected, length);
	if (same)
		status = set_one(txn, op, &attr);
	op->answer.a = same;
	op->answer.body_bytes = (uint32_t)length;
	memcpy(op->out, before, length);
	return status;
}

enum osd_status osd_op_swapattr(struct osd_op *op)
{
	enum osd_status status;

	if (op->call.b > op->call.body_bytes || op->call.b > OSD_ATTRIBUTE_MAX ||
	    op->call.body_bytes - op->call.b > OSD_ATTRIBUTE_MAX)
		return OSD_E_PARAM_LENGTH;
	status = osd_op_transact(op, swapattr_in);
	if (status == OSD_OK && op->answer.a)
		osd_op_uses(op, OSD_MADE_ATTRIBUTES);
	return status;
}

enum osd_status osd_op_addattr(struct osd_txn *txn, struct osd_op *op)
{
	uint8_t *before = op->session->scratch + BEFORE_AT, sum[8];
	struct osd_attr attr = new_attribute(op, sum, sizeof(sum));
	size_t length;
	enum osd_status status = take_attribute(txn, op, before, &length);

	if (status == OSD_OK && length != 0 && length != sizeof(sum)) {
		op->why = "the attribute is no number of 8 bytes";
		status = OSD_E_PARAM_FIELD;
	}
	if (status != OSD_OK)
		return status;
	op->answer.a = osd_get_be(before, length);
	osd_put_be(sum, op->answer.a + op->call.b, sizeof(sum)); /* modulo 2^64 */
	return set_one(txn, op, &attr);
}

/* ---- listing --------------------------------------------------------------------------------- */

static enum osd_status check_list(const struct osd_op *op)
{
	const struct osd_session *session = op->session;

	switch (op->call.a) {
	case OSD_LIST_PARTITIONS:
		return session->zone.type == OSD_ROOT ? OSD_OK : OSD_E_PERMISSION;
	case OSD_LIST_USER_OBJECTS:
	case OSD_LIST_COLLECTIONS:
		return osd_session_owns_partition(session, op->call.partition_id)
			       ? OSD_OK
			       : OSD_E_PERMISSION;
	case OSD_LIST_MEMBERS:
		return OSD_OK; /* the collection itself must be in the zone */
	default:
		return OSD_E_PARAM_FIELD;
	}
}

/* The listed object, with its version if it has one. */
struct listed {
	struct osd_object_id id;
	struct osd_data_version version;
	bool versioned;
};

/* Of a collection, before its members are read: a change between the two then makes the version too old, which
 * is noticed. */
static enum osd_status get_version(struct osd_txn *txn, struct listed *listed)
{
	uint8_t bytes[OSD_VERSION_BYTES];
	size_t length = 0;
	enum osd_status status = osd_attr_get(txn, listed->id, OSD_PAGE_MEMBERS_VERSION,
					      OSD_VERSION_NUMBER, bytes, sizeof(bytes), &length);

	listed->versioned = status == OSD_OK && length == sizeof(bytes);
	if (listed->versioned)
		listed->version = (struct osd_data_version){osd_get_be(bytes, 8),
							    (uint32_t)osd_get_be(bytes + 8, 4)};
	return status == OSD_E_PARAM_FIELD ? OSD_OK : status; /* not a collection */
}

static void note_list(struct osd_op *op, const struct listed *listed)
{
	struct osd_session *session = op->session;

	if (session->plain)
		return;
	if (listed->versioned)
		osd_used_members(&session->used, listed->id, listed->version);
	else
		osd_used_note(&session->used, listed->id, OSD_USED_CONTENTS);
}

enum osd_status osd_op_list(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_list_request request = {op->call.a, osd_op_id(op), op->call.b};
	uint64_t ids[OSD_CALL_IDS];
	struct osd_list_result result;
	struct osd_wr w = osd_wr_init(op->out, OSD_BODY_MAX);
	struct listed listed = {.id = osd_op_id(op)};
	enum osd_status status = check_list(op);

	/* The permission to list a partition is that of the partition itself. */
	if (op->call.a != OSD_LIST_MEMBERS)
		listed.id.object_id = 0;
	if (op->call.a == OSD_LIST_PARTITIONS)
		listed.id.partition_id = 0;
	if (status == OSD_OK)
		status = osd_session_check_zone(op->session, txn, listed.id);
	if (status == OSD_OK && op->call.a == OSD_LIST_MEMBERS)
		status = get_version(txn, &listed);
	if (status == OSD_OK)
		status = osd_list(txn, &request, ids, OSD_CALL_IDS, &result);
	if (status != OSD_OK)
		return status;
	for (size_t i = 0; i < result.count; i++)
		osd_wr_be(&w, ids[i], 8);
	op->answer.body_bytes = (uint32_t)osd_wr_used(&w);
	op->answer.a = result.next_id;
	op->answer.b = result.total_count;
	note_list(op, &listed);
	return OSD_OK;
}
