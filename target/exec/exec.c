/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec.c -- opening and closing: joins the rooms of exec/ (target.h).  Each room gets its part, and
 * the functions of the rooms above that it calls. */
#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/util.h"
#include "exec/target.h"
#include "function/function.h"

/* ---- opening and closing --------------------------------------------------------------------- */

static void init_locks(struct osd_target *target)
{
	osd_lock_init(&target->exec.lock, OSD_RANK_EXEC);
	osd_flow_init(&target->flow);
	osd_cond_init(&target->runs.work);
	osd_cond_init(&target->exec.changed);
}

bool osd_exec_has_processors(struct osd_exec *exec, unsigned count)
{
	bool has;

	osd_lock(&exec->lock);
	has = exec->running_count + count <= exec->pools->processors;
	osd_unlock(&exec->lock);
	return has;
}

static enum osd_status make_poll(int *ret_epoll, int *ret_wake)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = OSD_EVENT_WAKE};

	*ret_epoll = epoll_create1(EPOLL_CLOEXEC);
	*ret_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (*ret_epoll < 0 || *ret_wake < 0 ||
	    epoll_ctl(*ret_epoll, EPOLL_CTL_ADD, *ret_wake, &event) < 0)
		return OSD_E_NO_MEMORY;
	return OSD_OK;
}

static enum osd_status copy_config(struct osd_target *target, const struct osd_exec_config *config)
{
	struct osd_exec_config *own = &target->config;

	*own = *config;
	own->isolation = strdup(config->isolation ? config->isolation : "full");
	own->sandboxd = config->sandboxd ? strdup(config->sandboxd) : NULL;
	own->pools = config->pools ? strdup(config->pools) : NULL;
	if (!own->isolation || (config->sandboxd && !own->sandboxd) ||
	    (config->pools && !own->pools))
		return OSD_E_NO_MEMORY;
	return OSD_OK;
}

static enum osd_status start_threads(struct osd_target *target)
{
	const struct osd_exec_config *config = &target->config;
	struct osd_exec *exec = &target->exec;

	if (config->turn_usec)
		target->turns = osd_script_turns_start(config->turn_usec, config->commands_come,
						       config->context);
	if (!osd_thread_start(&target->monitor_thread, "iosd-monitor", osd_monitor_main, exec))
		return OSD_E_NO_MEMORY;
	target->monitor_started = true;
	if (!osd_thread_start(&target->output_thread, "iosd-output", osd_output_main, exec))
		return OSD_E_NO_MEMORY;
	target->output_started = true;
	osd_flow_start(&target->flow);
	return osd_proxies_start(exec) ? OSD_OK : OSD_E_NO_MEMORY;
}

/* ---- the rooms, from the lowest up ----------------------------------------------------------- */

/* Of a job or of a plain call. */
static void function_called(struct osd_exec *exec, const struct osd_job *job,
			    const struct osd_job_record *record,
			    const struct osd_exec_outcome *outcome)
{
	const bool failed = outcome && outcome->form == OSD_RESULT_REPORT;
	const struct osd_function_call call = {
		.id = record->function.id,
		.sha256 = record->code_sha256,
		.recorded = !outcome,
		.signer = record->function.signer,
		.reason = record->state == OSD_STATE_COMPLETED ? 0 : record->reason,
		.ended_msec = record->ended_msec,
		.method = record->function.method,
		.report = failed ? outcome->result : NULL,
		.report_length = failed ? outcome->result_length : 0,
		.audience = job->audience,
	};

	osd_function_called(exec->functions, &call);
}

static void job_ended(struct osd_exec *exec, const struct osd_job *job,
		      const struct osd_job_record *record, const struct osd_exec_outcome *outcome)
{
	if (exec->functions && record->function.id.object_id && !(record->flags & OSD_JOB_ARRAY))
		function_called(exec, job, record, outcome);
	if (!(record->flags & (OSD_JOB_MEMBER | OSD_JOB_PLAIN)))
		osd_recent_ended(exec->recent, record);
	osd_figures_ended(exec, job, record);
	osd_remember(exec, record);
}

static void set_up_jobs(struct osd_target *target)
{
	static const struct osd_exec_ops ops = {
		.kind_of = osd_flow_kind_of, .ended = job_ended, .answer = osd_remembered_answer};
	struct osd_exec *exec = &target->exec;

	exec->ops = &ops;
	exec->objects = target->config.objects;
	exec->keyring = target->config.keyring;
	exec->functions = target->config.functions;
	osd_stored_init(&exec->stored, target->config.stored_principal
					       ? target->config.stored_principal
					       : osd_exec_limits[OSD_LIMIT_STORED].standard);
}

static void sandbox_ready(void *exec)
{
	osd_proxies_call(exec);
}

static enum osd_status set_up_sandboxes(struct osd_target *target)
{
	static const struct osd_sandbox_ops ops = {
		.ready = sandbox_ready,
		.work_of = osd_run_work_of,
		.grace_of = osd_run_grace_of,
		.out_of_time = osd_run_out_of_time,
		.news = osd_pool_news,
		.rotated = osd_pool_rotated,
		.unserved = osd_pools_unserved,
	};
	struct osd_sandboxes *sandboxes = &target->sandboxes;
	struct osd_exec *exec = &target->exec;
	enum osd_status status = make_poll(&sandboxes->watch_epoll, &exec->monitor.wake);

	if (status == OSD_OK)
		status = make_poll(&sandboxes->pipes_epoll, &exec->output_wake);
	sandboxes->lock = &exec->lock;
	sandboxes->changed = &exec->changed;
	sandboxes->alarm = &exec->monitor;
	sandboxes->path = target->config.sandboxd;
	sandboxes->demanded = target->config.isolation;
	sandboxes->ops = &ops;
	sandboxes->arg = exec;
	osd_sandboxes_init(sandboxes);
	return status;
}

static enum osd_status open_pools(struct osd_target *target, char message[256])
{
	OSD_CLEANUP(osd_pool_table_release) struct osd_pool_table table = {0};
	const struct osd_exec_config *config = &target->config;
	const long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct osd_pools *pools = &target->pools;
	enum osd_status status;

	pools->file = config->pools;
	pools->slots = config->slots ? config->slots : (unsigned)OSD_MAX(processors, 1L);
	pools->slots = OSD_MIN(pools->slots, OSD_EXEC_SLOTS_MAX);
	pools->reuse = config->reuse;
	pools->queue_principal = config->queue_principal
					 ? config->queue_principal
					 : osd_exec_limits[OSD_LIMIT_QUEUE_PRINCIPAL].standard;
	pools->work = osd_proxies_call;
	pools->processors = osd_thread_processors();
	pools->jobs_wait = config->jobs_wait;
	pools->context = config->context;
	status = osd_pool_table_load(pools->file, pools->slots, pools->reuse, message, &table);
	return status == OSD_OK ? osd_pools_open(&target->exec, &table) : status;
}

static void set_up_runs(struct osd_target *target)
{
	const struct osd_exec_config *config = &target->config;
	struct osd_runs *runs = &target->runs;

	runs->serve = osd_proxy_work;
	/* Calls of scripts leave half of the processors to commands. */
	osd_call_gate_init(&runs->gate, OSD_MAX(1u, osd_thread_processors() / 2),
			   config->commands_queued, config->context);
	runs->host = (struct osd_session_host){
		.exec = &target->exec,
		.keyring = config->keyring,
		.functions = config->functions,
		.calls = &runs->calls,
		.hold_object = config->hold_object,
		.release_object = config->release_object,
		.context = config->context,
		.owner_in = osd_exec_owner_in,
		.check_partition = osd_exec_check_partition,
		.partition_made = osd_exec_partition_made,
		.collection_removed = osd_exec_collection_removed,
	};
}

static enum osd_status open_parts(struct osd_target *target, const struct osd_exec_config *config,
				  char message[256])
{
	enum osd_status status = copy_config(target, config);
	struct osd_exec *exec = &target->exec;

	set_up_jobs(target);
	set_up_runs(target);
	if (status == OSD_OK)
		status = set_up_sandboxes(target);
	if (status == OSD_OK && !osd_remembered_init(target))
		status = OSD_E_NO_MEMORY;
	if (status == OSD_OK)
		status = osd_job_table_init(&exec->table);
	if (status == OSD_OK)
		status = osd_job_table_init(&target->flow.awaited);
	if (status == OSD_OK)
		status = open_pools(target, message);
	if (status != OSD_OK)
		return status;
	osd_tell_add_pages(exec, target->pages);
	/* Before recovery: watchers may be set only while no transaction is open. */
	osd_objects_watch_policies(exec->objects, osd_rights_policy_changed, exec);
	osd_objects_watch_removals(exec->objects, osd_exec_removed, exec);
	status = osd_exec_recover(exec);
	return status == OSD_OK ? start_threads(target) : status;
}

static void join_parts(struct osd_target *target)
{
	struct osd_exec *exec = &target->exec;

	exec->sandboxes = &target->sandboxes;
	exec->pools = &target->pools;
	exec->runs = &target->runs;
	exec->flow = &target->flow;
	exec->recent = &target->recent;
	target->flow.exec = exec;
	target->sandboxes.fd = target->sandboxes.watch_epoll = target->sandboxes.pipes_epoll = -1;
	exec->monitor.wake = exec->output_wake = -1;
}

enum osd_status osd_exec_open(const struct osd_exec_config *config, char message[256],
			      struct osd_exec **ret_exec)
{
	struct osd_target *target = calloc(1, sizeof(*target));
	struct osd_exec *exec;
	enum osd_status status;

	if (!target)
		return OSD_E_NO_MEMORY;
	exec = &target->exec;
	join_parts(target);
	exec->wait_places = OSD_PLACES(osd_exec_limits[OSD_LIMIT_SYNC_WAITS].maximum);
	exec->monitor.usec = OSD_NEVER;
	exec->idle_msec = UINT64_MAX;
	exec->begin_msec = UINT64_MAX;
	exec->opened_usec = osd_monotonic_usec();
	init_locks(target);
	message[0] = '\0';
	status = open_parts(target, config, message);
	if (status != OSD_OK) {
		if (!message[0])
			snprintf(message, 256, "cannot start the execution of jobs: %s",
				 osd_status_info(status)->meaning);
		osd_exec_close(exec);
		return status;
	}
	*ret_exec = exec;
	return OSD_OK;
}

/* ---- commands that wait ------------------------------------------------------------------- */

void osd_exec_look_at_aborted(struct osd_exec *exec)
{
	osd_lock(&exec->lock);
	if (exec->waits)
		osd_alarm_by(&exec->monitor, 0);
	osd_unlock(&exec->lock);
}

/* The sandbox's processor needs longest to wake up if it has slept.  So it wakes up while the command is checked. */
void osd_exec_expect_call(struct osd_exec *exec)
{
	osd_lock(&exec->lock);
	if (exec->running_count == 0)
		osd_sandbox_rouse(exec->sandboxes);
	osd_unlock(&exec->lock);
}

void osd_exec_set_data_ops(struct osd_exec *exec, const struct osd_exec_data_ops *ops)
{
	osd_lock(&exec->lock);
	/* Jobs of the last run may have started already, and wait for these functions. */
	exec->data_ops = ops;
	pthread_cond_broadcast(&exec->changed);
	osd_unlock(&exec->lock);
}

/* A plain call ends with the target, and a job goes on. */
static struct osd_exec_outcome outcome_at_close(const struct osd_exec_wait *wait)
{
	struct osd_exec_outcome outcome = {.status = OSD_E_STILL_RUNNING};

	if (wait->plain) {
		outcome.reason = OSD_REASON_TARGET_RESTARTED;
		outcome.status = osd_job_reason_status(outcome.reason);
		outcome.form = OSD_RESULT_REPORT;
	}
	return outcome;
}

void osd_exec_quiesce(struct osd_exec *exec)
{
	struct osd_exec_wait *taken, *wait;

	osd_lock(&exec->lock);
	exec->quiescing = true;
	pthread_cond_broadcast(&exec->changed);
	taken = osd_exec_take_waits(exec, NULL);
	osd_unlock(&exec->lock);
	while (taken) {
		wait = taken;
		taken = wait->next;
		wait->next = NULL;
		osd_exec_deliver(wait, outcome_at_close(wait));
	}
	/* Scripts use data_ops until then, and their context is freed before exec is closed. */
	osd_lock(&exec->lock);
	while (exec->passing)
		osd_cond_wait(&exec->changed, &exec->lock);
	osd_unlock(&exec->lock);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* Frees the jobs left in the queues; heads and members come in any order. */
static void free_jobs(struct osd_exec *exec)
{
	struct osd_job *job;

	exec->delayed = NULL;
	while ((job = osd_exec_next_job(exec, NULL))) {
		osd_job_table_remove(&exec->table, &job->node);
		osd_after_drop(exec, job);
		/* The head may be freed already, so a member does not give its reference back. */
		job->head = NULL;
		job->references = 1;
		osd_job_unref(job);
	}
}

static void stop_threads(struct osd_target *target)
{
	struct osd_exec *exec = &target->exec;

	osd_lock(&exec->lock);
	exec->stopping = exec->sandboxes->stopping = true;
	osd_service_lost(
		exec->sandboxes); /* ends all sandboxes: the proxies wait for nothing else */
	pthread_cond_broadcast(&exec->changed);
	osd_unlock(&exec->lock);
	osd_proxies_join(exec);
	osd_wake(exec->monitor.wake);
	osd_wake(exec->output_wake);
	if (target->monitor_started)
		pthread_join(target->monitor_thread, NULL);
	if (target->output_started)
		pthread_join(target->output_thread, NULL);
	/* Last: the threads above call its helpers. */
	osd_flow_stop(&target->flow);
}

void osd_exec_close(struct osd_exec *exec)
{
	struct osd_target *target;

	if (!exec)
		return;
	target = osd_target_of(exec);
	if (target->monitor_started)
		stop_threads(target);
	if (exec->objects) { /* not before: the threads remove objects until they end */
		osd_objects_watch_policies(exec->objects, NULL, NULL);
		osd_objects_unwatch_removals(exec->objects, exec);
	}
	osd_script_turns_stop(target->turns);
	osd_sandboxes_release(exec->sandboxes);
	free_jobs(exec);
	osd_after_release(exec->flow);
	osd_job_table_release(&exec->table);
	osd_pools_close(exec);
	osd_principals_release(&exec->pools->principals);
	osd_stored_clear(&exec->stored);
	osd_closep(&exec->sandboxes->watch_epoll);
	osd_closep(&exec->monitor.wake);
	osd_closep(&exec->sandboxes->pipes_epoll);
	osd_closep(&exec->output_wake);
	osd_lock_destroy(&exec->stored.lock);
	osd_lock_destroy(&exec->lock);
	osd_helper_release(&exec->flow->sweeper);
	osd_helper_release(&exec->flow->helper);
	pthread_cond_destroy(&exec->runs->work);
	pthread_cond_destroy(&exec->changed);
	osd_call_gate_release(&exec->runs->gate);
	free((char *)target->config.isolation);
	free((char *)target->config.sandboxd);
	free((char *)target->config.pools);
	free(target->remembered);
	free(target);
}
