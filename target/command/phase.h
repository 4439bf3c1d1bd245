/* SPDX-License-Identifier: GPL-2.0-or-later */
/* phase.h -- the attribute phases of a command: what its set and get attributes parameters do to
 * the object addressed, or to those it made, in which transaction. */
#ifndef OSD_COMMAND_PHASE_H
#define OSD_COMMAND_PHASE_H

#include "base/status.h"
#include "command/request.h"

/* enum osd_txn_flags for the transaction of the command, or of its attributes alone. */
unsigned osd_phase_txn_flags(const struct osd_request *request);
/* Objects the command made take any attribute; others none but job control while unfinished. */
enum osd_status osd_phase_set(struct osd_request *request, struct osd_txn *txn);
/* Those of one object; what they change in used capacity, if it is asked for, is added to *change. */
enum osd_status osd_phase_set_of(struct osd_request *request, struct osd_txn *txn,
				 struct osd_object_id id, bool unfinished, int64_t *change);
enum osd_status osd_phase_get(struct osd_request *request, struct osd_txn *txn);
enum osd_status osd_phase_set_then_get(struct osd_request *request, struct osd_txn *txn);
/* A dry run of the same, before a command that cannot be rolled back: finds out whether it will be
 * refused. */
enum osd_status osd_phase_rehearse(struct osd_objects *objects, struct osd_request *request);
/* Set and get before a command that removes the object: the reported change is the object's used
 * capacity. */
enum osd_status osd_phase_before_removal(struct osd_request *request, struct osd_txn *txn);
/* Both in a transaction of their own: after a command that had none or was parked.  OSD_E_VERSION: it sets, and the data
 * have changed since checks were asked about them (check.h). */
enum osd_status osd_phase_alone(struct osd_objects *objects, struct osd_request *request);

#endif
