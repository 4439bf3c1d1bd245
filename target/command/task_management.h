/* SPDX-License-Identifier: GPL-2.0-or-later */
/* task_management.h -- task management functions over the commands of one logical unit, as PERFORM TASK
 * MANAGEMENT FUNCTION names them (osd2-wire 3.18).  The unit does the work; a command function
 * reaches it through ctx->manage_tasks.
 *
 * A command under way is a task until its done() is called: queued, running or parked.  A command
 * that is aborted ends with SAM status TASK ABORTED at its next bounded step (what it has committed
 * stays), or as it would have ended if it has none left.  Background commands (command/background.h)
 * have been answered and are tasks no more. */
#ifndef OSD_COMMAND_TASK_MANAGEMENT_H
#define OSD_COMMAND_TASK_MANAGEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct osd_request;

enum osd_task_function {
	OSD_TASK_ABORT = 0x01,       /* the command of the same nexus with that tag */
	OSD_TASK_ABORT_SET = 0x02,   /* all commands of the same nexus */
	OSD_TASK_CLEAR_SET = 0x04,   /* all commands of all nexuses */
	OSD_TASK_LU_RESET = 0x08,    /* the same; no unit attention: that is the transport's */
	OSD_TASK_NEXUS_RESET = 0x10, /* rejected: nexuses are the transport's */
	OSD_TASK_CLEAR_ACA = 0x40,   /* rejected: there is no ACA */
	OSD_TASK_QUERY = 0x80,	     /* is the command of the same nexus with that tag there? */
	OSD_TASK_QUERY_SET = 0x81,   /* is any command of the same nexus there? */
	OSD_TASK_QUERY_UA = 0x82,    /* rejected: unit attentions are the transport's */
};

enum osd_task_response {
	OSD_TASK_COMPLETE = 0x00,  /* aborted; queries: not there */
	OSD_TASK_SUCCEEDED = 0x05, /* queries: there */
	OSD_TASK_REJECTED = 0x08,  /* function not supported */
};

/* The asker itself is never covered.  *ret_response is set in any case.  OSD_OK: that was all.
 * OSD_PENDING: commands are ending; the command function returns it too (its row says
 * OSD_CMD_MAY_PARK) after filling in its command data, and its request goes on when the last of
 * them has been answered; it is not resumed by the command function. */
typedef enum osd_status osd_manage_tasks_fn(struct osd_request *asker, uint8_t function,
					    uint64_t tag, enum osd_task_response *ret_response);

/* Whether a task management function covers the request: long commands look between bounded steps
 * and return OSD_E_TASK_ABORTED. */
bool osd_command_aborted(const struct osd_request *request);

/* For tests: where a long command (but LIST, by which tests look around) looks, it also waits as long
 * as the file of the option hold exists and nobody aborts it.  A file of that name with .step lets one
 * command do one step, and is gone then. */
struct osd_command_context;
void osd_command_hold(const struct osd_command_context *ctx);
/* Both, for walks of the object layer: context is the command's. */
bool osd_command_stops(void *context);

#endif
