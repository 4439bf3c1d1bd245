/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_lock.c -- the order of locks: kept, nothing happens; broken, the program ends and names both locks. */
#include "base/lock.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

static struct osd_lock outer = OSD_LOCK_INITIALIZER(OSD_RANK_CACHE);
static struct osd_lock inner = OSD_LOCK_INITIALIZER(OSD_RANK_OBJECT);
static struct osd_lock sibling = OSD_LOCK_INITIALIZER(OSD_RANK_OBJECT);
static struct osd_rwlock outermost;

/* Runs fn in a child, which must end by SIGABRT with the given message. */
static void check_refused(void (*fn)(void), const char *wanted)
{
	char message[4096] = ""; /* a sanitizer may add to it */
	int ends[2], status;
	size_t length = 0;
	ssize_t got;
	pid_t child;

	CHECK(pipe(ends) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	close(ends[1]);
	while ((got = read(ends[0], message + length, sizeof(message) - 1 - length)) > 0)
		length += (size_t)got;
	close(ends[0]);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK(strstr(message, wanted));
}

static void take_in_order(void)
{
	osd_write_lock(&outermost);
	osd_lock(&outer);
	osd_lock(&inner);
	osd_assert_rw_held(&outermost);
	osd_assert_held(&outer);
	osd_assert_held(&inner);
	osd_unlock(&outer); /* dropped in any order */
	osd_unlock(&inner);
	osd_rw_unlock(&outermost);
}

static void take_against_order(void)
{
	osd_lock(&inner);
	osd_lock(&outer);
}

static void take_sibling(void)
{
	osd_lock(&inner);
	osd_lock(&sibling);
}

static void read_against_order(void)
{
	osd_lock(&outer);
	osd_read_lock(&outermost);
}

static void take_after_trying(void)
{
	osd_lock(&inner);
	CHECK(osd_trylock(&outer)); /* does not wait, so it is allowed */
	CHECK(osd_trylock(&sibling));
	osd_unlock(&inner);
	osd_unlock(&sibling);
	osd_read_lock(&outermost);
}

static void drop_what_is_not_held(void)
{
	osd_unlock(&outer);
}

static void assert_what_is_not_held(void)
{
	osd_lock(&inner);
	osd_assert_held(&sibling);
}

static void wait_against_order(void)
{
	const struct timespec past = {0};
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;

	osd_lock(&outer);
	osd_lock(&inner);
	osd_cond_timedwait(&never, &outer, &past);
}

int main(void)
{
	osd_rwlock_init(&outermost, OSD_RANK_PARTITIONS);
	take_in_order();
	take_in_order();
	check_refused(
		take_against_order,
		"lock order: objects->cache_lock is taken by a thread that holds object->mutex\n");
	check_refused(take_sibling,
		      "lock order: object->mutex is taken by a thread that holds object->mutex\n");
	check_refused(read_against_order,
		      "lock order: objects->partitions_lock is taken by a thread that "
		      "holds objects->cache_lock\n");
	check_refused(take_after_trying,
		      "lock order: objects->partitions_lock is taken by a thread that "
		      "holds objects->cache_lock\n");
	check_refused(
		drop_what_is_not_held,
		"lock order: objects->cache_lock is let go by a thread that does not hold it\n");
	check_refused(assert_what_is_not_held, "lock order: object->mutex is not held\n");
	check_refused(
		wait_against_order,
		"lock order: objects->cache_lock is taken by a thread that holds object->mutex\n");
	osd_rwlock_destroy(&outermost);
	return 0;
}
