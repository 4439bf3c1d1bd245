/* SPDX-License-Identifier: GPL-2.0-or-later */
/* integrity.c -- see integrity.h. */
#include "command/integrity.h"

#include <string.h>

#include "base/util.h"
#include "command/context.h"
#include "command/current.h"
#include "command/osc.h"
#include "wire/continuation.h"
#include "wire/cursor.h"

#define DATA_OUT_INTEGRITY 56u
#define CONTINUATION_AT	   8u /* where the check value of a segment stands */
#define GROUP_HEADER	   16u
#define GROUP_LENGTH_AT	   14u
#define ENTRY_HEADER	   16u
#define LIST_HEADER	   8u
#define RESPONSE_NUMBER	   1u

enum { FIELD_DATA_IN_OFFSET = 228, FIELD_DATA_OUT_OFFSET = 232 };

static const uint8_t zeros[OSD_MAC_LENGTH];

/* Every check value but the request's begins with its nonce. */
static void begin(const struct osd_request *request, struct osd_mac *mac)
{
	osd_mac_init(mac, request->security.proof.algorithm, request->security.proof.key);
	osd_mac_update(mac, request->decoded.nonce, sizeof(request->decoded.nonce));
}

/* ---- request --------------------------------------------------------------------------------- */

enum osd_status osd_integrity_continuation(struct osd_request *request, const uint8_t *segment,
					   size_t length)
{
	uint8_t value[OSD_MAC_LENGTH];
	struct osd_mac mac;
	size_t behind = CONTINUATION_AT + OSD_MAC_LENGTH;

	if (length == 0 || osd_request_method(request) < OSD_CMDRSP)
		return OSD_OK;
	if (length < behind)
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	begin(request, &mac);
	osd_mac_update(&mac, segment, CONTINUATION_AT);
	osd_mac_update(&mac, zeros, sizeof(zeros));
	osd_mac_update(&mac, segment + behind, length - behind);
	osd_mac_final(&mac, value);
	if (osd_mac_equal(value, segment + CONTINUATION_AT))
		return OSD_OK;
	return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
}

/* The lengths of the three parts of Data-Out according to the CDB. */
static void expected_lengths(const struct osd_request *request, uint64_t lengths[3])
{
	const struct osd_cdb_attributes *a = &request->decoded.attributes;

	lengths[0] = osd_cdb_command_data_out(&request->decoded);
	lengths[1] = a->format != OSD_CDBFMT_SET_ONE && osd_cdb_sets(&request->decoded)
			     ? a->set_length
			     : 0;
	lengths[2] = a->get_list_length;
}

enum osd_status osd_integrity_data_out(struct osd_request *request, const uint8_t *set,
				       const uint8_t *get)
{
	uint8_t information[DATA_OUT_INTEGRITY], value[OSD_MAC_LENGTH];
	struct osd_mac mac;
	uint64_t lengths[3], at;
	bool equal = true;

	if (request->data_out_length == 0 || osd_request_method(request) < OSD_ALLDATA)
		return OSD_OK;
	if (!osd_offset_decode(request->decoded.data_out_icv_offset, &at) ||
	    at > request->data_out_length || request->data_out_length - at < sizeof(information))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_DATA_OUT_OFFSET);
	memcpy(information, request->data_out + at, sizeof(information));
	expected_lengths(request, lengths);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(lengths); i++)
		equal &= osd_get_be(information + 8 * i, 8) == lengths[i];
	begin(request, &mac);
	osd_mac_update(&mac, request->data_out + request->decoded.continuation_length,
		       (size_t)lengths[0]);
	osd_mac_update(&mac, set, (size_t)lengths[1]);
	osd_mac_update(&mac, get, (size_t)lengths[2]);
	osd_mac_update(&mac, information, 24);
	osd_mac_final(&mac, value);
	equal &= osd_mac_equal(value, information + 24);
	return equal ? OSD_OK : OSD_E_DATA_OUT_ICV;
}

static bool overlap(uint64_t a, uint64_t a_length, uint64_t b, uint64_t b_length)
{
	return a_length && b_length && a < b + b_length && b < a + a_length;
}

enum osd_status osd_integrity_check_offset(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->decoded;
	uint64_t data = osd_cdb_command_data_in(cdb), at, end;

	if (request->data_in_capacity == 0 || osd_cdb_data_in_needed(cdb) == 0 ||
	    osd_request_method(request) < OSD_ALLDATA)
		return OSD_OK;
	if (osd_offset_decode(cdb->data_in_icv_offset, &at) &&
	    osd_add_u64(at, OSD_DATA_IN_INTEGRITY, &end) && end <= request->data_in_capacity &&
	    !overlap(at, OSD_DATA_IN_INTEGRITY, 0, data) &&
	    !overlap(at, OSD_DATA_IN_INTEGRITY, cdb->attributes.retrieved_offset,
		     cdb->attributes.get_allocation_length))
		return OSD_OK;
	return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_DATA_IN_OFFSET);
}

/* ---- the Current Command page in Data-In ----------------------------------------------------- */

/* Retrieved attributes as they lie in Data-In, which is ours, and may be cut anywhere. */
struct retrieved {
	uint8_t *at, *end;
};

static struct retrieved retrieved_of(const struct osd_request *request)
{
	uint64_t at = request->decoded.attributes.retrieved_offset;
	struct retrieved retrieved = {NULL, NULL};

	if (request->retrieved_length && at < request->data_in_length) {
		retrieved.at = request->data_in + at;
		retrieved.end = retrieved.at + OSD_MIN(request->retrieved_length,
						       request->data_in_length - (size_t)at);
	}
	return retrieved;
}

/* The value of one of its attributes in the page form. */
static const uint8_t *page_value(const uint8_t page[OSD_CURRENT_PAGE_BYTES], uint32_t number,
				 size_t *ret_length)
{
	static const struct {
		uint8_t at, length;
	} fields[] = {{8, OSD_MAC_LENGTH}, {40, 1}, {44, 8}, {52, 8}, {60, 8}, {68, 8}};

	if (number < RESPONSE_NUMBER || number > OSD_ARRAY_SIZE(fields))
		return NULL;
	*ret_length = fields[number - 1].length;
	return page + fields[number - 1].at;
}

/* Type 9 entries up to end. */
static void renew_entries(uint8_t *at, const uint8_t *end,
			  const uint8_t page[OSD_CURRENT_PAGE_BYTES])
{
	while ((size_t)(end - at) >= ENTRY_HEADER) {
		size_t length = (size_t)osd_get_be(at + 14, 2), left, fresh = 0;
		const uint8_t *value = NULL;

		if (osd_get_be(at, 4) == OSD_PAGE_CURRENT_COMMAND)
			value = page_value(page, (uint32_t)osd_get_be(at + 4, 4), &fresh);
		at += ENTRY_HEADER;
		left = (size_t)(end - at);
		if (value && fresh == length)
			memcpy(at, value, OSD_MIN(length, left));
		length = (length + 7) & ~(size_t)7;
		if (length > left)
			return;
		at += length;
	}
}

static void renew_groups(uint8_t *at, const uint8_t *end,
			 const uint8_t page[OSD_CURRENT_PAGE_BYTES])
{
	while ((size_t)(end - at) >= GROUP_HEADER) {
		size_t length = (size_t)osd_get_be(at + GROUP_LENGTH_AT, 2), left;

		at += GROUP_HEADER;
		left = (size_t)(end - at);
		renew_entries(at, at + OSD_MIN(length, left), page);
		if (length > left)
			return;
		at += length;
	}
}

/* Writes the final values into the page.  Entries were written during the command, so they may be
 * outdated. */
static void renew_page(struct osd_request *request, const uint8_t page[OSD_CURRENT_PAGE_BYTES],
		       size_t length)
{
	const struct osd_cdb_attributes *a = &request->decoded.attributes;
	struct retrieved retrieved = retrieved_of(request);
	size_t left = (size_t)(retrieved.end - retrieved.at);

	if (!retrieved.at)
		return;
	if (a->format == OSD_CDBFMT_PAGE) {
		if (a->get_page == OSD_PAGE_CURRENT_COMMAND)
			memcpy(retrieved.at, page, OSD_MIN(length, left));
		return;
	}
	if (left < LIST_HEADER)
		return;
	if (retrieved.at[0] == OSD_LIST_SET)
		renew_entries(retrieved.at + LIST_HEADER, retrieved.end, page);
	else if (retrieved.at[0] == OSD_LIST_MULTI_OBJECT && !osd_osc_lists_pairs(request))
		renew_groups(retrieved.at + LIST_HEADER, retrieved.end, page);
}

/* ---- response -------------------------------------------------------------------------------- */

static void respond_good(struct osd_request *request)
{
	uint8_t page[OSD_CURRENT_PAGE_BYTES], *value = page + 8;
	size_t length = osd_current_page(request, page);
	struct osd_mac mac;

	memset(value, 0, OSD_MAC_LENGTH);
	begin(request, &mac);
	osd_mac_update(&mac, &request->sam_status, 1);
	osd_mac_update(&mac, page, length);
	osd_mac_final(&mac, value);
	renew_page(request, page, length);
}

/* The descriptor is the first, and all zeros so far. */
static void respond_sense(struct osd_request *request)
{
	struct osd_mac mac;

	begin(request, &mac);
	osd_mac_update(&mac, &request->sam_status, 1);
	osd_mac_update(&mac, request->sense, request->sense_length);
	osd_mac_final(&mac, request->sense + OSD_SENSE_ICV_AT);
}

/* Places the integrity information of Data-In: command data from 0 on, and retrieved attributes. */
static void place_data_in_integrity(struct osd_request *request)
{
	uint64_t start = request->decoded.attributes.retrieved_offset, at = 0;
	uint64_t data = OSD_MIN(request->command_data_in, (uint64_t)request->data_in_length);
	uint64_t retrieved = request->retrieved_needed && start < request->data_in_length
				     ? request->data_in_length - start
				     : 0;
	uint8_t *information;
	struct osd_mac mac;

	/* Else what was sent is nothing that the CDB explains: osd_integrity_check_offset. */
	if (!osd_offset_decode(request->decoded.data_in_icv_offset, &at) ||
	    request->data_in_capacity < OSD_DATA_IN_INTEGRITY ||
	    at > request->data_in_capacity - OSD_DATA_IN_INTEGRITY)
		return;
	information = request->data_in + at;
	if (at > request->data_in_length)
		memset(request->data_in + request->data_in_length, 0,
		       (size_t)at - request->data_in_length);
	osd_put_be(information, data, 8);
	osd_put_be(information + 8, retrieved, 8);
	begin(request, &mac);
	osd_mac_update(&mac, request->data_in, (size_t)data);
	osd_mac_update(&mac, request->data_in + start, (size_t)retrieved);
	osd_mac_update(&mac, information, 16);
	osd_mac_final(&mac, information + 16);
	request->data_in_length =
		OSD_MAX(request->data_in_length, (size_t)at + OSD_DATA_IN_INTEGRITY);
	request->data_in_needed =
		OSD_MAX(request->data_in_needed, at + (uint64_t)OSD_DATA_IN_INTEGRITY);
}

void osd_integrity_respond(struct osd_request *request)
{
	if (!osd_integrity_responds(request))
		return;
	if (request->sam_status == OSD_SAM_GOOD)
		respond_good(request);
	else if (request->sense_length)
		respond_sense(request);
	if (request->data_in_length && osd_request_method(request) == OSD_ALLDATA)
		place_data_in_integrity(request);
}
