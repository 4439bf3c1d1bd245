/* SPDX-License-Identifier: GPL-2.0-or-later */
/* grant.h -- the permissions of a capability, once its check value has been verified (osd2-wire 6.9
 * from step 7 on).  Pure: commands and jobs ask the same questions here.  Elsewhere: check values
 * (check.h), lookup of the objects (command/authorise.h). */
#ifndef OSD_SECURITY_GRANT_H
#define OSD_SECURITY_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "wire/capability.h"

/* CDB bytes that refusals point at.  In an extension capability they only mean that it did not
 * fit. */
enum osd_grant_field {
	OSD_GRANT_FIELD_CAPABILITY = 80,
	OSD_GRANT_FIELD_METHOD = 82,
	OSD_GRANT_FIELD_EXPIRED = 84,
	OSD_GRANT_FIELD_CREATED = 122,
	OSD_GRANT_FIELD_TYPE = 128,
	OSD_GRANT_FIELD_PERMISSIONS = 129,
	OSD_GRANT_FIELD_DESCRIPTOR = 135,
	OSD_GRANT_FIELD_ATTRIBUTES = 136,
	OSD_GRANT_FIELD_TAG = 140,
	OSD_GRANT_FIELD_EPOCH = 144,
	OSD_GRANT_FIELD_PARTITION = 152,
	OSD_GRANT_FIELD_OBJECT = 160,
	OSD_GRANT_FIELD_RANGE = 168,
	OSD_GRANT_FIELD_RANGE_START = 176,
};

/* It holds no secrets: it may be copied, kept and written to the store. */
struct osd_grant {
	struct osd_capability capability;
	bool open;     /* NOSEC is sufficient: the capability is not checked */
	bool verified; /* its check value was right */
	uint8_t level; /* enum osd_key_level (keys.h) of the key that proves it */
	uint64_t
		key_partition; /* of that key, 0 for what partition zero, the root or the master signs; its
				   version is the capability's */
};

/* An action on an object. */
struct osd_access {
	uint16_t permissions; /* enum osd_permission, all of them needed */
	/* The bytes of data to access; end UINT64_MAX: all from start on.  Both 0: none. */
	uint64_t start, end;
};

/* Whether the grant names the object, and permits the access at now_ms.  If the object does not
 * exist, facts->type may be several types or'ed.  *ret_field: the CDB byte at fault.
 *
 * inside: an object that is reached through the object that the grant names: a member of a collection,
 * a listed object, an object in the zone of a job.  The capability's id and created time do not apply
 * to it; its policy access tag does. */
enum osd_status osd_grant_permits(const struct osd_grant *grant,
				  const struct osd_object_facts *facts,
				  const struct osd_access *access, uint64_t now_ms, bool inside,
				  uint16_t *ret_field);

/* Whether ALLOWED RANGE covers the bytes; it is that of the user object that the grant names. */
bool osd_grant_covers(const struct osd_grant *grant, const struct osd_access *access,
		      uint16_t *ret_field);

#endif
