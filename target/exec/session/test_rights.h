/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_rights.h -- a small store, and sessions under a capability, for test_rights*.c. */
#ifndef OSD_EXEC_SESSION_TEST_RIGHTS_H
#define OSD_EXEC_SESSION_TEST_RIGHTS_H

#include "exec/session/test_session.h"

#define TAG 7u

static struct osd_objects *objects;
static uint64_t pid, tagged, plain;

static inline enum osd_status accept_all(void *arg)
{
	(void)arg;
	return OSD_OK;
}

static inline enum osd_status take_descriptors(void *arg, const int *fds, size_t count)
{
	(void)arg, (void)fds, (void)count;
	return OSD_OK;
}

static inline struct osd_capability capability_of(enum osd_object_type type, uint64_t id)
{
	return (struct osd_capability){
		.format = OSD_CAPABILITY_OSD2,
		.security_method = OSD_CAPKEY,
		.object_type = (uint8_t)type,
		.descriptor_type =
			type == OSD_PARTITION ? OSD_CAPDESC_PARTITION : OSD_CAPDESC_OBJECT,
		.permissions = OSD_PERM_FUN_EXE,
		.allowed_partition_id = pid,
		.allowed_object_id = id,
	};
}

static inline struct osd_session start(const struct osd_capability *capability)
{
	struct osd_session session = {
		.objects = objects,
		.zone = {(enum osd_object_type)capability->object_type,
			 {capability->allowed_partition_id, capability->allowed_object_id}},
		.job = {pid, plain},
		.limits = {.io_bytes = UINT64_MAX, .result_bytes = 1 << 20},
		.rights = {.limited = true, .grant = {.capability = *capability, .verified = true}},
		.policy_seen = UINT64_MAX,
		.shares_lock = OSD_LOCK_INITIALIZER(OSD_RANK_SHARES),
		.hooks = {.wrote = accept_all, .share = take_descriptors},
	};

	CHECK(osd_session_init(&session) == OSD_OK);
	return session;
}

static inline struct osd_call call_on(uint16_t op, uint64_t id, uint64_t a, uint64_t b)
{
	return (struct osd_call){.op = op, .partition_id = pid, .object_id = id, .a = a, .b = b};
}

static inline struct osd_call write_of(uint64_t id, uint64_t at, uint32_t length)
{
	struct osd_call call = call_on(OSD_CALL_WRITE, id, at, 0);

	call.body_bytes = length;
	return call;
}

static inline void set_tag(uint64_t id, uint32_t page, uint32_t tag)
{
	struct osd_txn *txn;
	uint8_t value[4];

	osd_put_be(value, tag, sizeof(value));
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_attr_set(txn, (struct osd_object_id){pid, id}, page, 0x40000001, value,
			   sizeof(value)) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static inline void fill_store(void)
{
	struct osd_objects_config config = {0};
	char message[256];
	struct osd_txn *txn;

	CHECK(osd_objects_open(&config, message, &objects) == OSD_OK);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_create(txn, 0, &pid) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, 0, 1, &tagged) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, 0, 1, &plain) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	set_tag(tagged, 5, TAG);
}

#endif
