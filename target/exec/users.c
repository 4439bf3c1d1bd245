/* SPDX-License-Identifier: GPL-2.0-or-later */
/* users.c -- the calls of functions that are under way: accepted, and not ended (exec.h). */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "exec/target.h"
#include "function/function.h"

/* Of a function, or (object 0) of all in a partition. */
static bool calls(const struct osd_job *job, struct osd_object_id id)
{
	const struct osd_object_id *function = &job->record.function.id;

	/* The array stands for its members. */
	return function->object_id && !(job->record.flags & OSD_JOB_MEMBER) &&
	       function->partition_id == id.partition_id &&
	       (!id.object_id || function->object_id == id.object_id);
}

bool osd_exec_uses_function(struct osd_exec *exec, struct osd_object_id id,
			    struct osd_object_id *ret_job)
{
	const struct osd_job *job = NULL;
	const struct osd_job *found = NULL; /* one with a record if there is one */

	*ret_job = (struct osd_object_id){0, 0};
	if (!exec->functions || !osd_function_is_partition(id.partition_id))
		return false;
	osd_lock(&exec->lock);
	while ((!found || found->record.flags & OSD_JOB_PLAIN) &&
	       (job = osd_exec_next_job(exec, job)))
		if (calls(job, id) &&
		    osd_function_is_active(exec->functions, job->record.function.id))
			found = job;
	if (found && !(found->record.flags & OSD_JOB_PLAIN))
		*ret_job = found->record.id;
	osd_unlock(&exec->lock);
	return found;
}

/* Of one job.  Returns its length. */
static size_t put_line(const struct osd_job_record *record, char *line, size_t size)
{
	if (record->flags & OSD_JOB_PLAIN)
		return (size_t)snprintf(line, size, "call %s\n", record->principal);
	return (size_t)snprintf(line, size, "0x%llx/0x%llx %s\n",
				(unsigned long long)record->id.partition_id,
				(unsigned long long)record->id.object_id, record->principal);
}

size_t osd_exec_list_users(void *arg, struct osd_object_id id, char *text, size_t capacity)
{
	char line[OSD_JOB_PRINCIPAL_MAX + 64];
	const struct osd_job *job = NULL;
	struct osd_exec *exec = arg;
	size_t used = 0, length;

	osd_lock(&exec->lock);
	while ((job = osd_exec_next_job(exec, job))) {
		if (!calls(job, id))
			continue;
		length = put_line(&job->record, line, sizeof(line));
		if (length > capacity - used)
			break;
		memcpy(text + used, line, length);
		used += length;
	}
	osd_unlock(&exec->lock);
	return used;
}
