/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rights_rules.h -- the world of fuzz_rights.c, and what a job may do in it: the rules of docs/security.md
 * section 10 in a few lines of their own.  Nothing here asks security/ or exec/session/rights.c. */
#ifndef OSD_FUZZ_RIGHTS_RULES_H
#define OSD_FUZZ_RIGHTS_RULES_H

#include "base/util.h"
#include "exec/target.h"
#include "security/keys.h"

#define LENGTH	64u
#define APP	0x10000u
#define LISTS	3
#define METHODS 4

#define A 0x10000u
#define B 0x20000u

enum thing { ROOT, PART_A, PART_B, LONE, MEMBER, GROUP, AWAY, THINGS };

static const struct {
	enum osd_object_type type;
	struct osd_object_id id;
} things[THINGS] = {
	[ROOT] = {OSD_ROOT, {0, 0}},
	[PART_A] = {OSD_PARTITION, {A, 0}},
	[PART_B] = {OSD_PARTITION, {B, 0}},
	[LONE] = {OSD_USER_OBJECT, {A, 0x10000}},
	[MEMBER] = {OSD_USER_OBJECT, {A, 0x10001}},
	[GROUP] = {OSD_COLLECTION, {A, 0x10002}},
	[AWAY] = {OSD_USER_OBJECT, {B, 0x10000}},
};

/* What 3000_0004h #1 says: nothing, one attribute, all. */
static const uint32_t lists[LISTS][2] = {{0x20000, 1}, {APP, 1}, {UINT32_MAX, UINT32_MAX}};

static const uint32_t attributes[][2] = {
	{APP, 1}, {APP, 2}, {1, 0x82}, {2, 1}, {5, 0x40000001}, {0x30000004, 1}, {0x30010000, 1},
};

/* ---- the rules ------------------------------------------------------------------------------- */

struct world {
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	struct osd_exec exec;
	struct osd_sandboxes sandboxes;
	struct osd_runs runs;
	struct osd_flow flow;
	struct osd_pools pools;
	struct osd_sandbox sandbox;
	struct osd_job job;
	struct osd_run run;
	/* As the rules see it. */
	uint8_t method[3]; /* of the root, A, B */
	uint32_t tag[THINGS];
	bool gone[THINGS], shared[THINGS];
	unsigned list; /* of A */
	bool key_changed, frozen, ended;
	uint8_t seeds;
};

static enum thing zone_of(const struct world *w)
{
	const struct osd_zone *zone = &w->run.session.zone;

	for (unsigned i = 0; i < THINGS; i++)
		if (things[i].type == zone->type &&
		    things[i].id.partition_id == zone->id.partition_id &&
		    things[i].id.object_id == zone->id.object_id)
			return (enum thing)i;
	return ROOT;
}

static uint8_t method_over(const struct world *w, enum thing thing)
{
	uint64_t partition = things[thing].id.partition_id;

	return w->method[partition == A ? 1 : partition == B ? 2 : 0];
}

static bool is_limited(const struct world *w)
{
	return w->run.session.rights.limited;
}

static const struct osd_capability *capability_of(const struct world *w)
{
	return &w->run.session.rights.grant.capability;
}

static uint8_t method_used(const struct world *w)
{
	return is_limited(w) ? capability_of(w)->security_method : OSD_NOSEC;
}

static bool tag_fits(const struct world *w, enum thing thing)
{
	uint32_t tag = is_limited(w) ? capability_of(w)->policy_access_tag : 0;

	return tag == 0 || tag == w->tag[thing];
}

/* The zone is in it; a job for the root has everything. */
static bool owns(const struct world *w, enum thing thing)
{
	enum thing zone = zone_of(w);

	return zone == ROOT || (zone == PART_A && things[thing].id.partition_id == A);
}

static bool in_zone(const struct world *w, enum thing thing)
{
	if (zone_of(w) == GROUP && thing == MEMBER)
		return !w->gone[MEMBER];
	return owns(w, thing) || zone_of(w) == thing;
}

static bool has_no_rights(const struct world *w)
{
	enum thing zone = zone_of(w);

	if (method_used(w) < method_over(w, zone))
		return true;
	return is_limited(w) &&
	       (w->key_changed || w->frozen || (!w->gone[zone] && !tag_fits(w, zone)));
}

static bool may(const struct world *w, enum thing thing, uint16_t permissions)
{
	if (!in_zone(w, thing) || method_used(w) < method_over(w, thing))
		return false;
	return !is_limited(w) ||
	       (tag_fits(w, thing) && (capability_of(w)->permissions & permissions) == permissions);
}

/* Bytes from start on, to end; 0 to 0: none. */
static bool in_range(const struct world *w, enum thing thing, uint64_t start, uint64_t end)
{
	const struct osd_capability *c = capability_of(w);
	uint64_t last = c->allowed_range_length ? c->allowed_range_start + c->allowed_range_length
						: UINT64_MAX;

	if (!is_limited(w) || zone_of(w) != thing || end == 0)
		return true;
	return start >= c->allowed_range_start && end <= last;
}

static bool may_touch(const struct world *w, uint32_t page, uint32_t number)
{
	const uint32_t *pair = lists[w->list];

	if (!is_limited(w) || !capability_of(w)->allowed_attributes_access)
		return true;
	if (capability_of(w)->allowed_partition_id != A)
		return false;
	return (pair[0] == page || pair[0] == UINT32_MAX) &&
	       (pair[1] == number || pair[1] == UINT32_MAX);
}

static bool may_set(const struct world *w, enum thing thing, uint32_t page, uint32_t number)
{
	uint16_t needed = OSD_PERM_SET_ATTR;

	if (page == 5 || page == 0x30000004)
		return false;
	if (page == 2)
		needed |= OSD_PERM_POL_SEC;
	if (page == 1)
		needed |= OSD_PERM_WRITE;
	if (zone_of(w) == GROUP && thing == GROUP)
		return false;
	if (page == 1 && !in_range(w, thing, 0, UINT64_MAX))
		return false;
	return may(w, thing, needed) && may_touch(w, page, number);
}

#endif
