/* SPDX-License-Identifier: GPL-2.0-or-later */
/* capability.c -- the 104-byte capability: bytes <-> fields. */
#include "wire/capability.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

void osd_capability_decode(const uint8_t bytes[OSD_CAPABILITY_LENGTH],
			   struct osd_capability *ret_capability)
{
	struct osd_capability *c = ret_capability;

	c->format = bytes[0] & 0x0f;
	c->key_version = bytes[1] >> 4;
	c->icv_algorithm = bytes[1] & 0x0f;
	c->security_method = bytes[2] & 0x0f;
	c->expiration_ms = osd_get_be(bytes + 4, 6);
	memcpy(c->audit, bytes + 10, sizeof(c->audit));
	memcpy(c->discriminator, bytes + 30, sizeof(c->discriminator));
	c->object_created_ms = osd_get_be(bytes + 42, 6);
	c->object_type = bytes[48];
	c->permissions = (uint16_t)osd_get_be(bytes + 49, 2);
	c->descriptor_type = bytes[55] >> 4;
	c->allowed_attributes_access = (uint32_t)osd_get_be(bytes + 56, 4);
	c->policy_access_tag = (uint32_t)osd_get_be(bytes + 60, 4);
	c->boot_epoch = (uint16_t)osd_get_be(bytes + 64, 2);
	c->allowed_partition_id = osd_get_be(bytes + 72, 8);
	c->allowed_object_id = osd_get_be(bytes + 80, 8);
	c->allowed_range_length = osd_get_be(bytes + 88, 8);
	c->allowed_range_start = osd_get_be(bytes + 96, 8);
}

void osd_capability_encode(const struct osd_capability *capability,
			   uint8_t bytes[OSD_CAPABILITY_LENGTH])
{
	const struct osd_capability *c = capability;

	memset(bytes, 0, OSD_CAPABILITY_LENGTH);
	bytes[0] = c->format & 0x0f;
	bytes[1] = (uint8_t)(c->key_version << 4 | (c->icv_algorithm & 0x0f));
	bytes[2] = c->security_method & 0x0f;
	osd_put_be(bytes + 4, c->expiration_ms, 6);
	memcpy(bytes + 10, c->audit, sizeof(c->audit));
	memcpy(bytes + 30, c->discriminator, sizeof(c->discriminator));
	osd_put_be(bytes + 42, c->object_created_ms, 6);
	bytes[48] = c->object_type;
	osd_put_be(bytes + 49, c->permissions, 2);
	bytes[55] = (uint8_t)(c->descriptor_type << 4);
	osd_put_be(bytes + 56, c->allowed_attributes_access, 4);
	osd_put_be(bytes + 60, c->policy_access_tag, 4);
	osd_put_be(bytes + 64, c->boot_epoch, 2);
	osd_put_be(bytes + 72, c->allowed_partition_id, 8);
	osd_put_be(bytes + 80, c->allowed_object_id, 8);
	osd_put_be(bytes + 88, c->allowed_range_length, 8);
	osd_put_be(bytes + 96, c->allowed_range_start, 8);
}
