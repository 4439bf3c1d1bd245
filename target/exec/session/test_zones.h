/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_zones.h -- for tests of a script's calls: a store in memory with objects inside and outside of its zone. */
#ifndef OSD_EXEC_SESSION_TEST_ZONES_H
#define OSD_EXEC_SESSION_TEST_ZONES_H

#include <string.h>

#include "exec/session/test_session.h"

static struct osd_objects *objects;
static uint64_t pid, other_pid, object, stranger, collection, elsewhere;
static unsigned wrote_calls;
static uint16_t progress_seen;
static enum osd_status spilled_status; /* what note_spilled returns */

/* ---- the owner's side ------------------------------------------------------------------------ */

static inline enum osd_status note_wrote(void *arg)
{
	(void)arg;
	wrote_calls++;
	return OSD_OK;
}

static inline enum osd_status note_spilled(void *arg, struct osd_txn *txn, uint64_t companion)
{
	(void)arg, (void)txn;
	CHECK(companion != 0);
	return spilled_status;
}

static inline void note_progress(void *arg, uint16_t progress, const uint8_t *message, size_t length)
{
	(void)arg, (void)message, (void)length;
	progress_seen = progress;
}

static inline enum osd_status note_share(void *arg, const int *fds, size_t count)
{
	(void)arg, (void)fds, (void)count;
	return OSD_OK;
}

static inline struct osd_session start(enum osd_object_type type, uint64_t zone_pid, uint64_t zone_oid)
{
	struct osd_session session = {
		.objects = objects,
		.zone = {type, {zone_pid, zone_oid}},
		.job = {pid, object},
		.limits = {.io_bytes = UINT64_MAX, .result_bytes = 1 << 20},
		.hooks = {.wrote = note_wrote,
			  .spilled = note_spilled,
			  .progress = note_progress,
			  .share = note_share},
	};

	CHECK(osd_session_init(&session) == OSD_OK);
	return session;
}

static inline void fill_store(void)
{
	struct osd_objects_config config = {0};
	char message[256];
	struct osd_txn *txn;

	CHECK(osd_objects_open(&config, message, &objects) == OSD_OK);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_create(txn, 0, &pid) == OSD_OK);
	CHECK(osd_partition_create(txn, 0, &other_pid) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, 0, 1, &object) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, 0, 1, &stranger) == OSD_OK);
	elsewhere = object; /* the same id in another partition */
	CHECK(osd_user_object_create(txn, other_pid, elsewhere, 1, &elsewhere) == OSD_OK);
	CHECK(osd_collection_create(txn, pid, 0, OSD_COLLECTION_LINKED, &collection) == OSD_OK);
	CHECK(osd_collection_add(txn, (struct osd_object_id){pid, collection}, object) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static inline struct osd_call call_on(uint16_t op, uint64_t partition, uint64_t id)
{
	return (struct osd_call){.op = op, .partition_id = partition, .object_id = id};
}

static inline enum osd_answer_code write_text(struct osd_session *session, uint64_t partition, uint64_t id,
				       const char *text)
{
	struct osd_call call = call_on(OSD_CALL_WRITE, partition, id);

	call.body_bytes = (uint32_t)strlen(text);
	memcpy(body(), text, call.body_bytes);
	return ask(session, call);
}

#endif
