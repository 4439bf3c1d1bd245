/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine_open.c -- see engine.h and engine_impl.h.
 * Lives here: opening the parts of a target in their order with what its configuration says of each,
 * closing them in the opposite one.
 * Not here: requests and the threads that serve them (engine.c). */
#include "engine/engine_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "engine/control.h"
#include "engine/figures.h"
#include "exec/exec.h"
#include "security/keys.h"
#include "security/local_keys.h"
#include "security/nonce.h"

#define LATELY_USEC 1000000 /* a client that asks once a second is one that waits for answers */

/* How many ordinary commands wait for a worker: sandboxes' calls let them go first (design D22). */
static unsigned commands_queued(void *context)
{
	struct osd_engine *engine = context;

	return __atomic_load_n(&engine->queued, __ATOMIC_RELAXED);
}

static enum osd_status open_objects(struct osd_engine *engine, const struct osd_config *config,
				    char message[256])
{
	struct osd_heads_config heads = config->heads;
	struct osd_sums_config sums = config->sums;
	struct osd_objects_config objects = {
		.directory = config->directory,
		.heads = &heads,
		.sums = &sums,
		.ssd_directory = config->ssd_directory,
		.on_ssd_loss = config->on_ssd_loss,
		.io = config->io,
		.create = config->create,
		.capacity_bytes = config->capacity_bytes,
		.cache_bytes = config->cache_bytes,
		.durability = config->durability,
		.strict = config->strict,
		.method = config->security,
		.test = config->test.stores,
		.product_serial = config->serial,
	};

	heads.commands_queued = commands_queued;
	heads.context = engine;
	sums.commands_queued = commands_queued;
	sums.context = engine;
	return osd_objects_open(&objects, message, &engine->objects);
}

static enum osd_status open_security(struct osd_engine *engine, const struct osd_config *config,
				     char message[256])
{
	enum osd_status status =
		osd_keyring_open(engine->objects, config->master_key, message, &engine->keyring);

	if (status == OSD_OK && config->local_key)
		status = osd_local_keys_open(engine->keyring, config->local_key, message);
	if (status != OSD_OK)
		return status;
	status = osd_nonces_open(engine->objects, engine->keyring, &engine->nonces);
	if (status != OSD_OK)
		snprintf(message, 256, "cannot start the thread that keeps times of nonces");
	return status;
}

static bool commands_come(void *context)
{
	const struct osd_engine *engine = context;

	return osd_figures_noted_since(engine->figures,
				       (osd_monotonic_usec() - LATELY_USEC) * 1000);
}

/* NULL: out of memory, and commands wait on their workers. */
static void *hold_object(void *context, struct osd_object_id id)
{
	struct osd_engine *engine = context;
	struct osd_copying *copying = malloc(sizeof(*copying));

	if (copying)
		osd_copies_begin(&engine->copies, copying, id, true);
	return copying;
}

static void release_object(void *context, void *hold)
{
	struct osd_engine *engine = context;

	if (hold)
		osd_copies_end(&engine->copies, hold);
	free(hold);
}

static void jobs_wait(void *context)
{
	struct osd_engine *engine = context;

	if (engine->control)
		osd_control_jobs_wait(engine->control);
}

static enum osd_status open_exec(struct osd_engine *engine, const struct osd_config *config,
				 char message[256])
{
	struct osd_exec_config exec = {
		.objects = engine->objects,
		.keyring = engine->keyring,
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
		.context = engine,
	};

	return osd_exec_open(&exec, message, &engine->exec);
}

/* A store that requires no capabilities is served beyond loopback on demand only.  On loopback it is
 * served as before, with a warning unless its owner asked for that by name (then there is no local key). */
static enum osd_status check_secure(struct osd_engine *engine, const struct osd_config *config,
				    char message[256])
{
	struct osd_policy root;
	enum osd_status status = osd_keyring_policy(engine->keyring, 0, false, &root);

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
	snprintf(message, 256,
		 "this store asks for no capabilities: the security method of its %s is NOSEC. "
		 "Serve it "
		 "on loopback and raise it, or say --security nosec",
		 root.method == OSD_NOSEC ? "root" : "new partitions");
	return OSD_E_PARAM_FIELD;
}

static enum osd_status open_dispatcher(struct osd_engine *engine, const struct osd_config *config)
{
	struct osd_dispatcher_config dispatcher = {
		.objects = engine->objects,
		.exec = engine->exec,
		.keyring = engine->keyring,
		.nonces = engine->nonces,
		.resume = osd_engine_resume,
		.copies = &engine->copies,
		.osc_compat = config->osc_compat,
		.strict = config->strict,
		.osc_list_e = config->osc_list_e,
		.manage_tasks = osd_engine_manage_tasks,
		.hold = engine->hold,
	};

	if (config->test.token)
		memcpy(engine->token, config->test.token, sizeof(engine->token));
	else
		osd_random_bytes(engine->token, sizeof(engine->token));
	memcpy(dispatcher.token, engine->token, sizeof(engine->token));
	return osd_dispatcher_create(&dispatcher, &engine->dispatcher);
}

/* Commands that move data leave half the processors to others; other long ones too, where there are four. */
static void set_bounds(struct osd_engine *engine)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned half = count < 2 ? 1 : (unsigned)count / 2;

	engine->most_of[OSD_SPAN_LONG] = OSD_MAX(2, half);
	engine->most_of[OSD_SPAN_MOVES] = half;
}

static struct osd_engine *engine_create(void)
{
	struct osd_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	pthread_mutex_init(&engine->lock, NULL);
	pthread_cond_init(&engine->ready, NULL);
	pthread_cond_init(&engine->idle, NULL);
	pthread_cond_init(&engine->urgent_ready, NULL);
	osd_queue_init(&engine->queue);
	osd_copies_init(&engine->copies, osd_engine_requeue);
	set_bounds(engine);
	engine->urgent_tail = &engine->urgent_head;
	return engine;
}

static void engine_closep(struct osd_engine **engine)
{
	osd_engine_close(*engine);
}

/* Last: it shows all the others. */
static enum osd_status start_control(struct osd_engine *engine, const struct osd_config *config,
				     char message[256])
{
	struct osd_control_targets targets = {
		.engine = engine,
		.objects = engine->objects,
		.exec = engine->exec,
		.figures = engine->figures,
		.faults = config->test.faults,
		.manager_uid = (uid_t)config->control_uid,
	};

	if (!config->control)
		return OSD_OK;
	return osd_control_start(engine->control, config->control, &targets, message);
}

enum osd_status osd_engine_open(const struct osd_config *config, char message[256],
				struct osd_engine **ret_engine)
{
	OSD_CLEANUP(engine_closep) struct osd_engine *engine = engine_create();
	enum osd_status status;

	snprintf(message, 256, "out of memory");
	if (!engine)
		return OSD_E_NO_MEMORY;
	engine->figures = osd_figures_create();
	engine->control = config->control ? osd_control_create() : NULL;
	if (!engine->figures || (config->control && !engine->control))
		return OSD_E_NO_MEMORY;
	engine->hold = config->test.hold ? strdup(config->test.hold) : NULL;
	status = open_objects(engine, config, message);
	if (status == OSD_OK)
		status = open_security(engine, config, message);
	if (status == OSD_OK)
		status = check_secure(engine, config, message);
	if (status == OSD_OK)
		status = open_exec(engine, config, message);
	if (status != OSD_OK)
		return status;
	status = open_dispatcher(engine, config);
	if (status != OSD_OK) {
		snprintf(message, 256, "cannot start: %s", osd_status_info(status)->meaning);
		return status;
	}
	status = osd_dispatch_recover(engine->dispatcher);
	if (status != OSD_OK) {
		snprintf(message, 256, "cannot take up the commands of the last run: %s",
			 osd_status_info(status)->meaning);
		return status;
	}
	if (!osd_engine_start_others(engine) ||
	    osd_engine_set_workers(engine, (unsigned)config->workers) == 0) {
		snprintf(message, 256, "cannot start worker threads");
		return OSD_E_NO_MEMORY;
	}
	status = start_control(engine, config, message);
	if (status != OSD_OK)
		return status;
	message[0] = '\0';
	*ret_engine = OSD_STEAL(engine);
	return OSD_OK;
}

void osd_engine_close(struct osd_engine *engine)
{
	if (!engine)
		return;
	osd_control_stop(engine->control);
	if (engine->exec)
		osd_exec_quiesce(engine->exec); /* so that waiting commands end */
	pthread_mutex_lock(&engine->lock);
	while (engine->outstanding)
		pthread_cond_wait(&engine->idle, &engine->lock);
	pthread_mutex_unlock(&engine->lock);
	osd_engine_stop_workers(engine);
	osd_engine_stop_others(engine);
	osd_dispatcher_free(engine->dispatcher);
	osd_exec_close(engine->exec);
	osd_nonces_close(engine->nonces);
	osd_keyring_close(engine->keyring);
	osd_objects_close(engine->objects);
	osd_control_free(engine->control);
	osd_figures_free(engine->figures);
	osd_copies_release(&engine->copies);
	free(engine->hold);
	pthread_cond_destroy(&engine->urgent_ready);
	pthread_cond_destroy(&engine->idle);
	pthread_cond_destroy(&engine->ready);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}
