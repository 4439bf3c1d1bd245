/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cdb.h -- the 236-byte OSD-2 CDB (osd2-wire section 2): decode, encode, and the 32-bit offset code.
 * This file reads and writes the bytes, and checks lengths, reserved values and offsets.  Not here: the
 * checks of a command (command/validate.c), the contents of Data-Out (attr_list.h, continuation.h), the
 * capability's fields (capability.h).
 *
 * Reserved *bits* are ignored, because real initiators leave old fields in them; reserved
 * *values* are refused.  Whether a segment is used is decided by its length, never by its offset
 * (osd2-wire 2.10). */
#ifndef OSD_WIRE_CDB_H
#define OSD_WIRE_CDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/osd2.h"

#define OSD_SET_ONE_MAX 18 /* bytes of attribute value that fit into the CDB (CDBFMT 1) */
#define OSD_EMBEDDED_CDB 16
#define OSD_CDB_KEY_IDENTIFIER 7
#define OSD_CDB_SEED 20
#define OSD_NO_FIELD    UINT16_MAX /* "no byte of the CDB to point at" */

/* The get and set attributes parameters, all three formats in one.  Fields the format does not
 * have, and fields of a half that is not used, are 0.  Offsets are bytes. */
struct osd_cdb_attributes {
	uint8_t format; /* OSD_CDBFMT_SET_ONE, OSD_CDBFMT_PAGE or OSD_CDBFMT_LIST */

	/* The get half.  LIST: used if get_list_length != 0; PAGE: if get_page != 0. */
	uint32_t get_page;
	uint32_t get_list_length; /* with the 8-byte header */
	uint64_t get_list_offset; /* in Data-Out */
	uint32_t get_allocation_length;
	uint64_t retrieved_offset; /* in Data-In; counts when get_allocation_length != 0 */

	/* The set half.  LIST: used if set_length != 0; PAGE and SET_ONE: if set_page != 0; then
	 * length 0 makes the attribute undefined. */
	uint32_t set_page, set_number;
	uint32_t set_length; /* LIST: of the list with its header; else of the value */
	uint64_t set_offset; /* in Data-Out: LIST the list, PAGE the bare value */
	uint8_t set_value[OSD_SET_ONE_MAX]; /* SET_ONE */
};

struct osd_cdb {
	uint16_t service_action;
	bool dpo, fua;
	/* 0 default, 1 none, 2 strict, 4 range, 5 functional, 7 vendor; 0 in FLUSH* */
	uint8_t isolation;
	uint8_t data_distribution; /* osc_compat only: OSD_DDT_SGL or _VEC in place of isolation */
	bool immed_tr, list_attr;
	uint8_t command_bits; /* byte 11 b3-b0: sort order, scope, FCR ... as the command says */
	uint8_t timestamps_control; /* 0 or OSD_TIMESTAMPS_BYPASS */
	uint8_t duplication_method; /* byte 14, COPY USER OBJECTS */
	uint64_t partition_id;      /* or the requested one */
	uint64_t object_id;         /* user object or collection, or the requested one */
	uint16_t create_count;      /* CREATE: how many, >= 1 (0 on the wire means 1) */
	uint8_t task_function;      /* byte 39, PERFORM TASK MANAGEMENT FUNCTION */
	uint8_t embedded[OSD_EMBEDDED_CDB]; /* bytes 32-47, PERFORM SCSI COMMAND */
	struct { /* SET KEY and SET MASTER KEY, in place of object id, length and address */
		uint8_t version; /* byte 24: key version, or DH group */
		uint8_t identifier[OSD_CDB_KEY_IDENTIFIER];
		uint8_t seed[OSD_CDB_SEED]; /* SET KEY */
		uint32_t allocation_length;	/* SET MASTER KEY */
	} key;
	union { /* bytes 32-39; 32-33 in PERFORM TASK MANAGEMENT FUNCTION; else 0 */
		uint64_t length;
		uint64_t allocation_length;  /* LIST, LIST COLLECTION, QUERY, READ MAP */
		uint64_t formatted_capacity; /* FORMAT OSD */
		uint64_t code_length;        /* EXEC, names */
		uint64_t parameter_list_length; /* SET MASTER KEY: 32-35 */
	};
	union { /* bytes 40-47; 0 in PERFORM SCSI COMMAND, SET KEY, SET MASTER KEY */
		uint64_t starting_byte_address;
		uint64_t initial_object_id;        /* LIST, LIST COLLECTION */
		uint64_t source_collection_id;     /* CREATE USER TRACKING COLLECTION */
		uint64_t matches_collection_id;    /* QUERY */
		uint64_t result_allocation_length; /* EXEC */
		uint64_t task_tag;                 /* PERFORM TASK MANAGEMENT FUNCTION */
		uint64_t result_offset; /* COMPARE AND SWAP, FETCH AND ADD: in Data-In */
	};
	/* Bytes 48-51: at most one of these is not 0, depending on the service action (osd2-wire
	 * 2.8). */
	uint32_t continuation_length;
	uint32_t list_identifier; /* LIST, LIST COLLECTION */
	uint16_t map_type;        /* READ MAP */

	struct osd_cdb_attributes attributes;
	uint8_t capability[OSD_CAPABILITY_LENGTH]; /* osd_capability_decode */
	uint8_t request_icv[32];
	uint8_t nonce[12]; /* 6 bytes ms since 1970, 6 random */
	/* Still encoded; meaningless under NOSEC. */
	uint32_t data_in_icv_offset, data_out_icv_offset;
};

/* The ALLOCATION LENGTH of an embedded CDB; 0: the command is unknown. */
uint32_t osd_embedded_allocation(const uint8_t cdb[OSD_EMBEDDED_CDB]);

/* The standard's name of a service action; NULL: unknown. */
const char *osd_service_action_name(uint16_t service_action);

/* Decodes and checks one CDB. osc_compat: it is in OSC's dialect (cdb_osc.h).  On OSD_OK cdb is
 * complete.  Otherwise *ret_field is the byte for the field pointer of the sense data, or OSD_NO_FIELD.
 * Then service_action, partition_id and object_id are as sent (0 after OSD_E_OPCODE), for the object
 * identification of the sense data. command_bits are as sent too, if the service action is the
 * standard's: the key that signs a SET KEY depends on them. */
enum osd_status osd_cdb_decode(const uint8_t *bytes, size_t length, bool osc_compat,
			       struct osd_cdb *cdb, uint16_t *ret_field);
/* Writes the CDB of a request.  Fields that the command does not have must be 0.  False: an offset does
 * not come from osd_offset_encode, or a value does not fit its field. */
bool osd_cdb_encode(const struct osd_cdb *cdb, uint8_t bytes[OSD_CDB_LENGTH]);

static inline bool osd_cdb_gets(const struct osd_cdb *cdb)
{
	return cdb->attributes.get_page || cdb->attributes.get_list_length;
}

static inline bool osd_cdb_sets(const struct osd_cdb *cdb)
{
	const struct osd_cdb_attributes *a = &cdb->attributes;

	return a->format == OSD_CDBFMT_LIST ? a->set_length != 0 : a->set_page != 0;
}

/* Bytes of command data in Data-Out (they start at continuation_length) and in Data-In (they
 * start at 0; the most the command may return). */
uint64_t osd_cdb_command_data_out(const struct osd_cdb *cdb);
uint64_t osd_cdb_command_data_in(const struct osd_cdb *cdb);
/* The whole Data-In this CDB can need: max(command data, retrieved offset + allocation). */
uint64_t osd_cdb_data_in_needed(const struct osd_cdb *cdb);
/* Checks that Data-Out of this length contains everything that the CDB points at.  OSD_E_CDB_FIELD: it
 * does not; *ret_field is the length that does not fit.  Surplus bytes are fine. */
enum osd_status osd_cdb_check_data_out(const struct osd_cdb *cdb, uint64_t data_out_length,
				       uint16_t *ret_field);

/* The offset code (osd2-wire 2.10).  Decode: false for FFFFFFFFh (unused) and for invalid
 * exponents.
 * Encode: the finest code for the first representable offset >= wanted, which *ret_offset gets;
 * false above the largest (2^43 - 2^15). */
bool osd_offset_decode(uint32_t code, uint64_t *ret_offset);
bool osd_offset_encode(uint64_t wanted, uint32_t *ret_code, uint64_t *ret_offset);

#endif
