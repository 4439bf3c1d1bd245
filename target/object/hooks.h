/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hooks.h -- functions that are asked before a user object changes, or follow its changes, as the store keeps them
 * (docs/hooks.md): the values of one page of the root, of a partition or of a user object.  function/hooks.h knows
 * what a value means.
 *
 * A mask in memory says which events have hooks: in the entry of a user object, in the partition and in the root.  The
 * record of an object has its own mask.  So a command without hooks pays a few instructions.
 *
 * Checks concern whatever changes the object.  The command layer asks them, and then sets OSD_TXN_CHECKED or
 * OSD_DATA_CHECKED.  All others that would change an object with checks get OSD_E_CHECK: scripts, commands on members
 * or on names.  Work of the target itself (OSD_TXN_INTERNAL) is not checked. */
#ifndef OSD_OBJECT_HOOKS_H
#define OSD_OBJECT_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "object/stack.h"

enum osd_hook_event {
	OSD_HOOK_CREATE = 1, /* checks of: creation */
	OSD_HOOK_WRITE = 2,  /* of data and of the logical length */
	OSD_HOOK_REMOVE = 4,
	OSD_HOOK_SET = 8,   /* of attributes */
	OSD_HOOK_AFTER = 16, /* a function follows changes of data */
	OSD_HOOK_CHECKS = 15,
};

#define OSD_HOOK_LEVELS	   3u	 /* object, partition, root */
#define OSD_HOOKS	   8u	 /* values 1 to 8 of a page */
#define OSD_HOOK_DUE	   9u	 /* of a user object: 1 byte, 1: functions have not followed its last change yet */
#define OSD_HOOK_CURRENT   10u	 /* the same, 1: what they have derived is of its data as they are now */
#define OSD_HOOK_NUMBERS   10u
#define OSD_HOOK_VALUE_MAX 1280u /* bytes of a value */
#define OSD_HOOK_DEFINERS  64u	 /* + that of a hook: the principal that has set it, never set directly */

/* The page of a root, a partition or a user object.  Collections have none. */
uint32_t osd_hook_page(enum osd_object_type type);
/* Whether there may be hooks anywhere; memory alone, any thread, and so for the next two. */
bool osd_hooks_any(const struct osd_objects *objects);
/* The events of the object that have hooks: of its own, or inherited.  Objects of jobs and functions have none. */
unsigned osd_object_hooks(const struct osd_object *object);
/* The same for an object that is being made in the partition. */
unsigned osd_hooks_above(struct osd_objects *objects, uint64_t partition_id);
/* Stores a value of the object's page (wire/hook.h); length 0 removes it. */
enum osd_status osd_hook_put(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
			     const uint8_t *value, size_t length);
/* Calls fn for each value that may concern the user object: those of the root in ascending order, then those of its
 * partition, then its own.  Of an object that is being made, object_id is 0.  A longer value than OSD_HOOK_VALUE_MAX is
 * damaged: OSD_E_MEDIUM. */
typedef void osd_hook_fn(void *arg, enum osd_stack_level level, uint32_t number,
			 const uint8_t *value, size_t length);
enum osd_status osd_hooks_each(struct osd_txn *txn, struct osd_object_id id, osd_hook_fn *fn,
			       void *arg);

#endif
