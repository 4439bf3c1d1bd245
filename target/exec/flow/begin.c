/* SPDX-License-Identifier: GPL-2.0-or-later */
/* begin.c -- jobs that begin at a time of day (EXEC parameter BEGIN).  They are HELD, and this file
 * releases them at that time, as a client would.  A client's release before that time starts them
 * at once.  Either release clears the begin time in the record.  The time is that of the wall
 * clock.  Each sweep checks it: at the earliest begin, and at least once a minute, so that it
 * notices when the clock was set. */
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/flow/flow.h"

#define BEGIN_AT_ONCE 64
#define AGAIN_MSEC    500

struct due {
	struct osd_exec *exec;
	uint64_t now_msec;
	struct osd_object_id ids[BEGIN_AT_ONCE];
	size_t count;
};

static bool look_at(void *arg, struct osd_job_node *node)
{
	const struct osd_job *job = osd_container_of(node, struct osd_job, node);
	struct due *due = arg;

	if (osd_job_begins_later(job) && job->record.begin_msec <= due->now_msec &&
	    due->count < BEGIN_AT_ONCE)
		due->ids[due->count++] = job->record.id;
	else
		osd_exec_note_begin(due->exec, job);
	return true;
}

struct release {
	struct osd_exec *exec;
	struct osd_object_id id;
};

static enum osd_status release(struct osd_txn *txn, void *arg)
{
	const struct release *release = arg;

	return osd_job_control(release->exec, txn, release->id, OSD_CONTROL_RELEASE);
}

void osd_flow_begin_due(struct osd_exec *exec)
{
	struct due due = {.exec = exec, .now_msec = osd_wall_msec()};
	bool failed = false;

	do {
		osd_lock(&exec->lock);
		due.count = 0;
		if (exec->begin_msec <= due.now_msec) {
			exec->begin_msec = UINT64_MAX;
			osd_job_table_each(&exec->table, look_at, &due);
		} else if (exec->begin_msec != UINT64_MAX) {
			osd_exec_sweep_by(exec, exec->begin_msec);
		}
		osd_unlock(&exec->lock);
		for (size_t i = 0; i < due.count; i++) {
			struct release one = {exec, due.ids[i]};
			enum osd_status status =
				osd_txn_run(exec->objects, OSD_TXN_INTERNAL, release, &one);

			if (status == OSD_OK)
				continue;
			osd_warning("job %#llx/%#llx cannot begin now: %s; tried again",
				    (unsigned long long)one.id.partition_id,
				    (unsigned long long)one.id.object_id,
				    osd_status_info(status)->name);
			osd_lock(&exec->lock);
			exec->begin_msec = OSD_MIN(exec->begin_msec, due.now_msec + AGAIN_MSEC);
			osd_exec_sweep_by(exec, exec->begin_msec);
			osd_unlock(&exec->lock);
			failed = true;
		}
	} while (due.count == BEGIN_AT_ONCE && !failed);
}
