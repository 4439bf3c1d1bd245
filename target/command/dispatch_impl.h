/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dispatch_impl.h -- what the files of the dispatcher share: its state, and how dispatch.c, which
 * executes, asks prepare.c, which checks. */
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

/* What a command consists of, checked before acting: the dispatcher's own copies. */
struct osd_loaded {
	uint8_t *copy; /* what continuation lies in; owned */
	struct osd_continuation continuation;
};

void osd_loaded_release(struct osd_loaded *loaded);

/* What an earlier dispatch or the front end left in the request is forgotten. */
void osd_prepare_reset(const struct osd_dispatcher *dispatcher, struct osd_request *request);
/* Fills request->decoded, ->def and ->object; on failure as far as the CDB goes. */
enum osd_status osd_prepare_decode(struct osd_request *request);
/* From the CDB decoded, with that outcome, to the command function: everything that can be checked
 * before acting.  nowait: OSD_E_WOULD_BLOCK where it would wait.  loaded needs osd_loaded_release
 * afterwards, whatever the outcome; request->attributes needs osd_attributes_free. */
enum osd_status osd_prepare(struct osd_dispatcher *dispatcher, struct osd_request *request,
			    enum osd_status decoded, bool nowait, struct osd_loaded *loaded);
/* The same in the background, in two: a command that was accepted before is allowed what it was allowed
 * then, and nothing is verified again: the keys may have changed since. */
void osd_prepare_readmit(struct osd_request *request);
enum osd_status osd_prepare_load(struct osd_dispatcher *dispatcher, struct osd_request *request,
				 bool nowait, struct osd_loaded *loaded);

#endif
