/* SPDX-License-Identifier: GPL-2.0-or-later */
/* named.h -- what the removal of the object at hand asks of names (names.c). */
#ifndef OSD_OBJECT_NAMED_H
#define OSD_OBJECT_NAMED_H

#include "base/status.h"

struct osd_txn;

/* The object at hand, which is locked, loses all its names. */
enum osd_status osd_names_drop_all(struct osd_txn *txn);
/* OSD_E_NOT_EMPTY: the collection at hand is a directory that has entries. */
enum osd_status osd_entries_check_none(struct osd_txn *txn);

#endif
