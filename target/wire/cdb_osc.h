/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cdb_osc.h -- translates CDBs of OSC's initiator to the standard's before they are decoded (osd2-wire
 * 9).  Byte 12 is ignored.  Byte 10 may name a data distribution type, or the scope of a FLUSH. The
 * list of QUERY may have any length.  OSC's private service actions become those of this target.
 * command/osc.h has the rest of the dialect. */
#ifndef OSD_WIRE_CDB_OSC_H
#define OSD_WIRE_CDB_OSC_H

#include <stdint.h>

#include "wire/cdb.h"

struct osd_osc_cdb {
	uint8_t bytes[OSD_CDB_LENGTH]; /* as the standard has it */
	uint8_t data_distribution;     /* OSD_DDT_SGL or _VEC; 0: none */
	uint32_t list_length;	       /* of a QUERY's bare list; 0: none */
};

/* Translates a whole CDB of OSD-2. */
void osd_osc_cdb_translate(const uint8_t *bytes, struct osd_osc_cdb *ret_osc);
/* Adds the values to the decoded CDB for which the standard's bytes have no place. */
void osd_osc_cdb_finish(const struct osd_osc_cdb *osc, struct osd_cdb *cdb);

static inline bool osd_cdb_is_flush(uint16_t service_action)
{
	return service_action == OSD_SA_FLUSH || service_action == OSD_SA_FLUSH_COLLECTION ||
	       service_action == OSD_SA_FLUSH_PARTITION || service_action == OSD_SA_FLUSH_OSD;
}

#endif
