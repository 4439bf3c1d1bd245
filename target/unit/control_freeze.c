/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_freeze.c -- FREEZE and THAW of the control socket.  While the store is frozen, a backup
 * copies the files that have changed (store/freeze.h).  The store thaws at the given time, when the
 * peer's connection ends, or at THAW, whichever comes first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "unit/control_request.h"
#include "object/object.h"

#define WAIT_MOST_MS   2000  /* the longest wait of this thread: below the manager's lease */
#define FREEZE_MOST_MS 30000 /* initiators give up on a target that is silent for longer */

const char *osd_control_store_id(const struct osd_control *control,
				 char text[OSD_CONTROL_STORE_ID])
{
	const uint8_t *id = osd_objects_system_id(control->targets.objects);

	_Static_assert(OSD_CONTROL_STORE_ID == 2 * OSD_SYSTEM_ID_BYTES + 1, "two digits a byte");
	for (size_t i = 0; i < OSD_SYSTEM_ID_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return text;
}

/* False: it is another store, and the error was sent. */
static bool is_our_store(struct osd_control_request *request)
{
	char ours[OSD_CONTROL_STORE_ID], wanted[OSD_CONTROL_STORE_ID];

	if (!osd_control_text_of(request, "store", wanted, sizeof(wanted)))
		return false;
	if (strcmp(osd_control_store_id(request->control, ours), wanted) == 0)
		return true;
	return osd_control_fail(request, "bad-value", "this target serves the store %s", ours);
}

static void answer(struct osd_control_request *request, const char *name, bool value)
{
	struct osd_json json = osd_control_begin(request->control);

	osd_json_bool(&json, name, value);
	osd_control_send(request->control, request->peer, OSD_CONTROL_OK, request->serial, &json);
}

void osd_control_do_freeze(struct osd_control_request *request)
{
	struct osd_control *control = request->control;
	uint64_t wait_ms, freeze_ms, began = osd_monotonic_usec();
	enum osd_status status;

	if (!is_our_store(request) ||
	    !osd_control_number_of(request, "wait_ms", 1, WAIT_MOST_MS, &wait_ms) ||
	    !osd_control_number_of(request, "freeze_ms", 1, FREEZE_MOST_MS, &freeze_ms))
		return;
	status = osd_objects_freeze(control->targets.objects, wait_ms * 1000, freeze_ms * 1000);
	if (status != OSD_OK) {
		osd_control_fail(request, "failed", "%s",
				 status == OSD_E_BUSY
					 ? "the store is frozen already, or is too busy to be: try again"
					 : "the store cannot be frozen: its disk is full or fails");
		return;
	}
	control->freezer = request->peer;
	osd_info("control: the store is frozen for at most %" PRIu64 " ms, after %" PRIu64
		 " ms, by %s",
		 freeze_ms, (osd_monotonic_usec() - began) / 1000, request->peer->who);
	answer(request, "frozen", true);
}

void osd_control_do_thaw(struct osd_control_request *request)
{
	struct osd_control *control = request->control;
	bool lasted = control->freezer == request->peer &&
		      osd_objects_thaw(control->targets.objects);

	if (control->freezer == request->peer)
		control->freezer = NULL;
	osd_info("control: the store goes on%s",
		 lasted ? "" : "; it had thawed by itself: the backup took too long");
	answer(request, "lasted", lasted);
}

void osd_control_melt(struct osd_control *control, const struct osd_control_peer *peer)
{
	if (control->freezer != peer)
		return;
	control->freezer = NULL;
	osd_objects_thaw(control->targets.objects);
	osd_warning("control: the store goes on: %s has gone without THAW", peer->who);
}
