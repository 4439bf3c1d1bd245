/* SPDX-License-Identifier: GPL-2.0-or-later */
/* policy.c -- see policy.h.  An entry is valid while the object layer's number of policy changes
 * equals the number before the entry was read.  So a change is in force for every request that
 * comes after the answer to the change. */
#include "security/policy.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/util.h"
#include "object/txn_run.h"
#include "wire/capability.h"
#include "wire/cursor.h"

#define SLOTS	  256 /* partitions that share one take turns */
#define OWN_SLOTS 16  /* the same, of one thread */

enum { METHOD = 0x1, OLDEST = 0x2, NEWEST = 0x3, FROZEN = 0x5, INSIDE_METHOD = 0x6 };

struct slot {
	uint64_t partition_id, changes; /* changes 0: empty */
	struct osd_policy policy;
};

struct osd_policies {
	struct osd_objects *objects;
	uint64_t number; /* of these among all there were; not 0 */
	struct osd_rwlock lock;
	struct slot slots[SLOTS]; /* under lock */
};

/* The last open policy that this thread found; it is checked without a lock. */
static _Thread_local struct {
	uint64_t policies, partition_id, changes;
} opened[OWN_SLOTS];

struct osd_policies *osd_policies_new(struct osd_objects *objects)
{
	static uint64_t count;
	struct osd_policies *policies = calloc(1, sizeof(*policies));

	if (!policies)
		return NULL;
	policies->objects = objects;
	policies->number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	osd_rwlock_init(&policies->lock, OSD_RANK_POLICIES);
	return policies;
}

void osd_policies_free(struct osd_policies *policies)
{
	if (!policies)
		return;
	osd_rwlock_destroy(&policies->lock);
	free(policies);
}

static struct slot *slot_of(struct osd_policies *policies, uint64_t partition_id)
{
	return &policies->slots[(partition_id * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SLOTS];
}

static enum osd_status read_number(struct osd_txn *txn, uint64_t partition_id, uint32_t number,
				   uint64_t *ret_value)
{
	uint32_t page =
		(partition_id ? OSD_PAGE_PARTITION_BASE : OSD_PAGE_ROOT_BASE) | OSD_REL_SECURITY;
	uint8_t bytes[8];
	size_t length;
	enum osd_status status = osd_attr_get(txn, (struct osd_object_id){partition_id, 0}, page,
					      number, bytes, sizeof(bytes), &length);

	*ret_value = status == OSD_OK ? osd_get_be(bytes, OSD_MIN(length, sizeof(bytes))) : 0;
	return status;
}

struct reading {
	uint64_t partition_id;
	struct osd_policy *policy;
};

static enum osd_status read_in(struct osd_txn *txn, void *arg)
{
	const struct reading *reading = arg;
	uint64_t partition_id = reading->partition_id;
	static const uint32_t numbers[] = {METHOD, FROZEN, OLDEST, NEWEST, INSIDE_METHOD};
	size_t count = OSD_ARRAY_SIZE(numbers) - (partition_id ? 1 : 0);
	uint64_t values[OSD_ARRAY_SIZE(numbers)] = {0};
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < count; i++)
		status = read_number(txn, partition_id, numbers[i], &values[i]);
	*reading->policy = (struct osd_policy){.method = (uint8_t)values[0],
					       .frozen = (uint16_t)values[1],
					       .oldest_ms = values[2],
					       .newest_ms = values[3],
					       .inside_method = (uint8_t)values[4]};
	return status;
}

static bool find(struct osd_policies *policies, uint64_t partition_id, uint64_t changes,
		 struct osd_policy *ret_policy)
{
	struct slot *slot = slot_of(policies, partition_id);
	bool found;

	osd_read_lock(&policies->lock);
	found = slot->partition_id == partition_id && slot->changes == changes;
	if (found)
		*ret_policy = slot->policy;
	osd_rw_unlock(&policies->lock);
	return found;
}

bool osd_policy_is_open(const struct osd_policies *policies, uint64_t partition_id)
{
	size_t own = partition_id % OWN_SLOTS;

	return opened[own].partition_id == partition_id &&
	       opened[own].policies == policies->number &&
	       opened[own].changes == osd_objects_policy_changes(policies->objects);
}

static void note_open(const struct osd_policies *policies, uint64_t partition_id, uint64_t changes,
		      const struct osd_policy *policy)
{
	size_t own = partition_id % OWN_SLOTS;

	if (policy->method != OSD_NOSEC)
		return;
	opened[own].policies = policies->number;
	opened[own].partition_id = partition_id;
	opened[own].changes = changes;
}

enum osd_status osd_policy_get(struct osd_policies *policies, uint64_t partition_id, bool nowait,
			       struct osd_policy *ret_policy)
{
	unsigned flags = OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS | (nowait ? OSD_TXN_NOWAIT : 0);
	uint64_t changes = osd_objects_policy_changes(policies->objects);
	struct slot *slot = slot_of(policies, partition_id);
	enum osd_status status;

	if (find(policies, partition_id, changes, ret_policy)) {
		note_open(policies, partition_id, changes, ret_policy);
		return OSD_OK;
	}
	status = osd_txn_run(policies->objects, flags, read_in,
			     &(struct reading){partition_id, ret_policy});
	if (status != OSD_OK)
		return status;
	osd_write_lock(&policies->lock);
	*slot = (struct slot){partition_id, changes, *ret_policy};
	osd_rw_unlock(&policies->lock);
	return OSD_OK;
}

enum osd_status osd_policy_get_in(struct osd_policies *policies, struct osd_txn *txn,
				  uint64_t partition_id, struct osd_policy *ret_policy)
{
	uint64_t changes = osd_objects_policy_changes(policies->objects);

	return find(policies, partition_id, changes, ret_policy)
		       ? OSD_OK
		       : read_in(txn, &(struct reading){partition_id, ret_policy});
}
