/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_source.c -- an object that shows the data of another one: it is found through a row of sources, it is flushed
 * with the object, and a pin keeps it as it is. */
#include "object/internal.h"
#include "object/test_support.h"
#include "wire/stage.h"

#define PID UINT64_C(0x10000)

static const struct osd_object_id base = {PID, 0x20000}, middle = {PID, 0x20001},
				  shown = {PID, 0x20002};
static struct osd_objects *objects;

static void make(struct osd_object_id id)
{
	uint64_t made;

	OK(test_create(objects, id.partition_id, id.object_id, &made));
}

static void show(struct osd_object_id id, struct osd_object_id source)
{
	struct osd_source_value value = {.partition_id = source.partition_id,
					 .object_id = source.object_id};
	struct osd_object_facts facts;
	uint8_t bytes[OSD_SOURCE_BYTES];
	struct osd_txn *txn = test_begin(objects, 0);

	OK(osd_txn_facts(txn, source, false, &facts));
	value.created_msec = facts.created_ms;
	osd_source_value_encode(&value, bytes);
	OK(osd_stack_put(txn, id, OSD_STACK_SOURCE, bytes, sizeof(bytes)));
	OK(test_end(txn, OSD_OK));
}

static enum osd_status source_of(struct osd_object_id id, struct osd_object **ret_source)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;

	OK(osd_object_get(objects, id, &object));
	return osd_object_get_source(object, ret_source);
}

static void check_source(struct osd_object_id id, struct osd_object_id wanted)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	struct osd_object_facts facts;

	OK(source_of(id, &source));
	CHECK(source);
	osd_object_facts(source, &facts);
	CHECK(osd_same_id(facts.id, wanted));
}

/* ---- flushes ------------------------------------------------------------------------------------ */

static const struct osd_data_ops *below;
static const struct osd_data_file *synced; /* the last one */

static enum osd_status watch_sync(struct osd_data_file *file)
{
	synced = file;
	return below->sync(file);
}

static void test_flush(void)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL, *source = NULL;
	struct osd_data *data = objects->tier.head;
	struct osd_data_ops ops;

	while (!data->ops->sync)
		data = data->inner;
	below = data->ops;
	ops = *below;
	ops.sync = watch_sync;
	OK(osd_object_get(objects, shown, &object));
	OK(osd_object_get(objects, base, &source));
	OK(osd_object_write(source, 0, "new", 3, 0));
	data->ops = &ops;
	OK(osd_object_flush(object));
	CHECK(synced);
	synced = NULL;
	data->ops = below;
}

/* ---- pins --------------------------------------------------------------------------------------- */

static void test_pin(void)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL, *source = NULL;
	struct osd_range range;
	struct osd_pin *pin;

	OK(osd_object_get(objects, shown, &object));
	OK(osd_object_get(objects, base, &source));
	OK(osd_pin_begin(object, &pin));
	osd_lock(&source->mutex);
	CHECK(!osd_range_try(&source->ranges, &range, 0, 1, true));
	osd_unlock(&source->mutex);
	osd_pin_end(pin);
	osd_lock(&source->mutex);
	CHECK(osd_range_try(&source->ranges, &range, 0, 1, true));
	osd_range_drop(&source->ranges, &range);
	osd_unlock(&source->mutex);
}

/* ---- all ---------------------------------------------------------------------------------------- */

static void test_all(struct test_store *store)
{
	struct osd_object *source;

	objects = store->objects;
	make(base);
	make(middle);
	make(shown);
	OK(source_of(shown, &source));
	CHECK(!source);
	show(shown, base);
	check_source(shown, base);
	show(middle, base);
	show(shown, middle);
	check_source(shown, base);
	test_flush();
	test_pin();

	OK(test_remove(objects, middle));
	CHECK_EQ(source_of(shown, &source), OSD_E_NO_OBJECT);
	CHECK(!source);
	make(middle); /* a later one with the id */
	CHECK_EQ(source_of(shown, &source), OSD_E_NO_OBJECT);
	CHECK(!source);
	OK(osd_object_get(objects, shown, &source));
	OK(osd_object_flush(source));
	osd_object_put(source);
}

int main(void)
{
	test_fn *const tests[] = {test_all};

	test_both_stores(PID, tests, OSD_ARRAY_SIZE(tests));
	return 0;
}
