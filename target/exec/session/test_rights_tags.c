/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_rights_tags.c -- a script under a capability with a policy access tag: objects with another tag are not read, not
 * found and not counted, also if they are made while a call opens them. */
/* First: names of their parameters are variables of the last. */
#include "object/internal.h"
#include "object/test_support.h"

#include "exec/session/test_rights.h"

#include <string.h>

#include "base/util.h"
#include "object/query.h"
#include "wire/cursor.h"
#include "wire/query_list.h"

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

	OK(test_declare(objects, pid, INDEXED));
	test_index_wait(objects, pid, INDEXED);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	for (size_t i = 0; i < OWN; i++) {
		CHECK(make_match(txn, 0, TAG, &id) == OSD_OK);
		if (i + 1 == BEFORE)
			CHECK(make_match(txn, id + 100, TAG + 1, &hidden) == OSD_OK);
	}
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	return hidden;
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

/* With an index, too: neither the count nor the place where it goes on tells of the hidden object. */
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

int main(void)
{
	fill_store();
	test_tags();
	test_query();
	test_hidden_matches();
	test_made_meanwhile();
	osd_objects_close(objects);
	return 0;
}
