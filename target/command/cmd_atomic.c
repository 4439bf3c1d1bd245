/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_atomic.c -- commands that read and change one attribute of a user object in one step
 * (osd2-wire 3.19).  COMPARE AND SWAP and FETCH AND ADD work on the object's two counters, page
 * 0000_0007h; GENERIC COMPARE AND SWAP and CONDITIONAL SET ATTRIBUTES on any attribute.  Each locks
 * the object before it reads, until the end of its transaction.  So these commands, and all other
 * changes of the object's attributes, happen one after the other. */
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/commands.h"
#include "wire/cursor.h"

enum { FIELD_FORMAT = 11, FIELD_SET_LENGTH = 68 };

/* ---- counters -------------------------------------------------------------------------------- */

/* A counter that was never set is 0.  An attribute of another length is not a counter. */
static enum osd_status read_counter(struct osd_command_context *ctx, uint32_t number,
				    uint64_t *ret_value)
{
	struct osd_request *request = ctx->request;
	uint8_t bytes[OSD_COUNTER_BYTES] = {0};
	size_t length;
	enum osd_status status = osd_object_hold(ctx->txn, request->object);

	if (status == OSD_OK)
		status = osd_attr_get(ctx->txn, request->object, OSD_PAGE_COUNTERS, number, bytes,
				      sizeof(bytes), &length);
	if (status != OSD_OK)
		return status;
	if (length != 0 && length != sizeof(bytes))
		return osd_command_fail_attribute(request, OSD_E_PARAM_FIELD, OSD_PAGE_COUNTERS,
						  number);
	*ret_value = osd_get_be(bytes, sizeof(bytes));
	return OSD_OK;
}

static enum osd_status write_counter(struct osd_command_context *ctx, uint32_t number,
				     uint64_t value)
{
	uint8_t bytes[OSD_COUNTER_BYTES];

	osd_put_be(bytes, value, sizeof(bytes));
	return osd_attr_set(ctx->txn, ctx->request->object, OSD_PAGE_COUNTERS, number, bytes,
			    sizeof(bytes));
}

/* The value from before, where in Data-In the CDB wants it; what lies before it is zero. */
static void return_counter(struct osd_request *request, uint64_t value)
{
	uint64_t at = request->decoded.result_offset;
	uint8_t bytes[OSD_COUNTER_BYTES];

	osd_put_be(bytes, value, sizeof(bytes));
	if (at && request->data_in_capacity)
		memset(request->data_in, 0,
		       (size_t)OSD_MIN(at, (uint64_t)request->data_in_capacity));
	request->command_data_in = at;
	osd_command_data_in(request, bytes, sizeof(bytes));
}

enum osd_status osd_cmd_compare_and_swap(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint64_t compare = osd_get_be(request->data_out, OSD_COUNTER_BYTES);
	uint64_t swap = osd_get_be(request->data_out + OSD_COUNTER_BYTES, OSD_COUNTER_BYTES);
	uint64_t value;
	enum osd_status status = read_counter(ctx, OSD_COUNTER_SWAP, &value);

	if (status == OSD_OK && value == compare)
		status = write_counter(ctx, OSD_COUNTER_SWAP, swap);
	if (status == OSD_OK)
		return_counter(request, value);
	return status;
}

enum osd_status osd_cmd_fetch_and_add(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint64_t addend = osd_get_be(request->data_out, OSD_COUNTER_BYTES), value;
	enum osd_status status = read_counter(ctx, OSD_COUNTER_ADD, &value);

	if (status == OSD_OK)
		status = write_counter(ctx, OSD_COUNTER_ADD, value + addend);
	if (status == OSD_OK)
		return_counter(request, value);
	return status;
}

/* ---- any attribute --------------------------------------------------------------------------- */

/* The set list: its first two entries, and the rest. */
struct exchange {
	struct osd_attr compare, swap;
	struct osd_attr_walk others;
};

static enum osd_status read_exchange(struct osd_command_context *ctx, struct exchange *exchange)
{
	struct osd_request *request = ctx->request;
	const struct osd_attr_params *params = ctx->attributes;

	if (request->decoded.attributes.format != OSD_CDBFMT_LIST)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_FORMAT);
	if (!params || !params->sets)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_SET_LENGTH);
	exchange->others = osd_attributes_to_set(params);
	if (!osd_attr_walk_next(&exchange->others, &exchange->compare) ||
	    !osd_attr_walk_next(&exchange->others, &exchange->swap))
		return OSD_E_PARAM_LENGTH;
	if (exchange->compare.page != exchange->swap.page ||
	    exchange->compare.number != exchange->swap.number)
		return osd_attributes_set_failed(request, OSD_E_PARAM_FIELD, &exchange->swap);
	return OSD_OK;
}

/* Swaps when the values agree, length and bytes; an undefined attribute has length 0. */
static enum osd_status swap_attribute(struct osd_command_context *ctx,
				      const struct exchange *exchange,
				      struct osd_attr_writer *writer, bool *ret_matched)
{
	OSD_CLEANUP_FREE uint8_t *original = malloc(OSD_ATTRIBUTE_MAX);
	const struct osd_attr *compare = &exchange->compare, *swap = &exchange->swap;
	struct osd_object_id id = ctx->request->object;
	enum osd_status status;
	size_t length;

	if (!original)
		return OSD_E_NO_MEMORY;
	status = osd_object_hold(ctx->txn, id);
	if (status == OSD_OK)
		status = osd_attr_get(ctx->txn, id, compare->page, compare->number, original,
				      OSD_ATTRIBUTE_MAX, &length);
	if (status != OSD_OK)
		return osd_attributes_set_failed(ctx->request, status, compare);
	*ret_matched = length == compare->length && !memcmp(original, compare->value, length);
	if (*ret_matched)
		status = osd_attributes_set_one(ctx->request, ctx->txn, id, swap);
	if (status != OSD_OK)
		return osd_attributes_set_failed(ctx->request, status, swap);
	return osd_attr_writer_add(writer, compare->page, compare->number, original, length);
}

static enum osd_status exchange_attribute(struct osd_command_context *ctx, bool others_always)
{
	struct osd_request *request = ctx->request;
	struct osd_attr_writer writer;
	struct exchange exchange;
	bool matched = false;
	enum osd_status status = read_exchange(ctx, &exchange);

	if (status != OSD_OK)
		return status;
	osd_attributes_list_begin(request, OSD_LIST_SET, &writer);
	status = swap_attribute(ctx, &exchange, &writer, &matched);
	if (status == OSD_OK && (matched || others_always))
		status = osd_attributes_set_rest(request, ctx->txn, request->object, false,
						 exchange.others);
	if (status == OSD_OK && ctx->attributes->gets)
		status = osd_attributes_collect(request, ctx->txn, request->object, NULL, &writer);
	if (status == OSD_OK)
		osd_attributes_list_end(request, &writer);
	return status;
}

enum osd_status osd_cmd_generic_compare_and_swap(struct osd_command_context *ctx)
{
	return exchange_attribute(ctx, true);
}

enum osd_status osd_cmd_conditional_set_attributes(struct osd_command_context *ctx)
{
	return exchange_attribute(ctx, false);
}
