/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rights_sweep.c -- ends jobs whose rights were revoked although they make no calls.  Such a job
 * may hold descriptors to which it has no right now (run.h). */
#include "base/alarm.h"
#include "base/util.h"
#include "exec/run/run.h"

/* False: the rights of this job could not be found out. */
static bool look_at(struct osd_exec *exec, struct osd_run *run)
{
	struct osd_session *session = &run->session;
	const struct osd_job_rights *rights = &session->rights;
	enum osd_status status = osd_rights_look_again(session, &run->policy_swept);
	bool ended = rights->limited && osd_rights_expired(session);

	if (status != OSD_E_PERMISSION && !ended)
		return status == OSD_OK;
	atomic_store(&session->revoked, true);
	osd_lock(&exec->lock);
	if (run->job->run == run)
		osd_exec_request_end(exec, run->job, OSD_REASON_REVOKED);
	osd_unlock(&exec->lock);
	return true;
}

bool osd_rights_sweep(struct osd_exec *exec)
{
	struct osd_run *runs[OSD_EXEC_SLOTS_MAX];
	size_t count = 0;
	bool done = true;

	osd_lock(&exec->lock);
	for (struct osd_sandbox *sandbox = exec->sandboxes->list; sandbox;
	     sandbox = sandbox->next) {
		struct osd_run *run = sandbox->user;

		if (run && count < OSD_ARRAY_SIZE(runs))
			runs[count++] = osd_run_ref(run);
	}
	osd_unlock(&exec->lock);
	for (size_t i = 0; i < count; i++)
		done &= look_at(exec, runs[i]);
	osd_lock(&exec->lock);
	for (size_t i = 0; i < count; i++)
		osd_run_unref(runs[i]);
	osd_unlock(&exec->lock);
	return done;
}

void osd_rights_policy_changed(void *arg)
{
	struct osd_exec *exec = arg;

	if (!atomic_exchange(&exec->runs->policy_changed, true))
		osd_wake(exec->output_wake);
}
