/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unit_open.c -- see unit.h and unit_impl.h.  Opens the parts of a target in their order, each with
 * its configuration, and closes them in the opposite order.  Elsewhere: requests and the threads
 * that serve them (unit.c). */
#include "unit/unit_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "unit/control.h"
#include "unit/command_figures.h"
#include "command/follow.h"
#include "command/script_data.h"
#include "exec/exec.h"
#include "function/function.h"
#include "security/keys.h"
#include "security/local_keys.h"
#include "security/nonce.h"

#define LATELY_USEC 1000000 /* a client that asks once a second still waits for answers */

/* How many ordinary commands wait for a worker: sandboxes' calls let them go first. */
static unsigned commands_queued(void *context)
{
	struct osd_unit *unit = context;

	return __atomic_load_n(&unit->queued, __ATOMIC_RELAXED);
}

static enum osd_status open_objects(struct osd_unit *unit, const struct osd_config *config,
				    char message[256])
{
	struct osd_objects_config objects = {
		.directory = config->directory,
		.heads = &config->heads,
		.sums = &config->sums,
		.ssd_directory = config->ssd_directory,
		.on_ssd_loss = config->on_ssd_loss,
		.io = config->io,
		.cache_bytes = config->cache_bytes,
		.durability = config->durability,
		.method = config->security,
		.test = config->test.stores,
		.commands_queued = commands_queued,
		.context = unit,
	};

	return osd_objects_open(&objects, message, &unit->objects);
}

static enum osd_status open_security(struct osd_unit *unit, const struct osd_config *config,
				     char message[256])
{
	enum osd_status status =
		osd_keyring_open(unit->objects, config->master_key, message, &unit->keyring);

	if (status == OSD_OK && config->local_key)
		status = osd_local_keys_open(unit->keyring, config->local_key, message);
	if (status != OSD_OK)
		return status;
	status = osd_nonces_open(unit->objects, unit->keyring, &unit->nonces);
	if (status != OSD_OK)
		snprintf(message, 256, "out of memory");
	return status;
}

static bool commands_come(void *context)
{
	const struct osd_unit *unit = context;

	return osd_figures_noted_since(unit->figures,
				       (osd_monotonic_usec() - LATELY_USEC) * 1000);
}

/* NULL: out of memory, and commands wait on their workers. */
static void *hold_object(void *context, struct osd_object_id id)
{
	struct osd_unit *unit = context;
	struct osd_copying *copying = malloc(sizeof(*copying));

	if (copying)
		osd_copies_begin(&unit->copies, copying, id, true);
	return copying;
}

static void release_object(void *context, void *hold)
{
	struct osd_unit *unit = context;

	if (hold)
		osd_copies_end(&unit->copies, hold);
	free(hold);
}

static void jobs_wait(void *context)
{
	struct osd_unit *unit = context;

	if (unit->control)
		osd_control_jobs_wait(unit->control);
}

static enum osd_status open_exec(struct osd_unit *unit, const struct osd_config *config,
				 char message[256])
{
	struct osd_exec_config exec = {
		.objects = unit->objects,
		.functions = unit->functions,
		.keyring = unit->keyring,
		.sandboxd = config->sandboxd,
		.isolation = config->isolation,
		.pools = config->pools,
		.reuse = config->reuse,
		.allow_bytecode = config->allow_bytecode,
		.turn_usec = (unsigned)config->script_turn,
		.queue_principal = config->queue_principal,
		.stored_principal = config->stored_principal,
		.slots = (unsigned)config->slots,
		.commands_queued = commands_queued,
		.commands_come = commands_come,
		.jobs_wait = jobs_wait,
		.hold_object = hold_object,
		.release_object = release_object,
		.context = unit,
	};

	return osd_exec_open(&exec, message, &unit->exec);
}

/* A store that requires no capabilities is served beyond loopback only if the administrator asks for
 * that.  On loopback it is served with a warning, unless the administrator asked for it by name; then
 * there is no local key. */
static enum osd_status check_secure(struct osd_unit *unit, const struct osd_config *config,
				    char message[256])
{
	struct osd_policy root;
	enum osd_status status = osd_keyring_policy(unit->keyring, 0, false, &root);

	if (status != OSD_OK)
		snprintf(message, 256, "cannot read the store's security methods: %s",
			 osd_status_info(status)->meaning);
	if (status != OSD_OK || (root.method != OSD_NOSEC && root.inside_method != OSD_NOSEC))
		return status;
	if (!config->secure) {
		if (config->local_key)
			osd_warning("any local user is an administrator of this store: the "
				    "security method of its %s is NOSEC; docs/security.md, "
				    "section 10, says how to change it",
				    root.method == OSD_NOSEC ? "root" : "new partitions");
		return OSD_OK;
	}
	return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
			   "this store asks for no capabilities: the security method of its %s is "
			   "NOSEC. Serve it on loopback and raise it, or say --security nosec",
			   root.method == OSD_NOSEC ? "root" : "new partitions");
}

static enum osd_status open_dispatcher(struct osd_unit *unit, const struct osd_config *config)
{
	struct osd_dispatcher_config dispatcher = {
		.objects = unit->objects,
		.exec = unit->exec,
		.functions = unit->functions,
		.keyring = unit->keyring,
		.nonces = unit->nonces,
		.resume = osd_unit_resume,
		.copies = &unit->copies,
		.osc_compat = config->osc_compat,
		.manage_tasks = osd_unit_manage_tasks,
		.hold = unit->hold,
	};

	if (config->test.token)
		memcpy(unit->token, config->test.token, sizeof(unit->token));
	else
		osd_random_bytes(unit->token, sizeof(unit->token));
	memcpy(dispatcher.token, unit->token, sizeof(unit->token));
	return osd_dispatcher_create(&dispatcher, &unit->dispatcher);
}

/* Commands that move data leave half the CPUs to others.  Other long commands do so where there are
 * at least four CPUs. */
static void set_bounds(struct osd_unit *unit)
{
	unsigned half = OSD_MAX(1u, osd_thread_processors() / 2);

	unit->most_of[OSD_SPAN_LONG] = OSD_MAX(2, half);
	unit->most_of[OSD_SPAN_MOVES] = half;
}

static struct osd_unit *unit_create(void)
{
	struct osd_unit *unit = calloc(1, sizeof(*unit));

	if (!unit)
		return NULL;
	osd_lock_init(&unit->lock, OSD_RANK_UNIT);
	osd_cond_init(&unit->ready);
	pthread_cond_init(&unit->idle, NULL);
	osd_helper_init(&unit->urgent, "iosd-urgent", osd_unit_urgent_work, unit);
	osd_queue_init(&unit->queue);
	osd_copies_init(&unit->copies, osd_unit_requeue);
	set_bounds(unit);
	unit->urgent_tail = &unit->urgent_head;
	return unit;
}

OSD_DEFINE_CLEANUP(struct osd_unit *, osd_unit_close)

/* Called last: the control socket shows all other parts. */
static enum osd_status start_control(struct osd_unit *unit, const struct osd_config *config,
				     char message[256])
{
	struct osd_control_targets targets = {
		.unit = unit,
		.objects = unit->objects,
		.exec = unit->exec,
		.functions = unit->functions,
		.figures = unit->figures,
		.lease_usec = config->test.lease_usec,
		.faults = config->test.faults,
		.manager_uid = (uid_t)config->control_uid,
	};

	if (!config->control)
		return OSD_OK;
	return osd_control_start(unit->control, config->control, &targets, message);
}

static void set_functions(struct osd_unit *unit, const struct osd_config *config)
{
	osd_functions_set_memory(unit->functions, config->function_memory);
	osd_functions_keep(unit->functions,
			   config->ssd_directory ? config->ssd_directory : config->directory,
			   config->kept_results);
	if (config->machine_code && config->directory)
		osd_functions_keep_machine(unit->functions, config->directory,
					   config->machine_code);
	if (unit->exec)
		osd_functions_set_jobs(unit->functions, &(struct osd_functions_jobs){
								osd_exec_has_engine,
								osd_exec_list_users, unit->exec});
}

static enum osd_status open_parts(struct osd_unit *unit, const struct osd_config *config,
				  char message[256])
{
	enum osd_status status = open_objects(unit, config, message);

	if (status == OSD_OK)
		status = osd_functions_open(unit->objects, config->signers, message,
					    &unit->functions);
	if (status == OSD_OK)
		status = open_security(unit, config, message);
	if (status == OSD_OK)
		status = check_secure(unit, config, message);
	return status == OSD_OK ? open_exec(unit, config, message) : status;
}

static enum osd_status start(struct osd_unit *unit, const struct osd_config *config,
			     char message[256])
{
	enum osd_status status = open_dispatcher(unit, config);

	if (status == OSD_OK && unit->exec) {
		osd_script_data_serve(unit->dispatcher);
		status = osd_follow_create(unit->objects, unit->functions, unit->exec,
					   unit->dispatcher, &unit->follow);
	}
	if (status != OSD_OK)
		return OSD_EXPLAIN(message, status, "cannot start: %s",
				   osd_status_info(status)->meaning);
	status = osd_dispatch_recover(unit->dispatcher);
	if (status != OSD_OK)
		return OSD_EXPLAIN(message, status,
				   "cannot take up the commands of the last run: %s",
				   osd_status_info(status)->meaning);
	if (osd_unit_set_workers(unit, (unsigned)config->workers) == 0)
		return OSD_EXPLAIN(message, OSD_E_NO_MEMORY, "cannot start worker threads");
	return start_control(unit, config, message);
}

enum osd_status osd_unit_open(const struct osd_config *config, char message[256],
			      struct osd_unit **ret_unit)
{
	OSD_CLEANUP(osd_unit_closep) struct osd_unit *unit = unit_create();
	enum osd_status status;

	snprintf(message, 256, "out of memory");
	if (!unit)
		return OSD_E_NO_MEMORY;
	unit->figures = osd_figures_create();
	unit->control = config->control ? osd_control_create() : NULL;
	if (!unit->figures || (config->control && !unit->control))
		return OSD_E_NO_MEMORY;
	unit->hold = config->test.hold ? strdup(config->test.hold) : NULL;
	status = open_parts(unit, config, message);
	if (status != OSD_OK)
		return status;
	set_functions(unit, config);
	status = start(unit, config, message);
	if (status != OSD_OK)
		return status;
	message[0] = '\0';
	*ret_unit = OSD_STEAL(unit);
	return OSD_OK;
}

void osd_unit_close(struct osd_unit *unit)
{
	if (!unit)
		return;
	osd_control_stop(unit->control);
	if (unit->exec)
		osd_exec_quiesce(unit->exec); /* so that waiting commands end */
	osd_lock(&unit->lock);
	while (unit->outstanding)
		osd_cond_wait(&unit->idle, &unit->lock);
	osd_unlock(&unit->lock);
	osd_unit_stop_workers(unit);
	if (unit->dispatcher)
		osd_dispatch_stop_background(unit->dispatcher);
	osd_helper_stop(&unit->urgent);
	osd_follow_stop(unit->follow);
	osd_dispatcher_free(unit->dispatcher);
	osd_exec_close(unit->exec);
	osd_follow_free(unit->follow);
	osd_functions_close(unit->functions);
	osd_nonces_close(unit->nonces);
	osd_keyring_close(unit->keyring);
	osd_objects_close(unit->objects);
	osd_control_free(unit->control);
	free(unit->figures);
	osd_copies_release(&unit->copies);
	free(unit->hold);
	osd_helper_release(&unit->urgent);
	pthread_cond_destroy(&unit->idle);
	pthread_cond_destroy(&unit->ready);
	osd_lock_destroy(&unit->lock);
	free(unit);
}
