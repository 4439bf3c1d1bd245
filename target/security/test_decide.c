/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_decide.c -- what each attribute needs, lists of attributes, the least method of partitions, and the
 * decision over all of them. */
#include "security/decide.h"

#include "base/test.h"
#include "base/util.h"
#include "security/keys.h"
#include "wire/cursor.h"

#define NOW	    1000000u
#define PARTITION   0x10000u
#define QUOTA	    0x10001u
#define APPLICATION 0x10000u
#define LENT                                                                                       \
	(OSD_PERM_READ | OSD_PERM_WRITE | OSD_PERM_APPEND | OSD_PERM_REMOVE | OSD_PERM_GET_ATTR |  \
	 OSD_PERM_SET_ATTR)

static struct osd_objects *objects;
static struct osd_keyring *keyring;

/* ---- attributes ------------------------------------------------------------------------------ */

static void test_needs(void)
{
	const uint16_t policy = OSD_PERM_SET_ATTR | OSD_PERM_POL_SEC;
	const uint16_t hook = OSD_PERM_SET_ATTR | OSD_PERM_FUN_EXE | OSD_PERM_READ;
	const struct {
		uint32_t page, number;
		uint16_t permissions;
		bool empty, whole, scripts;
	} rows[] = {
		{APPLICATION, 1, OSD_PERM_SET_ATTR, false, false, true},
		{0x00000005, OSD_SEC_TAG, policy, false, false, false},
		{0x30000005, 1, policy, false, false, false},
		{0x60000005, OSD_SEC_TAG, policy, false, false, false},
		{0x90000005, 1, policy, false, false, false},
		{0x30000004, 7, policy, false, false, false},
		{0x30000004, 7, policy, true, false, false},
		{0x90000002, QUOTA, policy, false, false, true},
		{0x30000002, QUOTA, policy, false, false, true},
		{0x00000002, 1, policy, false, false, true},
		{0x00000001, 0x82, OSD_PERM_SET_ATTR | OSD_PERM_WRITE, false, true, true},
		{0x00000001, OSD_INFO_USERNAME, OSD_PERM_SET_ATTR, false, false, true},
		{0x00000004, 1, LENT, false, true, true},
		{0x00000004, 1, OSD_PERM_SET_ATTR, true, false, true},
		{0x60000004, 1, OSD_PERM_SET_ATTR, false, false, true},
		{OSD_PAGE_JOB_CONTROL, 1, OSD_PERM_SET_ATTR, false, false, false},
		{0x20000020, 1, OSD_PERM_SET_ATTR | OSD_PERM_FUN_EXE, false, false, false},
		{0x50000020, 1, policy | OSD_PERM_FUN_EXE, false, false, false},
		{0x50000020, 17, policy | OSD_PERM_FUN_EXE, false, false, false},
		{0x80000020, 1, policy | OSD_PERM_FUN_EXE, false, false, false},
		{0xb0000020, 16, policy | OSD_PERM_FUN_EXE, true, false, false},
		{0x20000021, 1, hook, false, false, false},
		{0x50000021, 1, policy | hook, false, false, false},
		{0xb0000021, 1, policy | hook, true, false, false},
		{OSD_PAGE_RESERVED_BASE, 1, OSD_PERM_SET_ATTR, false, false, false},
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++) {
		struct osd_access access =
			osd_access_to_set(rows[i].page, rows[i].number, rows[i].empty);

		CHECK_EQ(access.permissions, rows[i].permissions);
		CHECK_EQ(access.start, 0);
		CHECK_EQ(access.end, rows[i].whole ? UINT64_MAX : 0);
		CHECK_EQ(osd_page_is_for_scripts(rows[i].page), rows[i].scripts);
	}
	CHECK_EQ(osd_access_to_get(APPLICATION, 1).permissions, OSD_PERM_GET_ATTR);
	CHECK_EQ(osd_access_to_get(OSD_PAGE_CURRENT_COMMAND, 1).permissions, 0);
}

static void set(uint64_t partition_id, uint32_t page, uint32_t number, const uint8_t *value,
		size_t length)
{
	struct osd_txn *txn;

	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_attr_set(txn, (struct osd_object_id){partition_id, 0}, page, number, value,
			      length),
		 OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
}

/* Lists come from the partition's page; a change of it counts among those of policies. */
static void test_lists(void)
{
	struct osd_capability capability = {.allowed_attributes_access = 3};
	struct osd_allowed allowed = {0};
	uint64_t changes = osd_objects_policy_changes(objects);
	uint8_t pairs[16];

	CHECK(osd_allowed_has(&allowed, APPLICATION, 1)); /* not limited */
	CHECK_EQ(osd_allowed_load(objects, PARTITION, &capability, &allowed), OSD_OK);
	CHECK(!osd_allowed_has(&allowed, APPLICATION, 1)); /* there is no list */
	CHECK(osd_allowed_has(&allowed, OSD_PAGE_CURRENT_COMMAND, 1));
	osd_put_be(pairs, APPLICATION, 4);
	osd_put_be(pairs + 4, 1, 4);
	osd_put_be(pairs + 8, APPLICATION + 1, 4);
	osd_put_be(pairs + 12, OSD_NUMBER_ALL, 4);
	set(PARTITION, 0x30000004, 3, pairs, sizeof(pairs));
	CHECK(osd_objects_policy_changes(objects) > changes);
	CHECK_EQ(osd_allowed_load(objects, PARTITION, &capability, &allowed), OSD_OK);
	CHECK(osd_allowed_has(&allowed, APPLICATION, 1));
	CHECK(!osd_allowed_has(&allowed, APPLICATION, 2));
	CHECK(!osd_allowed_has(&allowed, APPLICATION, OSD_NUMBER_ALL));
	CHECK(osd_allowed_has(&allowed, APPLICATION + 1, 9));
	CHECK(osd_allowed_has(&allowed, APPLICATION + 1, OSD_NUMBER_ALL));
	CHECK(!osd_allowed_has(&allowed, OSD_PAGE_ALL, OSD_NUMBER_ALL));
	CHECK_EQ(osd_allowed_load(objects, 0, &capability, &allowed), OSD_OK); /* the root */
	CHECK(!osd_allowed_has(&allowed, APPLICATION, 1));
	capability.allowed_attributes_access = 0;
	CHECK_EQ(osd_allowed_load(objects, PARTITION, &capability, &allowed), OSD_OK);
	CHECK(osd_allowed_has(&allowed, APPLICATION, 2));
	osd_allowed_release(&allowed);
}

static void test_attributes(void)
{
	struct osd_grant grant = {.verified = true,
				  .capability = {.permissions = OSD_PERM_SET_ATTR}};
	struct osd_allowed none = {.limited = true}, all = {0};
	struct osd_attribute_act act = {.page = 1,
					.number = OSD_INFO_LOGICAL_LENGTH,
					.access = osd_access_to_set(1, 0x82, false),
					.named = true};
	uint16_t field = 0;

	CHECK_EQ(osd_decide_attribute(&grant, &all, &act, &field), OSD_E_PERMISSION);
	CHECK_EQ(field, OSD_GRANT_FIELD_PERMISSIONS);
	act.lent = OSD_PERM_WRITE;
	CHECK_EQ(osd_decide_attribute(&grant, &all, &act, &field), OSD_OK);
	act.lent = 0;
	grant.capability.permissions |= OSD_PERM_WRITE;
	CHECK_EQ(osd_decide_attribute(&grant, &all, &act, &field), OSD_OK);
	CHECK_EQ(osd_decide_attribute(&grant, &none, &act, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, OSD_GRANT_FIELD_ATTRIBUTES);
	grant.capability.allowed_range_length = 8;
	CHECK_EQ(osd_decide_attribute(&grant, &all, &act, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, OSD_GRANT_FIELD_RANGE);
	act.named = false; /* the range is another object's */
	CHECK_EQ(osd_decide_attribute(&grant, &all, &act, &field), OSD_OK);
	grant = (struct osd_grant){.open = true};
	CHECK_EQ(osd_decide_attribute(&grant, &none, &act, &field), OSD_OK);
}

/* ---- methods --------------------------------------------------------------------------------- */

static uint8_t least(struct osd_txn *txn, uint64_t partition_id)
{
	uint8_t method = 0xff;

	CHECK_EQ(osd_least_method(keyring, txn, partition_id, &method), OSD_OK);
	return method;
}

static void check_least(uint64_t partition_id, uint8_t method)
{
	struct osd_txn *txn;

	CHECK_EQ(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn), OSD_OK);
	CHECK_EQ(least(txn, partition_id), method);
	osd_txn_abort(txn);
	CHECK_EQ(least(NULL, partition_id), method);
}

static void test_methods(void)
{
	const uint8_t alldata = OSD_ALLDATA, cmdrsp = OSD_CMDRSP, nosec = OSD_NOSEC;
	uint8_t method;

	check_least(PARTITION, OSD_NOSEC);
	set(PARTITION, 0x30000005, 1, &alldata, 1);
	check_least(PARTITION, OSD_ALLDATA);
	check_least(0, OSD_NOSEC);
	/* What does not exist has what a new partition would. */
	check_least(0x7777, OSD_NOSEC);
	set(0, 0x90000005, 6, &cmdrsp, 1);
	check_least(0x7777, OSD_CMDRSP);
	set(0, 0x90000005, 6, &nosec, 1);
	CHECK_EQ(osd_least_method(NULL, NULL, PARTITION, &method), OSD_OK);
	CHECK_EQ(method, OSD_NOSEC);
}

static void test_decisions(void)
{
	struct osd_object_facts facts = {.id = {PARTITION, 0x10001}, .type = OSD_USER_OBJECT};
	struct osd_act act = {.facts = &facts, .access = osd_access_whole(OSD_PERM_READ)};
	struct osd_grant open = {.open = true}, none = {0};
	struct osd_grant grant = {.verified = true,
				  .capability = {.security_method = OSD_CAPKEY,
						 .object_type = OSD_USER_OBJECT,
						 .descriptor_type = OSD_CAPDESC_OBJECT,
						 .permissions = OSD_PERM_READ,
						 .allowed_partition_id = PARTITION}};
	uint16_t field = 0;

	CHECK_EQ(osd_decide(&open, &act, NOW, &field), OSD_OK);
	CHECK_EQ(osd_decide(&grant, &act, NOW, &field), OSD_OK);
	act.least_method = OSD_CAPKEY;
	CHECK_EQ(osd_decide(&grant, &act, NOW, &field), OSD_OK);
	CHECK_EQ(osd_decide(&open, &act, NOW, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, OSD_GRANT_FIELD_METHOD);
	act.least_method = OSD_CMDRSP;
	CHECK_EQ(osd_decide(&grant, &act, NOW, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, OSD_GRANT_FIELD_METHOD);
	act.least_method = OSD_NOSEC;
	CHECK_EQ(osd_decide(&none, &act, NOW, &field), OSD_E_CDB_FIELD);
	/* A job without a capability has such a grant: its method is NOSEC. */
	CHECK(osd_method_suffices(&none, OSD_NOSEC) && !osd_method_suffices(&none, OSD_CAPKEY));
	/* What is missing in the capability is told before the method: nobody learns another partition's. */
	act.least_method = OSD_ALLDATA;
	facts.id.partition_id++;
	CHECK_EQ(osd_decide(&grant, &act, NOW, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, OSD_GRANT_FIELD_PARTITION);
	act.inside = true;
	act.least_method = OSD_CAPKEY;
	CHECK_EQ(osd_decide(&grant, &act, NOW, &field), OSD_OK);
}

int main(void)
{
	struct osd_objects_config config = {0};
	char message[256];
	struct osd_txn *txn;
	uint64_t id;

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	CHECK_EQ(osd_keyring_open(objects, NULL, message, &keyring), OSD_OK);
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_partition_create(txn, PARTITION, &id), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	test_needs();
	test_lists();
	test_attributes();
	test_methods();
	test_decisions();
	osd_keyring_close(keyring);
	osd_objects_close(objects);
	return 0;
}
