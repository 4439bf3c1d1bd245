/* SPDX-License-Identifier: GPL-2.0-or-later */
/* named.h -- what the removal of an object asks of names, and the value of an entry (names.c). */
#ifndef OSD_OBJECT_NAMED_H
#define OSD_OBJECT_NAMED_H

#include "base/status.h"
#include "object/names.h"
#include "store/store.h"

struct osd_txn;

/* The object at hand, which is locked, loses all its names because it is removed.  OSD_E_NOT_EMPTY: it is a
 * directory that has entries. */
enum osd_status osd_unname(struct osd_txn *txn);
/* Of a record of OSD_KV_NAMES. */
enum osd_status osd_name_entry_decode(struct osd_bytes value, uint64_t partition_id,
				      struct osd_named *ret_entry);

#endif
