/* SPDX-License-Identifier: GPL-2.0-or-later */
/* draft.h -- user objects that are made together with their data (CREATE AND WRITE, COPY USER OBJECTS).
 * Errors and threads: as object.h. */
#ifndef OSD_OBJECT_DRAFT_H
#define OSD_OBJECT_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"

/* Order of calls: begin; write or copy; perhaps sync; put, in a transaction that may also set
 * attributes of the new object; free.  The object exists from the commit of that transaction on.  A
 * draft belongs to one thread. */
struct osd_draft;
/* requested_id 0: the target picks the id. put may also return OSD_E_EXISTS: if the target picked the
 * id, begin again. */
enum osd_status osd_draft_begin(struct osd_objects *objects, uint64_t partition_id,
				uint64_t requested_id, struct osd_draft **ret_draft);
/* Call it once, or osd_draft_copy.  *ret_length: the length of the new object. */
enum osd_status osd_draft_write(struct osd_draft *draft, const struct osd_piece *pieces,
				size_t count, const void *data, uint64_t *ret_length);
enum osd_copy_method {
	OSD_COPY_ANY,	/* whatever is fastest */
	OSD_COPY_BYTES, /* no block in common */
	OSD_COPY_SHARE, /* nothing but common blocks; OSD_E_UNSUPPORTED: not in this store */
};
/* Copies the data of source as of one moment: it is borrowed, and locked against changes, until let_go
 * or free. stop is called between pieces; true: OSD_E_TASK_ABORTED. It may be NULL. OSD_E_NO_OBJECT: the
 * source was removed; OSD_E_NO_PARTITION: the partition of the draft was removed. */
enum osd_status osd_draft_copy(struct osd_draft *draft, struct osd_object *source,
			       enum osd_copy_method method, bool (*stop)(void *arg), void *arg,
			       uint64_t *ret_length);
void osd_draft_let_go(struct osd_draft *draft);
/* Makes data and directories durable, if flags (FUA) or the durability `sync` require it. */
enum osd_status osd_draft_sync(struct osd_draft *draft, unsigned flags);
enum osd_status osd_draft_put(struct osd_txn *txn, struct osd_draft *draft, uint64_t *ret_id);
/* The same for an object that osd_name_put() names next: its record is stored then.  OSD_E_CONFLICT then, each
 * time: a client has just requested the id that the target picked. */
enum osd_status osd_draft_begin_object(struct osd_txn *txn, struct osd_draft *draft,
				       uint64_t *ret_id);
uint64_t osd_draft_length(const struct osd_draft *draft);
uint64_t osd_draft_partition(const struct osd_draft *draft);
void osd_draft_free(struct osd_draft *draft); /* NULL is fine */
OSD_DEFINE_CLEANUP(struct osd_draft *, osd_draft_free)
/* Copies application attributes and the user name; not memberships, quotas, security.  OSD_E_NO_OBJECT: from was
 * removed, even if another object has its id. */
enum osd_status osd_copy_attributes(struct osd_txn *txn, const struct osd_object *from,
				    struct osd_object_id to);
/* Whether OSD_COPY_SHARE works here. */
bool osd_objects_can_share_blocks(struct osd_objects *objects);

#endif
