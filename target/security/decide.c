/* SPDX-License-Identifier: GPL-2.0-or-later */
/* decide.c -- see decide.h. */
#include "security/decide.h"

#include <stdlib.h>

#include "object/txn_run.h"
#include "security/keys.h"
#include "wire/cursor.h"

#define PAIR 8u

/* ---- what an act needs ----------------------------------------------------------------------- */

/* The rights on a collection that also count for its members: for member commands, and for scripts
 * that have the collection as their zone. */
#define LENT                                                                                       \
	(OSD_PERM_READ | OSD_PERM_WRITE | OSD_PERM_APPEND | OSD_PERM_REMOVE | OSD_PERM_GET_ATTR |  \
	 OSD_PERM_SET_ATTR)

#define ROOT_PAGE(relative)	  (OSD_PAGE_ROOT_BASE + (relative))
#define PARTITION_PAGE(relative)  (OSD_PAGE_PARTITION_BASE + (relative))
#define COLLECTION_PAGE(relative) (OSD_PAGE_COLLECTION_BASE + (relative))

struct osd_access osd_access_whole(uint16_t permissions)
{
	return (struct osd_access){permissions, 0, UINT64_MAX};
}

struct osd_access osd_access_to_join(void)
{
	return osd_access_whole(LENT);
}

/* The pages that decide about rights. */
static bool is_policy_page(uint32_t page)
{
	switch (page) {
	case ROOT_PAGE(OSD_REL_SECURITY):
	case PARTITION_PAGE(OSD_REL_SECURITY):
	case PARTITION_PAGE(OSD_REL_COLLECTIONS): /* attributes access */
	case COLLECTION_PAGE(OSD_REL_SECURITY):
	case OSD_REL_SECURITY:
		return true;
	default:
		return false;
	}
}

static bool is_page_of_any(uint32_t page, uint32_t relative)
{
	return page == relative || page == PARTITION_PAGE(relative) || page == ROOT_PAGE(relative);
}

static bool is_quota_page(uint32_t page)
{
	return is_page_of_any(page, OSD_REL_QUOTAS);
}

/* Functions that the data of objects pass through. */
static bool is_stack_page(uint32_t page)
{
	return is_page_of_any(page, OSD_PAGE_STACK) || page == COLLECTION_PAGE(OSD_PAGE_STACK);
}

/* Functions that see what changes. */
static bool is_hook_page(uint32_t page)
{
	return is_page_of_any(page, OSD_PAGE_HOOKS);
}

/* What is set on a collection, a partition or the root is for the data of all users there. */
static struct osd_access access_to_attach(uint32_t page)
{
	uint16_t permissions = OSD_PERM_SET_ATTR | OSD_PERM_FUN_EXE;

	if (is_hook_page(page))
		permissions |= OSD_PERM_READ;
	if (page >= OSD_PAGE_PARTITION_BASE)
		permissions |= OSD_PERM_POL_SEC;
	return (struct osd_access){.permissions = permissions};
}

struct osd_access osd_access_to_set(uint32_t page, uint32_t number, bool empty)
{
	if (is_policy_page(page) || is_quota_page(page))
		return (struct osd_access){.permissions = OSD_PERM_SET_ATTR | OSD_PERM_POL_SEC};
	if (page == OSD_REL_INFORMATION && number == OSD_INFO_LOGICAL_LENGTH)
		return osd_access_whole(OSD_PERM_SET_ATTR | OSD_PERM_WRITE);
	if (is_stack_page(page) || is_hook_page(page))
		return access_to_attach(page);
	if (page == OSD_REL_COLLECTIONS && !empty)
		return osd_access_to_join();
	return (struct osd_access){.permissions = OSD_PERM_SET_ATTR};
}

struct osd_access osd_access_to_get(uint32_t page, uint32_t number)
{
	(void)number;
	return (struct osd_access){
		.permissions = page == OSD_PAGE_CURRENT_COMMAND ? 0 : OSD_PERM_GET_ATTR};
}

bool osd_page_is_for_scripts(uint32_t page)
{
	return page < OSD_PAGE_RESERVED_BASE && page != OSD_PAGE_JOB_CONTROL &&
	       !is_policy_page(page) && !is_stack_page(page) && !is_hook_page(page);
}

/* ---- ALLOWED ATTRIBUTES ACCESS --------------------------------------------------------------- */

struct pairs_wanted {
	struct osd_object_id partition;
	uint32_t number;
	struct osd_allowed *allowed;
};

static enum osd_status read_pairs(struct osd_txn *txn, void *arg)
{
	const struct pairs_wanted *wanted = arg;
	enum osd_status status =
		osd_attr_get(txn, wanted->partition, PARTITION_PAGE(OSD_REL_COLLECTIONS),
			     wanted->number, wanted->allowed->pairs, OSD_ATTRIBUTE_MAX,
			     &wanted->allowed->length);

	return status == OSD_E_NO_PARTITION ? OSD_OK : status;
}

enum osd_status osd_allowed_load(struct osd_objects *objects, uint64_t partition_id,
				 const struct osd_capability *capability,
				 struct osd_allowed *allowed)
{
	uint32_t number = capability->allowed_attributes_access;

	allowed->length = 0;
	allowed->limited = number != 0;
	if (!allowed->limited || partition_id == 0 || number == OSD_NUMBER_ALL)
		return OSD_OK;
	if (!allowed->pairs)
		allowed->pairs = malloc(OSD_ATTRIBUTE_MAX);
	if (!allowed->pairs)
		return OSD_E_NO_MEMORY;
	return osd_txn_run(objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, read_pairs,
			   &(struct pairs_wanted){{partition_id, 0}, number, allowed});
}

bool osd_allowed_has(const struct osd_allowed *allowed, uint32_t page, uint32_t number)
{
	if (!allowed->limited || page == OSD_PAGE_CURRENT_COMMAND)
		return true;
	for (size_t at = 0; at + PAIR <= allowed->length; at += PAIR) {
		uint32_t pair_page = (uint32_t)osd_get_be(allowed->pairs + at, 4);
		uint32_t pair_number = (uint32_t)osd_get_be(allowed->pairs + at + 4, 4);

		if ((pair_page == page || pair_page == OSD_PAGE_ALL) &&
		    (pair_number == number || pair_number == OSD_NUMBER_ALL))
			return true;
	}
	return false;
}

/* ---- decisions ------------------------------------------------------------------------------- */

enum osd_status osd_least_method(struct osd_keyring *keyring, struct osd_txn *txn,
				 uint64_t partition_id, uint8_t *ret_method)
{
	struct osd_policy policy = {.method = OSD_NOSEC};
	enum osd_status status = OSD_OK;

	if (keyring)
		status = osd_keyring_policy_or_new(keyring, txn, partition_id, false, &policy);
	*ret_method = policy.method;
	return status;
}

bool osd_method_suffices(const struct osd_grant *grant, uint8_t least_method)
{
	uint8_t method = grant->open ? OSD_NOSEC : grant->capability.security_method;

	return method >= least_method;
}

enum osd_status osd_decide(const struct osd_grant *grant, const struct osd_act *act,
			   uint64_t now_ms, uint16_t *ret_field)
{
	enum osd_status status =
		osd_grant_permits(grant, act->facts, &act->access, now_ms, act->inside, ret_field);

	if (status != OSD_OK || osd_method_suffices(grant, act->least_method))
		return status;
	*ret_field = OSD_GRANT_FIELD_METHOD;
	return OSD_E_CDB_FIELD;
}

enum osd_status osd_decide_attribute(const struct osd_grant *grant,
				     const struct osd_allowed *allowed,
				     const struct osd_attribute_act *act, uint16_t *ret_field)
{
	uint16_t permissions = grant->capability.permissions | act->lent;

	if (grant->open)
		return OSD_OK;
	if ((permissions & act->access.permissions) != act->access.permissions) {
		*ret_field = OSD_GRANT_FIELD_PERMISSIONS;
		return OSD_E_PERMISSION;
	}
	if (act->named && !osd_grant_covers(grant, &act->access, ret_field))
		return OSD_E_CDB_FIELD;
	if (osd_allowed_has(allowed, act->page, act->number))
		return OSD_OK;
	*ret_field = OSD_GRANT_FIELD_ATTRIBUTES;
	return OSD_E_CDB_FIELD;
}
