/* SPDX-License-Identifier: GPL-2.0-or-later */
/* named.h -- what the removal of an object asks of names (names.c). */
#ifndef OSD_OBJECT_NAMED_H
#define OSD_OBJECT_NAMED_H

#include "base/status.h"

struct osd_txn;

/* The object at hand, which is locked, loses all its names because it is removed.  OSD_E_NOT_EMPTY: it is a
 * directory that has entries. */
enum osd_status osd_unname(struct osd_txn *txn);

#endif
