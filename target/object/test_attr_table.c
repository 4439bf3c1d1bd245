/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_attr_table.c -- the table of standard attributes by itself (order, lengths, names, forms), and
 * what only the target may set: damage, command tracking; that settings survive the store's end. */
#include "base/clock.h"
#include "object/attr_table.h"
#include "object/test_support.h"

#define PID UINT64_C(0x10000)

static const enum osd_object_type types[] = {OSD_ROOT, OSD_PARTITION, OSD_COLLECTION,
					     OSD_USER_OBJECT};
static const struct osd_object_id root;

/* ---- the table --------------------------------------------------------------------------- */

static void check_row(const struct osd_std_row *row, const struct osd_std_row *before)
{
	CHECK(row->first > 0 && row->first <= row->last);
	CHECK(!before || before->last < row->first);
	CHECK(row->min_length <= row->max_length && row->max_length <= OSD_ATTRIBUTE_MAX);
	CHECK(row->what && row->what[0]);
	CHECK(!strpbrk(row->what, "\t\n|"));
	CHECK_EQ(row->source == OSD_V_ABSENT, row->max_length == 0);
	if (row->source == OSD_V_STORED)
		CHECK(row->parameter == 0 || row->parameter == row->max_length);
	if (row->settable == OSD_SET_NEVER)
		CHECK_EQ(row->rule, OSD_RULE_ANY);
}

static void test_rows(void)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(types); i++) {
		for (uint32_t relative = 0; relative <= OSD_REL_RECOVERY; relative++) {
			const struct osd_std_row *row = NULL, *before = NULL;

			while ((row = osd_std_next(types[i], relative, row))) {
				CHECK(osd_std_page(types[i], relative) != NULL);
				check_row(row, before);
				CHECK(osd_std_find(types[i], relative, row->first) == row);
				CHECK(osd_std_find(types[i], relative, row->last) == row);
				before = row;
			}
			CHECK_EQ(before != NULL, osd_std_page(types[i], relative) != NULL);
		}
		CHECK(osd_std_page(types[i], OSD_REL_RECOVERY + 1) == NULL);
	}
}

/* Every field is an attribute of its width. */
static void check_form(enum osd_object_type type, const struct osd_std_page *page)
{
	for (const struct osd_form_field *field = page->form; field->width; field++) {
		if (field->number == OSD_FORM_RESERVED || field->number == OSD_FORM_KEYS_VALID)
			continue;
		for (uint32_t n = 0; n < OSD_MAX(field->repeat, 1); n++) {
			const struct osd_std_row *row =
				osd_std_find(type, page->relative, field->number + n);

			CHECK(row != NULL);
			CHECK_EQ(row->max_length, field->width);
		}
	}
}

static void test_pages(void)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(types); i++) {
		for (uint32_t relative = 0; relative <= OSD_REL_RECOVERY; relative++) {
			const struct osd_std_page *page = osd_std_page(types[i], relative);

			if (!page)
				continue;
			CHECK(strlen(page->name) <= 32);
			CHECK(strncmp(page->name, "T10 ", 4) == 0);
			if (page->form)
				check_form(types[i], page);
		}
	}
}

static void test_isolation_methods(void)
{
	for (unsigned method = 0; method < 256; method++)
		CHECK_EQ(osd_isolation_supported((uint8_t)method),
			 method == 1 || method == 2 || method == 4 || method == 5);
}

/* ---- the target's own settings ------------------------------------------------------------- */

static enum osd_status set_internal(struct osd_objects *o, struct osd_object_id id, uint32_t page,
				    uint32_t number, const void *value, size_t length)
{
	struct osd_txn *txn = test_begin(o, OSD_TXN_INTERNAL);

	return test_end(txn, osd_attr_set(txn, id, page, number, value, length));
}

static void test_damage(struct test_store *store, struct osd_object_id object)
{
	struct osd_objects *o = store->objects;
	uint8_t time[6] = {0, 1, 2, 3, 4, 5}, form[64];
	struct osd_txn *txn;
	size_t length;

	CHECK_EQ(test_set(o, object, 6, OSD_DAMAGE_SUMMARY, "\x01", 1), OSD_E_PARAM_FIELD);
	OK(set_internal(o, object, 6, OSD_DAMAGE_SUMMARY, "\x01", 1));
	OK(set_internal(o, object, 6, OSD_DAMAGE_DATA_TIME, time, sizeof(time)));
	CHECK_EQ(set_internal(o, object, 6, OSD_DAMAGE_SUMMARY, "\x01\x02", 2), OSD_E_PARAM_FIELD);
	CHECK_EQ(set_internal(o, object, 6, OSD_DAMAGE_COUNT, time, 6), OSD_E_PARAM_FIELD);
	OK(set_internal(o, root, 0x90000006, OSD_DAMAGE_COUNT, "\0\0\0\0\0\x07", 6));
	test_store_reopen(store);
	o = store->objects;
	CHECK_EQ(test_get_number(o, object, 6, OSD_DAMAGE_SUMMARY), OSD_DAMAGED_DATA);
	CHECK_EQ(test_get_number(o, object, 6, OSD_DAMAGE_ATTR_TIME), 0);
	CHECK_EQ(test_get_number(o, root, 0x90000006, OSD_DAMAGE_COUNT), 7);
	txn = test_begin(o, OSD_TXN_READ_ONLY);
	OK(osd_attr_page_form(txn, object, 6, form, sizeof(form), &length));
	CHECK_BYTES(form, length, "\0\0\0\x06\0\0\0\x0e\x01\0\0\1\2\3\4\5\0\0\0\0\0\0", 22);
	memset(form, 0xee, sizeof(form));
	OK(osd_attr_page_form(txn, object, 6, form, 10, &length));
	CHECK_EQ(length, 22);
	CHECK_BYTES(form + 8, 3, "\x01\0\xee", 3);
	CHECK_EQ(osd_attr_page_form(txn, object, 0x80, form, 10, &length), OSD_E_PARAM_FIELD);
	osd_txn_abort(txn);
}

static void test_tracking(struct test_store *store, struct osd_object_id collection)
{
	struct osd_objects *o = store->objects;
	uint32_t page = OSD_PAGE_COLLECTION_BASE + OSD_REL_COLLECTIONS;

	OK(set_internal(o, collection, page, 1, "\x2a", 1));
	OK(set_internal(o, collection, page, 4, "sense", 5));
	CHECK_EQ(set_internal(o, collection, page, 2, "\x2a", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(set_internal(o, collection, page, 0x10, "12345678", 8), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set(o, collection, page, 1, "\x2a", 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_get_number(o, collection, page, 1), 0x2a);
	CHECK_EQ(test_get_number(o, collection, page, 0x10), 0);
}

/* What lies in records, and what runs on. */
static void test_survives(struct test_store *store, struct osd_object_id object)
{
	struct osd_objects *o = store->objects;
	struct osd_object_id partition = {PID, 0};
	uint64_t epoch = test_get_number(o, root, 0x90000005, 0xa),
		 ahead = osd_wall_msec() + 1000000;
	struct osd_object_id fresh = {PID, 0};

	OK(test_set_number(o, root, 0x90000001, 0x110, OSD_ISOLATION_STRICT, 1));
	OK(test_set_number(o, root, 0x90000005, 0x9, ahead, 6));
	OK(test_set_number(o, partition, 0x30000005, OSD_SEC_USER_TAG, 0x01020304, 4));
	OK(test_set_number(o, object, 5, OSD_SEC_TAG, 77, 4));
	test_store_reopen(store);
	o = store->objects;
	CHECK_EQ(osd_objects_isolation(o), OSD_ISOLATION_STRICT);
	CHECK(test_get_number(o, root, 0x90000005, 0x9) >= ahead);
	CHECK_EQ(test_get_number(o, root, 0x90000005, 0xa), epoch + 1);
	CHECK_EQ(test_get_number(o, object, 5, OSD_SEC_TAG), 77);
	OK(test_create(o, PID, 0, &fresh.object_id));
	CHECK_EQ(test_get_number(o, fresh, 5, OSD_SEC_TAG), 0x01020304);
}

/* A store of the first release has an object's tag among its attributes. */
static void test_first_release_tag(struct test_store *store)
{
	struct osd_objects *o = store->objects;
	struct osd_object_id object = {PID, 0};
	struct osd_txn *txn;
	uint64_t first;

	OK(test_set_number(o, (struct osd_object_id){PID, 0}, 0x30000005, OSD_SEC_USER_TAG, 0, 4));
	OK(test_create(o, PID, 0, &object.object_id));
	txn = test_begin(o, 0);
	OK(osd_txn_take(txn, object, true));
	first = txn->record.attribute_count;
	OK(osd_attr_stored_set(txn, 5, OSD_SEC_TAG, (const uint8_t *)"\0\0\0\x09", 4));
	txn->dirty = true;
	OK(test_end(txn, OSD_OK));
	CHECK_EQ(test_get_number(o, object, 5, OSD_SEC_TAG), 9);
	OK(test_set_number(o, object, 5, OSD_SEC_TAG, 0, 4));
	CHECK_EQ(test_get_number(o, object, 5, OSD_SEC_TAG), 0);
	txn = test_begin(o, OSD_TXN_READ_ONLY);
	OK(osd_txn_take(txn, object, false));
	CHECK_EQ(txn->record.attribute_count, first);
	osd_txn_abort(txn);
}

int main(void)
{
	struct osd_object_id object = {PID, 0}, collection = {PID, 0};
	struct test_store store;
	struct osd_txn *txn;
	uint64_t id;

	test_rows();
	test_pages();
	test_isolation_methods();
	test_store_init(&store, true);
	test_store_open(&store);
	OK(test_partition(store.objects, PID, &id));
	OK(test_create(store.objects, PID, 0, &object.object_id));
	txn = test_begin(store.objects, 0);
	OK(test_end(txn, osd_collection_create(txn, PID, 0, OSD_COLLECTION_LINKED,
					       &collection.object_id)));
	test_damage(&store, object);
	test_tracking(&store, collection);
	test_survives(&store, object);
	test_first_release_tag(&store);
	test_store_release(&store);
	return 0;
}
