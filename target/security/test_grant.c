/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_grant.c -- every ingredient of a capability, missing or wrong, and the byte that is blamed; of
 * several the first in the standard's order. */
#include "security/grant.h"

#include "base/test.h"

#define NOW 1000000u

static struct osd_grant good(void)
{
	return (struct osd_grant){
		.verified = true,
		.capability = {.format = OSD_CAPABILITY_OSD2,
			       .security_method = OSD_CMDRSP,
			       .expiration_ms = NOW + 1,
			       .object_created_ms = 77,
			       .object_type = OSD_USER_OBJECT,
			       .permissions = OSD_PERM_READ | OSD_PERM_WRITE,
			       .descriptor_type = OSD_CAPDESC_OBJECT,
			       .policy_access_tag = 5,
			       .boot_epoch = 9,
			       .allowed_partition_id = 0x10000,
			       .allowed_object_id = 0x10001,
			       .allowed_range_start = 100,
			       .allowed_range_length = 50},
	};
}

static const struct osd_object_facts object = {.id = {0x10000, 0x10001},
					       .type = OSD_USER_OBJECT,
					       .tag = 5,
					       .created_ms = 77,
					       .boot_epoch = 9};
static const struct osd_access write_all = {OSD_PERM_WRITE, 100, 150};

static uint16_t blamed(const struct osd_grant *grant, const struct osd_object_facts *facts,
		       const struct osd_access *access)
{
	uint16_t field = 0;
	enum osd_status status = osd_grant_permits(grant, facts, access, NOW, false, &field);

	CHECK_EQ(status, field == 0 ? OSD_OK : field == 129 ? OSD_E_PERMISSION : OSD_E_CDB_FIELD);
	return field;
}

/* From the last in the order to the first: each new fault is blamed instead of those before. */
static void test_order(void)
{
	struct osd_grant grant = good();
	struct osd_capability *c = &grant.capability;

	CHECK_EQ(blamed(&grant, &object, &write_all), 0);
	c->allowed_range_length = 49;
	CHECK_EQ(blamed(&grant, &object, &write_all), 168);
	c->allowed_range_start = 101;
	CHECK_EQ(blamed(&grant, &object, &write_all), 176);
	c->permissions = OSD_PERM_READ;
	CHECK_EQ(blamed(&grant, &object, &write_all), 129);
	c->boot_epoch = 8;
	CHECK_EQ(blamed(&grant, &object, &write_all), 144);
	c->object_created_ms = 78;
	CHECK_EQ(blamed(&grant, &object, &write_all), 122);
	c->policy_access_tag = 4;
	CHECK_EQ(blamed(&grant, &object, &write_all), 140);
	c->allowed_object_id = 0x10002;
	CHECK_EQ(blamed(&grant, &object, &write_all), 160);
	c->allowed_partition_id = 0;
	CHECK_EQ(blamed(&grant, &object, &write_all), 152);
	c->descriptor_type = OSD_CAPDESC_COLLECTION;
	CHECK_EQ(blamed(&grant, &object, &write_all), 135);
	c->object_type = OSD_USER_OBJECT | OSD_COLLECTION;
	CHECK_EQ(blamed(&grant, &object, &write_all), 128);
	c->expiration_ms = NOW;
	CHECK_EQ(blamed(&grant, &object, &write_all), 84);
	grant.verified = false;
	CHECK_EQ(blamed(&grant, &object, &write_all), 80);
	grant.open = true;
	CHECK_EQ(blamed(&grant, &object, &write_all), 0);
}

/* Zeros mean that something does not matter. */
static void test_unlimited(void)
{
	struct osd_grant grant = good();
	struct osd_capability *c = &grant.capability;
	struct osd_access all = {OSD_PERM_WRITE, 0, UINT64_MAX};

	c->expiration_ms = c->object_created_ms = c->policy_access_tag = c->boot_epoch = 0;
	c->allowed_object_id = c->allowed_range_start = c->allowed_range_length = 0;
	CHECK_EQ(blamed(&grant, &object, &all), 0);
	c->allowed_range_start = UINT64_MAX - 1; /* ends beyond the last byte */
	c->allowed_range_length = 10;
	all.start = UINT64_MAX - 1;
	CHECK_EQ(blamed(&grant, &object, &all), 0);
	c->allowed_partition_id = 0; /* not so for partitions */
	CHECK_EQ(blamed(&grant, &object, &all), 152);
}

static void test_containers(void)
{
	struct osd_object_facts made = {
		.id = {0x20000, 0}, .type = OSD_PARTITION, .to_be_made = true};
	struct osd_object_facts root = {.type = OSD_ROOT};
	struct osd_access create = {OSD_PERM_CREATE, 0, 0};
	struct osd_grant grant = {.verified = true,
				  .capability = {.object_type = OSD_PARTITION,
						 .descriptor_type = OSD_CAPDESC_PARTITION,
						 .permissions = OSD_PERM_CREATE}};

	CHECK_EQ(blamed(&grant, &made, &create), 0);
	made.to_be_made = false;
	CHECK_EQ(blamed(&grant, &made, &create), 152);
	CHECK_EQ(blamed(&grant, &root, &create), 128);
	grant.capability.object_type = OSD_ROOT;
	CHECK_EQ(blamed(&grant, &root, &create), 0);
	grant.capability.descriptor_type = OSD_CAPDESC_OBJECT;
	CHECK_EQ(blamed(&grant, &root, &create), 135);
}

/* Of what is not there only the ids and the capability itself count; of what is reached through the
 * object named, only the tag. */
static void test_missing_and_inside(void)
{
	struct osd_object_facts missing = {.id = object.id,
					   .type = OSD_USER_OBJECT | OSD_COLLECTION,
					   .boot_epoch = 9,
					   .missing = true};
	struct osd_object_facts member = object;
	struct osd_grant grant = good();
	uint16_t field = 0;

	CHECK_EQ(blamed(&grant, &missing, &write_all), 0);
	missing.id.object_id++;
	CHECK_EQ(blamed(&grant, &missing, &write_all), 160);
	grant.capability.object_type = OSD_COLLECTION;
	member.id.object_id++;
	member.created_ms++;
	CHECK_EQ(osd_grant_permits(&grant, &member, &write_all, NOW, true, &field), OSD_OK);
	member.tag++;
	CHECK_EQ(osd_grant_permits(&grant, &member, &write_all, NOW, true, &field),
		 OSD_E_CDB_FIELD);
	CHECK_EQ(field, 140);
	member.tag--;
	CHECK_EQ(osd_grant_permits(&grant, &member, &write_all, NOW + 1, true, &field),
		 OSD_E_CDB_FIELD);
	CHECK_EQ(field, 84);
}

int main(void)
{
	test_order();
	test_unlimited();
	test_containers();
	test_missing_and_inside();
	return 0;
}
