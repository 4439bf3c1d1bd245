/* SPDX-License-Identifier: GPL-2.0-or-later */
/* background.c -- see background.h. */
#include "command/background_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "security/security.h"
#include "wire/cursor.h"

#define RETRY_USEC UINT64_C(1000000) /* until the thread is started again that could not */

enum { FIELD_BYTE11 = 11 };

static void work(void *arg);

static uint64_t call(void *arg)
{
	struct osd_backgrounds *all = arg;

	return osd_helper_call(&all->helper) ? OSD_NEVER : osd_monotonic_usec() + RETRY_USEC;
}

void osd_backgrounds_call(struct osd_backgrounds *all)
{
	osd_timer_set(osd_objects_timers(all->objects), &all->retry, call(all));
}

enum osd_status osd_backgrounds_create(struct osd_objects *objects,
				       const struct osd_background_ops *ops, void *dispatcher,
				       struct osd_backgrounds **ret_backgrounds)
{
	struct osd_backgrounds *all = calloc(1, sizeof(*all));

	if (!all)
		return OSD_E_NO_MEMORY;
	all->objects = objects;
	all->ops = *ops;
	all->dispatcher = dispatcher;
	all->places = OSD_PLACES(OSD_BACKGROUND_MAX);
	osd_turns_init(&all->turns);
	osd_lock_init(&all->lock, OSD_RANK_BACKGROUNDS);
	osd_cond_init(&all->changed);
	osd_helper_init(&all->helper, "iosd-background", work, all);
	all->retry = (struct osd_timer){call, all, OSD_NEVER, NULL};
	osd_timer_add(osd_objects_timers(objects), &all->retry);
	*ret_backgrounds = all;
	return OSD_OK;
}

void osd_backgrounds_free(struct osd_backgrounds *all)
{
	struct osd_turn *turn;
	uint64_t wait;

	if (!all)
		return;
	osd_timer_remove(osd_objects_timers(all->objects), &all->retry);
	osd_helper_stop(&all->helper);
	while ((turn = osd_turns_take(&all->turns, OSD_TURN_NEVER, &wait)))
		osd_background_drop(osd_container_of(turn, struct osd_background, turn));
	osd_helper_release(&all->helper);
	pthread_cond_destroy(&all->changed);
	osd_lock_destroy(&all->lock);
	free(all);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* Takes a place for the principal that sent the request. */
static enum osd_status take_place(struct osd_backgrounds *all,
				  const struct osd_command_context *ctx,
				  struct osd_place_holder **ret_holder)
{
	struct osd_principal principal;
	enum osd_status status = OSD_E_BUSY;

	osd_command_principal(ctx->request, &principal);
	osd_lock(&all->lock);
	if (!all->stopping)
		status = osd_places_take(&all->places, principal.key, 1, ret_holder);
	osd_unlock(&all->lock);
	return status;
}

static void give_place(struct osd_backgrounds *all, struct osd_place_holder *holder)
{
	osd_lock(&all->lock);
	osd_places_give(&all->places, holder, 1);
	osd_unlock(&all->lock);
}

void osd_background_drop(struct osd_background *background)
{
	if (!background)
		return;
	give_place(background->all, background->holder);
	osd_tracked_release(background->tracked);
	osd_attributes_free(background->request.attributes);
	osd_authorise_release(&background->request.security);
	osd_context_release(&background->ctx);
	free(background);
}

/* NULL: no memory. */
static struct osd_background *copy_request(const uint8_t *cdb, const uint8_t *data_out,
					   size_t length)
{
	struct osd_background *background =
		calloc(1, sizeof(*background) + OSD_CDB_LENGTH + length);
	struct osd_request *request;

	if (!background)
		return NULL;
	background->data_out_length = length;
	memcpy(background->bytes, cdb, OSD_CDB_LENGTH);
	if (length)
		memcpy(background->bytes + OSD_CDB_LENGTH, data_out, length);
	request = &background->request;
	request->cdb = background->bytes;
	request->cdb_length = OSD_CDB_LENGTH;
	request->data_out = background->bytes + OSD_CDB_LENGTH;
	request->data_out_length = length;
	/* The command outlives the nexus that has sent it. */
	request->nexus = (struct osd_nexus){.initiator_name = "", .address = ""};
	return background;
}

/* Takes over the place of the holder, also if it fails. */
static enum osd_status make(struct osd_backgrounds *all, struct osd_place_holder *holder,
			    const uint8_t *cdb, const uint8_t *data_out, size_t length,
			    struct osd_background **ret_background)
{
	OSD_CLEANUP(osd_background_dropp)
	struct osd_background *background = copy_request(cdb, data_out, length);
	struct osd_request *request;
	enum osd_status status;

	if (!background) {
		give_place(all, holder);
		return OSD_E_NO_MEMORY;
	}
	background->all = all;
	background->holder = holder;
	background->turn.owner = holder;
	request = &background->request;
	status = all->ops.rebuild(all->dispatcher, request, &background->ctx);
	if (status != OSD_OK)
		return status;
	background->tracked = calloc(1, sizeof(*background->tracked));
	if (!background->tracked)
		return OSD_E_NO_MEMORY;
	background->tracked->ctx = &background->ctx;
	background->tracked->def = request->def->tracked;
	if (!background->tracked->def)
		return osd_internal("service action %Xh cannot run in the background",
				    request->decoded.service_action);
	*ret_background = OSD_STEAL(background);
	return OSD_OK;
}

enum osd_status osd_background_make_own(struct osd_backgrounds *all, const uint8_t *cdb,
					const uint8_t *data_out, size_t length,
					struct osd_background **ret_background)
{
	osd_lock(&all->lock);
	osd_places_take_extra(&all->places);
	osd_unlock(&all->lock);
	return make(all, NULL, cdb, data_out, length, ret_background);
}

enum osd_status osd_background_prepare(struct osd_command_context *ctx,
				       struct osd_background **ret_background)
{
	const struct osd_request *request = ctx->request;
	struct osd_place_holder *holder;
	enum osd_status status;

	if (request->data_out_length > OSD_BACKGROUND_DATA_MAX)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	status = ctx->backgrounds ? take_place(ctx->backgrounds, ctx, &holder) : OSD_E_BUSY;
	if (status != OSD_OK)
		return status;
	return make(ctx->backgrounds, holder, request->cdb, request->data_out,
		    request->data_out_length, ret_background);
}

enum osd_status osd_background_put(const struct osd_background *background,
				   const struct osd_tracked *tracked, struct osd_txn *txn)
{
	uint8_t key[OSD_TRACKED_KEY_BYTES];

	osd_tracked_key(tracked, OSD_TRACKED_REQUEST, key);
	return osd_txn_record_put(txn, OSD_TABLE_COMMANDS, key, sizeof(key), background->bytes,
				  OSD_CDB_LENGTH + background->data_out_length);
}

enum osd_status osd_background_removal(struct osd_backgrounds *all, struct osd_object_id collection,
				       struct osd_background **ret_background)
{
	struct osd_cdb cdb = {
		.service_action = OSD_SA_REMOVE_COLLECTION,
		.command_bits = OSD_FCR,
		.immed_tr = true,
		.partition_id = collection.partition_id,
		.object_id = collection.object_id,
		.attributes = {.format = OSD_CDBFMT_LIST},
	};
	uint8_t bytes[OSD_CDB_LENGTH];

	if (!osd_cdb_encode(&cdb, bytes))
		return osd_internal("REMOVE COLLECTION cannot be encoded");
	return osd_background_make_own(all, bytes, NULL, 0, ret_background);
}

/* ---- turns ----------------------------------------------------------------------------------- */

void osd_background_start(struct osd_background *background, const struct osd_tracked *accepted)
{
	struct osd_backgrounds *all = background->all;
	struct osd_tracked *tracked = background->tracked;
	bool recovered;

	tracked->tracker = accepted->tracker;
	tracked->incarnation = accepted->incarnation;
	tracked->tracker_field = accepted->tracker_field;
	tracked->other_created_ms = accepted->other_created_ms;
	tracked->state = accepted->state;
	tracked->background = tracked->begun = tracked->claimed = true;
	/* The CDB may let the target choose the id: the acceptance has chosen it. */
	background->request.object = accepted->ctx->request->object;
	osd_lock(&all->lock);
	osd_turns_add(&all->turns, &background->turn);
	pthread_cond_signal(&all->changed);
	/* Until then there is no thread: osd_backgrounds_recover starts it at its end. */
	recovered = all->recovered;
	osd_unlock(&all->lock);
	if (recovered)
		osd_backgrounds_call(all);
}

static uint64_t now_ms(void)
{
	return osd_monotonic_usec() / 1000;
}

static void wait_for_turn(struct osd_backgrounds *all, uint64_t wait_ms)
{
	struct timespec until = osd_timespec(osd_monotonic_usec() + wait_ms * 1000);

	osd_assert_held(&all->lock);
	osd_cond_timedwait(&all->changed, &all->lock, &until);
}

/* Waits while all commands pause.  NULL: there are none, or stop was called. */
static struct osd_background *next_turn(struct osd_backgrounds *all)
{
	struct osd_background *background = NULL;
	uint64_t wait_ms = 0;

	osd_lock(&all->lock);
	while (!all->stopping && !background && wait_ms != OSD_TURN_NEVER) {
		struct osd_turn *turn = osd_turns_take(&all->turns, now_ms(), &wait_ms);

		if (turn)
			background = osd_container_of(turn, struct osd_background, turn);
		else if (wait_ms != OSD_TURN_NEVER)
			wait_for_turn(all, wait_ms);
	}
	all->running = background;
	osd_unlock(&all->lock);
	return background;
}

/* Whether it stays. */
static bool end_turn(struct osd_backgrounds *all, struct osd_background *background,
		     enum osd_status status)
{
	bool lost = status == OSD_E_BUSY;
	bool stays = lost || status == OSD_E_TASK_ABORTED ||
		     (status == OSD_OK && !background->tracked->state.done);

	osd_lock(&all->lock);
	all->running = NULL;
	/* Together with `running`: an interrupt of a later step is not lost. */
	__atomic_store_n(&background->request.aborted, false, __ATOMIC_RELEASE);
	if (stays && lost)
		osd_turns_add_loser(&all->turns, &background->turn, now_ms());
	else if (stays)
		osd_turns_add(&all->turns, &background->turn);
	osd_unlock(&all->lock);
	return stays;
}

static void take_turn(struct osd_backgrounds *all, struct osd_background *background)
{
	enum osd_status status;

	all->ops.enter(all->dispatcher);
	status = osd_tracked_step(background->tracked);
	/* Before leave(): FORMAT OSD does not come between a step and the record of its failure. */
	if (status != OSD_OK && status != OSD_E_BUSY && status != OSD_E_TASK_ABORTED)
		osd_tracked_fail(background->tracked, status);
	all->ops.leave(all->dispatcher);
	if (!end_turn(all, background, status))
		osd_background_drop(background);
}

static void work(void *arg)
{
	struct osd_backgrounds *all = arg;
	struct osd_background *background;

	while ((background = next_turn(all)))
		take_turn(all, background);
}

/* Called under lock.  A step that reads may take long, so ask it to end early. */
static void interrupt(struct osd_backgrounds *all)
{
	osd_assert_held(&all->lock);
	if (all->running)
		__atomic_store_n(&all->running->request.aborted, true, __ATOMIC_RELEASE);
}

void osd_backgrounds_interrupt(struct osd_backgrounds *all)
{
	osd_lock(&all->lock);
	interrupt(all);
	osd_unlock(&all->lock);
}

void osd_backgrounds_stop(struct osd_backgrounds *all)
{
	osd_lock(&all->lock);
	all->stopping = true;
	interrupt(all);
	pthread_cond_broadcast(&all->changed);
	osd_unlock(&all->lock);
	osd_helper_stop(&all->helper);
}
