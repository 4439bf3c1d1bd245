/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_data_version.c -- versions of data: every path of a change gives another one, nothing else does, and none ever
 * stands for two contents: over removals, restarts and kill -9. */
#include <signal.h>
#include <sys/wait.h>

#include "object/test_version.h"

static void settle(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object = get(objects, oid);

	OK(osd_object_settle(object, true, false));
	CHECK(osd_object_is_settled(object));
	osd_object_put(object);
}

/* ---- every path -------------------------------------------------------------------------- */

static void do_write_longer(struct osd_objects *objects, uint64_t oid)
{
	OK(test_write(objects, (struct osd_object_id){PID, oid}, 100, "longer", 6));
}

static void do_write_beyond(struct osd_objects *objects, uint64_t oid)
{
	OK(test_write(objects, (struct osd_object_id){PID, oid}, 3 << 20, "beyond", 6));
}

static void do_append(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object = get(objects, oid);
	uint64_t at;

	OK(test_append(object, "append", 6, 0, &at));
	osd_object_put(object);
}

static void do_clear(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object = get(objects, oid);

	OK(test_clear(object, 1, 2));
	osd_object_put(object);
}

static void do_punch(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object = get(objects, oid);

	OK(test_punch(object, 1, 2, NULL));
	osd_object_put(object);
}

static void do_punch_end(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object = get(objects, oid);

	OK(test_punch(object, 2, UINT64_MAX, NULL));
	osd_object_put(object);
}

static void do_truncate(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object = get(objects, oid);

	OK(osd_object_truncate(object, 1, 0));
	osd_object_put(object);
}

static void do_extend(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object = get(objects, oid);

	OK(osd_object_truncate(object, 1000, 0));
	osd_object_put(object);
}

static void do_set_length(struct osd_objects *objects, uint64_t oid)
{
	OK(test_set_number(objects, (struct osd_object_id){PID, oid}, OSD_REL_INFORMATION,
			   OSD_INFO_LOGICAL_LENGTH, 500, 8));
}

static void do_set_length_longer(struct osd_objects *objects, uint64_t oid)
{
	OK(test_set_number(objects, (struct osd_object_id){PID, oid}, OSD_REL_INFORMATION,
			   OSD_INFO_LOGICAL_LENGTH, 5000, 8));
}

struct with {
	struct osd_object_id id;
	struct osd_data_version shown;
};

static enum osd_status set_and_show(void *arg, struct osd_txn *txn, bool done)
{
	struct with *with = arg;
	uint8_t bytes[OSD_VERSION_BYTES];
	size_t length;
	enum osd_status status = OSD_OK;

	if (!done)
		status = osd_attr_set(txn, with->id, 0x10000, 1, (const uint8_t *)"value", 5);
	if (status == OSD_OK)
		status = osd_attr_get(txn, with->id, OSD_PAGE_VERSION, OSD_VERSION_NUMBER, bytes,
				      sizeof(bytes), &length);
	if (status == OSD_OK)
		with->shown = (struct osd_data_version){osd_get_be(bytes, 8),
							(uint32_t)osd_get_be(bytes + 8, 4)};
	return status;
}

static void change_with(struct osd_objects *objects, uint64_t oid, struct osd_change *change)
{
	struct osd_object *object = get(objects, oid);
	struct with with = {.id = {PID, oid}};
	const struct osd_change_with how = {0, set_and_show, &with};

	OK(osd_object_change_with(object, change, &how));
	CHECK(change->changed);
	CHECK(same(with.shown, change->version));
	CHECK(same(with.shown, version_of(objects, oid)));
	osd_object_put(object);
}

static void do_write_with(struct osd_objects *objects, uint64_t oid)
{
	struct osd_piece piece = {0, 4};
	struct osd_change change = {
		.kind = OSD_CHANGE_WRITE, .pieces = &piece, .piece_count = 1, .data = "with"};

	change_with(objects, oid, &change);
}

static void do_punch_with(struct osd_objects *objects, uint64_t oid)
{
	struct osd_change change = {.kind = OSD_CHANGE_PUNCH, .offset = 1, .length = 1};

	change_with(objects, oid, &change);
}

typedef void path_fn(struct osd_objects *objects, uint64_t oid);

static path_fn *const paths[] = {
	do_write,     do_write_longer, do_write_beyond,	     do_append,	    do_clear,
	do_punch,     do_set_length,   do_set_length_longer, do_write_with, do_punch_with,
	do_punch_end, do_extend,       do_truncate,
};

/* settled: each change is the first one after the record was written. */
static void test_paths(struct test_store *store, bool settled)
{
	struct osd_data_version before, after;
	uint64_t oid;

	OK(test_create(store->objects, PID, 0, &oid));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(paths); i++) {
		if (settled)
			settle(store->objects, oid);
		before = version_of(store->objects, oid);
		paths[i](store->objects, oid);
		after = version_of(store->objects, oid);
		CHECK(!same(before, after));
		CHECK(same(after, version_of(store->objects, oid)));
		settle(store->objects, oid);
		CHECK(same(after, version_of(store->objects, oid)));
	}
}

static void test_paths_unsettled(struct test_store *store)
{
	test_paths(store, false);
}

static void test_paths_settled(struct test_store *store)
{
	test_paths(store, true);
}

static void test_no_change(struct test_store *store)
{
	struct osd_piece empty = {7, 0};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE, .pieces = &empty, .piece_count = 1};
	struct osd_data_version before;
	struct osd_object *object;
	uint8_t data[8];
	uint64_t oid;

	OK(test_create(store->objects, PID, 0, &oid));
	do_write(store->objects, oid);
	before = version_of(store->objects, oid);
	object = get(store->objects, oid);
	test_read(store->objects, object->id, 0, data, sizeof(data));
	OK(test_set(store->objects, object->id, 0x10000, 1, "value", 5));
	OK(osd_object_change(object, &change));
	CHECK(!change.changed);
	CHECK_EQ(test_punch(object, 6, 1, NULL), OSD_E_BEYOND_END);
	OK(test_punch(object, 5, 1, NULL));
	OK(osd_object_flush(object));
	osd_object_put(object);
	CHECK(same(before, version_of(store->objects, oid)));
	/* Clients cannot set it. */
	CHECK_EQ(test_set(store->objects, (struct osd_object_id){PID, oid}, OSD_PAGE_VERSION,
			  OSD_VERSION_NUMBER, "123456789abc", OSD_VERSION_BYTES),
		 OSD_E_PARAM_FIELD);
}

static void test_again_and_restart(struct test_store *store)
{
	struct osd_data_version version, seen[3];
	uint64_t oid, made;

	OK(test_create(store->objects, PID, 0, &oid));
	seen[0] = version_of(store->objects, oid);
	do_write(store->objects, oid);
	seen[1] = version_of(store->objects, oid);
	OK(test_remove(store->objects, (struct osd_object_id){PID, oid}));
	OK(test_create(store->objects, PID, oid, &made));
	seen[2] = version_of(store->objects, oid);
	CHECK(!same(seen[0], seen[2]) && !same(seen[1], seen[2]));
	do_write(store->objects, oid);
	version = version_of(store->objects, oid);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(seen); i++)
		CHECK(!same(version, seen[i]));
	if (!store->config.directory)
		return;
	test_store_reopen(store);
	CHECK(same(version, version_of(store->objects, oid)));
	do_write(store->objects, oid);
	CHECK(!same(version, version_of(store->objects, oid)));
	CHECK(version_of(store->objects, oid).opening > version.opening);
}

/* ---- kill -9 ----------------------------------------------------------------------------- */

#define OBJECTS 3
#define ROUNDS	24

struct sight {
	uint32_t object;
	struct osd_data_version version;
	uint64_t content;
};

static uint64_t content_of(const uint8_t *data, size_t length)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ length;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static struct sight look(struct osd_objects *objects, uint32_t number)
{
	struct osd_object *object = get(objects, OSD_FIRST_ID + number);
	struct osd_version_check check = {.wanted = NULL};
	struct sight sight = {.object = number};
	static uint8_t data[1 << 16];
	size_t got;

	OK(osd_object_read_with(object, 0, data, sizeof(data), 0, &check, &got));
	sight.version = check.found;
	sight.content = content_of(data, got);
	osd_object_put(object);
	return sight;
}

/* All sights of all runs. */
struct sights {
	struct sight *list;
	size_t count, capacity;
	size_t same; /* met again */
};

static void add_sight(struct sights *sights, const struct sight *sight)
{
	for (size_t i = 0; i < sights->count; i++) {
		const struct sight *other = &sights->list[i];

		if (other->object != sight->object || !same(other->version, sight->version))
			continue;
		CHECK_EQ(other->content, sight->content);
		sights->same++;
		return;
	}
	if (sights->count == sights->capacity) {
		sights->capacity = OSD_MAX(1024, 2 * sights->capacity);
		sights->list = realloc(sights->list, sights->capacity * sizeof(*sights->list));
		CHECK(sights->list);
	}
	sights->list[sights->count++] = *sight;
}

static void change_once(struct osd_objects *objects, uint64_t *random, uint64_t oid)
{
	static uint8_t data[4096];
	struct osd_object *object = get(objects, oid);
	uint64_t start;

	*random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
	memset(data, (int)(*random >> 40), sizeof(data));
	switch ((*random >> 33) % 8) {
	case 0:
		OK(test_append(object, data, 100, 0, &start));
		break;
	case 1:
		do_set_length(objects, oid);
		break;
	case 2:
		do_write_with(objects, oid);
		break;
	case 3:
		OK(test_punch(object, 0, 10, NULL));
		break;
	case 4:
		OK(osd_object_truncate(object, 2000, 0));
		break;
	case 5:
		OK(osd_object_settle(object, true, false));
		break;
	default:
		OK(osd_object_write(object, (*random >> 50) % 1000, data, 1000, 0));
		break;
	}
	osd_object_put(object);
}

/* Tells every content and version that it sees, until it is killed. */
static void run_child(const struct osd_objects_config *config, uint64_t random, int fd)
{
	struct osd_objects *objects;
	char message[256];

	if (osd_objects_open(config, message, &objects) != OSD_OK)
		_exit(2);
	for (;;) {
		for (uint32_t i = 0; i < OBJECTS; i++) {
			struct sight sight;

			change_once(objects, &random, OSD_FIRST_ID + i);
			sight = look(objects, i);
			if (write(fd, &sight, sizeof(sight)) != sizeof(sight))
				_exit(4);
			settle(objects, OSD_FIRST_ID + i);
			sight = look(objects, i);
			if (write(fd, &sight, sizeof(sight)) != sizeof(sight))
				_exit(4);
		}
	}
}

static void kill_one(const struct osd_objects_config *config, uint64_t round, struct sights *sights)
{
	struct sight sight;
	size_t limit = 5 + round * 7 % 40;
	int ends[2], wait_status;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		run_child(config, round, ends[1]);
	}
	close(ends[1]);
	while (read(ends[0], &sight, sizeof(sight)) == sizeof(sight)) {
		add_sight(sights, &sight);
		if (--limit == 0)
			kill(pid, SIGKILL);
	}
	close(ends[0]);
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK(WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL);
}

static void test_kill(void)
{
	struct sights sights = {0};
	struct test_store store;
	uint64_t id;

	test_store_init(&store, true);
	test_store_open(&store);
	OK(test_partition(store.objects, PID, &id));
	for (uint32_t i = 0; i < OBJECTS; i++)
		OK(test_create(store.objects, PID, OSD_FIRST_ID + i, &id));
	osd_objects_close(store.objects);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		kill_one(&store.config, round, &sights);
		test_store_open(&store);
		for (uint32_t i = 0; i < OBJECTS; i++) {
			struct sight sight = look(store.objects, i);

			add_sight(&sights, &sight);
			do_write(store.objects, OSD_FIRST_ID + i);
			sight = look(store.objects, i);
			add_sight(&sights, &sight);
		}
		osd_objects_close(store.objects);
	}
	CHECK(sights.same > ROUNDS); /* not every object is new after a crash */
	free(sights.list);
	store.objects = NULL;
	test_store_release(&store);
}

int main(void)
{
	static test_fn *const tests[] = {test_paths_unsettled, test_paths_settled, test_no_change,
					 test_again_and_restart};

	test_both_stores(PID, tests, OSD_ARRAY_SIZE(tests));
	test_kill();
	return 0;
}
