/* SPDX-License-Identifier: GPL-2.0-or-later */
/* integrity.h -- the check values of a command other than the request's
 * (docs/security-protocol.md).  Those of its continuation segment and Data-Out are checked before
 * their use.  Those of its Data-In and its response are computed when all else is there. */
#ifndef OSD_COMMAND_INTEGRITY_H
#define OSD_COMMAND_INTEGRITY_H

#include "command/request.h"

/* Bytes at DATA-IN INTEGRITY CHECK VALUE OFFSET. */
#define OSD_DATA_IN_INTEGRITY 48u

static inline uint8_t osd_request_method(const struct osd_request *request)
{
	const struct osd_grant *grant = &request->security.proof.grant;

	return grant->verified && !request->security.accepted ? grant->capability.security_method : OSD_NOSEC;
}

/* ALLDATA: whether there is a place for the integrity information of Data-In; OSD_E_CDB_FIELD at 228. */
enum osd_status osd_integrity_check_offset(struct osd_request *request);
/* segment: a private copy.  OSD_E_CDB_FIELD at 48. */
enum osd_status osd_integrity_continuation(struct osd_request *request, const uint8_t *segment,
					   size_t length);
/* set and get: private copies of the lists, of the lengths the CDB says (0: none).
 * OSD_E_DATA_OUT_ICV; OSD_E_CDB_FIELD at 232: no place in Data-Out. */
enum osd_status osd_integrity_data_out(struct osd_request *request, const uint8_t *set,
				       const uint8_t *get);

/* Whether the answer must be proved: then sense data has a descriptor 07h. */
static inline bool osd_integrity_responds(const struct osd_request *request)
{
	return osd_request_method(request) >= OSD_CMDRSP;
}
/* The last step of a request: all of its status, sense data and Data-In except this is complete. */
void osd_integrity_respond(struct osd_request *request);

#endif
