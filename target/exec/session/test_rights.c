/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_rights.c -- what a script may do under a capability, call by call, against the in-memory
 * store: permissions, ranges, attributes, collections, created objects, the
 * present policy of partitions, and the end of rights. */
#include "exec/session/test_rights.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/target.h"
#include "object/stack.h"
#include "security/keys.h"
#include "wire/attr_list.h"

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

#define SHARED 1200 /* some fall into one bucket of shares, more than the sweep copies at a time */

/* The sweep finds the changed tag of each object whose descriptors the script was passed, also of those that it has
 * closed. */
static void test_sweep_of_shares(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_session session;
	struct osd_txn *txn;
	uint64_t first = 0, id, seen = UINT64_MAX;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, 0, SHARED, &first) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	capability.permissions |= OSD_PERM_READ;
	capability.policy_access_tag = TAG;
	set_tag(0, 0x30000005, TAG);
	for (id = first; id < first + SHARED; id++)
		set_tag(id, 5, TAG);
	session = start(&capability);
	for (id = first; id < first + SHARED; id++) {
		CHECK(ask(&session, call_on(OSD_CALL_SHARE, id, 0, 0)) == OSD_ANSWER_OK);
		if (id > first)
			CHECK(ask(&session, call_on(OSD_CALL_UNSHARE, id, 0, 0)) == OSD_ANSWER_OK);
	}
	CHECK(osd_rights_look_again(&session, &seen) == OSD_OK);
	for (id = first; id < first + SHARED; id += 109) {
		set_tag(id, 5, TAG + 1);
		CHECK(osd_rights_look_again(&session, &seen) == OSD_E_PERMISSION);
		set_tag(id, 5, TAG);
	}
	CHECK(osd_rights_look_again(&session, &seen) == OSD_OK);
	osd_session_release(&session);
	set_tag(0, 0x30000005, 0);
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

#define SECRET	     0xee
#define SECRET_BYTES 4096u

/* Functions that take their time: the partition demands a method meanwhile. */
static enum osd_status pass_and_demand(void *arg, struct osd_exec_data *data)
{
	(void)arg;
	memset(data->buffer, SECRET, data->capacity);
	data->available = data->capacity;
	demand(pid, OSD_CAPKEY);
	return OSD_OK;
}

static uint64_t make_stacked(void)
{
	struct osd_txn *txn;
	uint64_t id;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, 0, 1, &id) == OSD_OK);
	CHECK(osd_stack_put(txn, (struct osd_object_id){pid, id}, 1, (const uint8_t *)"f", 1) ==
	      OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	return id;
}

/* The second check refuses what was read already: it does not stay in the memory that the script can read. */
static void test_refused_after_reading(void)
{
	struct osd_call reading = call_on(OSD_CALL_READ, make_stacked(), 0, SECRET_BYTES);
	struct osd_session session = start_open(OSD_ROOT, 0);

	session.hooks.pass = pass_and_demand;
	CHECK(ask(&session, reading) == OSD_ANSWER_PERMISSION);
	for (size_t i = 0; i < SECRET_BYTES; i++)
		CHECK(body()[i] != SECRET);
	osd_session_release(&session);
	demand(pid, OSD_NOSEC);
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
	test_range();
	test_end_of_rights();
	test_sweep_of_shares();
	test_needs_of_attributes();
	test_allowed_attributes();
	test_collections();
	open_keyring();
	test_open_jobs();
	test_refused_after_reading();
	test_changed_key();
	test_weaker_method();
	osd_keyring_close(exec.keyring);
	osd_objects_close(objects);
	return 0;
}
