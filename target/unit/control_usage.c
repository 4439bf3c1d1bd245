/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_usage.c -- USAGE of the control socket: the use of each principal since the target
 * started, in parts. */
#include "unit/control_request.h"
#include "exec/admin.h"

#define ROWS_MOST 32 /* a part; a name may take 3 KiB of text */
#define NAME_MAX_ 512

struct part {
	struct osd_json json;
	unsigned rows;
};

static bool write_row(void *arg, const struct osd_principal_usage *usage)
{
	struct part *part = arg;
	struct osd_json *json = &part->json;

	osd_json_open(json, NULL, '{');
	osd_json_text(json, "name", usage->name);
	osd_json_number(json, "weight", usage->share.weight);
	osd_json_number(json, "queue", usage->share.queue_max);
	osd_json_number(json, "at_once", usage->share.at_once);
	osd_json_number(json, "queued", usage->queued);
	osd_json_number(json, "running", usage->running);
	osd_json_number(json, "accepted", usage->accepted);
	osd_json_number(json, "finished", usage->finished);
	osd_json_number(json, "refused", usage->refused);
	osd_json_usec(json, "queue_seconds", usage->queue_usec);
	osd_json_usec(json, "run_seconds", usage->run_usec);
	osd_json_usec(json, "cpu_seconds", usage->cpu_usec);
	osd_json_number(json, "bytes_read", usage->bytes_read);
	osd_json_number(json, "bytes_written", usage->bytes_written);
	osd_json_number(json, "calls", usage->calls);
	osd_json_close(json, '}');
	return ++part->rows < ROWS_MOST;
}

void osd_control_do_usage(struct osd_control_request *request)
{
	struct osd_control *control = request->control;
	char after[NAME_MAX_] = "";
	struct part part;

	if (osd_control_find(request, "after") &&
	    !osd_control_text_of(request, "after", after, sizeof(after)))
		return;
	part = (struct part){.json = osd_control_begin(control)};
	osd_json_open(&part.json, "principals", '[');
	osd_exec_each_usage(control->targets.exec, after[0] ? after : NULL, write_row, &part);
	osd_json_close(&part.json, ']');
	osd_json_bool(&part.json, "more", part.rows == ROWS_MOST);
	osd_control_send(control, request->peer, OSD_CONTROL_USAGE_IS, request->serial, &part.json);
}
