/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_rights_tags.c -- a script under a capability with a policy access tag: objects with another tag are not read, not
 * found and not counted, also if they are made while a call opens them. */
/* First: names of their parameters are variables of the last. */
#include "object/internal.h"
#include "object/test_support.h"

#include "exec/session/test_rights.h"

#include <string.h>

#include "object/query.h"
#include "wire/cursor.h"

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

static enum osd_status make_match(struct osd_txn *txn, uint64_t id, uint32_t tag, bool job,
				  uint64_t *ret_id)
{
	uint8_t value[8] = {0}, tag_value[4];
	enum osd_status status =
		job ? osd_surrogates_create(txn, pid, OSD_JOB_AMONG_DATA, id, 1, ret_id)
		    : osd_user_object_create(txn, pid, id, 1, ret_id);
	struct osd_object_id made = {pid, *ret_id};

	osd_put_be(tag_value, tag, sizeof(tag_value));
	if (status == OSD_OK)
		status = osd_attr_set(txn, made, INDEXED, 5, value, sizeof(value));
	return status == OSD_OK
		       ? osd_attr_set(txn, made, 5, 0x40000001, tag_value, sizeof(tag_value))
		       : status;
}

/* Objects with a value that is indexed.  Among them are one of another tag and a job's, which the session's principal may
 * not read. */
static void make_matches(uint64_t *ret_hidden, uint64_t *ret_job)
{
	struct osd_txn *txn;
	uint64_t id;

	OK(test_declare(objects, pid, INDEXED));
	test_index_wait(objects, pid, INDEXED);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	for (size_t i = 0; i < OWN; i++) {
		CHECK(make_match(txn, 0, TAG, false, &id) == OSD_OK);
		if (i + 1 == BEFORE)
			CHECK(make_match(txn, id + 100, TAG + 1, false, ret_hidden) == OSD_OK);
		if (i + 1 == OSD_CALL_IDS)
			CHECK(make_match(txn, id + 200, TAG, true, ret_job) == OSD_OK);
	}
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

/* A query of objects from an id on, with so many equal criteria, all of which must match. */
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

/* Neither the count nor the place where the query goes on reveals a hidden object. */
static void check_matches(const struct osd_capability *capability, size_t criteria,
			  uint64_t expected, const uint64_t hidden[2])
{
	struct osd_session session = start(capability);
	uint64_t next = 0, total = 0, found = 0;

	do {
		CHECK(ask(&session, query_of(criteria, next)) == OSD_ANSWER_OK);
		next = answered.a;
		total += answered.b;
		found += answered.body_bytes / 8;
		CHECK(next == 0 || (next != hidden[0] && next != hidden[1]));
		CHECK(answered.b == answered.body_bytes / 8);
	} while (next);
	CHECK_EQ(found, expected);
	CHECK_EQ(total, expected);
	osd_session_release(&session);
}

/* With an index, too. */
static void test_hidden_matches(void)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	uint64_t hidden[2];

	make_matches(&hidden[0], &hidden[1]);
	set_tag(0, 0x30000005, TAG);
	capability.permissions |= OSD_PERM_QUERY;
	for (size_t criteria = 1; criteria <= 2; criteria++) {
		capability.policy_access_tag = TAG;
		check_matches(&capability, criteria, OWN, hidden);
		/* Without a tag only the job's is hidden. */
		capability.policy_access_tag = 0;
		check_matches(&capability, criteria, OWN + 1,
			      (uint64_t[]){hidden[1], hidden[1]});
	}
	set_tag(0, 0x30000005, 0);
}

static const struct osd_kv_ops *below;
static uint64_t coming; /* an object of another tag, made when the object with its id is opened; 0: none */
static bool replaces;	/* in place of one that the session may read */

static void make(uint64_t id)
{
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_user_object_create(txn, pid, id, 1, &id) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static enum osd_status look(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			    struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			    size_t *ret_length)
{
	uint64_t id =
		key.length >= 8 ? osd_get_be((const uint8_t *)key.data + key.length - 8, 8) : 0;

	if (table == OSD_KV_OBJECTS && !txn && coming && id == coming) {
		coming = 0;
		if (replaces)
			OK(test_remove(objects, (struct osd_object_id){pid, id}));
		make(id);
	}
	return below->get(kv, txn, table, key, flags, buffer, capacity, ret_length);
}

/* An object that another client makes while the call opens it, with the tag that is the partition's default. */
static void test_made_meanwhile(uint16_t op, uint64_t id)
{
	struct osd_capability capability = capability_of(OSD_PARTITION, 0);
	struct osd_kv_ops watched = *objects->kv->ops;
	struct osd_session session;

	capability.permissions |= OSD_PERM_READ;
	capability.policy_access_tag = TAG;
	set_tag(0, 0x30000005, TAG);
	if (replaces) {
		make(id);
		set_tag(id, 5, TAG);
	}
	session = start(&capability);
	below = objects->kv->ops;
	watched.get = look;
	coming = id;
	objects->kv->ops = &watched;
	CHECK(ask(&session, call_on(op, id, 0, 0)) == OSD_ANSWER_PERMISSION);
	CHECK(!coming);
	objects->kv->ops = below;
	osd_session_release(&session);
	set_tag(0, 0x30000005, 0);
}

int main(void)
{
	fill_store();
	test_tags();
	test_query();
	test_hidden_matches();
	osd_timers_stop(&objects->timers); /* they and the reaper read the operations, too */
	osd_helper_stop(&objects->reaper);
	test_made_meanwhile(OSD_CALL_READ, 0x7000000);
	test_made_meanwhile(OSD_CALL_SHARE, 0x7000001);
	replaces = true;
	test_made_meanwhile(OSD_CALL_READ, 0x7000002);
	test_made_meanwhile(OSD_CALL_SHARE, 0x7000003);
	osd_objects_close(objects);
	return 0;
}
