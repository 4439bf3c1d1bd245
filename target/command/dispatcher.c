/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dispatcher.c -- a dispatcher from open to close, and what it passes on to exec/ and to commands in the background
 * (dispatch.h). */
#include <stdlib.h>
#include <string.h>

#include "command/dispatch_impl.h"
#include "command/table.h"
#include "exec/exec.h"

void osd_dispatch_expect(struct osd_dispatcher *dispatcher)
{
	if (dispatcher->config.exec)
		osd_exec_expect_call(dispatcher->config.exec);
}

void osd_dispatch_aborted(struct osd_dispatcher *dispatcher)
{
	if (dispatcher->config.exec)
		osd_exec_look_at_aborted(dispatcher->config.exec);
	osd_copies_look_at_aborted(dispatcher->config.copies);
	osd_flights_look_at_aborted(&dispatcher->flights);
}

/* ---- the background -------------------------------------------------------------------------- */

static enum osd_status rebuild(void *dispatcher, struct osd_request *request,
			       struct osd_command_context *ctx)
{
	osd_prepare_reset(dispatcher, request);
	return osd_prepare_again(dispatcher, request, ctx);
}

void osd_dispatch_step_in(void *arg)
{
	struct osd_dispatcher *dispatcher = arg;

	osd_gate_return(&dispatcher->gate);
}

void osd_dispatch_step_out(void *arg)
{
	struct osd_dispatcher *dispatcher = arg;

	osd_gate_leave(&dispatcher->gate);
}

enum osd_status osd_dispatch_recover(struct osd_dispatcher *dispatcher)
{
	return osd_backgrounds_recover(dispatcher->backgrounds);
}

void osd_dispatch_stop_background(struct osd_dispatcher *dispatcher)
{
	osd_backgrounds_stop(dispatcher->backgrounds);
}

/* ---- open and close -------------------------------------------------------------------------- */

enum osd_status osd_dispatcher_create(const struct osd_dispatcher_config *config,
				      struct osd_dispatcher **ret_dispatcher)
{
	static const struct osd_background_ops ops = {osd_command_find, rebuild,
						   osd_dispatch_step_in,
						   osd_dispatch_step_out};
	struct osd_dispatcher *dispatcher = calloc(1, sizeof(*dispatcher));

	if (!dispatcher)
		return OSD_E_NO_MEMORY;
	dispatcher->config = *config;
	if (osd_backgrounds_create(config->objects, &ops, dispatcher, &dispatcher->backgrounds) !=
	    OSD_OK) {
		free(dispatcher);
		return OSD_E_NO_MEMORY;
	}
	dispatcher->checker =
		(struct osd_checker){.keyring = config->keyring,
				     .nonces = config->nonces,
				     .system_id = osd_objects_system_id(config->objects)};
	memcpy(dispatcher->checker.token, config->token, sizeof(config->token));
	osd_gate_init(&dispatcher->gate);
	osd_flights_init(&dispatcher->flights);
	*ret_dispatcher = dispatcher;
	return OSD_OK;
}

void osd_dispatcher_free(struct osd_dispatcher *dispatcher)
{
	if (!dispatcher)
		return;
	osd_backgrounds_free(dispatcher->backgrounds);
	osd_gate_release(&dispatcher->gate);
	osd_flights_release(&dispatcher->flights);
	free(dispatcher);
}
