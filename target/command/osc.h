/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osc.h -- the dialect of OSC's initiator, where it contradicts the standard (osd2-wire 9).  Each function
 * below names one difference and answers as the standard says while the option osc_compat is off.  The
 * fields of the CDB are in wire/cdb_osc.c.  No other file asks for the option (tests/unit/test_layers.py). */
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

/* Whether the command is refused because it sets page 0 with CDBFMT 1, which otherwise sets nothing (9-13). */
bool osd_osc_refuses_page_zero(const struct osd_request *request);

/* Whether attributes of many objects come with an id before each entry, not in a group for each object; those of the
 * objects that one CREATE made come attribute by attribute (9-7). */
bool osd_osc_lists_pairs(const struct osd_request *request);

/* Whether the Current Command page has this attribute: OSC knows no change in used capacity. */
bool osd_osc_has_current(const struct osd_request *request, uint32_t number);

/* FLUSH: OSD_E_CDB_FIELD where the range begins beyond the end of the object (9.1). */
enum osd_status osd_osc_check_flush(struct osd_request *request, struct osd_object *object);

/* READ MAP: bytes that the allocation length must have room for, in addition to the header. */
uint64_t osd_osc_map_least(const struct osd_request *request);

/* QUERY: whether a second collection may come without extension capabilities, and whether the header of the
 * result has 13 bytes, not 12. */
bool osd_osc_has_no_extensions(const struct osd_request *request);
bool osd_osc_query_header(const struct osd_request *request);

#endif
