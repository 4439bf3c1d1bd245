/* SPDX-License-Identifier: GPL-2.0-or-later */
/* due.h -- user objects whose last change a function has not followed yet (docs/hooks.md).
 *
 * Such an object is due: its record has a flag.  The flag is committed before the change begins, or with it.  So
 * no change is lost by a crash, and one that never happened may be followed.  It is cleared in the transaction that
 * stores what the function says of the data, if these still have the version that it has seen.
 *
 * In memory, `due` says that the record has the flag.  The record may also have it alone.  A writer that finds `due`
 * false commits the flag first.  It waits there for the transaction that is clearing it, which has the record locked. */
#ifndef OSD_OBJECT_DUE_H
#define OSD_OBJECT_DUE_H

#include "object/object.h"

/* fn is called after each change of data of an object that functions follow, from any thread, with its bytes locked: it
 * must only take a note.  Set while no other thread uses objects. */
void osd_objects_watch_due(struct osd_objects *objects,
			   void (*fn)(void *arg, struct osd_object_id id), void *arg);
/* Marks a user object in the transaction, as if its data had changed. */
enum osd_status osd_due_mark(struct osd_txn *txn, struct osd_object_id id);
enum osd_status osd_is_due(struct osd_txn *txn, struct osd_object_id id, bool *ret_due);
/* In the transaction that stores what is said of this version of the data: the object is not due any more.  *ret_done
 * false: it has changed since, or is changing.  The caller keeps its reference until the transaction has ended. */
enum osd_status osd_due_done(struct osd_txn *txn, struct osd_object *object,
			     struct osd_data_version version, bool *ret_done);
/* Up to capacity due objects after this one, in the order of ids.  The first call gets 0/0. */
enum osd_status osd_due_list(struct osd_objects *objects, struct osd_object_id after,
			     struct osd_object_id *ids, size_t capacity, size_t *ret_count);

#endif
