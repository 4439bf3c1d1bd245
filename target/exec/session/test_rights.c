/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_rights.c -- what a script may do under a capability, call by call, against the in-memory
 * store: permissions, tags, ranges, attributes, collections, created objects, query results, the
 * present policy of partitions, and the end of rights. */
#include "exec/session/test_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/target.h"
#include "security/keys.h"
#include "object/internal.h"
#include "object/query.h"
#include "wire/attr_list.h"
#include "wire/cursor.h"
#include "wire/query_list.h"

#define TAG 7u

static struct osd_objects *objects;
static uint64_t pid, tagged, plain;

static enum osd_status accept_all(void *arg)
{
	(void)arg;
	return OSD_OK;
}

static enum osd_status take_descriptors(void *arg, const int *fds, size_t count)
{
	(void)arg, (void)fds, (void)count;
	return OSD_OK;
}

static struct osd_capability capability_of(enum osd_object_type type, uint64_t id)
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

static struct osd_session start(const struct osd_capability *capability)
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

static struct osd_call call_on(uint16_t op, uint64_t id, uint64_t a, uint64_t b)
{
	return (struct osd_call){.op = op, .partition_id = pid, .object_id = id, .a = a, .b = b};
}

static struct osd_call write_of(uint64_t id, uint64_t at, uint32_t length)
{
	struct osd_call call = call_on(OSD_CALL_WRITE, id, at, 0);

	call.body_bytes = length;
	return call;
}

static void set_tag(uint64_t id, uint32_t page, uint32_t tag)
{
	struct osd_txn *txn;
	uint8_t value[4];

	osd_put_be(value, tag, sizeof(value));
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_attr_set(txn, (struct osd_object_id){pid, id}, page, 0x40000001, value,
			   sizeof(value)) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void fill_store(void)
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

/* Sets one permission bit at a time: it permits its operations and no others. */
static void test_permissions(void)
{
	const struct {
		uint16_t permission;
		struct osd_call call;
	} rows[] = {
		{OSD_PERM_READ, call_on(OSD_CALL_READ, tagged, 0, 4)},
		{OSD_PERM_READ, call_on(OSD_CALL_LENGTH, tagged, 0, 0)},
		{OSD_PERM_READ, call_on(OSD_CALL_LIST, 0, OSD_LIST_USER_OBJECTS, 0)},
		{OSD_PERM_WRITE, write_of(tagged, 0, 4)},
		{OSD_PERM_WRITE, call_on(OSD_CALL_CLEAR, tagged, 0, 2)},
		{OSD_PERM_WRITE, call_on(OSD_CALL_TRUNCATE, tagged, 4, 0)},
		{OSD_PERM_APPEND,
		 {.op = OSD_CALL_APPEND,
		  .partition_id = pid,
		  .object_id = tagged,
		  .body_bytes = 1}},
		{OSD_PERM_GET_ATTR, call_on(OSD_CALL_LISTATTR, tagged, 1, 0)},
		{OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR,
		 call_on(OSD_CALL_ADDATTR, tagged, UINT64_C(0x10000) << 32 | 1, 1)},
		{OSD_PERM_CREATE, call_on(OSD_CALL_CREATE, 0, 1, 0)},
		{OSD_PERM_CREATE, call_on(OSD_CALL_CREATE_COLLECTION, 0, 0, 0)},
		{0, call_on(OSD_CALL_TYPE, tagged, 0, 0)},
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++) {
		for (unsigned bit = 0; bit < 16; bit++) {
			struct osd_capability capability = capability_of(OSD_PARTITION, 0);
			uint16_t given = (uint16_t)(rows[i].permission & ~(1u << bit));
			struct osd_session session;

			capability.permissions |= given;
			session = start(&capability);
			CHECK(ask(&session, rows[i].call) == (given == rows[i].permission
								      ? OSD_ANSWER_OK
								      : OSD_ANSWER_PERMISSION));
			osd_session_release(&session);
		}
	}
}

static void test_tags(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_session session;

	capability.permissions |= OSD_PERM_READ | OSD_PERM_CREATE | OSD_PERM_QUERY;
	capability.policy_access_tag = TAG;
	set_tag(0, 0x30000005, TAG);
	session = start(&capability);
	CHECK(ask(&session, call_on(OSD_CALL_READ, tagged, 0, 4)) == OSD_ANSWER_OK);
	CHECK(ask(&session, call_on(OSD_CALL_READ, plain, 0, 4)) == OSD_ANSWER_PERMISSION);
	/* New objects would have no tag. */
	CHECK(ask(&session, call_on(OSD_CALL_CREATE, 0, 1, 0)) == OSD_ANSWER_PERMISSION);
	/* An open object is checked again. */
	set_tag(tagged, 5, TAG + 1);
	CHECK(ask(&session, call_on(OSD_CALL_READ, tagged, 0, 4)) == OSD_ANSWER_PERMISSION);
	set_tag(tagged, 5, TAG);
	CHECK(ask(&session, call_on(OSD_CALL_READ, tagged, 0, 4)) == OSD_ANSWER_OK);
	osd_session_release(&session);
}

/* A query returns not even the ids of objects that the job may not read. */
static void test_query(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_call query = call_on(OSD_CALL_QUERY, 0, 0, 0);
	struct osd_session session;

	capability.permissions |= OSD_PERM_QUERY;
	capability.policy_access_tag = TAG;
	session = start(&capability);
	memset(body(), 0, 8);
	query.body_bytes = 8; /* no criteria: all objects */
	CHECK(ask(&session, query) == OSD_ANSWER_OK);
	CHECK(answered.body_bytes == 8 && osd_get_be(body(), 8) == tagged);
	osd_session_release(&session);
	capability.policy_access_tag = 0;
	session = start(&capability);
	memset(body(), 0, 8);
	CHECK(ask(&session, query) == OSD_ANSWER_OK);
	CHECK(answered.body_bytes > 8);
	osd_session_release(&session);
	set_tag(0, 0x30000005, 0);
}

#define INDEXED 0x10000u
#define OWN	(OSD_CALL_IDS + 8)
#define BEFORE	OSD_CALL_LOOKS /* of them, the hidden one */

static enum osd_status make_match(struct osd_txn *txn, uint64_t id, uint32_t tag, uint64_t *ret_id)
{
	uint8_t value[8] = {0}, tag_value[4];
	enum osd_status status = osd_user_object_create(txn, pid, id, 1, ret_id);
	struct osd_object_id made = {pid, *ret_id};

	osd_put_be(tag_value, tag, sizeof(tag_value));
	if (status == OSD_OK)
		status = osd_attr_set(txn, made, INDEXED, 5, value, sizeof(value));
	return status == OSD_OK
		       ? osd_attr_set(txn, made, 5, 0x40000001, tag_value, sizeof(tag_value))
		       : status;
}

/* Objects with a value that is indexed, and one among them that the job may not read. */
static uint64_t make_matches(void)
{
	struct osd_txn *txn;
	uint64_t id, hidden = 0;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_attr_set(txn, (struct osd_object_id){pid, 0}, OSD_PAGE_INDEX, INDEXED,
			   (const uint8_t *)"\1", 1) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	for (uint8_t state = 0; state != OSD_INDEX_READY; usleep(1000)) {
		size_t length;

		CHECK(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
		CHECK(osd_attr_get(txn, (struct osd_object_id){pid, 0}, OSD_PAGE_INDEX, INDEXED,
				   &state, 1, &length) == OSD_OK);
		osd_txn_abort(txn);
	}
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	for (size_t i = 0; i < OWN; i++) {
		CHECK(make_match(txn, 0, TAG, &id) == OSD_OK);
		if (i + 1 == BEFORE)
			CHECK(make_match(txn, id + 100, TAG + 1, &hidden) == OSD_OK);
	}
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	return hidden;
}

/* So many criteria, all the same and all of which must match, from an id on. */
static struct osd_call query_of(size_t criteria, uint64_t from)
{
	struct osd_call call = call_on(OSD_CALL_QUERY, 0, from, 0);
	struct osd_wr w = osd_wr_init(body(), OSD_BODY_MAX);

	osd_wr_be(&w, 0x01000000, 4);
	for (size_t i = 0; i < criteria; i++) {
		osd_wr_be(&w, 12, 4);
		osd_wr_be(&w, INDEXED, 4);
		osd_wr_be(&w, 5, 4);
		osd_wr_be(&w, 0, 4); /* no bounds */
	}
	call.body_bytes = (uint32_t)osd_wr_used(&w);
	return call;
}

/* Nor does it tell by a number or by the place where it goes on that such an object has the value. */
static void test_hidden_matches(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	uint64_t hidden = make_matches();
	struct osd_session session;

	set_tag(0, 0x30000005, TAG);
	capability.permissions |= OSD_PERM_QUERY;
	capability.policy_access_tag = TAG;
	session = start(&capability);
	for (size_t criteria = 1; criteria <= 2; criteria++) {
		uint64_t next = 0, total = 0, found = 0;

		do {
			CHECK(ask(&session, query_of(criteria, next)) == OSD_ANSWER_OK);
			next = answered.a;
			total += answered.b;
			found += answered.body_bytes / 8;
			CHECK(next != hidden && answered.b == answered.body_bytes / 8);
		} while (next);
		CHECK_EQ(found, (uint64_t)OWN);
		CHECK_EQ(total, (uint64_t)OWN);
	}
	osd_session_release(&session);
	set_tag(0, 0x30000005, 0);
}

static const struct osd_kv_ops *below;
static uint64_t coming; /* an object of another tag, made when it is looked for the second time */
static unsigned looks;

static enum osd_status look(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			    struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			    size_t *ret_length)
{
	uint64_t id =
		key.length >= 8 ? osd_get_be((const uint8_t *)key.data + key.length - 8, 8) : 0;
	struct osd_txn *made;

	if (table == OSD_KV_OBJECTS && id == coming && ++looks == 2) {
		CHECK(osd_txn_begin(objects, 0, &made) == OSD_OK);
		CHECK(osd_user_object_create(made, pid, coming, 1, &id) == OSD_OK);
		CHECK(osd_txn_commit(made, OSD_COMMIT_PROCESS) == OSD_OK);
	}
	return below->get(kv, txn, table, key, flags, buffer, capacity, ret_length);
}

/* An object that another client makes while the call opens it, with the tag that is the partition's default. */
static void test_made_meanwhile(void)
{
	const uint16_t ops[] = {OSD_CALL_READ, OSD_CALL_SHARE};
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_kv_ops watched;

	capability.permissions |= OSD_PERM_READ;
	capability.policy_access_tag = TAG;
	set_tag(0, 0x30000005, TAG);
	osd_timers_stop(&objects->timers); /* they read the operations, too */
	below = objects->kv->ops;
	watched = *below;
	watched.get = look;
	for (size_t i = 0; i < OSD_ARRAY_SIZE(ops); i++) {
		struct osd_session session = start(&capability);

		coming = 0x7000000 + i;
		looks = 0;
		objects->kv->ops = &watched;
		CHECK(ask(&session, call_on(ops[i], coming, 0, 0)) == OSD_ANSWER_NOT_FOUND);
		CHECK(looks == 1);
		objects->kv->ops = below;
		osd_session_release(&session);
	}
	set_tag(0, 0x30000005, 0);
}

static void test_range(void)
{
	struct osd_capability capability = capability_of(OSD_USER_OBJECT, plain);
	struct osd_session session;

	capability.permissions |= OSD_PERM_READ | OSD_PERM_WRITE;
	capability.allowed_range_start = 4;
	capability.allowed_range_length = 8;
	session = start(&capability);
	CHECK(ask(&session, write_of(plain, 4, 8)) == OSD_ANSWER_OK);
	CHECK(ask(&session, write_of(plain, 3, 8)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, write_of(plain, 5, 8)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_READ, plain, 4, 8)) == OSD_ANSWER_OK);
	CHECK(ask(&session, call_on(OSD_CALL_READ, plain, 0, 8)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_READ, plain, 5, 8)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_TRUNCATE, plain, 5, 0)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_SHARE, plain, 0, 0)) == OSD_ANSWER_IO);
	osd_session_release(&session);
}

/* The next call is not answered, and the job ends with the reason. */
static void check_ended(struct osd_session *session)
{
	struct osd_call call = call_on(OSD_CALL_TYPE, tagged, 0, 0);

	CHECK(serve(session, &call) == OSD_SERVED_FAULT);
	CHECK(session->fault == OSD_REASON_REVOKED);
	osd_session_release(session);
}

static void test_end_of_rights(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_session session;

	capability.expiration_ms = osd_wall_msec() + 3600000;
	session = start(&capability);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, tagged, 0, 0)) == OSD_ANSWER_OK);
	session.rights.grant.capability.expiration_ms = osd_wall_msec();
	check_ended(&session);

	/* The tag of the zone itself. */
	capability.expiration_ms = 0;
	capability.policy_access_tag = TAG;
	set_tag(0, 0x30000005, TAG);
	session = start(&capability);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, tagged, 0, 0)) == OSD_ANSWER_OK);
	set_tag(0, 0x30000005, TAG + 1);
	check_ended(&session);
	set_tag(0, 0x30000005, 0);

	/* As the sweep reports it. */
	capability.policy_access_tag = 0;
	session = start(&capability);
	atomic_store(&session.revoked, true);
	check_ended(&session);
}

/* ---- the present policy of partitions -------------------------------------------------------- */

static struct osd_flow flow;
static struct osd_exec exec = {.flow = &flow};
static struct osd_session_host host;
static struct osd_call_figures calls;

static void *no_hold(struct osd_exec *any, struct osd_object_id id)
{
	(void)any, (void)id;
	return NULL;
}

static void no_release(struct osd_exec *any, void *hold)
{
	(void)any, (void)hold;
}

static void make_host(void)
{
	osd_objects_watch_removals(objects, osd_exec_removed, &exec);
	host = (struct osd_session_host){
		.exec = &exec,
		.keyring = exec.keyring,
		.calls = &calls,
		.owner_in = osd_exec_owner_in,
		.check_partition = osd_exec_check_partition,
		.partition_made = osd_exec_partition_made,
		.collection_removed = osd_exec_collection_removed,
		.hold_object = no_hold,
		.release_object = no_release,
	};
}

static void demand(uint64_t partition_id, uint8_t method)
{
	uint32_t page = partition_id ? 0x30000005 : 0x90000005;
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_attr_set(txn, (struct osd_object_id){partition_id, 0}, page, 1, &method, 1) ==
	      OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

/* Without a capability. */
static struct osd_session start_open(enum osd_object_type type, uint64_t partition_id)
{
	struct osd_capability none = {0};
	struct osd_session session = start(&none);

	make_host();
	session.host = &host;
	session.zone = (struct osd_zone){type, {partition_id, 0}};
	session.rights = (struct osd_job_rights){0};
	return session;
}

static void test_open_jobs(void)
{
	struct osd_call reading = call_on(OSD_CALL_READ, tagged, 0, 4);
	struct osd_call removing = call_on(OSD_CALL_REMOVE_PARTITION, 0, 0, 0);
	struct osd_session session = start_open(OSD_PARTITION, pid);

	CHECK(ask(&session, reading) == OSD_ANSWER_OK);
	demand(pid, OSD_CAPKEY);
	check_ended(&session);

	/* The root's zone: each partition is checked by itself. */
	session = start_open(OSD_ROOT, 0);
	CHECK(ask(&session, reading) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, tagged, 0, 0)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, 0x7777, 0, 0)) == OSD_ANSWER_PERMISSION);
	demand(pid, OSD_NOSEC);
	CHECK(ask(&session, reading) == OSD_ANSWER_OK);
	demand(pid, OSD_ALLDATA);
	CHECK(ask(&session, reading) == OSD_ANSWER_PERMISSION);
	demand(0, OSD_CAPKEY);
	check_ended(&session);
	demand(0, OSD_NOSEC);
	demand(pid, OSD_NOSEC);
	/* Creating and removing partitions needs the root's policy. */
	session = start_open(OSD_ROOT, 0);
	CHECK(ask(&session, removing) == OSD_ANSWER_NOT_EMPTY);
	osd_session_release(&session);
}

static void set_key(enum osd_key_level level, uint64_t partition_id)
{
	static const uint8_t identifier[OSD_KEY_IDENTIFIER] = "tested";
	static uint8_t seed[OSD_SEED_LENGTH];
	struct osd_key_name name = {level, partition_id, 0};
	struct osd_txn *txn;

	seed[0]++; /* makes each key different */
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_keyring_set(exec.keyring, txn, &name, OSD_HMAC_SHA256, identifier, seed) ==
	      OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void open_keyring(void)
{
	char message[256], file[] = "/tmp/test_rights.XXXXXX";

	CHECK(mkdtemp(file));
	CHECK(rmdir(file) == 0); /* removes the file's name: the keyring creates it again */
	CHECK(osd_keyring_open(objects, file, message, &exec.keyring) == OSD_OK);
	CHECK(unlink(file) == 0);
	set_key(OSD_KEY_ROOT, 0);
	set_key(OSD_KEY_PARTITION, pid);
	set_key(OSD_KEY_WORKING, pid);
}

/* With a capability that the partition's working key 0 has signed. */
static struct osd_session start_signed(const struct osd_capability *capability)
{
	struct osd_session session = start(capability);

	make_host();
	session.host = &host;
	session.rights.grant.level = OSD_KEY_WORKING;
	session.rights.grant.key_partition = pid;
	osd_rights_stamp(exec.keyring, &session.rights);
	return session;
}

/* The next call notices the change, not only the sweep. */
static void test_changed_key(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_session session = start_signed(&capability);

	CHECK(ask(&session, call_on(OSD_CALL_TYPE, tagged, 0, 0)) == OSD_ANSWER_OK);
	set_key(OSD_KEY_WORKING, pid);
	check_ended(&session);
	session = start_signed(&capability);
	CHECK(ask(&session, call_on(OSD_CALL_TYPE, tagged, 0, 0)) == OSD_ANSWER_OK);
	set_key(OSD_KEY_ROOT, 0); /* and with it all keys below */
	check_ended(&session);
	set_key(OSD_KEY_PARTITION, pid);
	set_key(OSD_KEY_WORKING, pid);
}

/* The method of a capability is compared, too. */
static void test_weaker_method(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_session session;

	capability.permissions |= OSD_PERM_READ;
	demand(pid, OSD_CAPKEY);
	session = start_signed(&capability);
	CHECK(ask(&session, call_on(OSD_CALL_READ, tagged, 0, 4)) == OSD_ANSWER_OK);
	demand(pid, OSD_CMDRSP);
	check_ended(&session);
	demand(pid, OSD_NOSEC);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static struct osd_call set_of(uint64_t id, uint32_t page, uint32_t number, const void *value,
			      size_t length)
{
	struct osd_call call = call_on(OSD_CALL_SETATTR, id, 0, 0);
	struct osd_attr_writer writer;

	osd_attr_writer_init(&writer, body(), OSD_BODY_MAX, OSD_LIST_BARE);
	CHECK(osd_attr_writer_add(&writer, page, number, value, length) == OSD_OK);
	call.body_bytes = (uint32_t)osd_attr_writer_finish(&writer);
	return call;
}

static void test_needs_of_attributes(void)
{
	const struct {
		uint64_t id;
		uint32_t page, number;
		uint16_t permissions;
	} rows[] = {
		{plain, 0x10000, 1, OSD_PERM_SET_ATTR},
		{plain, 1, 0x82, OSD_PERM_SET_ATTR | OSD_PERM_WRITE},
		{0, 0x30000002, 0x10001, OSD_PERM_SET_ATTR | OSD_PERM_POL_SEC},
		{plain, 2, 1, OSD_PERM_SET_ATTR | OSD_PERM_POL_SEC},
	};
	const uint8_t value[8] = {0x7f};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++) {
		for (unsigned bit = 0; bit < 16; bit++) {
			struct osd_capability capability = capability_of(OSD_PARTITION, 0);
			uint16_t given = (uint16_t)(rows[i].permissions & ~(1u << bit));
			const void *set = rows[i].page == 1 ? (const uint8_t[8]){0} : value;
			struct osd_session session;

			capability.permissions |= given;
			session = start(&capability);
			CHECK(ask(&session,
				  set_of(rows[i].id, rows[i].page, rows[i].number, set, 8)) ==
			      (given == rows[i].permissions ? OSD_ANSWER_OK
							    : OSD_ANSWER_PERMISSION));
			osd_session_release(&session);
		}
	}
}

/* Changing the policy increments the count that makes sessions read it again. */
static void allow(uint32_t page, uint32_t number)
{
	struct osd_txn *txn;
	uint8_t pair[8];

	osd_put_be(pair, page, 4);
	osd_put_be(pair + 4, number, 4);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_attr_set(txn, (struct osd_object_id){pid, 0}, 0x30000004, 3, pair,
			   sizeof(pair)) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void test_allowed_attributes(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_session session;

	capability.permissions |= OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR;
	capability.allowed_attributes_access = 3;
	session = start(&capability);
	CHECK(ask(&session, set_of(plain, 0x10000, 1, "v", 1)) == OSD_ANSWER_PERMISSION);
	allow(0x10000, 1);
	CHECK(ask(&session, set_of(plain, 0x10000, 1, "v", 1)) == OSD_ANSWER_OK);
	CHECK(ask(&session, set_of(plain, 0x10000, 2, "v", 1)) == OSD_ANSWER_PERMISSION);
	CHECK(ask(&session, call_on(OSD_CALL_LISTATTR, plain, 0x10000, 0)) == OSD_ANSWER_OK);
	CHECK(answered.body_bytes > 0);
	CHECK(ask(&session, call_on(OSD_CALL_ADDATTR, plain, UINT64_C(0x10000) << 32 | 2, 1)) ==
	      OSD_ANSWER_PERMISSION);
	allow(0x10000, 2);
	CHECK(ask(&session, call_on(OSD_CALL_LISTATTR, plain, 0x10000, 0)) == OSD_ANSWER_OK);
	CHECK(answered.body_bytes == 0);
	CHECK(ask(&session, call_on(OSD_CALL_ADDATTR, plain, UINT64_C(0x10000) << 32 | 2, 1)) ==
	      OSD_ANSWER_OK);
	osd_session_release(&session);
}

/* A collection lends its members every right that it may lend.  The policy access tags of both are
 * compared. */
static void test_collections(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	const uint16_t lent = OSD_PERM_READ | OSD_PERM_WRITE | OSD_PERM_APPEND | OSD_PERM_REMOVE |
			      OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR;
	struct osd_session session;
	struct osd_txn *txn;
	uint64_t collection;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_collection_create(txn, pid, 0, OSD_COLLECTION_LINKED, &collection) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	for (unsigned bit = 0; bit < 16; bit++) {
		if (!(lent >> bit & 1))
			continue;
		capability.permissions = OSD_PERM_FUN_EXE | (lent & (uint16_t) ~(1u << bit));
		session = start(&capability);
		CHECK(ask(&session, call_on(OSD_CALL_COLLECTION_ADD, collection, plain, 0)) ==
		      OSD_ANSWER_PERMISSION);
		osd_session_release(&session);
	}
	capability.permissions = OSD_PERM_FUN_EXE | lent;
	session = start(&capability);
	CHECK(ask(&session, call_on(OSD_CALL_COLLECTION_ADD, collection, plain, 0)) ==
	      OSD_ANSWER_OK);
	CHECK(ask(&session, call_on(OSD_CALL_COLLECTION_DROP, collection, plain, 0)) ==
	      OSD_ANSWER_OK);
	osd_session_release(&session);
	/* First only the object has the tag, then only the collection. */
	capability.policy_access_tag = TAG;
	set_tag(0, 0x30000005, TAG);
	session = start(&capability);
	CHECK(ask(&session, call_on(OSD_CALL_COLLECTION_ADD, collection, tagged, 0)) ==
	      OSD_ANSWER_PERMISSION);
	set_tag(collection, 0x60000005, TAG);
	CHECK(ask(&session, call_on(OSD_CALL_COLLECTION_ADD, collection, tagged, 0)) ==
	      OSD_ANSWER_OK);
	CHECK(ask(&session, call_on(OSD_CALL_COLLECTION_ADD, collection, plain, 0)) ==
	      OSD_ANSWER_PERMISSION);
	osd_session_release(&session);
	set_tag(0, 0x30000005, 0);
}

int main(void)
{
	fill_store();
	test_permissions();
	test_tags();
	test_query();
	test_hidden_matches();
	test_range();
	test_end_of_rights();
	test_needs_of_attributes();
	test_allowed_attributes();
	test_collections();
	open_keyring();
	test_open_jobs();
	test_changed_key();
	test_weaker_method();
	test_made_meanwhile();
	osd_keyring_close(exec.keyring);
	osd_objects_close(objects);
	return 0;
}
