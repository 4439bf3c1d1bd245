/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_session.c -- invariant: whatever a hostile script's sandbox posts, the proxy answers or
 * ends the job, stays within the shared memory, and neither shows nor changes anything outside
 * the job's zone.
 *
 * Input: one byte for the zone (user object, collection, partition, root), then calls back to
 * back: a frame of 64 bytes, be16 length of what follows, and that much body.  The body lies in
 * memory of the full size, as the sandbox's does, so a frame may claim more than was sent. */
#include "exec/session/session.h"
#include "function/function.h"
#include "fuzz.h"
#include "wire/cursor.h"

#define CALLS_MAX 32
#define CAPACITY  (8u << 20)
#define SECRET    "what the zone keeps out"

/* Partition A: bystander, the zone's object, the zone's collection with that object; partition
 * B: an object; partition C: the job's; partition F: a function that may read. */
#define A         0x10000u
#define B         0x20000u
#define C         0x30000u
#define F         0x11u
#define FUNCTION  0x10000u
#define ACCESS    5u
#define ALIAS     6u
#define PAGE      0x20000006u
#define BYSTANDER 0x10000u
#define INSIDE    0x10001u
#define GROUP     0x10002u

#define GROUP_NAME (OSD_PAGE_COLLECTION_BASE + OSD_REL_INFORMATION)

static const struct osd_zone zones[] = {
	{.type = OSD_USER_OBJECT, .id = {A, INSIDE}},
	{.type = OSD_COLLECTION, .id = {A, GROUP}},
	{.type = OSD_PARTITION, .id = {A, 0}},
	{.type = OSD_ROOT},
};


static void fill_object(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object;
	struct osd_txn *txn;
	uint64_t made;

	HOLDS(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	HOLDS(osd_user_object_create(txn, id.partition_id, id.object_id, 1, &made) == OSD_OK);
	HOLDS(osd_attr_set(txn, id, OSD_REL_INFORMATION, OSD_INFO_USERNAME, (const uint8_t *)SECRET,
			   sizeof(SECRET)) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	HOLDS(osd_object_get(objects, id, &object) == OSD_OK);
	HOLDS(osd_object_write(object, 0, SECRET, sizeof(SECRET), 0) == OSD_OK);
	osd_object_put(object);
}

static void make_partition(struct osd_objects *objects, uint64_t partition_id)
{
	struct osd_txn *txn;
	uint64_t made;

	HOLDS(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	HOLDS(osd_partition_create(txn, partition_id, &made) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void make_collection(struct osd_objects *objects)
{
	uint8_t id[8];
	struct osd_txn *txn;
	uint64_t made;

	osd_put_be(id, GROUP, sizeof(id));
	HOLDS(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	HOLDS(osd_collection_create(txn, A, GROUP, OSD_COLLECTION_LINKED, &made) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	HOLDS(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	HOLDS(osd_attr_set(txn, (struct osd_object_id){A, INSIDE}, OSD_REL_COLLECTIONS, 1, id,
			   sizeof(id)) == OSD_OK);
	HOLDS(osd_attr_set(txn, (struct osd_object_id){A, GROUP}, GROUP_NAME, OSD_INFO_USERNAME,
			   (const uint8_t *)SECRET, sizeof(SECRET)) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

/* Its alias is "f". */
static void make_function(struct osd_objects *objects, struct osd_functions *functions)
{
	struct osd_object_id id = {F, FUNCTION};
	struct osd_txn *txn;

	make_partition(objects, F);
	fill_object(objects, id);
	HOLDS(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	HOLDS(osd_attr_set(txn, id, PAGE, ACCESS, (const uint8_t *)"\1", 1) == OSD_OK);
	HOLDS(osd_attr_set(txn, id, PAGE, ALIAS, (const uint8_t *)"f", 1) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	HOLDS(osd_function_activate(functions, id, false, NULL, NULL) == OSD_OK);
}

static void populate(struct osd_objects *objects)
{
	make_partition(objects, A);
	make_partition(objects, B);
	make_partition(objects, C);
	fill_object(objects, (struct osd_object_id){A, BYSTANDER});
	fill_object(objects, (struct osd_object_id){A, INSIDE});
	fill_object(objects, (struct osd_object_id){B, 0x20000});
	make_collection(objects);
}

/* ---- what must not have changed
 * --------------------------------------------------------------- */

static void check_name(struct osd_objects *objects, struct osd_object_id id, uint32_t page)
{
	uint8_t name[64];
	struct osd_txn *txn;
	size_t length = 0;

	HOLDS(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
	HOLDS(osd_attr_get(txn, id, page, OSD_INFO_USERNAME, name, sizeof(name), &length) ==
	      OSD_OK);
	HOLDS(length == sizeof(SECRET) && !memcmp(name, SECRET, length));
	osd_txn_abort(txn);
}

static void check_object(struct osd_objects *objects, struct osd_object_id id)
{
	uint8_t data[2 * sizeof(SECRET)];
	struct osd_object *object;
	size_t length = 0;

	HOLDS(osd_object_get(objects, id, &object) == OSD_OK);
	HOLDS(osd_object_read(object, 0, data, sizeof(data), 0, &length) == OSD_OK);
	HOLDS(length == sizeof(SECRET) && !memcmp(data, SECRET, length));
	osd_object_put(object);
	check_name(objects, id, OSD_REL_INFORMATION);
}

static uint64_t count(struct osd_objects *objects, enum osd_list_kind kind, uint64_t partition_id)
{
	struct osd_list_request request = {kind, {partition_id, 0}, 0};
	struct osd_list_result result;
	struct osd_txn *txn;
	uint64_t id;

	HOLDS(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
	HOLDS(osd_list(txn, &request, &id, 1, &result) == OSD_OK);
	osd_txn_abort(txn);
	return result.total_count;
}

static void check_outside(struct osd_objects *objects, enum osd_object_type zone)
{
	if (zone == OSD_ROOT)
		return;
	check_object(objects, (struct osd_object_id){B, 0x20000});
	HOLDS(count(objects, OSD_LIST_USER_OBJECTS, B) == 1);
	HOLDS(count(objects, OSD_LIST_COLLECTIONS, B) == 0);
	HOLDS(count(objects, OSD_LIST_PARTITIONS, 0) == 4);
	if (zone == OSD_PARTITION)
		return;
	check_object(objects, (struct osd_object_id){A, BYSTANDER});
	check_name(objects, (struct osd_object_id){A, GROUP}, GROUP_NAME);
	HOLDS(count(objects, OSD_LIST_USER_OBJECTS, A) <= 2); /* the zone's own may be removed */
	HOLDS(count(objects, OSD_LIST_COLLECTIONS, A) == 1);
}

/* ---- the calls
 * -------------------------------------------------------------------------------- */

static enum osd_status hook_spilled(void *arg, struct osd_txn *txn, uint64_t companion)
{
	(void)arg, (void)txn, (void)companion;
	return OSD_OK;
}

static enum osd_status hook_wrote(void *arg)
{
	(void)arg;
	return OSD_OK;
}

static void hook_progress(void *arg, uint16_t progress, const uint8_t *message, size_t length)
{
	(void)arg;
	HOLDS(progress <= 1000 || progress == UINT16_MAX);
	HOLDS(length <= 256);
	touch(message, length);
}

static enum osd_status hook_share(void *arg, const int *fds, size_t fd_count)
{
	(void)arg;
	HOLDS(fd_count >= 1 && fd_count <= OSD_ANSWER_FDS);
	for (size_t i = 0; i < fd_count; i++)
		HOLDS(fds[i] >= 0);
	return OSD_OK;
}

static enum osd_status owner_in(struct osd_exec *exec, struct osd_txn *txn, struct osd_object_id id,
				struct osd_job_owner *ret_owner)
{
	(void)exec, (void)txn, (void)id, (void)ret_owner;
	return OSD_E_NO_OBJECT;
}

static enum osd_status check_partition(struct osd_exec *exec, uint64_t partition_id,
				       struct osd_object_id *ret_job)
{
	(void)exec, (void)partition_id, (void)ret_job;
	return OSD_OK;
}

static enum osd_status partition_made(struct osd_exec *exec, struct osd_txn *txn,
				      uint64_t partition_id)
{
	(void)exec, (void)txn, (void)partition_id;
	return OSD_OK;
}

static void collection_removed(struct osd_exec *exec, struct osd_object_id id)
{
	(void)exec, (void)id;
}

static struct osd_call_figures figures;
static struct osd_session_host host = {
	.calls = &figures,
	.owner_in = owner_in,
	.check_partition = check_partition,
	.partition_made = partition_made,
	.collection_removed = collection_removed,
};

/* A query shows ids of the zone only. */
static void check_query(const struct osd_session *session, const struct osd_answer *answer,
			const uint8_t *body)
{
	enum osd_object_type zone = session->zone.type;

	if (answer->code != OSD_ANSWER_OK)
		return;
	HOLDS(zone != OSD_USER_OBJECT && answer->body_bytes % 8 == 0);
	for (size_t at = 0; zone == OSD_COLLECTION && at < answer->body_bytes; at += 8)
		HOLDS(osd_get_be(body + at, 8) == INSIDE);
}

static enum osd_served serve(struct osd_session *session, const uint8_t frame[OSD_FRAME_BYTES],
			     const uint8_t *sent, size_t length)
{
	static uint8_t body[OSD_BODY_MAX];
	uint8_t answer_frame[OSD_FRAME_BYTES];
	struct osd_answer answer;
	struct osd_call call;
	enum osd_served served;

	if (length)
		memcpy(body, sent, length);
	served = osd_session_serve(session, frame, body, answer_frame, body);
	if (served == OSD_SERVED_FAULT) {
		HOLDS(session->fault != 0);
		return served;
	}
	HOLDS(osd_answer_decode(answer_frame, &answer) && osd_call_decode(frame, &call));
	if (call.op == OSD_CALL_QUERY)
		check_query(session, &answer, body);
	/* Secrets of the zone's own object may be shown, so look where only strangers are named. */
	if (session->zone.type != OSD_ROOT && call.partition_id == B)
		HOLDS(!memmem(body, answer.body_bytes, SECRET, sizeof(SECRET) - 1));
	return served;
}

static void run(struct osd_session *session, struct osd_rd r)
{
	enum osd_served served = OSD_SERVED;

	for (int i = 0; i < CALLS_MAX && served == OSD_SERVED; i++) {
		const uint8_t *frame = osd_rd_bytes(&r, OSD_FRAME_BYTES);
		size_t length = (size_t)osd_rd_be(&r, 2);

		if (length > osd_rd_left(&r))
			length = osd_rd_left(&r);
		if (r.bad)
			return;
		served = serve(session, frame, osd_rd_bytes(&r, length), length);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct osd_objects_config config = {0};
	struct osd_session session = {
		.host = &host,
		.job = {C, 0x30000},
		.limits = {.io_bytes = 64u << 20, .result_bytes = 1u << 20},
		.hooks = {.wrote = hook_wrote,
			  .spilled = hook_spilled,
			  .progress = hook_progress,
			  .share = hook_share},
	};
	char message[256];

	if (size == 0)
		return 0;
	session.zone = zones[data[0] % (sizeof(zones) / sizeof(zones[0]))];
	HOLDS(osd_objects_open(&config, message, &session.objects) == OSD_OK);
	HOLDS(osd_objects_format(session.objects, CAPACITY) == OSD_OK);
	HOLDS(osd_functions_open(session.objects, NULL, message, &host.functions) == OSD_OK);
	populate(session.objects);
	make_function(session.objects, host.functions);
	HOLDS(osd_session_init(&session) == OSD_OK);
	run(&session, osd_rd_init(data + 1, size - 1));
	osd_session_release(&session);
	check_outside(session.objects, session.zone.type);
	osd_functions_close(host.functions);
	osd_objects_close(session.objects);
	return 0;
}
