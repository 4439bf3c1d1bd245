/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pass.c -- a script uses data that pass through functions (run.h).  Its proxy waits for them, and lends its slot
 * meanwhile: a stage may run in its place, also in a pool of one slot. */
#include "base/clock.h"
#include "exec/run/run.h"

#define AGAIN_USEC UINT64_C(20000)    /* after BUSY */
#define BUSY_USEC  UINT64_C(10000000) /* then the call fails */

struct passing {
	struct osd_run *run;
	bool cleans_up; /* it began after the job was asked to end */
	bool answered;	/* exec->lock: the step is over */
};

static void step_done(struct osd_exec_data *data)
{
	struct passing *passing = data->arg;
	struct osd_exec *exec = passing->run->exec;

	osd_lock(&exec->lock);
	passing->answered = true;
	pthread_cond_broadcast(&exec->changed);
	osd_unlock(&exec->lock);
}

static bool must_stop(const struct passing *passing)
{
	const struct osd_run *run = passing->run;
	const struct osd_exec *exec = run->exec;

	osd_assert_held(&exec->lock);
	return (run->job->end_reason && !passing->cleans_up) || run->sandbox->dead ||
	       exec->quiescing || exec->stopping;
}

/* exec->lock held, released meanwhile.  Waits for the answer to a step; aborts it if the script must stop. */
static void await_step(struct passing *passing, struct osd_exec_data *data)
{
	struct osd_exec *exec = passing->run->exec;
	bool aborted = false;

	while (!passing->answered) {
		if (aborted || !must_stop(passing)) {
			osd_cond_wait(&exec->changed, &exec->lock);
			continue;
		}
		aborted = true;
		osd_unlock(&exec->lock);
		exec->data_ops->abort(exec->data_ops->context, data);
		osd_lock(&exec->lock);
	}
}

/* exec->lock held, released meanwhile. */
static enum osd_status take_steps(struct passing *passing, struct osd_exec_data *data)
{
	struct osd_exec *exec = passing->run->exec;
	const struct osd_exec_data_ops *ops = exec->data_ops;
	enum osd_status status = OSD_PENDING;

	while (status == OSD_PENDING) {
		passing->answered = false;
		osd_unlock(&exec->lock);
		status = ops->step(ops->context, data);
		osd_lock(&exec->lock);
		if (status == OSD_PENDING)
			await_step(passing, data);
	}
	return status;
}

static void rest(struct osd_exec *exec)
{
	const struct timespec until = osd_timespec(osd_monotonic_usec() + AGAIN_USEC);

	osd_cond_timedwait(&exec->changed, &exec->lock, &until);
}

/* exec->lock held, released meanwhile.  A client would send the command again after BUSY. */
static enum osd_status use(struct passing *passing, struct osd_exec_data *data)
{
	struct osd_exec *exec = passing->run->exec;
	const uint64_t until = osd_monotonic_usec() + BUSY_USEC;
	enum osd_status status = OSD_E_BUSY;

	while (status == OSD_E_BUSY || status == OSD_E_QUEUE_FULL) {
		if (must_stop(passing))
			return OSD_E_TASK_ABORTED;
		if (osd_monotonic_usec() >= until)
			return status;
		if (exec->data_ops)
			status = take_steps(passing, data);
		if (status == OSD_E_BUSY || status == OSD_E_QUEUE_FULL)
			rest(exec);
	}
	return status;
}

enum osd_status osd_run_pass(void *arg, struct osd_exec_data *data)
{
	struct osd_run *run = arg;
	struct osd_exec *exec = run->exec;
	struct passing passing = {.run = run};
	enum osd_status status;

	data->principal = run->job->record.principal;
	data->done = step_done;
	data->arg = &passing;
	osd_lock(&exec->lock);
	passing.cleans_up = run->job->end_reason;
	exec->passing++;
	osd_pool_lend(run->job->pool);
	status = use(&passing, data);
	osd_pool_take_back(run->job->pool);
	exec->passing--;
	pthread_cond_broadcast(&exec->changed);
	osd_unlock(&exec->lock);
	return status;
}
