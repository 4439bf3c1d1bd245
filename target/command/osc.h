/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osc.h -- what the osc-compat switch changes in the way of a request: the dialect of OSC's
 * initiator where it contradicts the standard (osd2-wire 9).  Everything here does nothing while
 * request->osc_compat is false.
 * Not here: fields of the CDB (wire/cdb.c), attributes (attributes.c), the result of QUERY. */
#ifndef OSD_COMMAND_OSC_H
#define OSD_COMMAND_OSC_H

#include "command/request.h"

/* Whether OSC calls this failure, found when looking for the object, a success: REMOVE PARTITION of
 * a partition that does not exist (9-29). */
bool osd_osc_forgives(const struct osd_request *request, enum osd_status status);

/* What OSC puts before the command data in place of a continuation segment, as the segment the
 * standard has for it: a data distribution's header as a scatter/gather list (3.5), a bare list of
 * QUERY as its descriptor (9-6b).  *ret_segment is owned by the caller; NULL: nothing of the kind.
 * On OSD_OK with a segment, decoded.continuation_length and .length are those the command would
 * have had with it: where the header ends, and the bytes of data. */
enum osd_status osd_osc_segment(struct osd_request *request, uint8_t **ret_segment,
				size_t *ret_length);

/* The attributes of the objects that one CREATE made: OSC sends the first attribute of all of them,
 * then the second (9-7). */
enum osd_status osd_osc_get_created(struct osd_request *request, struct osd_txn *txn);

#endif
