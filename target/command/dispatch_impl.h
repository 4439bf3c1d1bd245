/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dispatch_impl.h -- shared by the files of the dispatcher: its state, and the interface between
 * prepare.c, which checks, and dispatch.c, which executes. */
#ifndef OSD_COMMAND_DISPATCH_IMPL_H
#define OSD_COMMAND_DISPATCH_IMPL_H

#include "command/authorise.h"
#include "command/background.h"
#include "command/copies.h"
#include "command/dispatch.h"
#include "command/flights.h"
#include "command/gate.h"
#include "exec/exec.h"
#include "wire/continuation.h"

struct osd_dispatcher {
	struct osd_dispatcher_config config;
	struct osd_checker checker;
	struct osd_gate gate;
	struct osd_backgrounds *backgrounds; /* owned */
	struct osd_copies copies;
	struct osd_flights flights;
	struct osd_exec_data_ops script_data;
};

/* Resets the results of the command, which a repeated or failed attempt must not leave behind. */
void osd_prepare_attempt(struct osd_request *request);
/* Resets what an earlier dispatch or the front end left in the request. */
void osd_prepare_reset(const struct osd_dispatcher *dispatcher, struct osd_request *request);
/* Fills request->decoded, ->def and ->object; on failure as far as the CDB goes.  Makes of ctx what its release needs. */
enum osd_status osd_prepare_decode(struct osd_request *request, struct osd_command_context *ctx);
/* Does all checks that are possible before the command function runs.  Takes the decoded CDB and
 * the outcome of the decoding, and makes the context.  nowait: OSD_E_WOULD_BLOCK instead of waiting.
 * Afterwards, whatever the outcome, ctx needs osd_context_release and request->attributes needs
 * osd_attributes_free. */
enum osd_status osd_prepare(struct osd_dispatcher *dispatcher, struct osd_request *request,
			    enum osd_status decoded, bool nowait, struct osd_command_context *ctx);
/* The same for a background command, whose ctx is zeroed.  A command that was accepted keeps its
 * permissions.  Nothing is verified again, because the keys may have changed since. */
enum osd_status osd_prepare_again(struct osd_dispatcher *dispatcher, struct osd_request *request,
				  struct osd_command_context *ctx);

#endif
