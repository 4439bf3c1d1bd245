/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cdb_peek.h -- the few fields of a CDB that a front end, the queue and the choice of a thread need before
 * it is decoded.  Nothing outside wire/ and security/check.c, which signs the bytes, reads a CDB otherwise
 * (tests/unit/test_layers.py). */
#ifndef OSD_WIRE_CDB_PEEK_H
#define OSD_WIRE_CDB_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/cdb_layout.h"
#include "wire/cursor.h"
#include "wire/osd2.h"

/* A CDB with OSD's operation code that has all the bytes its own length claims. */
static inline bool osd_cdb_is_whole(const uint8_t *bytes, size_t length)
{
	return length > AT_ADDITIONAL_LENGTH && bytes[0] == OSD_OPCODE &&
	       length >= (size_t)AT_SERVICE_ACTION + bytes[AT_ADDITIONAL_LENGTH];
}

/* A CDB of OSD-2.  The functions below may be called for such a CDB only. */
static inline bool osd_cdb_is_osd2(const uint8_t *bytes, size_t length)
{
	return length == OSD_CDB_LENGTH && bytes[0] == OSD_OPCODE &&
	       bytes[AT_ADDITIONAL_LENGTH] == OSD_CDB_ADDITIONAL_LENGTH;
}

/* As sent: OSC's private codes are not translated. */
static inline uint16_t osd_cdb_peek_service_action(const uint8_t *bytes)
{
	return (uint16_t)osd_get_be(bytes + AT_SERVICE_ACTION, 2);
}

static inline bool osd_cdb_peek_immed_tr(const uint8_t *bytes)
{
	return bytes[AT_BYTE11] & OSD_IMMED_TR;
}

/* LENGTH, where the command has one. */
static inline uint64_t osd_cdb_peek_length(const uint8_t *bytes)
{
	return osd_get_be(bytes + AT_LENGTH, 8);
}

/* CREATE's number of objects; 0 means 1. */
static inline uint16_t osd_cdb_peek_create_count(const uint8_t *bytes)
{
	return (uint16_t)osd_get_be(bytes + AT_LENGTH, 2);
}

#endif
