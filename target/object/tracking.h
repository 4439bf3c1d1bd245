/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tracking.h -- Command Tracking page of a collection (osd2-wire 5.16). */
#ifndef OSD_OBJECT_TRACKING_H
#define OSD_OBJECT_TRACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"

struct osd_tracking {
	uint8_t percent;
	uint16_t active; /* service action of the command in progress; 0: none */
	uint16_t ended;	 /* OSD_TRACKING_RUNNING, or the SAM status of the last command */
	const uint8_t *sense; /* of the last one */
	size_t sense_length;
	uint64_t processed, missing; /* objects */
};

#define OSD_TRACKING_RUNNING 0xffff

/* hold: no other transaction changes the page until this one ends. */
enum osd_status osd_tracking_active(struct osd_txn *txn, struct osd_object_id collection, bool hold,
				    uint16_t *ret_service_action);
enum osd_status osd_tracking_put(struct osd_txn *txn, struct osd_object_id collection,
				 const struct osd_tracking *tracking);

#endif
