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

/* ---- whether there is one ------------------------------------------------------------------------ */

struct search {
	struct osd_exec *exec;
	struct osd_object_id id;
	const struct osd_job *found; /* borrowed: exec->lock is held.  One with a record if there is one */
};

static bool is_user(void *arg, struct osd_job_node *node)
{
	const struct osd_job *job = osd_container_of(node, struct osd_job, node);
	struct search *search = arg;

	if (calls(job, search->id) &&
	    (!search->found || search->found->record.flags & OSD_JOB_PLAIN) &&
	    osd_function_is_active(search->exec->functions, job->record.function.id))
		search->found = job;
	return true;
}

bool osd_exec_uses_function(struct osd_exec *exec, struct osd_object_id id,
			    struct osd_object_id *ret_job)
{
	struct search search = {.exec = exec, .id = id};

	*ret_job = (struct osd_object_id){0, 0};
	if (!exec->functions || !osd_function_is_partition(id.partition_id))
		return false;
	osd_lock(&exec->lock);
	osd_job_table_each(&exec->table, is_user, &search);
	if (search.found && !(search.found->record.flags & OSD_JOB_PLAIN))
		*ret_job = search.found->record.id;
	osd_unlock(&exec->lock);
	return search.found;
}

/* ---- all of them, for people --------------------------------------------------------------------- */

struct list {
	struct osd_object_id id;
	char *text;
	size_t capacity, used;
};

static bool add_line(void *arg, struct osd_job_node *node)
{
	const struct osd_job *job = osd_container_of(node, struct osd_job, node);
	const struct osd_job_record *record = &job->record;
	char line[OSD_JOB_PRINCIPAL_MAX + 64];
	struct list *list = arg;
	int length;

	if (!calls(job, list->id))
		return true;
	if (record->flags & OSD_JOB_PLAIN)
		length = snprintf(line, sizeof(line), "call %s\n", record->principal);
	else
		length = snprintf(line, sizeof(line), "0x%llx/0x%llx %s\n",
				  (unsigned long long)record->id.partition_id,
				  (unsigned long long)record->id.object_id, record->principal);
	if (length < 0 || (size_t)length > list->capacity - list->used)
		return false;
	memcpy(list->text + list->used, line, (size_t)length);
	list->used += (size_t)length;
	return true;
}

size_t osd_exec_list_users(void *arg, struct osd_object_id id, char *text, size_t capacity)
{
	struct list list = {.id = id, .text = text, .capacity = capacity};
	struct osd_exec *exec = arg;

	osd_lock(&exec->lock);
	osd_job_table_each(&exec->table, add_line, &list);
	osd_unlock(&exec->lock);
	return list.used;
}
