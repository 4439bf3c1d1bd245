/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hooks.h -- the functions that check changes of a user object, or follow them (docs/hooks.md).
 *
 * Attributes of the pages of object/hooks.h name them.  All levels count: hooks of the root come first, then those of
 * the partition, then the object's own, each in ascending order.  So nobody takes a check of a partition off an object
 * of it. */
#ifndef OSD_FUNCTION_HOOKS_H
#define OSD_FUNCTION_HOOKS_H

#include "function/function.h"
#include "object/hooks.h"
#include "security/security.h"
#include "wire/hook.h"

/* The attribute of a hook's page with the version of the data that the page's other attributes are of. */
#define OSD_DERIVED_VERSION 1u

struct osd_hook {
	struct osd_function function; /* as it was active when the hooks were found */
	enum osd_stack_level level;
	uint32_t number; /* of the attribute */
	unsigned events; /* enum osd_hook_event */
	uint32_t page;	 /* of the attributes that it derives */
	char method[OSD_FUNCTION_WORD_MAX + 1];
	char parameters[OSD_HOOK_PARAMETERS_MAX];
	size_t parameters_length;
	char definer[OSD_PRINCIPAL_MAX]; /* who has attached it: its pool must admit this principal; "": not known */
};

/* The hooks of some events of a user object, in a transaction; object id 0: of one that is being made in the
 * partition.  The caller frees *ret_hooks, which is NULL if there are none.  OSD_E_FUNCTION_INACTIVE: a function is not
 * active, or has no such entry point any more, and *ret_hooks has those before it; OSD_E_MEDIUM: a value is damaged. */
enum osd_status osd_hooks_find(struct osd_functions *functions, struct osd_txn *txn,
			       struct osd_object_id id, unsigned events,
			       struct osd_hook **ret_hooks, size_t *ret_count);
/* Adds the pages: osd_functions_open calls it. */
void osd_hooks_add_pages(struct osd_functions *functions);

#endif
