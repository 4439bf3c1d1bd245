/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_capability.c -- the capability's fields and bytes. */
#include "wire/capability.h"

#include "wire/test_golden.h"

int main(void)
{
	struct golden frame = golden("capability.full");
	uint8_t again[OSD_CAPABILITY_LENGTH];
	struct osd_capability c;

	CHECK_EQ(frame.length, OSD_CAPABILITY_LENGTH);
	osd_capability_decode(frame.bytes, &c);
	CHECK_EQ(c.format, OSD_CAPABILITY_OSD2);
	CHECK_EQ(c.key_version, 3);
	CHECK_EQ(c.icv_algorithm, 1);
	CHECK_EQ(c.security_method, OSD_CAPKEY);
	CHECK_EQ(c.expiration_ms, 0x019000000001);
	CHECK_EQ(c.audit[19], 0xa1);
	CHECK_EQ(c.discriminator[11], 0xd2);
	CHECK_EQ(c.object_created_ms, 0x018000000002);
	CHECK_EQ(c.object_type, OSD_USER_OBJECT);
	CHECK_EQ(c.permissions, OSD_PERM_READ | OSD_PERM_GET_ATTR | OSD_PERM_FUN_EXE);
	CHECK_EQ(c.descriptor_type, OSD_CAPDESC_OBJECT);
	CHECK_EQ(c.allowed_attributes_access, 4);
	CHECK_EQ(c.policy_access_tag, 0xdeadbeef);
	CHECK_EQ(c.boot_epoch, 0x0102);
	CHECK_EQ(c.allowed_partition_id, 0x10000);
	CHECK_EQ(c.allowed_object_id, 0x10001);
	CHECK_EQ(c.allowed_range_length, 0x1000);
	CHECK_EQ(c.allowed_range_start, 0x200);
	osd_capability_encode(&c, again);
	CHECK_BYTES(again, sizeof(again), frame.bytes, frame.length);
	return 0;
}
