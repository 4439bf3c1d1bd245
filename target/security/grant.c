/* SPDX-License-Identifier: GPL-2.0-or-later */
/* grant.c -- see grant.h. */
#include "security/grant.h"

#include "base/util.h"

static enum osd_status refuse(uint16_t field, uint16_t *ret_field)
{
	*ret_field = field;
	return field == OSD_GRANT_FIELD_PERMISSIONS ? OSD_E_PERMISSION : OSD_E_CDB_FIELD;
}

/* Root and partitions have one descriptor type.  Collections have their own; real initiators also
 * send that of user objects. */
static bool descriptor_fits(uint8_t type, uint8_t descriptor)
{
	switch (type) {
	case OSD_ROOT:
	case OSD_PARTITION:
		return descriptor == OSD_CAPDESC_PARTITION;
	case OSD_COLLECTION:
		return descriptor == OSD_CAPDESC_COLLECTION || descriptor == OSD_CAPDESC_OBJECT;
	default:
		return descriptor == OSD_CAPDESC_OBJECT;
	}
}

/* An id of 0 stands for all objects of the type in the partition, or for all partitions that may be
 * created.  It does not cover the surrogates of jobs, which belong to their submitters
 * (command/own_job.h). */
static bool names(const struct osd_capability *c, const struct osd_object_facts *facts,
		  uint16_t *ret_field)
{
	bool any_partition =
		facts->type == OSD_PARTITION && facts->to_be_made && c->allowed_partition_id == 0;

	*ret_field = OSD_GRANT_FIELD_TYPE;
	if (!(c->object_type & facts->type) || (c->object_type & (c->object_type - 1)))
		return false;
	*ret_field = OSD_GRANT_FIELD_DESCRIPTOR;
	if (!descriptor_fits(c->object_type, c->descriptor_type))
		return false;
	*ret_field = OSD_GRANT_FIELD_PARTITION;
	if (c->allowed_partition_id != facts->id.partition_id && !any_partition)
		return false;
	*ret_field = OSD_GRANT_FIELD_OBJECT;
	return facts->type & (OSD_ROOT | OSD_PARTITION) ||
	       (c->allowed_object_id == 0 && !facts->surrogate) ||
	       c->allowed_object_id == facts->id.object_id;
}

/* Length 0: all bytes from the start on. */
bool osd_grant_covers(const struct osd_grant *grant, const struct osd_access *access,
		      uint16_t *ret_field)
{
	const struct osd_capability *c = &grant->capability;
	uint64_t end = c->allowed_range_length
			       ? osd_add_capped(c->allowed_range_start, c->allowed_range_length)
			       : UINT64_MAX;

	*ret_field = access->start < c->allowed_range_start ? OSD_GRANT_FIELD_RANGE_START
							    : OSD_GRANT_FIELD_RANGE;
	return access->end == 0 || (access->start >= c->allowed_range_start && access->end <= end);
}

enum osd_status osd_grant_permits(const struct osd_grant *grant,
				  const struct osd_object_facts *facts,
				  const struct osd_access *access, uint64_t now_ms, bool inside,
				  uint16_t *ret_field)
{
	const struct osd_capability *c = &grant->capability;
	uint16_t field;

	if (grant->open)
		return OSD_OK;
	if (!grant->verified)
		return refuse(OSD_GRANT_FIELD_CAPABILITY, ret_field);
	if (c->expiration_ms && c->expiration_ms <= now_ms)
		return refuse(OSD_GRANT_FIELD_EXPIRED, ret_field);
	if (!inside && !names(c, facts, &field))
		return refuse(field, ret_field);
	if (c->policy_access_tag && c->policy_access_tag != facts->tag && !facts->missing)
		return refuse(OSD_GRANT_FIELD_TAG, ret_field);
	if (!inside && c->object_created_ms && c->object_created_ms != facts->created_ms &&
	    !facts->missing)
		return refuse(OSD_GRANT_FIELD_CREATED, ret_field);
	if (c->boot_epoch && c->boot_epoch != facts->boot_epoch)
		return refuse(OSD_GRANT_FIELD_EPOCH, ret_field);
	if ((c->permissions & access->permissions) != access->permissions)
		return refuse(OSD_GRANT_FIELD_PERMISSIONS, ret_field);
	if (!inside && facts->type == OSD_USER_OBJECT && !osd_grant_covers(grant, access, &field))
		return refuse(field, ret_field);
	return OSD_OK;
}
