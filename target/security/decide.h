/* SPDX-License-Identifier: GPL-2.0-or-later */
/* decide.h -- the one place that decides whether an action on an object is permitted
 * (docs/security.md section 10): for the object that a command names, for other objects that it
 * touches, and for the calls of scripts.  Elsewhere: check values and nonces (check.h); finding the
 * facts (command/authorise.h, exec/session/session.h). */
#ifndef OSD_SECURITY_DECIDE_H
#define OSD_SECURITY_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"
#include "object/object.h"
#include "security/grant.h"

struct osd_keyring;

/* ---- what an act needs ----------------------------------------------------------------------- */

/* The access needed on an object to set or get one of its attributes.  empty: the value has length
 * 0.  The range is empty, so ALLOWED RANGE in a capability does not matter. */
struct osd_access osd_access_to_set(uint32_t page, uint32_t number, bool empty);
struct osd_access osd_access_to_get(uint32_t page, uint32_t number);
/* The access needed on an object to put it into a collection: every right that a collection may
 * lend. */
struct osd_access osd_access_to_join(void);
/* The whole object. */
struct osd_access osd_access_whole(uint16_t permissions);
/* Pages that no script may set, whatever its rights: policy and security, job control, the target's
 * own. */
bool osd_page_is_for_scripts(uint32_t page);

/* ---- ALLOWED ATTRIBUTES ACCESS --------------------------------------------------------------- */

/* The attributes that a capability may touch.  Zeroed: all. */
struct osd_allowed {
	bool limited;
	size_t length;
	uint8_t *pairs; /* OSD_ATTRIBUTE_MAX bytes, owned; NULL: none */
};

/* Loads the present list of the partition that the capability names; no transaction is open.
 * Replaces the contents of *allowed.  The root has no such page: a limited capability for the root
 * may touch no attributes. */
enum osd_status osd_allowed_load(struct osd_objects *objects, uint64_t partition_id,
				 const struct osd_capability *capability,
				 struct osd_allowed *allowed);
static inline void osd_allowed_release(struct osd_allowed *allowed)
{
	if (allowed->pairs)
		free(allowed->pairs);
	*allowed = (struct osd_allowed){0};
}
/* OSD_PAGE_ALL and OSD_NUMBER_ALL: all pages, all numbers. */
bool osd_allowed_has(const struct osd_allowed *allowed, uint32_t page, uint32_t number);

/* ---- decisions ------------------------------------------------------------------------------- */

/* The least method that a partition accepts now.  For a partition that does not exist it is that of
 * a new one, so that nobody can find out which exist.  keyring NULL: NOSEC.  txn: read in it; NULL:
 * no transaction is open. */
enum osd_status osd_least_method(struct osd_keyring *keyring, struct osd_txn *txn,
				 uint64_t partition_id, uint8_t *ret_method);
/* Whether the method of a grant is at least the partition's least method. */
bool osd_method_suffices(const struct osd_grant *grant, uint8_t least_method);

struct osd_act {
	const struct osd_object_facts *facts;
	struct osd_access access;
	bool inside; /* the object is reached through the one that the grant names */
	/* That of the object's partition; OSD_NOSEC if it was checked when the request was
	 * admitted. */
	uint8_t least_method;
};
/* Whether the grant permits the act at now_ms.  *ret_field: the CDB byte at fault. */
enum osd_status osd_decide(const struct osd_grant *grant, const struct osd_act *act,
			   uint64_t now_ms, uint16_t *ret_field);

struct osd_attribute_act {
	uint32_t page, number;
	struct osd_access access; /* osd_access_to_set and so on */
	bool named;		  /* a user object that the grant names: its range counts */
	uint16_t lent;		  /* permissions that the holder has in addition to the grant's */
};
/* The same for one attribute of an object on which osd_decide has permitted the action. */
enum osd_status osd_decide_attribute(const struct osd_grant *grant,
				     const struct osd_allowed *allowed,
				     const struct osd_attribute_act *act, uint16_t *ret_field);

#endif
