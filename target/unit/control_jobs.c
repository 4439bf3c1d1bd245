/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_jobs.c -- JOBS of the control socket: jobs at work, waiting, and ended lately. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "unit/control_request.h"
#include "exec/exec.h"

static void write_job(const struct osd_recent_job *job, struct osd_json *json)
{
	char id[48];

	snprintf(id, sizeof(id), "0x%" PRIx64 "/0x%" PRIx64, job->id.partition_id,
		 job->id.object_id);
	osd_json_open(json, NULL, '{');
	osd_json_text(json, "id", id);
	osd_json_text(json, "name", job->name);
	osd_json_text(json, "state", osd_job_state_name(job->state));
	osd_json_number(json, "reason", job->reason);
	osd_json_text(json, "why", job->reason ? osd_job_reason_info(job->reason)->label : "");
	osd_json_text(json, "principal", job->principal);
	osd_json_text(json, "pool", job->pool[0] ? job->pool : "default");
	osd_json_number(json, "members", job->members);
	osd_json_number(json, "submitted_ms", job->submitted_msec);
	osd_json_number(json, "started_ms", job->started_msec);
	osd_json_number(json, "ended_ms", job->ended_msec);
	osd_json_close(json, '}');
}

void osd_control_do_jobs(struct osd_control_request *request)
{
	struct osd_control *control = request->control;
	OSD_CLEANUP_FREE struct osd_recent_job *jobs =
		calloc(OSD_RECENT_ALIVE + OSD_RECENT_ENDED, sizeof(*jobs));
	struct osd_json json;
	unsigned count;

	if (!jobs) {
		osd_control_fail(request, "failed", "no memory for a list of jobs");
		return;
	}
	count = osd_exec_recent(control->targets.exec, jobs);
	json = osd_control_begin(control);
	osd_json_open(&json, "jobs", '[');
	for (unsigned i = 0; i < count; i++)
		write_job(&jobs[i], &json);
	osd_json_close(&json, ']');
	osd_control_send(control, request->peer, OSD_CONTROL_JOBS_ARE, request->serial, &json);
}
