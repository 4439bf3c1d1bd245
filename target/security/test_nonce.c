/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_nonce.c -- spans of time, the set of nonces, and that none is ever taken twice: over clocks that jump
 * and processes that are killed. */
#include "security/nonce.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/test.h"
#include "security/nonce_set.h"
#include "wire/cursor.h"

#define T0	 UINT64_C(3000000000000) /* years from now: the writer takes no nonce for old */
#define YEAR	 (UINT64_C(366) * 24 * 3600 * 1000)
#define PARTITION UINT64_C(0x10000)

static uint64_t random_state = 1;

/* Below limit. */
static uint64_t pick(uint64_t limit)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (random_state >> 16) % limit;
}

/* ---- spans and the set ------------------------------------------------------------------- */

static void check_order(const struct osd_nonce_spans *spans)
{
	CHECK(spans->count <= OSD_NONCE_SPANS);
	for (size_t i = 0; i < spans->count; i++) {
		CHECK(spans->span[i].first <= spans->span[i].last);
		CHECK(i == 0 || spans->span[i - 1].last + OSD_SPANS_NEAR_MS < spans->span[i].first);
	}
}

static void test_spans(void)
{
	for (unsigned round = 0; round < 200; round++) {
		struct osd_nonce_spans spans = {0};
		uint64_t added[64];

		for (size_t n = 0; n < 64; n++) {
			uint64_t first = T0 + pick(3) * YEAR + pick(n % 2 ? 1000 : YEAR / 2);
			uint64_t last = first + pick(2000), after;

			osd_spans_add(&spans, first, last);
			check_order(&spans);
			added[n] = last;
			for (size_t i = 0; i <= n; i++)
				CHECK(osd_spans_cover(&spans, added[i]));
			after = osd_spans_after(&spans, first);
			CHECK(after > last && !osd_spans_cover(&spans, after));
		}
	}
}

/* What is not in the set any more is in the spans it leaves. */
static void test_set(void)
{
	enum { COUNT = 3 * OSD_NONCE_SET_MAX };
	struct osd_nonce_spans forgotten = {0};
	struct osd_nonce_set set = {0};
	size_t remembered = 0;

	for (uint64_t i = 0; i < COUNT; i++) {
		CHECK(!osd_nonce_set_has(&set, T0 + i / 8, i));
		OK(osd_nonce_set_add(&set, T0 + i / 8, i, 1000, &forgotten));
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		bool has = osd_nonce_set_has(&set, T0 + i / 8, i);

		remembered += has;
		CHECK(has || osd_spans_cover(&forgotten, T0 + i / 8));
	}
	CHECK(remembered == set.count && remembered >= OSD_NONCE_DEPTH);
	CHECK(osd_nonce_set_has(&set, T0 + (COUNT - 1) / 8, COUNT - 1));
	OK(osd_nonce_set_forget(&set, UINT64_MAX - 1, 0, &forgotten));
	CHECK(set.count == 0 && !set.slots);
	CHECK(osd_spans_cover(&forgotten, T0 + (COUNT - 1) / 8));
}

/* ---- a store with nonces ----------------------------------------------------------------- */

struct store {
	char directory[64];
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	struct osd_nonces *nonces;
};

static void open_store(struct store *store)
{
	/* NULL: in memory */
	const char *directory = store->directory[0] ? store->directory : NULL;
	struct osd_objects_config config = {.directory = directory};
	char message[256];

	OK(osd_objects_open(&config, message, &store->objects));
	OK(osd_keyring_open(store->objects, NULL, message, &store->keyring));
	OK(osd_nonces_open(store->objects, store->keyring, &store->nonces));
}

static void close_store(struct store *store)
{
	osd_nonces_close(store->nonces);
	osd_keyring_close(store->keyring);
	osd_objects_close(store->objects);
}

static enum osd_status take_wait(struct store *store, uint64_t time, uint64_t random, uint64_t now,
				 bool nowait)
{
	uint8_t nonce[OSD_NONCE_LENGTH];

	osd_put_be(nonce, time, 6);
	osd_put_be(nonce + 6, random, 6);
	return osd_nonces_take(store->nonces, 0, nonce, now, nowait);
}

static enum osd_status take(struct store *store, uint64_t time, uint64_t random, uint64_t now)
{
	return take_wait(store, time, random, now, false);
}

static void test_limits(struct store *store)
{
	open_store(store);
	CHECK_EQ(take(store, T0 - 60001, 1, T0), OSD_E_NONCE_TIME);
	CHECK_EQ(take(store, T0 + 10001, 1, T0), OSD_E_NONCE_TIME);
	CHECK_EQ(take_wait(store, T0, 1, T0, true), OSD_E_WOULD_BLOCK);
	OK(take(store, T0, 1, T0));
	CHECK_EQ(take_wait(store, T0, 1, T0, true), OSD_E_NONCE_REPEAT);
	OK(take_wait(store, T0 + 1, 1, T0, true)); /* what the first has written covers it */
	OK(take(store, T0 - 60000, 1, T0));
	OK(take(store, T0 + 10000, 1, T0));
	CHECK_EQ(take(store, T0 + 10000, 1, T0), OSD_E_NONCE_REPEAT);
	CHECK_EQ(osd_nonces_clock(store->nonces, 0, T0), T0);
	close_store(store);
	open_store(store); /* what was used is refused as a whole, and no more */
	CHECK_EQ(take(store, T0, 2, T0), OSD_E_NONCE_TIME);
	CHECK_EQ(take(store, T0 + 10000, 2, T0), OSD_E_NONCE_TIME);
	CHECK_EQ(osd_nonces_clock(store->nonces, 0, T0), T0 + 10001);
	OK(take(store, T0 + 10001, 2, T0 + 1));
	OK(take(store, T0 - 40000, 2, T0));
	close_store(store);
}

static void *take_of_partition(void *arg)
{
	struct store *store = arg;
	uint8_t nonce[OSD_NONCE_LENGTH] = {0};

	osd_put_be(nonce, T0, 6);
	OK(osd_nonces_take(store->nonces, PARTITION, nonce, T0, false));
	return NULL;
}

/* The first nonce of a partition is taken by a thread that waits for the store. */
static void test_without_waiting(void)
{
	struct store store = {.directory = ""};
	struct osd_policy policy;
	enum osd_status status;
	struct osd_txn *txn;
	pthread_t thread;
	uint64_t made;

	open_store(&store);
	OK(osd_txn_begin(store.objects, 0, &txn));
	OK(osd_partition_create(txn, PARTITION, &made));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	OK(osd_keyring_policy(store.keyring, PARTITION, false, &policy));
	OK(take(&store, T0, 1, T0));
	OK(osd_txn_begin(store.objects, 0, &txn));
	/* It locks the store in memory. */
	OK(osd_object_hold(txn, (struct osd_object_id){PARTITION, 0}));
	CHECK_EQ(pthread_create(&thread, NULL, take_of_partition, &store), 0);
	do
		status = take_wait(&store, T0, 1, T0, true);
	while (status == OSD_E_NONCE_REPEAT && sched_yield() == 0);
	CHECK_EQ(status, OSD_E_WOULD_BLOCK);
	osd_txn_abort(txn);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	close_store(&store);
}

/* A year ahead and back, with so many nonces there that most are forgotten. */
static void test_year(struct store *store)
{
	uint64_t now = T0 + YEAR / 2; /* far from what other tests used */

	open_store(store);
	OK(take(store, now, 1, now));
	for (uint64_t i = 0; i < 2 * OSD_NONCE_SET_MAX; i++)
		OK(take(store, now + YEAR + i / 100, i, now + YEAR + i / 100));
	CHECK_EQ(take(store, now, 1, now), OSD_E_NONCE_TIME); /* forgotten, and refused */
	OK(take(store, now + 700000, 2, now + 700000));
	CHECK_EQ(take(store, now + YEAR, 0, now + YEAR), OSD_E_NONCE_TIME);
	CHECK_EQ(take(store, now + 700000, 2, now + 700000), OSD_E_NONCE_REPEAT);
	close_store(store);
	open_store(store);
	CHECK_EQ(take(store, now + 700000, 3, now + 700000), OSD_E_NONCE_TIME);
	OK(take(store, now + 700001, 3, now + 700001));
	CHECK_EQ(take(store, now + YEAR + 100, 3, now + YEAR), OSD_E_NONCE_TIME);
	OK(take(store, now + 2 * YEAR, 3, now + 2 * YEAR));
	OK(take(store, now - YEAR / 4, 3, now - YEAR / 4)); /* a time nobody has used */
	close_store(store);
}

/* ---- killed processes -------------------------------------------------------------------- */

struct used {
	uint64_t time, random;
};

static struct used used[1 << 14];
static size_t used_count;

static void report(int fd, uint64_t time, uint64_t random)
{
	struct used one = {time, random};

	CHECK_EQ(write(fd, &one, sizeof(one)), sizeof(one));
}

/* A process that takes nonces while its clock goes on or jumps, tries old ones again, and is killed. */
static void run_child(struct store *store, uint64_t now, int fd)
{
	unsigned left = 20 + (unsigned)pick(200);
	unsigned taken = 0;

	open_store(store);
	while (left-- > 0) {
		uint64_t time, random = pick(UINT64_C(1) << 40);

		now += pick(20);
		if (pick(50) == 0) /* a year ahead, and back */
			now += now < T0 + 10 * YEAR + YEAR / 2 ? YEAR : -YEAR;
		if (used_count && pick(3) == 0) {
			struct used *old = &used[pick(used_count)];

			CHECK(take(store, old->time, old->random, pick(2) ? now : old->time) !=
			      OSD_OK);
			continue;
		}
		time = now + pick(4000) - 2000;
		if (take(store, time, random, now) == OSD_OK) {
			report(fd, time, random);
			CHECK_EQ(take(store, time, random, now), OSD_E_NONCE_REPEAT);
			taken++;
		}
	}
	CHECK(taken > 0);
	report(fd, now, 0);
	if (pick(4) == 0) {
		close_store(store);
		_exit(0);
	}
	kill(getpid(), SIGKILL);
}

static void test_kills(struct store *store)
{
	uint64_t now = T0 + 10 * YEAR;

	for (unsigned round = 0; round < 30; round++) {
		int pipe_fds[2], status;
		struct used one;
		pid_t child;

		CHECK_EQ(pipe(pipe_fds), 0);
		random_state = round + 77;
		child = fork();
		CHECK(child >= 0);
		if (child == 0)
			run_child(store, now, pipe_fds[1]);
		close(pipe_fds[1]);
		while (read(pipe_fds[0], &one, sizeof(one)) == sizeof(one)) {
			CHECK(used_count < sizeof(used) / sizeof(used[0]));
			used[used_count++] = one;
		}
		close(pipe_fds[0]);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
		now = used[--used_count].time + 5000; /* the last says what the clock was */
	}
	CHECK(used_count > 1000);
}

int main(void)
{
	struct store store;

	osd_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), "test_nonce", OSD_LOG_WARNING);
	test_folder(store.directory, sizeof(store.directory));
	test_spans();
	test_set();
	test_limits(&store);
	test_without_waiting();
	test_year(&store);
	test_kills(&store);
	test_folder_remove(store.directory);
	return 0;
}
