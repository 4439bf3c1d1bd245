/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capability.h -- the 104-byte capability at CDB byte 80 (osd2-wire 6.1).  Bytes and fields
 * only: what a capability permits is security/'s business. */
#ifndef OSD_WIRE_CAPABILITY_H
#define OSD_WIRE_CAPABILITY_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/osd2.h"

#define OSD_CAPABILITY_AT 80 /* CDB byte */

enum osd_capability_format {
	OSD_CAPABILITY_NONE = 0,
	OSD_CAPABILITY_OSD1 = 1,
	OSD_CAPABILITY_OSD2 = 2,
};

enum osd_security_method {
	OSD_NOSEC = 0,
	OSD_CAPKEY = 1,
	OSD_CMDRSP = 2,
	OSD_ALLDATA = 3,
};

#define OSD_SECURITY_METHODS 0x000f /* those we know; bit n: method n */

enum osd_capability_descriptor {
	OSD_CAPDESC_NONE = 0,
	OSD_CAPDESC_OBJECT = 1,    /* user object (and collection, as real initiators use it) */
	OSD_CAPDESC_PARTITION = 2, /* root and partition */
	OSD_CAPDESC_COLLECTION = 3,
};

struct osd_capability {
	uint8_t format;          /* 4 bits */
	uint8_t key_version;     /* 4 bits */
	uint8_t icv_algorithm;   /* 4 bits */
	uint8_t security_method; /* 4 bits */
	uint64_t expiration_ms;  /* since 1970, 48 bits; 0: never */
	uint8_t audit[20];
	uint8_t discriminator[12];
	uint64_t object_created_ms; /* 48 bits; 0: not checked */
	uint8_t object_type;
	uint16_t permissions;     /* enum osd_permission */
	uint8_t descriptor_type;  /* 4 bits */
	uint32_t allowed_attributes_access;
	uint32_t policy_access_tag;
	uint16_t boot_epoch;
	uint64_t allowed_partition_id, allowed_object_id;
	uint64_t allowed_range_length, allowed_range_start;
};

void osd_capability_decode(const uint8_t bytes[OSD_CAPABILITY_LENGTH],
			   struct osd_capability *ret_capability);
/* Reserved bytes become 0; fields wider than their bits are cut. */
void osd_capability_encode(const struct osd_capability *capability,
			   uint8_t bytes[OSD_CAPABILITY_LENGTH]);

#endif
