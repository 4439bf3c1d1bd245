/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cdb_osc.c -- see cdb_osc.h. */
#include "wire/cdb_osc.h"

#include <string.h>

#include "wire/cdb_layout.h"
#include "wire/cdb_peek.h"
#include "wire/continuation.h"
#include "wire/cursor.h"

/* No method: the decoder refuses it. */
#define ISOLATION_UNASSIGNED 3u

/* Translates OSC's private codes; returns any other code unchanged. */
static uint16_t meaning(uint16_t service_action)
{
	switch (service_action) {
#define X(code, symbol, name)                                                                      \
	case code:                                                                                 \
		return OSD_SA_##symbol;
		OSD_OSC_SERVICE_ACTIONS(X)
#undef X
	}
	return service_action;
}

/* Commands that may name a data distribution type. */
static bool has_distribution(uint16_t service_action)
{
	return service_action == OSD_SA_READ || service_action == OSD_SA_WRITE ||
	       service_action == OSD_SA_CREATE_AND_WRITE;
}

/* b1-b0 of byte 10 are the distribution.  b2, a part of the isolation, must not stand beside them
 * (osd2-wire 9-41). */
static void translate_distribution(struct osd_osc_cdb *osc)
{
	uint8_t *options = &osc->bytes[AT_OPTIONS];
	uint8_t isolation = *options & OSD_OPTION_ISOLATION_MASK;

	if (!(isolation & OSD_DDT_MASK))
		return;
	*options &= (uint8_t)~OSD_OPTION_ISOLATION_MASK;
	if (isolation > OSD_DDT_VEC)
		*options |= ISOLATION_UNASSIGNED;
	else
		osc->data_distribution = isolation;
}

/* Bytes 48-51 may be the length of a bare list of any size; its content tells it from a segment
 * (osd2-wire 9-6b). */
static void translate_query(struct osd_osc_cdb *osc)
{
	uint32_t length = (uint32_t)osd_get_be(osc->bytes + AT_WORD48, 4);

	if (length > OSD_CONTINUATION_MAX)
		return;
	osc->list_length = length;
	memset(osc->bytes + AT_WORD48, 0, 4);
}

void osd_osc_cdb_translate(const uint8_t *bytes, struct osd_osc_cdb *ret_osc)
{
	uint16_t service_action = meaning(osd_cdb_peek_service_action(bytes));

	*ret_osc = (struct osd_osc_cdb){.data_distribution = 0};
	memcpy(ret_osc->bytes, bytes, sizeof(ret_osc->bytes));
	osd_put_be(ret_osc->bytes + AT_SERVICE_ACTION, service_action, 2);
	/* OSC's initiator always sends 7Fh, but its tests expect the timestamps to change
	 * (osd2-wire 9-4). */
	ret_osc->bytes[AT_TIMESTAMPS] = 0;
	if (has_distribution(service_action))
		translate_distribution(ret_osc);
	/* It has the scope in byte 10, the standard in byte 11. */
	if (osd_cdb_is_flush(service_action))
		ret_osc->bytes[AT_BYTE11] |= bytes[AT_OPTIONS] & OSD_FLUSH_SCOPE_MASK;
	if (service_action == OSD_SA_QUERY)
		translate_query(ret_osc);
}

void osd_osc_cdb_finish(const struct osd_osc_cdb *osc, struct osd_cdb *cdb)
{
	cdb->data_distribution = osc->data_distribution;
	if (osc->list_length)
		cdb->continuation_length = osc->list_length;
}
