/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cdb_encode.c -- writes the OSD-2 CDB; cdb.c reads it. */
#include <string.h>

#include "wire/cdb.h"
#include "wire/cdb_layout.h"
#include "wire/cursor.h"

/* Writes the code of an offset that must be exact; unused when length is 0, as Linux writes it. */
static bool put_offset(uint8_t *bytes, size_t at, uint32_t length, uint64_t offset)
{
	uint32_t code = OSD_OFFSET_UNUSED;
	uint64_t exact = 0;

	if (length && (!osd_offset_encode(offset, &code, &exact) || exact != offset))
		return false;
	osd_put_be(bytes + at, code, 4);
	return true;
}

static bool encode_set_one(const struct osd_cdb_attributes *a, uint8_t *bytes)
{
	if (a->set_length > OSD_SET_ONE_MAX)
		return false;
	osd_put_be(bytes + 52, a->set_page, 4);
	osd_put_be(bytes + 56, a->set_number, 4);
	osd_put_be(bytes + 60, a->set_length, 2);
	memcpy(bytes + 62, a->set_value, a->set_length);
	return true;
}

static bool encode_page_format(const struct osd_cdb_attributes *a, uint8_t *bytes)
{
	osd_put_be(bytes + 52, a->get_page, 4);
	osd_put_be(bytes + 56, a->get_allocation_length, 4);
	osd_put_be(bytes + 64, a->set_page, 4);
	osd_put_be(bytes + 68, a->set_number, 4);
	osd_put_be(bytes + 72, a->set_length, 4);
	return a->set_length <= OSD_ATTRIBUTE_MAX &&
	       put_offset(bytes, 60, a->get_allocation_length, a->retrieved_offset) &&
	       put_offset(bytes, 76, a->set_length, a->set_offset);
}

static bool encode_list_format(const struct osd_cdb_attributes *a, uint8_t *bytes)
{
	osd_put_be(bytes + 52, a->get_list_length, 4);
	osd_put_be(bytes + 60, a->get_allocation_length, 4);
	osd_put_be(bytes + 68, a->set_length, 4);
	return put_offset(bytes, 56, a->get_list_length, a->get_list_offset) &&
	       put_offset(bytes, 64, a->get_allocation_length, a->retrieved_offset) &&
	       put_offset(bytes, 72, a->set_length, a->set_offset);
}

static bool encode_attributes(const struct osd_cdb_attributes *a, uint8_t *bytes)
{
	bytes[AT_BYTE11] |= a->format;
	switch (a->format) {
	case OSD_CDBFMT_SET_ONE:
		return encode_set_one(a, bytes);
	case OSD_CDBFMT_PAGE:
		return encode_page_format(a, bytes);
	case OSD_CDBFMT_LIST:
		return encode_list_format(a, bytes);
	default:
		return false;
	}
}

static void encode_key(const struct osd_cdb *cdb, uint8_t *bytes)
{
	bytes[AT_KEY_VERSION] = cdb->key.version;
	memcpy(bytes + AT_KEY_IDENTIFIER, cdb->key.identifier, sizeof(cdb->key.identifier));
	if (cdb->service_action == OSD_SA_SET_KEY) {
		memcpy(bytes + AT_SEED, cdb->key.seed, sizeof(cdb->key.seed));
		return;
	}
	osd_put_be(bytes + AT_LENGTH, cdb->length, 4);
	osd_put_be(bytes + AT_ALLOCATION, cdb->key.allocation_length, 4);
}

static void encode_numbers(const struct osd_cdb *cdb, uint8_t *bytes)
{
	osd_put_be(bytes + AT_START, cdb->starting_byte_address, 8);
	switch (cdb->service_action) {
	case OSD_SA_CREATE:
		osd_put_be(bytes + AT_LENGTH, cdb->create_count, 2);
		break;
	case OSD_SA_PERFORM_TASK_MANAGEMENT_FUNCTION:
		osd_put_be(bytes + AT_LENGTH, cdb->allocation_length, 2);
		bytes[AT_FUNCTION] = cdb->task_function;
		break;
	case OSD_SA_SET_KEY:
	case OSD_SA_SET_MASTER_KEY:
		encode_key(cdb, bytes);
		break;
	case OSD_SA_PERFORM_SCSI_COMMAND:
		memcpy(bytes + AT_LENGTH, cdb->embedded, sizeof(cdb->embedded));
		break;
	default:
		osd_put_be(bytes + AT_LENGTH, cdb->length, 8);
		break;
	}
}

bool osd_cdb_encode(const struct osd_cdb *cdb, uint8_t bytes[OSD_CDB_LENGTH])
{
	uint32_t word48 =
		cdb->continuation_length | cdb->list_identifier | (uint32_t)cdb->map_type << 16;

	if (cdb->isolation > OSD_OPTION_ISOLATION_MASK ||
	    cdb->command_bits > OSD_BYTE11_COMMAND_MASK)
		return false;
	memset(bytes, 0, OSD_CDB_LENGTH);
	bytes[0] = OSD_OPCODE;
	bytes[AT_ADDITIONAL_LENGTH] = OSD_CDB_ADDITIONAL_LENGTH;
	osd_put_be(bytes + AT_SERVICE_ACTION, cdb->service_action, 2);
	bytes[AT_OPTIONS] = (uint8_t)((cdb->dpo ? OSD_OPTION_DPO : 0) |
				      (cdb->fua ? OSD_OPTION_FUA : 0) | cdb->isolation);
	bytes[AT_BYTE11] = (uint8_t)((cdb->immed_tr ? OSD_IMMED_TR : 0) |
				     (cdb->list_attr ? OSD_LIST_ATTR : 0) | cdb->command_bits);
	bytes[AT_TIMESTAMPS] = cdb->timestamps_control;
	bytes[AT_DUPLICATION] = cdb->duplication_method;
	osd_put_be(bytes + AT_PARTITION_ID, cdb->partition_id, 8);
	osd_put_be(bytes + AT_OBJECT_ID, cdb->object_id, 8);
	osd_put_be(bytes + AT_WORD48, word48, 4); /* SET KEY: the end of the seed */
	encode_numbers(cdb, bytes);
	memcpy(bytes + AT_CAPABILITY, cdb->capability, sizeof(cdb->capability));
	memcpy(bytes + AT_ICV, cdb->request_icv, sizeof(cdb->request_icv));
	memcpy(bytes + AT_NONCE, cdb->nonce, sizeof(cdb->nonce));
	osd_put_be(bytes + AT_DATA_IN_ICV, cdb->data_in_icv_offset, 4);
	osd_put_be(bytes + AT_DATA_OUT_ICV, cdb->data_out_icv_offset, 4);
	return encode_attributes(&cdb->attributes, bytes);
}
