/* SPDX-License-Identifier: GPL-2.0-or-later */
/* data_version.h -- versions of user objects' data, and of collections' members.
 *
 * A version that was read together with data never stands for other data of that object: not of a later
 * object with the same id, not after a crash, not in a copy of the store.  So each change takes a number
 * that no change of the store has had.
 *
 *   counter   the next number of the whole store.  It begins with the clock (ns since 1970) at each
 *             opening, and above every counter in a record.  So two copies of one store, which both
 *             have an opening with the same number, take other counters.
 *   opening   how often the store was opened, also if the clock goes back
 *
 * User objects.  A change takes its number with the bytes locked that it changes, so a reader that has bytes
 * locked sees the version that belongs to them.  The number is in memory; the record gets it when the
 * object is settled, with the times.  Before the first change after that, the record is committed as
 * OSD_VERSION_STALE.  A crash leaves it so, and the next opening gives the object a new version.
 *
 * Collections.  The record has the version.  The transaction that changes members changes it last of all,
 * in the order of ids, so that the record is locked for a short time.  The collections of all user objects
 * and of jobs have no version.
 *
 * A power failure may lose records and keep data, or the reverse, and so may a copy of a store in use.
 * An earlier release changes data and leaves the version.  After these, all versions of earlier openings
 * count as of this one: osd_objects.version_floor. */
#ifndef OSD_OBJECT_DATA_VERSION_H
#define OSD_OBJECT_DATA_VERSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "object/record.h"
#include "store/store.h"

struct osd_object;
struct osd_objects;
struct osd_txn;

/* A version that no object has had. */
struct osd_data_version osd_version_new(struct osd_objects *objects);
/* The version that a record says, which is not stale. */
struct osd_data_version osd_version_of_record(const struct osd_objects *objects,
					      const struct osd_record *record);
/* For a new entry.  If the record's version is stale, the object gets a new one. */
void osd_version_enter(struct osd_object *object, const struct osd_record *record);
struct osd_data_version osd_version_of(const struct osd_object *object);
/* With the bytes locked that change, and the record stale.  Returns the version before. */
struct osd_data_version osd_version_change(struct osd_object *object, struct osd_data_version to);
/* Notes that members of the collection change in this transaction.  missed: no view follows that, since no collection of
 * the partition has one. */
enum osd_status osd_version_note_members(struct osd_txn *txn, const struct osd_place *collection,
					 bool missed);
/* Called before the commit: gives these collections their new versions. */
enum osd_status osd_version_apply_members(struct osd_txn *txn);
/* Called at the opening: finds the floor.  Then, for each record, counts its version. */
enum osd_status osd_version_begin_run(struct osd_objects *objects, struct osd_kv_txn *kv,
				      uint64_t opening);
void osd_version_count(struct osd_objects *objects, const struct osd_record *record);

#endif
