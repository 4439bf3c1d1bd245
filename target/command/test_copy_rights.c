/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_copy_rights.c -- COPY USER OBJECTS under a capability with a policy access tag, while another client makes the
 * source: it is absent, or another object, when rights are compared. */
#include "base/test.h"
#include "base/util.h"
#include "command/commands.h"
#include "command/table.h"
#include "object/draft.h"
#include "object/internal.h"
#include "wire/continuation.h"
#include "wire/cursor.h"

#define TAG    7u
#define SOURCE UINT64_C(0x20000)
#define COPY   UINT64_C(0x30000)

static struct osd_objects *objects;
static const struct osd_kv_ops *below;
static uint64_t pid;
static bool comes; /* the source, at the next look at the copy's id */
static bool there; /* another one goes at that moment */

static void make_source(uint32_t tag)
{
	uint8_t value[4];
	struct osd_txn *txn;
	uint64_t id;

	osd_put_be(value, tag, sizeof(value));
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_user_object_create(txn, pid, SOURCE, 1, &id), OSD_OK);
	CHECK_EQ(osd_attr_set(txn, (struct osd_object_id){pid, SOURCE}, OSD_REL_SECURITY,
			      OSD_SEC_TAG, value, sizeof(value)),
		 OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
}

static void remove_source(void)
{
	struct osd_txn *txn;

	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_user_object_remove(txn, (struct osd_object_id){pid, SOURCE}), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
}

static enum osd_status look(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			    struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			    size_t *ret_length)
{
	if (comes && table == OSD_KV_OBJECTS && key.length >= 8 &&
	    osd_get_be((const uint8_t *)key.data + key.length - 8, 8) == COPY) {
		comes = false;
		if (there)
			remove_source();
		make_source(TAG + 1);
	}
	return below->get(kv, txn, table, key, flags, buffer, capacity, ret_length);
}

static enum osd_status copy(void)
{
	uint8_t source[OSD_COPY_SOURCE_BYTES] = {0}, segment[128];
	struct osd_wr writer;
	struct osd_request request = {
		.def = osd_command_find(OSD_SA_COPY_USER_OBJECTS),
		.object = {pid, COPY},
		.object_type = OSD_USER_OBJECT,
		.security.proof.grant = {.verified = true,
					 .capability = {.object_type = OSD_USER_OBJECT,
							.descriptor_type = OSD_CAPDESC_OBJECT,
							.permissions = OSD_PERM_CREATE |
								       OSD_PERM_READ |
								       OSD_PERM_WRITE,
							.policy_access_tag = TAG,
							.allowed_partition_id = pid}},
	};
	struct osd_command_context ctx = {
		.request = &request,
		.def = request.def,
		.addressed = request.object,
		.objects = objects,
	};

	osd_put_be(source, pid, 8);
	osd_put_be(source + 8, SOURCE, 8);
	writer = osd_wr_init(segment, sizeof(segment));
	osd_continuation_begin(&writer, OSD_SA_COPY_USER_OBJECTS);
	osd_continuation_add(&writer, OSD_DESC_COPY_SOURCE, source, sizeof(source));
	CHECK_EQ(osd_continuation_open(segment, osd_wr_used(&writer), OSD_SA_COPY_USER_OBJECTS,
				       &ctx.continuation),
		 OSD_OK);
	return osd_cmd_copy_user_objects(&ctx);
}

/* Attributes are not those of a later object either. */
static void test_attributes(void)
{
	struct osd_object *source;
	struct osd_txn *txn;

	CHECK_EQ(osd_object_get(objects, (struct osd_object_id){pid, SOURCE}, &source), OSD_OK);
	remove_source();
	make_source(TAG + 1);
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_copy_attributes(txn, source, (struct osd_object_id){pid, COPY}),
		 OSD_E_NO_OBJECT);
	osd_txn_abort(txn);
	osd_object_put(source);
}

int main(void)
{
	struct osd_objects_config config = {0};
	struct osd_kv_ops ops;
	struct osd_txn *txn;
	char message[256];

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_partition_create(txn, 0, &pid), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	osd_timers_stop(&objects->timers); /* they and the reaper read the operations, too */
	osd_helper_stop(&objects->reaper);
	below = objects->kv->ops;
	ops = *below;
	ops.get = look;
	objects->kv->ops = &ops;

	comes = true;
	CHECK_EQ(copy(), OSD_E_CDB_FIELD);
	objects->kv->ops = below;
	if (comes)
		make_source(TAG + 1);
	CHECK_EQ(copy(), OSD_E_CDB_FIELD);
	remove_source();
	CHECK_EQ(copy(), OSD_E_CDB_FIELD);
	make_source(TAG);
	objects->kv->ops = &ops;
	comes = there = true;
	CHECK_EQ(copy(), OSD_E_CDB_FIELD);
	CHECK(!comes);
	objects->kv->ops = below;
	remove_source();
	make_source(TAG);
	CHECK_EQ(copy(), OSD_OK);
	test_attributes();
	osd_objects_close(objects);
	return 0;
}
