/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cdb.c -- the OSD-2 CDB: offset code, decoder, and the sums of its lengths. cdb_encode.c writes it. */
#include "wire/cdb.h"

#include <string.h>

#include "base/util.h"
#include "wire/cdb_layout.h"
#include "wire/cdb_osc.h"
#include "wire/cdb_peek.h"
#include "wire/continuation.h"
#include "wire/cursor.h"

/* The largest offset of the result of COMPARE AND SWAP: no Data-In is larger. */
#define RESULT_OFFSET_MAX ((UINT64_C(64) << 20) - OSD_COUNTER_BYTES)

/* The meaning of bytes 48-51 (osd2-wire 2.8). */
enum word48 { WORD48_RESERVED, WORD48_CONTINUATION, WORD48_LIST_IDENTIFIER, WORD48_MAP_TYPE };

/* The meaning of the length in bytes 32-39. */
enum length_is { LENGTH_OTHER, LENGTH_DATA_OUT, LENGTH_DATA_IN, LENGTH_OPERANDS };

const char *osd_service_action_name(uint16_t service_action)
{
	switch (service_action) {
#define X(code, symbol, name)                                                                      \
	case code:                                                                                 \
		return name;
		OSD_SERVICE_ACTIONS(X)
#undef X
	}
	return NULL;
}

static enum word48 word48_of(uint16_t service_action)
{
	switch (service_action) {
	case OSD_SA_READ:
	case OSD_SA_WRITE:
	case OSD_SA_APPEND:
	case OSD_SA_CLEAR:
	case OSD_SA_PUNCH:
	case OSD_SA_REMOVE: /* reserved in the standard */
	case OSD_SA_CREATE_AND_WRITE:
	case OSD_SA_QUERY:
	case OSD_SA_COPY_USER_OBJECTS:
	case OSD_SA_CREATE_USER_TRACKING_COLLECTION:
	case OSD_SA_CREATE_PARTITION:
	case OSD_SA_REMOVE_PARTITION:
	case OSD_SA_REMOVE_COLLECTION:
	case OSD_SA_GET_ATTRIBUTES:
	case OSD_SA_SET_ATTRIBUTES:
	case OSD_SA_REMOVE_MEMBER_OBJECTS:
	case OSD_SA_GET_MEMBER_ATTRIBUTES:
	case OSD_SA_SET_MEMBER_ATTRIBUTES:
	case OSD_SA_EXEC:
	case OSD_SA_EXECUTE_FUNCTION:
	case OSD_SA_ACTIVATE_FUNCTION:
		return WORD48_CONTINUATION;
	case OSD_SA_LIST:
	case OSD_SA_LIST_COLLECTION:
		return WORD48_LIST_IDENTIFIER;
	case OSD_SA_READ_MAP:
		return WORD48_MAP_TYPE;
	default:
		return WORD48_RESERVED;
	}
}

static enum length_is length_of(uint16_t service_action)
{
	switch (service_action) {
	case OSD_SA_WRITE:
	case OSD_SA_APPEND:
	case OSD_SA_CREATE_AND_WRITE:
	case OSD_SA_EXEC:
	case OSD_SA_EXECUTE_FUNCTION:
	case OSD_SA_SET_MASTER_KEY:
	case OSD_SA_READ_NAMES:
	case OSD_SA_CHANGE_NAMES:
		return LENGTH_DATA_OUT;
	case OSD_SA_COMPARE_AND_SWAP:
	case OSD_SA_FETCH_AND_ADD:
		return LENGTH_OPERANDS;
	case OSD_SA_READ:
	case OSD_SA_LIST:
	case OSD_SA_LIST_COLLECTION:
	case OSD_SA_QUERY:
	case OSD_SA_READ_MAP:
	case OSD_SA_PERFORM_TASK_MANAGEMENT_FUNCTION:
		return LENGTH_DATA_IN;
	default:
		return LENGTH_OTHER;
	}
}

/* Commands whose retrieved list begins with an entry that no get list requests. */
static bool always_retrieves(uint16_t service_action)
{
	return service_action == OSD_SA_GENERIC_COMPARE_AND_SWAP ||
	       service_action == OSD_SA_CONDITIONAL_SET_ATTRIBUTES;
}

/* ---- offset code --------------------------------------------------------------------------- */

bool osd_offset_decode(uint32_t code, uint64_t *ret_offset)
{
	unsigned exponent = code >> 28; /* two's complement: -8..7 */
	unsigned shift = exponent < 8 ? exponent + 8 : exponent - 8;

	if (code == OSD_OFFSET_UNUSED || shift < 3)
		return false;
	*ret_offset = (uint64_t)(code & 0x0fffffff) << shift;
	return true;
}

bool osd_offset_encode(uint64_t wanted, uint32_t *ret_code, uint64_t *ret_offset)
{
	for (unsigned shift = 3; shift <= 15; shift++) {
		uint64_t mantissa = wanted >> shift;
		uint32_t code;

		if (wanted & ((UINT64_C(1) << shift) - 1))
			mantissa++; /* may carry into bit 28: then the next shift has to do */
		if (mantissa >= UINT64_C(1) << 28)
			continue;
		code = (uint32_t)(shift - 8) << 28 | (uint32_t)mantissa;
		if (code == OSD_OFFSET_UNUSED)
			continue; /* (2^28 - 1) x 2^7 has no code of its own */
		*ret_code = mantissa ? code : 0; /* 0 is written plainly, as everyone does */
		*ret_offset = mantissa << shift;
		return true;
	}
	return false;
}

/* ---- decode -------------------------------------------------------------------------------- */

/* Reports the failing field of a check. */
static enum osd_status bad_field(uint16_t field, uint16_t *ret_field)
{
	*ret_field = field;
	return OSD_E_CDB_FIELD;
}

static uint32_t get32(const uint8_t *bytes, size_t at)
{
	return (uint32_t)osd_get_be(bytes + at, 4);
}

/* The offset at byte at, which counts only when length != 0. */
static enum osd_status get_offset(const uint8_t *bytes, uint16_t at, uint32_t length,
				  uint64_t *offset, uint16_t *ret_field)
{
	*offset = 0;
	if (length && !osd_offset_decode(get32(bytes, at), offset))
		return bad_field(at, ret_field);
	return OSD_OK;
}

static enum osd_status decode_set_one(const uint8_t *bytes, struct osd_cdb_attributes *a,
				      uint16_t *ret_field)
{
	uint32_t page = get32(bytes, 52), number = get32(bytes, 56);
	uint32_t length = (uint32_t)osd_get_be(bytes + 60, 2);

	if (page == 0)
		return OSD_OK; /* sets nothing (osd2-wire 9-13) */
	if (page == OSD_PAGE_ALL)
		return bad_field(52, ret_field);
	if (number == OSD_NUMBER_ALL)
		return bad_field(56, ret_field);
	if (length > OSD_SET_ONE_MAX)
		return bad_field(60, ret_field);
	a->set_page = page;
	a->set_number = number;
	a->set_length = length;
	memcpy(a->set_value, bytes + 62, length);
	return OSD_OK;
}

static enum osd_status decode_page_format(const uint8_t *bytes, struct osd_cdb_attributes *a,
					  uint16_t *ret_field)
{
	enum osd_status status = OSD_OK;

	a->get_page = get32(bytes, 52);
	if (a->get_page) {
		a->get_allocation_length = get32(bytes, 56);
		status = get_offset(bytes, 60, a->get_allocation_length, &a->retrieved_offset,
				    ret_field);
	}
	if (status != OSD_OK || get32(bytes, 64) == 0)
		return status;
	if (get32(bytes, 64) == OSD_PAGE_ALL)
		return bad_field(64, ret_field);
	if (get32(bytes, 68) == OSD_NUMBER_ALL)
		return bad_field(68, ret_field);
	if (get32(bytes, 72) > OSD_ATTRIBUTE_MAX)
		return bad_field(72, ret_field);
	a->set_page = get32(bytes, 64);
	a->set_number = get32(bytes, 68);
	a->set_length = get32(bytes, 72);
	return get_offset(bytes, 76, a->set_length, &a->set_offset, ret_field);
}

static enum osd_status decode_list_format(const uint8_t *bytes, uint16_t service_action,
					  struct osd_cdb_attributes *a, uint16_t *ret_field)
{
	enum osd_status status;

	a->get_list_length = get32(bytes, 52);
	a->set_length = get32(bytes, 68);
	if (a->get_list_length && a->get_list_length < 8) {
		*ret_field = 52;
		return OSD_E_PARAM_LENGTH;
	}
	if (a->set_length && a->set_length < 8) {
		*ret_field = 68;
		return OSD_E_PARAM_LENGTH;
	}
	if (a->get_list_length || always_retrieves(service_action))
		a->get_allocation_length = get32(bytes, 60);
	status = get_offset(bytes, 56, a->get_list_length, &a->get_list_offset, ret_field);
	if (status == OSD_OK)
		status = get_offset(bytes, 64, a->get_allocation_length, &a->retrieved_offset,
				    ret_field);
	if (status == OSD_OK)
		status = get_offset(bytes, 72, a->set_length, &a->set_offset, ret_field);
	return status;
}

static enum osd_status decode_attributes(const uint8_t *bytes, uint16_t service_action,
					 struct osd_cdb_attributes *a, uint16_t *ret_field)
{
	a->format = bytes[AT_BYTE11] & OSD_CDBFMT_MASK;
	switch (a->format) {
	case OSD_CDBFMT_SET_ONE:
		return decode_set_one(bytes, a, ret_field);
	case OSD_CDBFMT_PAGE:
		return decode_page_format(bytes, a, ret_field);
	case OSD_CDBFMT_LIST:
		return decode_list_format(bytes, service_action, a, ret_field);
	default:
		return bad_field(AT_BYTE11, ret_field);
	}
}

static enum osd_status decode_options(const uint8_t *bytes, struct osd_cdb *cdb,
				      uint16_t *ret_field)
{
	uint8_t control = bytes[AT_TIMESTAMPS];

	cdb->immed_tr = bytes[AT_BYTE11] & OSD_IMMED_TR;
	cdb->list_attr = bytes[AT_BYTE11] & OSD_LIST_ATTR;
	cdb->command_bits = bytes[AT_BYTE11] & OSD_BYTE11_COMMAND_MASK;
	cdb->dpo = bytes[AT_OPTIONS] & OSD_OPTION_DPO;
	cdb->fua = bytes[AT_OPTIONS] & OSD_OPTION_FUA;
	/* In FLUSH* some initiators put the flush scope there (osd2-wire 9-2). */
	if (!osd_cdb_is_flush(cdb->service_action))
		cdb->isolation = bytes[AT_OPTIONS] & OSD_OPTION_ISOLATION_MASK;
	if (cdb->isolation == 3 || cdb->isolation == 6)
		return bad_field(AT_OPTIONS, ret_field);
	if (control != 0 && control != OSD_TIMESTAMPS_BYPASS)
		return bad_field(AT_TIMESTAMPS, ret_field);
	cdb->timestamps_control = control;
	cdb->duplication_method = bytes[AT_DUPLICATION];
	return OSD_OK;
}

static bool is_segment_length(uint32_t word)
{
	return word >= OSD_CONTINUATION_HEADER && word <= OSD_CONTINUATION_MAX && word % 8 == 0;
}

static enum osd_status decode_word48(const uint8_t *bytes, struct osd_cdb *cdb, uint16_t *ret_field)
{
	uint32_t word = get32(bytes, AT_WORD48);

	switch (word48_of(cdb->service_action)) {
	case WORD48_CONTINUATION:
		if (word && !is_segment_length(word))
			return bad_field(AT_WORD48, ret_field);
		cdb->continuation_length = word;
		break;
	case WORD48_LIST_IDENTIFIER:
		cdb->list_identifier = word;
		break;
	case WORD48_MAP_TYPE:
		cdb->map_type = (uint16_t)(word >> 16);
		break;
	case WORD48_RESERVED:
		break;
	}
	return OSD_OK;
}

/* Decodes the numbers at 32 and 40 of commands that use these bytes in their own way. */
static enum osd_status decode_operand_fields(struct osd_cdb *cdb, uint16_t *ret_field)
{
	if (cdb->length < OSD_COUNTER_BYTES)
		return bad_field(AT_LENGTH, ret_field);
	if (cdb->result_offset > RESULT_OFFSET_MAX)
		return bad_field(AT_START, ret_field);
	return OSD_OK;
}

/* There is no object id.  The seed of SET KEY continues over the bytes where other commands have a
 * length and an address. */
static void decode_key(const uint8_t *bytes, struct osd_cdb *cdb)
{
	cdb->object_id = 0;
	cdb->key.version = bytes[AT_KEY_VERSION];
	memcpy(cdb->key.identifier, bytes + AT_KEY_IDENTIFIER, sizeof(cdb->key.identifier));
	if (cdb->service_action == OSD_SA_SET_KEY) {
		memcpy(cdb->key.seed, bytes + AT_SEED, sizeof(cdb->key.seed));
		return;
	}
	cdb->length = get32(bytes, AT_LENGTH);
	cdb->key.allocation_length = get32(bytes, AT_ALLOCATION);
}

static bool sets_key(uint16_t service_action)
{
	return service_action == OSD_SA_SET_KEY || service_action == OSD_SA_SET_MASTER_KEY;
}

static enum osd_status decode_numbers(const uint8_t *bytes, struct osd_cdb *cdb,
				      uint16_t *ret_field)
{
	uint16_t count = (uint16_t)osd_get_be(bytes + AT_LENGTH, 2);

	if (cdb->service_action == OSD_SA_PERFORM_SCSI_COMMAND) {
		memcpy(cdb->embedded, bytes + AT_LENGTH, sizeof(cdb->embedded));
		return OSD_OK;
	}
	if (sets_key(cdb->service_action)) {
		decode_key(bytes, cdb);
		return OSD_OK;
	}
	cdb->starting_byte_address = osd_get_be(bytes + AT_START, 8);
	switch (cdb->service_action) {
	case OSD_SA_CREATE:
		cdb->create_count = count ? count : 1;
		return OSD_OK;
	case OSD_SA_PERFORM_TASK_MANAGEMENT_FUNCTION:
		cdb->allocation_length = count;
		cdb->task_function = bytes[AT_FUNCTION];
		return OSD_OK;
	}
	cdb->length = osd_get_be(bytes + AT_LENGTH, 8);
	return length_of(cdb->service_action) == LENGTH_OPERANDS
		       ? decode_operand_fields(cdb, ret_field)
		       : OSD_OK;
}

/* Retrieved attributes must not overlap the command's own Data-In. */
static enum osd_status check_data_in(const struct osd_cdb *cdb, uint16_t *ret_field)
{
	const struct osd_cdb_attributes *a = &cdb->attributes;

	if (a->get_allocation_length && a->retrieved_offset < osd_cdb_command_data_in(cdb))
		return bad_field(a->format == OSD_CDBFMT_PAGE ? 60 : 64, ret_field);
	return OSD_OK;
}

enum osd_status osd_cdb_decode(const uint8_t *bytes, size_t length, bool osc_compat,
			       struct osd_cdb *cdb, uint16_t *ret_field)
{
	struct osd_osc_cdb osc;
	enum osd_status status;

	memset(cdb, 0, sizeof(*cdb));
	*ret_field = OSD_NO_FIELD;
	if (!osd_cdb_is_osd2(bytes, length))
		return OSD_E_OPCODE;
	cdb->service_action = osd_cdb_peek_service_action(bytes);
	if (cdb->service_action >> 8 == 0x88 && !(cdb->service_action & 0x80)) {
		cdb->service_action = 0;
		return OSD_E_OPCODE; /* OSD-1's codes, which must be refused (osd2-wire 2.13) */
	}
	if (osc_compat) {
		osd_osc_cdb_translate(bytes, &osc);
		bytes = osc.bytes;
		cdb->service_action = osd_cdb_peek_service_action(bytes);
	}
	cdb->partition_id = osd_get_be(bytes + AT_PARTITION_ID, 8);
	cdb->object_id = osd_get_be(bytes + AT_OBJECT_ID, 8);
	if (!osd_service_action_name(cdb->service_action))
		return bad_field(AT_SERVICE_ACTION, ret_field);

	status = decode_options(bytes, cdb, ret_field);
	if (status == OSD_OK)
		status = decode_numbers(bytes, cdb, ret_field);
	if (status == OSD_OK)
		status = decode_word48(bytes, cdb, ret_field);
	if (osc_compat)
		osd_osc_cdb_finish(&osc, cdb);
	if (status == OSD_OK)
		status = decode_attributes(bytes, cdb->service_action, &cdb->attributes, ret_field);
	if (status == OSD_OK)
		status = check_data_in(cdb, ret_field);
	memcpy(cdb->capability, bytes + AT_CAPABILITY, sizeof(cdb->capability));
	memcpy(cdb->request_icv, bytes + AT_ICV, sizeof(cdb->request_icv));
	memcpy(cdb->nonce, bytes + AT_NONCE, sizeof(cdb->nonce));
	cdb->data_in_icv_offset = get32(bytes, AT_DATA_IN_ICV);
	cdb->data_out_icv_offset = get32(bytes, AT_DATA_OUT_ICV);
	return status;
}

/* ---- what it adds up to -------------------------------------------------------------------- */

uint32_t osd_embedded_allocation(const uint8_t cdb[OSD_EMBEDDED_CDB])
{
	switch (cdb[0]) {
	case OSD_SCSI_REQUEST_SENSE:
		return cdb[4];
	case OSD_SCSI_INQUIRY:
		return (uint32_t)osd_get_be(cdb + 3, 2);
	case OSD_SCSI_REPORT_LUNS:
	case OSD_SCSI_MAINTENANCE_IN:
		return (uint32_t)osd_get_be(cdb + 6, 4);
	default:
		return 0;
	}
}

uint64_t osd_cdb_command_data_out(const struct osd_cdb *cdb)
{
	if (cdb->service_action == OSD_SA_COMPARE_AND_SWAP)
		return UINT64_C(2) * OSD_COUNTER_BYTES;
	if (cdb->service_action == OSD_SA_FETCH_AND_ADD)
		return OSD_COUNTER_BYTES;
	return length_of(cdb->service_action) == LENGTH_DATA_OUT ? cdb->length : 0;
}

uint64_t osd_cdb_command_data_in(const struct osd_cdb *cdb)
{
	switch (cdb->service_action) {
	case OSD_SA_EXEC:
	case OSD_SA_EXECUTE_FUNCTION:
	case OSD_SA_READ_NAMES:
	case OSD_SA_CHANGE_NAMES:
		return cdb->result_allocation_length;
	}
	if (cdb->service_action == OSD_SA_PERFORM_SCSI_COMMAND)
		return osd_embedded_allocation(cdb->embedded);
	if (cdb->service_action == OSD_SA_SET_MASTER_KEY)
		return cdb->key.allocation_length;
	if (length_of(cdb->service_action) == LENGTH_OPERANDS)
		return cdb->result_offset + OSD_COUNTER_BYTES;
	return length_of(cdb->service_action) == LENGTH_DATA_IN ? cdb->length : 0;
}

uint64_t osd_cdb_data_in_needed(const struct osd_cdb *cdb)
{
	const struct osd_cdb_attributes *a = &cdb->attributes;
	uint64_t data = osd_cdb_command_data_in(cdb);
	/* Cannot overflow: an offset is below 2^43. */
	uint64_t end =
		a->get_allocation_length ? a->retrieved_offset + a->get_allocation_length : 0;

	return OSD_MAX(data, end);
}

enum osd_status osd_cdb_check_data_out(const struct osd_cdb *cdb, uint64_t data_out_length,
				       uint16_t *ret_field)
{
	const struct osd_cdb_attributes *a = &cdb->attributes;

	if (cdb->continuation_length > data_out_length)
		return bad_field(AT_WORD48, ret_field);
	if (osd_cdb_command_data_out(cdb) > data_out_length - cdb->continuation_length)
		return bad_field(AT_LENGTH, ret_field);
	if (a->get_list_length && a->get_list_offset + a->get_list_length > data_out_length)
		return bad_field(52, ret_field);
	if (a->format != OSD_CDBFMT_SET_ONE && a->set_length &&
	    a->set_offset + a->set_length > data_out_length)
		return bad_field(a->format == OSD_CDBFMT_PAGE ? 72 : 68, ret_field);
	return OSD_OK;
}
