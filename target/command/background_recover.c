/* SPDX-License-Identifier: GPL-2.0-or-later */
/* background_recover.c -- resumes or ends the commands that the last run left in the store. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "command/background_impl.h"
#include "object/txn_run.h"

struct found {
	struct found *next;
	struct osd_tracked tracked;
	uint16_t service_action;
	bool known;
};

struct recovery {
	struct found *list;
	bool no_memory;
};

static bool find_state(void *arg, const uint8_t *key, size_t key_length, const uint8_t *value,
		       size_t length)
{
	struct recovery *recovery = arg;
	struct found *found = calloc(1, sizeof(*found));

	if (!found) {
		recovery->no_memory = true;
		return false;
	}
	if (!osd_tracked_key_decode(key, key_length, OSD_TRACKED_STATE, &found->tracked)) {
		free(found);
		return true;
	}
	found->known = osd_tracked_decode(value, length, &found->tracked, &found->service_action);
	found->next = recovery->list;
	recovery->list = found;
	return true;
}

struct request_bytes {
	const struct found *found;
	uint8_t *bytes;
	size_t length;
};

static enum osd_status get_request(struct osd_txn *txn, void *arg)
{
	struct request_bytes *get = arg;
	uint8_t key[OSD_TRACKED_KEY_BYTES];
	enum osd_status status;

	osd_tracked_key(&get->found->tracked, OSD_TRACKED_REQUEST, key);
	status = osd_txn_record_get(txn, OSD_TABLE_COMMANDS, key, sizeof(key), get->bytes,
				    OSD_CDB_LENGTH + OSD_BACKGROUND_DATA_MAX, &get->length);
	if (status != OSD_OK)
		return status;
	return get->length >= OSD_CDB_LENGTH &&
			       get->length <= OSD_CDB_LENGTH + OSD_BACKGROUND_DATA_MAX
		       ? OSD_OK
		       : osd_internal("a background command is stored with %zu bytes", get->length);
}

/* Resumes the command where it stopped. */
static enum osd_status resume(struct osd_backgrounds *all, struct found *found, uint8_t *bytes)
{
	struct request_bytes get = {.found = found, .bytes = bytes};
	struct osd_background *background;
	struct osd_tracked accepted = found->tracked;
	enum osd_status status = osd_txn_run(all->objects, OSD_TXN_READ_ONLY, get_request, &get);

	if (status != OSD_OK)
		return status;
	/* it had a place before the restart, but the record does not name its owner */
	status = osd_background_make_own(all, bytes, bytes + OSD_CDB_LENGTH,
					 get.length - OSD_CDB_LENGTH, &background);
	if (status != OSD_OK)
		return status;
	if (background->request.decoded.service_action ==
	    OSD_SA_CREATE_USER_TRACKING_COLLECTION) /* the CDB may let the target choose the id */
		background->request.object = accepted.tracker;
	accepted.ctx = &background->ctx;
	osd_background_start(background, &accepted);
	return OSD_OK;
}

/* Ends a command that no client waits for, or that cannot be resumed.  Removes what it made, or
 * writes its end to its page. */
static void end(struct osd_backgrounds *all, struct found *found, enum osd_status status)
{
	const struct osd_command_def *row = all->ops.row(found->service_action);
	struct osd_background *removal;
	struct osd_request request = {.nexus = {.initiator_name = "", .address = ""},
				      .object = found->tracked.tracker,
				      .object_type = OSD_COLLECTION};
	struct osd_command_context ctx = {
		.request = &request, .objects = all->objects, .backgrounds = all};
	struct osd_tracked_def none = {.begin = NULL};

	request.decoded.service_action = found->service_action;
	found->tracked.ctx = &ctx;
	found->tracked.def = &none;
	if (row && row->tracked && row->tracked->leaves_nothing && !found->tracked.background &&
	    osd_tracked_undo(&found->tracked, &removal) == OSD_OK)
		osd_background_start(removal, removal->tracked);
	else
		osd_tracked_fail(&found->tracked, status);
}

static enum osd_status find_all(struct osd_txn *txn, void *arg)
{
	struct recovery *recovery = arg;
	enum osd_status status =
		osd_txn_record_each(txn, OSD_TABLE_COMMANDS, "", 0, find_state, recovery);

	return status == OSD_OK && recovery->no_memory ? OSD_E_NO_MEMORY : status;
}

static void take_up(struct osd_backgrounds *all, struct found *found, uint8_t *bytes)
{
	enum osd_status status = OSD_E_TASK_ABORTED;

	if (!found->known) {
		osd_error("the record of a command on collection 0x%" PRIx64 "/0x%" PRIx64
			  " is not one this release knows",
			  found->tracked.tracker.partition_id, found->tracked.tracker.object_id);
		return;
	}
	if (found->tracked.background)
		status = resume(all, found, bytes);
	if (status != OSD_OK)
		end(all, found, status);
}

enum osd_status osd_backgrounds_recover(struct osd_backgrounds *all)
{
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	struct recovery recovery = {.list = NULL};
	enum osd_status status = osd_txn_run(all->objects, OSD_TXN_READ_ONLY, find_all, &recovery);

	if (status == OSD_OK && recovery.list) {
		bytes = malloc(OSD_CDB_LENGTH + OSD_BACKGROUND_DATA_MAX);
		if (!bytes)
			status = OSD_E_NO_MEMORY;
	}
	while (recovery.list) {
		struct found *found = recovery.list;

		recovery.list = found->next;
		if (status == OSD_OK)
			take_up(all, found, bytes);
		free(found);
	}
	osd_lock(&all->lock);
	all->recovered = true;
	osd_unlock(&all->lock);
	osd_backgrounds_call(all);
	return status;
}
