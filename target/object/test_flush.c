/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_flush.c -- a flush that was answered has synced the names of the object's files, too: the loss of power would
 * take new files away otherwise, whatever was synced in them. */
#include <pthread.h>

#include "object/test_heads.h"

#define HEAD 4096u

/* A store of data whose syncs of directories are counted. */
static struct watched {
	struct osd_data *data;
	const struct osd_data_ops *own;
	struct osd_data_ops ops;
	unsigned calls;
	enum osd_status fate; /* of the next call */
	void (*first)(void);  /* called in the next call, before it */
} watched[2];

static enum osd_status watch_sync(struct osd_data *data, const struct osd_data_name *name)
{
	struct watched *here = &watched[watched[0].data != data];
	void (*first)(void) = OSD_STEAL(here->first);
	enum osd_status fate = here->fate;

	if (first)
		first();
	here->calls++;
	here->fate = OSD_OK;
	if (fate != OSD_OK)
		return fate;
	return here->own->sync_directories(data, name);
}

/* The layer that has the call. */
static void watch(struct watched *here, struct osd_data *data)
{
	while (!data->ops->sync_directories)
		data = data->inner;
	*here = (struct watched){.data = data, .own = data->ops, .ops = *data->ops};
	here->ops.sync_directories = watch_sync;
	data->ops = &here->ops;
}

static struct heads_store store;
static struct osd_object *object;

static void set_up(void)
{
	struct osd_object_id id = {MODEL_PID, 0};

	heads_init(&store, HEAD);
	osd_timers_stop(&store.store.objects->timers); /* the mover makes names, too */
	OK(test_create(store.store.objects, MODEL_PID, 0, &id.object_id));
	OK(osd_object_get(store.store.objects, id, &object));
	watch(&watched[0], store.store.objects->tier.head);
	watch(&watched[1], store.store.objects->tier.tail);
}

static void tear_down(void)
{
	osd_object_put(object);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(watched); i++)
		watched[i].data->ops = watched[i].own;
	heads_release(&store);
}

static void write_to(uint64_t end)
{
	static const uint8_t bytes[2 * HEAD];

	OK(osd_object_write(object, 0, bytes, (size_t)end, 0));
}

static void check_names(unsigned heads, unsigned tails)
{
	OK(osd_object_flush(object));
	CHECK_EQ(watched[0].calls, heads);
	CHECK_EQ(watched[1].calls, tails);
}

/* The tail is made later than the head, and perhaps again. */
static void test_tails(void)
{
	set_up();
	write_to(100);
	check_names(1, 0);
	write_to(100);
	check_names(1, 0);
	write_to(2 * HEAD);
	check_names(2, 1);
	write_to(2 * HEAD);
	check_names(2, 1);
	OK(osd_object_truncate(object, HEAD, 0));
	check_names(2, 1);
	write_to(2 * HEAD);
	check_names(3, 2);
	tear_down();
}

/* An object that was replaced by no bytes has no file until it is written again. */
static void test_replaced(void)
{
	struct osd_change nothing = {.kind = OSD_CHANGE_REPLACE, .data = ""};

	set_up();
	write_to(100);
	check_names(1, 0);
	OK(osd_object_change(object, &nothing));
	check_names(1, 0);
	write_to(100);
	check_names(2, 0);
	tear_down();
}

/* An empty object has no file on its new device until it is written again. */
static void test_moved(void)
{
	uint64_t bytes;

	set_up();
	write_to(100);
	check_names(1, 0);
	OK(osd_object_truncate(object, 0, 0));
	OK(osd_head_move(object, OSD_HEAD_ON_TAIL, NULL, &bytes));
	write_to(100);
	check_names(1, 1);
	tear_down();
}

static void *flush(void *unused)
{
	OK(osd_object_flush(object));
	CHECK_EQ(watched[0].calls, 1);
	return unused;
}

static void flush_meanwhile(void)
{
	pthread_t other;

	CHECK_EQ(pthread_create(&other, NULL, flush, NULL), 0);
	pthread_join(other, NULL);
}

/* The names are not synced yet when another flush begins: it does not rely on the first. */
static void test_two_at_once(void)
{
	set_up();
	write_to(100);
	watched[0].first = flush_meanwhile;
	check_names(2, 0);
	write_to(100);
	check_names(2, 0);
	tear_down();
}

/* The kernel reports it once, and data of another client may be lost: no later flush succeeds. */
static void test_failed(enum osd_status fate, enum osd_status told, bool replaced)
{
	struct osd_change anew = {.kind = OSD_CHANGE_REPLACE, .data = "x", .length = 1};
	const struct osd_object_id partition = {MODEL_PID, 0};
	struct osd_object_id other = {MODEL_PID, 0};
	struct osd_objects *objects;
	struct osd_object *sound;

	set_up();
	objects = store.store.objects;
	write_to(100);
	watched[0].fate = fate;
	CHECK_EQ(osd_object_flush(object), told);
	CHECK_EQ(osd_object_flush(object), told);
	CHECK_EQ(osd_object_write(object, 0, (const uint8_t *)"x", 1, OSD_DATA_FUA), told);
	CHECK_EQ(osd_objects_flush(objects, partition), OSD_E_MEDIUM);
	CHECK_EQ(osd_objects_flush(objects, (struct osd_object_id){0, 0}), OSD_E_MEDIUM);
	OK(test_create(objects, MODEL_PID, 0, &other.object_id));
	OK(osd_object_get(objects, other, &sound));
	OK(osd_object_write(sound, 0, (const uint8_t *)"x", 1, OSD_DATA_FUA));
	osd_object_put(sound);
	if (replaced)
		OK(osd_object_change(object, &anew));
	else
		OK(test_remove(objects, object->id));
	OK(osd_objects_flush(objects, partition));
	if (replaced)
		OK(osd_object_flush(object));
	tear_down();
}

/* More objects than there is room for: then all count.  Other partitions do not. */
static void test_many_failed(void)
{
	static struct osd_unsynced unsynced;
	struct osd_object_id id = {MODEL_PID, 0};

	CHECK(!osd_unsynced_any(&unsynced, 0));
	for (id.object_id = 1; id.object_id <= OSD_UNSYNCED_MOST; id.object_id++) {
		CHECK(osd_unsynced_add(&unsynced, id, OSD_E_MEDIUM));
		CHECK(!osd_unsynced_add(&unsynced, id, OSD_E_TAIL_FAILED));
		CHECK_EQ(osd_unsynced_status(&unsynced, id), OSD_E_TAIL_FAILED);
	}
	CHECK(osd_unsynced_any(&unsynced, MODEL_PID) && osd_unsynced_any(&unsynced, 0));
	CHECK(!osd_unsynced_any(&unsynced, MODEL_PID + 1));
	OK(osd_unsynced_status(&unsynced, id));
	CHECK(osd_unsynced_add(&unsynced, id, OSD_E_MEDIUM));
	osd_unsynced_forget(&unsynced, (struct osd_object_id){MODEL_PID, 0});
	CHECK_EQ(osd_unsynced_status(&unsynced, id), OSD_E_MEDIUM);
	CHECK(osd_unsynced_any(&unsynced, MODEL_PID + 1));
}

int main(void)
{
	test_failed(OSD_E_MEDIUM, OSD_E_HEAD_FAILED, true);
	test_failed(OSD_E_MEDIUM, OSD_E_HEAD_FAILED, false);
	test_failed(OSD_E_NO_SPACE, OSD_E_NO_SPACE, false);
	test_many_failed();
	test_two_at_once();
	test_tails();
	test_moved();
	test_replaced();
	return 0;
}
