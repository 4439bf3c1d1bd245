/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_kept.c -- kept results: their keys, the quota and the order in which they go, and threads that read and replace
 * them at the same time. */
#include "function/kept.h"

#include <pthread.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"

#define SLOT ((size_t)OSD_KEPT_SLOT)

static struct osd_kept_key key_of(uint64_t object_id, uint64_t counter, uint8_t stack)
{
	struct osd_kept_key key = {.source = {0x10000, object_id}, .version = {counter, 1}};

	memset(key.stack, stack, sizeof(key.stack));
	return key;
}

static struct osd_kept *opened(size_t slots)
{
	struct osd_kept *kept;

	CHECK(osd_kept_open(NULL, slots * SLOT, &kept) == OSD_OK);
	return kept;
}

static bool is_there(struct osd_kept *kept, struct osd_kept_key key, uint64_t unit)
{
	uint64_t whole;
	char byte;

	return osd_kept_get(kept, &key, unit, 0, &byte, 1, false, &whole);
}

static void test_keys(void)
{
	struct osd_kept *kept = opened(16);
	struct osd_kept_key key = key_of(1, 1, 1), other = key;
	char bytes[8] = "";
	uint64_t whole;

	osd_kept_put(kept, &key, 3, "result", 6);
	CHECK(osd_kept_get(kept, &key, 3, 2, bytes, sizeof(bytes), false, &whole));
	CHECK_EQ(whole, 6);
	CHECK(memcmp(bytes, "sult", 4) == 0);
	CHECK(osd_kept_get(kept, &key, 3, 100, bytes, sizeof(bytes), false, &whole));
	CHECK(!is_there(kept, key, 2));
	CHECK(!is_there(kept, key_of(2, 1, 1), 3));
	CHECK(!is_there(kept, key_of(1, 2, 1), 3));
	CHECK(!is_there(kept, key_of(1, 1, 2), 3));
	for (uint64_t i = 2; i < 1000; i++) { /* some of them share its bucket */
		CHECK(!is_there(kept, key_of(i, 1, 1), 3) && !is_there(kept, key_of(1, i, 1), 3));
		CHECK(!is_there(kept, key, i + 2));
		other.version.opening = (uint32_t)i;
		CHECK(!is_there(kept, other, 3));
	}
	other = key;
	other.stack[sizeof(other.stack) - 1]++;
	CHECK(!is_there(kept, other, 3));
	osd_kept_put(kept, &key, 3, "others", 6); /* it is there already */
	CHECK(osd_kept_get(kept, &key, 3, 0, bytes, sizeof(bytes), false, &whole));
	CHECK(memcmp(bytes, "result", 6) == 0);
	osd_kept_close(kept);
}

static void test_nothing_is_a_result(void)
{
	struct osd_kept *kept = opened(2);
	struct osd_kept_key key = key_of(1, 1, 1);
	uint64_t whole = 1;

	osd_kept_put(kept, &key, 0, "", 0);
	CHECK(osd_kept_get(kept, &key, 0, 0, NULL, 0, false, &whole));
	CHECK_EQ(whole, 0);
	for (uint64_t i = 2; i < 5; i++) { /* each takes a slot, so there is an end */
		key = key_of(i, 1, 1);
		osd_kept_put(kept, &key, 0, "", 0);
	}
	CHECK(!is_there(kept, key_of(1, 1, 1), 0));
	osd_kept_close(kept);
}

static void test_the_oldest_goes(void)
{
	struct osd_kept *kept = opened(4);
	struct osd_kept_figures figures;
	char *bytes = calloc(1, 5 * SLOT);
	struct osd_kept_key key;

	CHECK(bytes);
	for (uint64_t i = 1; i <= 4; i++) {
		key = key_of(i, 1, 1);
		osd_kept_put(kept, &key, 0, bytes, SLOT);
	}
	CHECK(is_there(kept, key_of(1, 1, 1), 0)); /* now 2 is the oldest */
	key = key_of(5, 1, 1);
	osd_kept_put(kept, &key, 0, bytes, SLOT + 1);
	CHECK(!is_there(kept, key_of(2, 1, 1), 0) && !is_there(kept, key_of(3, 1, 1), 0));
	CHECK(is_there(kept, key_of(4, 1, 1), 0) && is_there(kept, key_of(1, 1, 1), 0) &&
	      is_there(kept, key_of(5, 1, 1), 0));
	key = key_of(6, 1, 1);
	osd_kept_put(kept, &key, 0, bytes, 5 * SLOT); /* never fits */
	CHECK(!is_there(kept, key, 0) && is_there(kept, key_of(5, 1, 1), 0));
	osd_kept_figures(kept, &figures);
	CHECK_EQ(figures.units, 3);
	CHECK_EQ(figures.evicted, 2);
	CHECK_EQ(figures.kept_bytes, 3 * SLOT + 1);
	free(bytes);
	osd_kept_close(kept);
}

static void test_parts(void)
{
	struct osd_kept *kept = opened(5);
	struct osd_kept_key key = key_of(1, 1, 1), other = key_of(2, 1, 1);
	struct osd_kept_key third = key_of(3, 1, 1), fourth = key_of(4, 1, 1);
	struct osd_kept_draft *draft, *second;
	struct osd_kept_figures figures;
	uint8_t bytes[1000], got[10];
	uint64_t whole, made = 0;

	osd_kept_put(kept, &other, 0, "other", 5);
	CHECK(osd_kept_begin(kept, &key, &draft) == OSD_OK);
	for (; made + sizeof(bytes) <= 4 * SLOT; made += sizeof(bytes)) {
		memset(bytes, (int)(made / sizeof(bytes)), sizeof(bytes));
		CHECK(osd_kept_append(kept, draft, bytes, sizeof(bytes)) == OSD_OK);
		CHECK(!is_there(kept, key, 0));
	}
	CHECK(is_there(kept, other, 0));
	osd_kept_end(kept, draft, true);
	for (uint64_t at = 995; at < made; at += 1000) {
		CHECK(osd_kept_get(kept, &key, 0, at, got, 10, false, &whole));
		CHECK_EQ(got[0], (uint8_t)(at / 1000));
		CHECK(at + 10 > made || got[9] == (uint8_t)(at / 1000 + 1));
	}
	CHECK_EQ(whole, made);

	/* One that is not good leaves nothing, and its slots come back. */
	CHECK(osd_kept_begin(kept, &other, &draft) == OSD_OK);
	osd_kept_end(kept, draft, false);
	CHECK(osd_kept_begin(kept, &third, &draft) == OSD_OK);
	CHECK(osd_kept_begin(kept, &fourth, &second) == OSD_OK);
	for (size_t i = 0; i < 4 * SLOT; i += sizeof(bytes))
		CHECK(osd_kept_append(kept, draft, bytes, OSD_MIN(sizeof(bytes), 4 * SLOT - i)) ==
		      OSD_OK);
	CHECK(osd_kept_append(kept, draft, bytes, 1) == OSD_E_BUSY); /* the second one has the last slot */
	osd_kept_end(kept, second, false);
	CHECK(osd_kept_append(kept, draft, bytes, sizeof(bytes)) == OSD_OK);
	while (osd_kept_append(kept, draft, bytes, sizeof(bytes)) == OSD_OK)
		;
	CHECK(osd_kept_append(kept, draft, bytes, SLOT) == OSD_E_QUOTA);
	osd_kept_end(kept, draft, false);
	osd_kept_end(kept, NULL, true);
	osd_kept_figures(kept, &figures);
	CHECK_EQ(figures.kept_bytes, 0);
	CHECK_EQ(figures.units, 0);
	osd_kept_close(kept);
}

/* ---- threads ----------------------------------------------------------------------------------- */

#define OBJECTS 6u
#define ROUNDS	4000u
#define LENGTH	(3 * SLOT - 5)

struct reader {
	struct osd_kept *kept;
	unsigned seed;
	uint64_t found;
};

/* The bytes say which object they are of. */
static void *put_and_get(void *arg)
{
	struct reader *reader = arg;
	uint8_t *bytes = malloc(LENGTH), *got = malloc(LENGTH);
	uint64_t whole;

	CHECK(bytes && got);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t id = (reader->seed * 2654435761u + i * 40503u) / 7 % OBJECTS;
		struct osd_kept_key key = key_of(id, 1, 1);

		if (!osd_kept_get(reader->kept, &key, 0, 1, got, LENGTH - 1, i % 2, &whole)) {
			memset(bytes, (int)id + 1, LENGTH);
			osd_kept_put(reader->kept, &key, 0, bytes, LENGTH);
			continue;
		}
		CHECK_EQ(whole, LENGTH);
		for (size_t at = 0; at < LENGTH - 1; at += 499)
			CHECK_EQ(got[at], id + 1);
		reader->found++;
	}
	free(bytes);
	free(got);
	return NULL;
}

static void test_threads(void)
{
	struct osd_kept *kept = opened(10); /* three results of three slots */
	struct reader readers[4];
	pthread_t threads[4];
	uint64_t found = 0;

	for (unsigned i = 0; i < 4; i++) {
		readers[i] = (struct reader){kept, i, 0};
		CHECK(pthread_create(&threads[i], NULL, put_and_get, &readers[i]) == 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		found += readers[i].found;
	}
	CHECK(found > 0);
	osd_kept_close(kept);
}

static void test_places(void)
{
	char directory[] = "/tmp/iosd-kept-XXXXXX";
	struct osd_kept *kept;

	CHECK(mkdtemp(directory));
	CHECK(osd_kept_open("/nonexistent", SLOT, &kept) != OSD_OK);
	CHECK(osd_kept_open(directory, SLOT, &kept) == OSD_OK);
	CHECK(rmdir(directory) == 0); /* the file has no name */
	osd_kept_put(kept, &(struct osd_kept_key){{1, 1}, {1, 1}, {0}}, 0, "x", 1);
	CHECK(is_there(kept, (struct osd_kept_key){{1, 1}, {1, 1}, {0}}, 0));
	osd_kept_close(kept);
}

static void test_units(void)
{
	CHECK_EQ(osd_kept_unit(0), 0);
	CHECK_EQ(osd_kept_unit(1), OSD_KEPT_SLOT);
	CHECK_EQ(osd_kept_unit(16), OSD_KEPT_SLOT);
	CHECK_EQ(osd_kept_unit(10000), 20000);
	CHECK_EQ(osd_kept_unit(1u << 20), 1u << 20);
}

int main(void)
{
	test_keys();
	test_nothing_is_a_result();
	test_the_oldest_goes();
	test_parts();
	test_threads();
	test_places();
	test_units();
	return 0;
}
