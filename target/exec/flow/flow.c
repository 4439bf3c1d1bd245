/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flow.c -- acceptance of a job: the jobs it waits for, and its members (flow.h). */
#include "exec/flow/flow.h"

enum osd_status osd_flow_prepare(struct osd_job *job, const struct osd_flow_request *request)
{
	enum osd_status status =
		osd_after_create(request->after, request->after_count, &job->after);

	if (status == OSD_OK && job->record.array.count)
		status = osd_array_create(job);
	if (status == OSD_OK && job->array)
		job->array->reuse_usec = request->reuse_usec;
	if (status == OSD_OK && job->array)
		status = osd_array_prepare(job->array, &request->ranges);
	return status;
}

void osd_flow_fill(struct osd_job *job, const struct osd_job_record *record)
{
	if (job->array)
		osd_array_fill(job->array, record);
}

void osd_flow_admitted(struct osd_job *job)
{
	osd_assert_held(&job->exec->lock);
	if (job->array)
		osd_array_admit(job->exec, job->array);
	if (job->after)
		osd_after_admitted(job->exec, job);
}
