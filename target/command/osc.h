/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osc.h -- the effects of the osc-compat switch on requests: the dialect of OSC's initiator where
 * it contradicts the standard (osd2-wire 9).  Nothing here has an effect while request->osc_compat
 * is false.  Elsewhere: fields of the CDB (wire/cdb.c), attributes (attributes.c), the result of
 * QUERY. */
#ifndef OSD_COMMAND_OSC_H
#define OSD_COMMAND_OSC_H

#include "command/request.h"

/* Whether OSC treats this failure of the lookup as a success: REMOVE PARTITION of a partition that
 * does not exist (9-29). */
bool osd_osc_forgives(const struct osd_request *request, enum osd_status status);

/* Converts OSC's header before the command data to the continuation segment of the standard: a data
 * distribution's header to a scatter/gather list (3.5), a bare list of QUERY to its descriptor
 * (9-6b).  The caller owns *ret_segment; NULL: there was no such header.  On OSD_OK with a segment,
 * decoded.continuation_length and .length are those of the standard command: the end of the header,
 * and the number of data bytes. */
enum osd_status osd_osc_segment(struct osd_request *request, uint8_t **ret_segment,
				size_t *ret_length);

/* The attributes of the objects that one CREATE made: OSC sends the first attribute of all of them,
 * then the second (9-7). */
enum osd_status osd_osc_get_created(struct osd_request *request, struct osd_txn *txn);

#endif
