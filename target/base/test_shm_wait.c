/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_shm_wait.c -- two threads play both ends of a call.  No post is lost, and a kick ends a wait.
 * A wait without a post times out.  A waiter that its peer has moved away is not lost. */
#include "base/shm_wait.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 20000

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static struct osd_shm_line call, answer, quiet;
static uint32_t request, reply; /* plain words: the lines order them */
static _Atomic bool dead;

static void *serve(void *unused)
{
	uint32_t seen = 0;

	(void)unused;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		REQUIRE(osd_shm_wait(&call, &seen, OSD_SHM_FOREVER, NULL) == OSD_SHM_POSTED);
		reply = request + 1;
		osd_shm_post(&answer);
	}
	atomic_store(&dead, true);
	osd_shm_kick(&quiet);
	return NULL;
}

/* ---- a peer that moves the waiter ---------------------------------------------------------- */

static struct osd_shm_line moved, elsewhere;
static _Atomic bool moved_dead, moved_returned;
static enum osd_shm_outcome moved_outcome;

static void *wait_to_be_moved(void *unused)
{
	uint32_t seen = 0;

	(void)unused;
	moved_outcome = osd_shm_wait(&moved, &seen, OSD_SHM_FOREVER, &moved_dead);
	atomic_store(&moved_returned, true);
	return NULL;
}

static bool returns_within(unsigned msec)
{
	const struct timespec step = {.tv_nsec = 1000000};

	while (msec-- > 0 && !atomic_load(&moved_returned))
		nanosleep(&step, NULL);
	return atomic_load(&moved_returned);
}

/* Waits until the thread sleeps in the kernel, then moves it to the other word. */
static void move_waiter(void)
{
	const struct timespec step = {.tv_nsec = 1000000};

	while (syscall(SYS_futex, &moved.seq, FUTEX_REQUEUE, 0, (void *)(uintptr_t)1,
		       &elsewhere.seq, 0) != 1)
		nanosleep(&step, NULL);
}

/* The script's process requeues the proxy's wait and exits.  Neither the kick at its death nor a post
 * reaches the sleeper, which must notice by its own time-out. */
static void test_moved(bool dies)
{
	pthread_t waiter;

	atomic_store(&moved_returned, false);
	atomic_store(&moved_dead, false);
	atomic_store(&moved.seq, 0);
	REQUIRE(pthread_create(&waiter, NULL, wait_to_be_moved, NULL) == 0);
	move_waiter();
	if (dies) {
		atomic_store(&moved_dead, true);
		osd_shm_kick(&moved);
	} else {
		osd_shm_post(&moved);
	}
	REQUIRE(returns_within(60000));
	REQUIRE(pthread_join(waiter, NULL) == 0);
	REQUIRE(moved_outcome == (dies ? OSD_SHM_DEAD : OSD_SHM_POSTED));
}

/* ---- a waiter that is woken up before the post, and a caller that watches for the answer ----- */

static struct osd_shm_line job, done;
static _Atomic uint32_t jobs;

static void *rest(void *unused)
{
	uint32_t seen = 0;

	(void)unused;
	for (uint32_t i = 0; i < ROUNDS / 10; i++) {
		osd_shm_rest(&job, &seen, 0);
		REQUIRE(seen == i + 1 && atomic_load(&jobs) == i + 1);
		osd_shm_post(&done);
	}
	return NULL;
}

/* A waiter that is roused returns for a post alone, and no post is lost meanwhile.  Nor is an answer, wherever the caller
 * has got to in its watch. */
static void test_roused(void)
{
	const struct timespec pause = {.tv_nsec = 100000};
	uint32_t seen = 0, none = atomic_load(&quiet.seq);
	pthread_t waiter;

	atomic_store(&dead, false);
	REQUIRE(pthread_create(&waiter, NULL, rest, NULL) == 0);
	for (uint32_t i = 0; i < ROUNDS / 10; i++) {
		osd_shm_rouse(&job);
		if (i % 20 == 0)
			nanosleep(&pause, NULL); /* it sleeps again */
		atomic_store(&jobs, i + 1);
		osd_shm_post(&job);
		REQUIRE(osd_shm_watch(&done, &seen, UINT64_C(60000000000), &job, &dead));
	}
	REQUIRE(pthread_join(waiter, NULL) == 0);
	REQUIRE(!osd_shm_watch(&quiet, &none, 0, &job, &dead));
	REQUIRE(!osd_shm_watch(&quiet, &none, 1000000, &job, &dead));
	atomic_store(&job.waiting, 1); /* asleep for good */
	REQUIRE(!osd_shm_watch(&quiet, &none, 1000000, &job, &dead));
	atomic_store(&dead, true);
	REQUIRE(!osd_shm_watch(&quiet, &none, UINT64_C(60000000000), &job, &dead));
}

int main(void)
{
	uint32_t answer_seen = 0, quiet_seen = 0;
	pthread_t server;

	REQUIRE(osd_shm_wait(&quiet, &quiet_seen, 1000, &dead) == OSD_SHM_TIMEOUT);
	REQUIRE(pthread_create(&server, NULL, serve, NULL) == 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		request = i;
		osd_shm_post(&call);
		REQUIRE(osd_shm_wait(&answer, &answer_seen, OSD_SHM_FOREVER, NULL) == OSD_SHM_POSTED);
		REQUIRE(reply == i + 1);
	}
	REQUIRE(osd_shm_wait(&quiet, &quiet_seen, OSD_SHM_FOREVER, &dead) == OSD_SHM_DEAD);
	REQUIRE(pthread_join(server, NULL) == 0);
	test_moved(true);
	test_moved(false);
	test_roused();
	return 0;
}
