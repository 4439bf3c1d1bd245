/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec.c -- opening and closing, what other commands ask and tell, figures.  Not here: acceptance
 * (submit.c), running (proxy.c), ends (job_end.c). */
#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/rights.h"
#include "exec/script_turns.h"
#include "security/local_keys.h"

#define FORMAT_WAIT_SEC	 2
#define SETTLE_WAIT_NSEC 2000000

/* ---- opening and closing --------------------------------------------------------------------- */

static void init_locks(struct osd_exec *exec)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	osd_lock_init(&exec->lock, OSD_RANK_EXEC);
	pthread_cond_init(&exec->after.work, NULL);
	pthread_cond_init(&exec->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

static unsigned processors(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count < 1 ? 1 : (unsigned)OSD_MIN(count, OSD_EXEC_SLOTS_MAX);
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

static enum osd_status copy_config(struct osd_exec *exec, const struct osd_exec_config *config)
{
	exec->config = *config;
	exec->objects = config->objects;
	osd_call_gate_init(&exec->gate, OSD_MAX(1u, processors() / 2), config->commands_queued,
			   config->context);
	if (!exec->config.queue_principal)
		exec->config.queue_principal = osd_exec_limits[OSD_LIMIT_QUEUE_PRINCIPAL].standard;
	if (!exec->config.stored_principal)
		exec->config.stored_principal = osd_exec_limits[OSD_LIMIT_STORED].standard;
	exec->config.isolation = strdup(config->isolation ? config->isolation : "full");
	exec->config.sandboxd = config->sandboxd ? strdup(config->sandboxd) : NULL;
	exec->config.pools = config->pools ? strdup(config->pools) : NULL;
	if (!exec->config.isolation || (config->sandboxd && !exec->config.sandboxd) ||
	    (config->pools && !exec->config.pools))
		return OSD_E_NO_MEMORY;
	return OSD_OK;
}

static enum osd_status start_threads(struct osd_exec *exec)
{
	enum osd_status status = OSD_OK;

	if (exec->config.turn_usec)
		exec->turns = osd_script_turns_start(
			exec->config.turn_usec, exec->config.commands_come, exec->config.context);
	if (!osd_thread_start(&exec->monitor_thread, "iosd-monitor", osd_monitor_main, exec))
		return OSD_E_NO_MEMORY;
	exec->monitor_started = true;
	if (!osd_thread_start(&exec->output_thread, "iosd-output", osd_output_main, exec))
		return OSD_E_NO_MEMORY;
	exec->output_started = true;
	if (!osd_thread_start(&exec->after.thread, "iosd-after", osd_after_main, exec))
		return OSD_E_NO_MEMORY;
	exec->after.started = true;
	osd_lock(&exec->lock);
	for (struct osd_pool *pool = exec->pools; pool && status == OSD_OK; pool = pool->next)
		status = osd_proxies_start(pool, (unsigned)pool->config.max);
	osd_unlock(&exec->lock);
	return status;
}

enum osd_status osd_exec_read_pools(const struct osd_exec *exec, char message[256],
				    struct osd_pool_table *ret_table)
{
	const struct osd_exec_config *config = &exec->config;
	unsigned slots = config->slots ? OSD_MIN(config->slots, OSD_EXEC_SLOTS_MAX) : processors();

	return osd_pool_table_load(config->pools, slots, config->reuse, message, ret_table);
}

static enum osd_status open_pools(struct osd_exec *exec, char message[256])
{
	OSD_CLEANUP(osd_pool_table_release) struct osd_pool_table table = {0};
	enum osd_status status = osd_exec_read_pools(exec, message, &table);

	return status == OSD_OK ? osd_pools_open(exec, &table) : status;
}

static enum osd_status open_parts(struct osd_exec *exec, const struct osd_exec_config *config,
				  char message[256])
{
	enum osd_status status = copy_config(exec, config);

	if (status == OSD_OK)
		status = make_poll(&exec->monitor_epoll, &exec->monitor_wake);
	if (status == OSD_OK)
		status = make_poll(&exec->output_epoll, &exec->output_wake);
	if (status == OSD_OK)
		status = osd_job_table_init(&exec->table);
	if (status == OSD_OK)
		status = osd_after_init(&exec->after);
	if (status == OSD_OK)
		status = open_pools(exec, message);
	if (status != OSD_OK)
		return status;
	osd_pool_init(exec);
	osd_job_pages_add(exec);
	osd_objects_watch_policies(exec->objects, osd_rights_policy_changed, exec);
	status = osd_exec_recover(exec);
	return status == OSD_OK ? start_threads(exec) : status;
}

enum osd_status osd_exec_open(const struct osd_exec_config *config, char message[256],
			      struct osd_exec **ret_exec)
{
	struct osd_exec *exec = calloc(1, sizeof(*exec));
	enum osd_status status;

	if (!exec)
		return OSD_E_NO_MEMORY;
	exec->wait_places = OSD_PLACES(osd_exec_limits[OSD_LIMIT_SYNC_WAITS].maximum);
	exec->monitor_usec = OSD_NEVER;
	exec->idle_msec = UINT64_MAX;
	exec->begin_msec = UINT64_MAX;
	exec->opened_usec = osd_monotonic_usec();
	exec->pool.fd = exec->monitor_epoll = exec->monitor_wake = exec->output_epoll =
		exec->output_wake = -1;
	init_locks(exec);
	message[0] = '\0';
	status = open_parts(exec, config, message);
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

static bool free_job(void *arg, struct osd_job_node *node)
{
	struct osd_exec *exec = arg;
	struct osd_job *job = osd_container_of(node, struct osd_job, node);

	/* What is left in queues goes with them: heads and members come in any order. */
	exec->delayed = job; /* gathered: the table cannot lose nodes while it is walked */
	return false;
}

static void free_jobs(struct osd_exec *exec)
{
	while (exec->table.count > 0) {
		exec->delayed = NULL;
		osd_job_table_each(&exec->table, free_job, exec);
		osd_job_table_remove(&exec->table, &exec->delayed->node);
		osd_after_drop(exec, exec->delayed);
		exec->delayed->head = NULL;
		exec->delayed->references = 1;
		osd_job_unref(exec->delayed);
	}
}

static void stop_threads(struct osd_exec *exec)
{
	osd_lock(&exec->lock);
	exec->stopping = true;
	osd_service_lost(exec); /* ends every sandbox, and with it what the proxies wait for */
	osd_pools_wake(exec);
	pthread_cond_broadcast(&exec->changed);
	pthread_cond_signal(&exec->after.work);
	osd_unlock(&exec->lock);
	osd_proxies_join(exec);
	osd_wake(exec->monitor_wake);
	osd_wake(exec->output_wake);
	if (exec->monitor_started)
		pthread_join(exec->monitor_thread, NULL);
	if (exec->output_started)
		pthread_join(exec->output_thread, NULL);
	if (exec->after.started)
		pthread_join(exec->after.thread, NULL);
}

void osd_exec_close(struct osd_exec *exec)
{
	if (!exec)
		return;
	if (exec->objects)
		osd_objects_watch_policies(exec->objects, NULL, NULL);
	if (exec->monitor_started)
		stop_threads(exec);
	osd_script_turns_stop(exec->turns);
	osd_pool_release(exec);
	if (exec->table.buckets)
		free_jobs(exec);
	osd_after_release(&exec->after);
	osd_job_table_release(&exec->table);
	osd_pools_close(exec);
	osd_principals_release(&exec->principals);
	osd_stored_release(&exec->stored);
	osd_closep(&exec->monitor_epoll);
	osd_closep(&exec->monitor_wake);
	osd_closep(&exec->output_epoll);
	osd_closep(&exec->output_wake);
	osd_lock_destroy(&exec->lock);
	pthread_cond_destroy(&exec->after.work);
	pthread_cond_destroy(&exec->changed);
	osd_call_gate_release(&exec->gate);
	free((char *)exec->config.isolation);
	free((char *)exec->config.sandboxd);
	free((char *)exec->config.pools);
	free(exec);
}

/* ---- what other commands ask and tell -------------------------------------------------------- */

struct in_partition {
	uint64_t partition_id;
	struct osd_object_id first; /* lowest surrogate; 0/0: none */
};

static bool stands_in(void *arg, struct osd_job_node *node)
{
	const struct osd_job *job = osd_container_of(node, struct osd_job, node);
	struct in_partition *in = arg;

	if (job->record.id.partition_id != in->partition_id &&
	    job->record.zone.id.partition_id != in->partition_id)
		return true;
	if (in->first.object_id == 0 || job->record.id.object_id < in->first.object_id)
		in->first = job->record.id;
	return true;
}

enum osd_status osd_exec_check_partition(struct osd_exec *exec, uint64_t partition_id,
					 struct osd_object_id *ret_job)
{
	struct in_partition in = {.partition_id = partition_id};

	osd_lock(&exec->lock);
	osd_job_table_each(&exec->table, stands_in, &in);
	osd_unlock(&exec->lock);
	if (in.first.object_id == 0)
		return OSD_OK;
	*ret_job = in.first;
	return OSD_E_JOB_IN_WAY;
}

/* A job that has just ended, and others that wait for it have not been told yet: a matter of
 * moments. */
bool osd_exec_still_decides(struct osd_exec *exec, struct osd_object_id id)
{
	struct timespec until;
	bool decides;

	osd_lock(&exec->lock);
	decides = !exec->formatting && osd_after_awaited(exec, id);
	if (decides) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += SETTLE_WAIT_NSEC;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		osd_cond_timedwait(&exec->changed, &exec->lock, &until);
	}
	osd_unlock(&exec->lock);
	return decides;
}

enum osd_status osd_exec_object_removed(struct osd_exec *exec, struct osd_txn *txn,
					struct osd_object_id id, bool in_steps)
{
	struct osd_job_record record;
	enum osd_status status = osd_job_record_get(txn, id, &record);
	uint32_t at = 0;

	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && osd_array_keeps(exec, &record))
		return OSD_E_JOB_IN_WAY;
	if (status == OSD_OK && osd_exec_still_decides(exec, id))
		return OSD_E_CONFLICT;
	if (status != OSD_OK)
		return status;
	osd_exec_forget_ended(exec, id);
	if (record.array.count)
		status = osd_array_remove_members(exec, txn, &record,
						  in_steps ? OSD_REMOVED_AT_ONCE : SIZE_MAX, &at);
	if (status == OSD_OK && at < record.array.count)
		return OSD_E_TXN_TOO_LARGE;
	return status == OSD_OK ? osd_job_forget(exec, txn, &record) : status;
}

struct gathered {
	struct osd_exec *exec;
	uint64_t partition_id; /* 0: all */
	struct osd_object_id *ids;
	size_t count, capacity;
	enum osd_status status;
};

/* May the record of a job that has not ended, as far as the store knows, go with its partition? */
static enum osd_status check_over(struct osd_exec *exec, struct osd_object_id id)
{
	enum osd_status status = OSD_OK;

	osd_lock(&exec->lock);
	if (osd_exec_find(exec, id))
		status = OSD_E_JOB_IN_WAY;
	else if (exec->accepting) /* it may be this one: in a moment the table knows */
		status = OSD_E_CONFLICT;
	osd_unlock(&exec->lock);
	return status;
}

static bool gather(void *arg, const struct osd_job_record *record)
{
	struct gathered *gathered = arg;

	if (gathered->partition_id && record->id.partition_id != gathered->partition_id)
		return true;
	if (gathered->partition_id && !osd_job_state_terminal(record->state))
		gathered->status = check_over(gathered->exec, record->id);
	if (gathered->status != OSD_OK)
		return false;
	if (gathered->count == gathered->capacity) {
		size_t capacity = gathered->capacity ? gathered->capacity * 2 : 64;
		struct osd_object_id *ids = realloc(gathered->ids, capacity * sizeof(*ids));

		if (!ids) {
			gathered->status = OSD_E_NO_MEMORY;
			return false;
		}
		gathered->ids = ids;
		gathered->capacity = capacity;
	}
	gathered->ids[gathered->count++] = record->id;
	return true;
}

static enum osd_status forget_records(struct osd_exec *exec, struct osd_txn *txn,
				      uint64_t partition_id)
{
	struct gathered gathered = {.exec = exec, .partition_id = partition_id, .status = OSD_OK};
	enum osd_status status = osd_job_record_each(txn, gather, &gathered);

	if (status == OSD_OK)
		status = gathered.status;
	for (size_t i = 0; i < gathered.count && status == OSD_OK; i++)
		status = osd_exec_object_removed(exec, txn, gathered.ids[i], false);
	free(gathered.ids);
	return status;
}

enum osd_status osd_exec_partition_made(struct osd_exec *exec, struct osd_txn *txn,
					uint64_t partition_id)
{
	struct osd_keyring *keyring = exec->config.keyring;

	return keyring ? osd_local_keys_add(keyring, txn, partition_id) : OSD_OK;
}

/* The transaction has the partition to itself: a job accepted since osd_exec_check_partition is in
 * the store by now, and none comes after it. */
enum osd_status osd_exec_partition_removed(struct osd_exec *exec, struct osd_txn *txn,
					   uint64_t partition_id)
{
	return forget_records(exec, txn, partition_id);
}

static bool has_zone(const struct osd_job *job, const void *arg)
{
	const struct osd_object_id *id = arg;

	return job->record.zone.type == OSD_COLLECTION &&
	       job->record.zone.id.partition_id == id->partition_id &&
	       job->record.zone.id.object_id == id->object_id;
}

void osd_exec_collection_removed(struct osd_exec *exec, struct osd_object_id id)
{
	osd_exec_end_matching(exec, has_zone, &id, OSD_REASON_ZONE_REMOVED);
}

static bool any_job(const struct osd_job *job, const void *arg)
{
	(void)job, (void)arg;
	return true;
}

void osd_exec_end_jobs(struct osd_exec *exec)
{
	struct timespec until;
	size_t left;
	int error = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += FORMAT_WAIT_SEC;
	osd_lock(&exec->lock);
	exec->formatting = true; /* nothing is started until osd_exec_formatted */
	osd_unlock(&exec->lock);
	do { /* one that lost its sandbox just now waits for another attempt: look again */
		osd_exec_end_matching(exec, any_job, NULL, OSD_REASON_FORMATTED);
		osd_lock(&exec->lock);
		if (exec->table.count > 0)
			error = osd_cond_timedwait(&exec->changed, &exec->lock, &until);
		left = exec->table.count;
		osd_unlock(&exec->lock);
	} while (left > 0 && !error);
	if (left > 0)
		osd_warning("%zu jobs did not end in time for FORMAT OSD", left);
}

static enum osd_status forget_all(struct osd_txn *txn, void *exec)
{
	return forget_records(exec, txn, 0);
}

enum osd_status osd_exec_formatted(struct osd_exec *exec, bool succeeded)
{
	enum osd_status status = OSD_OK;

	if (succeeded)
		status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL, forget_all, exec);
	osd_lock(&exec->lock);
	exec->formatting = false;
	osd_pools_wake(exec);
	osd_unlock(&exec->lock);
	return status;
}

/* ---- figures --------------------------------------------------------------------------------- */

void osd_exec_stats(struct osd_exec *exec, struct osd_exec_stats *ret_stats)
{
	size_t places;

	osd_lock(&exec->lock);
	places = osd_pools_places(exec);
	*ret_stats = (struct osd_exec_stats){
		/* With those that wait for other jobs, or are being accepted. */
		.queued = places - OSD_MIN(exec->held_count, places),
		.held = exec->held_count,
		.running = exec->running_count,
		.accepted = exec->accepted,
		.finished = exec->finished,
		.lost = exec->lost,
		.retry_after_msec = osd_exec_retry_after(exec->pools),
		.service_connected = exec->pool.welcomed,
	};
	memcpy(ret_stats->isolation, exec->pool.isolation, sizeof(ret_stats->isolation));
	for (struct osd_sandbox *sandbox = exec->pool.list; sandbox; sandbox = sandbox->next)
		ret_stats->sandboxes_ready += sandbox->state == OSD_SANDBOX_READY;
	osd_unlock(&exec->lock);
}

void *osd_exec_hold_object(struct osd_exec *exec, struct osd_object_id id)
{
	return exec && exec->config.hold_object ? exec->config.hold_object(exec->config.context, id)
						: NULL;
}

void osd_exec_release_object(struct osd_exec *exec, void *hold)
{
	if (exec && exec->config.release_object)
		exec->config.release_object(exec->config.context, hold);
}
