/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dispatch_impl.h -- shared by the files of the dispatcher: its state, and the interface between
 * prepare.c, which checks, and dispatch.c, which executes. */
#ifndef OSD_COMMAND_DISPATCH_IMPL_H
#define OSD_COMMAND_DISPATCH_IMPL_H

#include "command/authorise.h"
#include "command/background.h"
#include "command/copies.h"
#include "command/dispatch.h"
#include "command/gate.h"
#include "wire/continuation.h"

struct osd_dispatcher {
	struct osd_dispatcher_config config;
	struct osd_checker checker;
	struct osd_gate gate;
	struct osd_backgrounds *backgrounds; /* owned */
	struct osd_copies copies;
};

/* The parts of a command, checked before it runs: the dispatcher's own copies. */
struct osd_loaded {
	uint8_t *copy; /* what continuation lies in; owned */
	struct osd_continuation continuation;
};

void osd_loaded_release(struct osd_loaded *loaded);

/* Resets what an earlier dispatch or the front end left in the request. */
void osd_prepare_reset(const struct osd_dispatcher *dispatcher, struct osd_request *request);
/* Fills request->decoded, ->def and ->object; on failure as far as the CDB goes. */
enum osd_status osd_prepare_decode(struct osd_request *request);
/* Does all checks that are possible before the command function runs.  Takes the decoded CDB and
 * the outcome of the decoding.  nowait: OSD_E_WOULD_BLOCK instead of waiting.  Afterwards, whatever
 * the outcome, loaded needs osd_loaded_release and request->attributes needs
 * osd_attributes_free. */
enum osd_status osd_prepare(struct osd_dispatcher *dispatcher, struct osd_request *request,
			    enum osd_status decoded, bool nowait, struct osd_loaded *loaded);
/* The same for a background command, in two parts.  A command that was accepted keeps its
 * permissions.  Nothing is verified again, because the keys may have changed since. */
void osd_prepare_readmit(struct osd_request *request);
enum osd_status osd_prepare_load(struct osd_dispatcher *dispatcher, struct osd_request *request,
				 bool nowait, struct osd_loaded *loaded);

#endif
