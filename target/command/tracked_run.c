/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tracked_run.c -- runs a tracked command: all its steps here, or with IMMED_TR the acceptance, after which
 * background.c does the steps (tracked.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "command/background_impl.h"
#include "object/txn_run.h"

struct acceptance {
	struct osd_tracked *tracked;
	const struct osd_background *background;
};

static enum osd_status accept_in(struct osd_txn *txn, void *arg)
{
	struct acceptance *acceptance = arg;
	enum osd_status status = osd_tracked_accept(acceptance->tracked, txn);

	return status == OSD_OK
		       ? osd_background_put(acceptance->background, acceptance->tracked, txn)
		       : status;
}

enum osd_status osd_tracked_undo(struct osd_tracked *failed, struct osd_background **ret_removal)
{
	OSD_CLEANUP(osd_background_dropp) struct osd_background *background = NULL;
	struct osd_tracked *removal;
	enum osd_status status =
		osd_background_removal(failed->ctx->backgrounds, failed->tracker, &background);

	if (status != OSD_OK)
		return status;
	removal = background->tracked;
	removal->tracker = failed->tracker;
	removal->incarnation = failed->incarnation;
	removal->background = removal->begun = removal->claimed = true;
	status = osd_txn_run(failed->ctx->objects, OSD_TXN_INTERNAL, accept_in,
			     &(struct acceptance){removal, background});
	if (status == OSD_OK)
		*ret_removal = OSD_STEAL(background);
	return status;
}

/* Called before the failure is answered.  Removes what the command made, if conflicts permit. */
static void leave_nothing(struct osd_tracked *tracked)
{
	OSD_CLEANUP(osd_background_dropp) struct osd_background *background = NULL;
	struct osd_tracked *removal;
	enum osd_status status = osd_tracked_undo(tracked, &background);

	if (status == OSD_OK) {
		removal = background->tracked;
		removal->unstoppable = true;
		do
			status = osd_tracked_step(removal);
		while (status == OSD_OK && !removal->state.done);
		removal->unstoppable = false;
		if (status == OSD_E_BUSY) {
			osd_background_start(OSD_STEAL(background), removal);
			return;
		}
	}
	if (status != OSD_OK && !osd_status_is_gone(status))
		osd_error("what a failed command made, collection 0x%" PRIx64 "/0x%" PRIx64
			  ", stays until the next start: %s",
			  tracked->tracker.partition_id, tracked->tracker.object_id,
			  osd_status_info(status)->meaning);
}

static enum osd_status run_here(struct osd_tracked *tracked)
{
	enum osd_status status;

	do {
		status = osd_tracked_step(tracked);
	} while (status == OSD_OK && !tracked->state.done);
	if (status == OSD_OK || !tracked->begun)
		return status;
	if (tracked->claimed && tracked->def->leaves_nothing) {
		leave_nothing(tracked);
		tracked->claimed = false;
	}
	osd_tracked_fail(tracked, status);
	return status;
}

/* From here on the command belongs to the background, and this context only answers. */
static enum osd_status run_on(struct osd_tracked *tracked)
{
	OSD_CLEANUP(osd_background_dropp) struct osd_background *background = NULL;
	enum osd_status status = osd_background_prepare(tracked->ctx, &background);

	if (status != OSD_OK)
		return status;
	tracked->background = true;
	status =
		osd_tracked_transact(tracked, accept_in, &(struct acceptance){tracked, background});
	if (status != OSD_OK)
		return status;
	tracked->state = tracked->next;
	osd_background_start(OSD_STEAL(background), tracked);
	return OSD_OK;
}

OSD_DEFINE_CLEANUP(struct osd_tracked *, osd_tracked_release)

enum osd_status osd_tracked_run(struct osd_command_context *ctx, const struct osd_tracked_def *def,
				struct osd_object_id tracker, uint16_t tracker_field)
{
	OSD_CLEANUP(osd_tracked_releasep) struct osd_tracked *tracked = calloc(1, sizeof(*tracked));

	if (!tracked)
		return OSD_E_NO_MEMORY;
	tracked->ctx = ctx;
	tracked->def = def;
	tracked->tracker = tracker;
	tracked->tracker_field = tracker_field;
	tracked->other_created_ms = ctx->request->security.other_created_ms;
	return ctx->request->decoded.immed_tr ? run_on(tracked) : run_here(tracked);
}
