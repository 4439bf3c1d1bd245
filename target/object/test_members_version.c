/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_members_version.c -- versions of the members of collections: each change of the membership gives another one,
 * and nothing else does. */
#include "object/test_version.h"

static struct osd_data_version members_of(struct osd_objects *objects, uint64_t cid)
{
	return test_version(objects, cid, OSD_PAGE_MEMBERS_VERSION);
}

static enum osd_status in_txn(struct osd_objects *objects, uint64_t cid, uint64_t oid,
			      enum osd_status (*fn)(struct osd_txn *txn, struct osd_object_id id,
						    uint64_t member))
{
	enum osd_status status;

	do {
		struct osd_txn *txn = test_begin(objects, 0);

		status = test_end(txn, fn(txn, (struct osd_object_id){PID, cid}, oid));
	} while (status == OSD_E_CONFLICT);
	return status;
}

static void test_members(struct test_store *store)
{
	struct osd_objects *objects = store->objects;
	struct osd_data_version versions[8];
	size_t count = 0;
	uint64_t cid, other, oid;
	struct osd_txn *txn = test_begin(objects, 0);

	OK(test_end(txn, osd_collection_create(txn, PID, 0, OSD_COLLECTION_LINKED, &cid)));
	txn = test_begin(objects, 0);
	OK(test_end(txn, osd_collection_create(txn, PID, 0, OSD_COLLECTION_LINKED, &other)));
	OK(test_create(objects, PID, 0, &oid));
	versions[count++] = members_of(objects, cid);
	versions[count++] = members_of(objects, other);
	/* A client joins and leaves by the Collections page, and changes over to the other one. */
	OK(test_set_number(objects, (struct osd_object_id){PID, oid}, OSD_REL_COLLECTIONS, 1, cid,
			   8));
	versions[count++] = members_of(objects, cid);
	CHECK(same(versions[1], members_of(objects, other)));
	OK(test_set_number(objects, (struct osd_object_id){PID, oid}, OSD_REL_COLLECTIONS, 1, other,
			   8));
	versions[count++] = members_of(objects, cid);
	versions[count++] = members_of(objects, other);
	/* Attributes and data of a member are not the membership. */
	do_write(objects, oid);
	OK(test_set(objects, (struct osd_object_id){PID, oid}, 0x10000, 1, "value", 5));
	CHECK(same(versions[count - 1], members_of(objects, other)));
	/* The target adds, and the member is removed. */
	OK(in_txn(objects, cid, oid, osd_collection_add));
	versions[count++] = members_of(objects, cid);
	OK(in_txn(objects, cid, oid, osd_collection_add)); /* it is in it */
	CHECK(same(versions[count - 1], members_of(objects, cid)));
	OK(test_remove(objects, (struct osd_object_id){PID, oid}));
	versions[count++] = members_of(objects, cid);
	versions[count++] = members_of(objects, other);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			CHECK(!same(versions[i], versions[j]));
	CHECK_EQ(test_get(objects, (struct osd_object_id){PID, OSD_OBJECTS_COLLECTION},
			  OSD_PAGE_MEMBERS_VERSION, OSD_VERSION_NUMBER, (uint8_t[16]){0}, 16),
		 0);
	if (!store->config.directory)
		return;
	test_store_reopen(store);
	CHECK(same(versions[count - 1], members_of(store->objects, other)));
	CHECK(same(versions[count - 2], members_of(store->objects, cid)));
}

/* An attempt that is undone leaves the version. */
static void test_members_undone(struct test_store *store)
{
	struct osd_objects *objects = store->objects;
	struct osd_data_version before;
	struct osd_txn *txn = test_begin(objects, 0);
	uint64_t cid, oid;

	OK(test_end(txn, osd_collection_create(txn, PID, 0, OSD_COLLECTION_LINKED, &cid)));
	OK(test_create(objects, PID, 0, &oid));
	before = members_of(objects, cid);
	txn = test_begin(objects, 0);
	OK(osd_collection_add(txn, (struct osd_object_id){PID, cid}, oid));
	osd_txn_abort(txn);
	CHECK(same(before, members_of(objects, cid)));
}

int main(void)
{
	static test_fn *const tests[] = {test_members, test_members_undone};

	test_both_stores(PID, tests, OSD_ARRAY_SIZE(tests));
	return 0;
}
