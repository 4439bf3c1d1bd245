/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pools.c -- the pools that this daemon makes sandboxes for: those of the command line, or of a file
 * (wire/pool_file.h) that it reads again at SIGHUP.  A new version of the file does not disturb sandboxes
 * that run.  A pool that has changed gets a new zygote for its next sandboxes; the zygote of a pool that
 * was removed ends with its last sandbox. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon.h"
#include "wire/pool_file.h"

struct osd_zygotes *osd_zygotes_find(struct osd_daemon *daemon, const char *name, size_t length)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		struct osd_zygotes *pool = &daemon->pools[i];

		if (pool->name && strlen(pool->name) == length && !memcmp(pool->name, name, length))
			return pool;
	}
	return NULL;
}

static struct osd_zygotes *find_free(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		if (!daemon->pools[i].name)
			return &daemon->pools[i];
	}
	return NULL;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : !a && !b;
}

static const char *engine_of(const struct osd_pool_words *words)
{
	return words->engine ? words->engine : OSD_ENGINE_DEFAULT;
}

static char *copy(const char *text, bool *failed)
{
	char *made = text ? strdup(text) : NULL;

	*failed |= text && !made;
	return made;
}

/* The place has another pool from now on, or none.  Its zygotes stay: slots name them
 * by index. */
static void replace(struct osd_zygotes *pool, struct osd_zygotes fresh)
{
	free(pool->name);
	free(pool->engine);
	free(pool->packages);
	free(pool->set);
	free(pool->preload);
	memcpy(fresh.zygotes, pool->zygotes, sizeof(fresh.zygotes));
	*pool = fresh;
}

static void clear(struct osd_zygotes *pool)
{
	replace(pool, (struct osd_zygotes){.state = OSD_POOL_STARTING});
}

bool osd_zygotes_add(struct osd_daemon *daemon, const struct osd_pool_words *words)
{
	struct osd_zygotes *pool = osd_zygotes_find(daemon, words->name, strlen(words->name));
	bool failed = false;
	struct osd_zygotes fresh = {.name = copy(words->name, &failed),
				    .engine = copy(engine_of(words), &failed),
				    .packages = copy(words->packages, &failed),
				    .set = copy(words->set, &failed),
				    .preload = copy(words->preload, &failed),
				    .state = OSD_POOL_STARTING};

	if (!pool)
		pool = find_free(daemon);
	if (!pool || failed) {
		clear(&fresh);
		return false;
	}
	replace(pool, fresh);
	return true;
}

void osd_pools_release(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++)
		clear(&daemon->pools[i]);
}

/* ---- processor time -------------------------------------------------------------------------- */

static int bound(struct osd_daemon *daemon, const struct osd_zygotes *pool, unsigned percent)
{
	unsigned index = (unsigned)(pool - daemon->pools);
	int error = osd_cgroups_bound(&daemon->cgroups, index, percent);

	for (unsigned i = 0; i < OSD_ZYGOTES && !error; i++)
		if (pool->zygotes[i].pid)
			error = osd_cgroups_adopt(&daemon->cgroups, index, pool->zygotes[i].pid);
	return error;
}

void osd_zygotes_bound(struct osd_daemon *daemon, struct osd_zygotes *pool, unsigned percent)
{
	int error = bound(daemon, pool, percent);

	pool->cpu_share = percent < OSD_CPU_SHARE_WHOLE ? percent : 0;
	/* A bound that cannot be removed slows this pool alone; a missing one would slow others. */
	pool->unbounded = error && pool->cpu_share;
	if (pool->unbounded)
		osd_error("pool %s: a cpu share of %u %% cannot be enforced: %s", pool->name,
			  percent, strerror(-error));
	osd_target_tell_pool(daemon, pool);
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void leave(struct osd_daemon *daemon, struct osd_zygotes *pool)
{
	osd_zygotes_retire(daemon, pool);
	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		if (pool->zygotes[i].pid)
			return; /* the loop calls this again */
	}
	osd_info("pool %s is gone", pool->name);
	if (pool->cpu_share)
		bound(daemon, pool, OSD_CPU_SHARE_WHOLE); /* another pool may get its group */
	clear(pool);
}

/* The target reads the file at another moment, and finishes the jobs that it has accepted for a
 * removed pool.  Until it sends FORGET, `wanted` keeps the pool. */
void osd_pools_leave(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		if (daemon->pools[i].leaving && !daemon->pools[i].wanted)
			leave(daemon, &daemon->pools[i]);
	}
}

/* The next target assumes that pools have no bounds (osd_service_bound). */
void osd_pools_unwanted(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		if (daemon->pools[i].cpu_share)
			osd_zygotes_bound(daemon, &daemon->pools[i], OSD_CPU_SHARE_WHOLE);
		daemon->pools[i].wanted = false;
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Reads the keys of one line that the daemon uses; words borrow from the line.  Returns NULL, or the
 * defect of the line. */
static const char *parse_line(char *line, struct osd_pool_words *words)
{
	char *word, *value;

	while (osd_pool_file_next(&line, &word, &value)) {
		if (!value)
			return "a word without a value";
		if (strcmp(word, "name") == 0)
			words->name = value;
		else if (strcmp(word, "engine") == 0)
			words->engine = value;
		else if (strcmp(word, "packages") == 0)
			words->packages = value;
		else if (strcmp(word, "set") == 0)
			words->set = value;
		else if (strcmp(word, "preload") == 0)
			words->preload = value;
	}
	return osd_pool_words_check(words);
}

const char *osd_pool_words_check(const struct osd_pool_words *words)
{
	const char *engine = engine_of(words);

	if (!words->name || strlen(words->name) - 1 >= POOL_NAME_MAX)
		return "a pool needs a name of up to 64 bytes";
#define X(engine) " " #engine
	if (!osd_has_word(OSD_ENGINES(X), ' ', engine, strlen(engine)))
		return "unknown engine; the engines are:" OSD_ENGINES(X);
#undef X
	if (words->packages && words->packages[0] != '/')
		return "the folder of a package set is an absolute path";
	if (words->set && strlen(words->set) - 1 >= SET_ID_MAX)
		return "a package set's id has up to 64 bytes";
	return NULL;
}

struct wanted {
	struct osd_pool_words pools[OSD_POOLS_CONFIGURED];
	size_t count;
};

static const struct osd_pool_words *find_wanted(const struct wanted *wanted, const char *name)
{
	for (size_t i = 0; i < wanted->count; i++) {
		if (strcmp(wanted->pools[i].name, name) == 0)
			return &wanted->pools[i];
	}
	return NULL;
}

static const char *parse(char *text, struct wanted *wanted)
{
	const char *wrong = NULL;
	char *line;

	while (!wrong && (line = strsep(&text, "\n"))) {
		struct osd_pool_words words = {0};

		if (!*line || strncmp(line, OSD_POOL_BUDGET, strlen(OSD_POOL_BUDGET)) == 0)
			continue;
		wrong = parse_line(line, &words);
		if (!wrong && find_wanted(wanted, words.name))
			wrong = "two pools of one name";
		if (!wrong && wanted->count == OSD_POOLS_CONFIGURED)
			wrong = "too many pools";
		if (!wrong)
			wanted->pools[wanted->count++] = words;
	}
	/* Jobs that name no pool run in this one, so a file cannot remove it. */
	if (!wrong && !find_wanted(wanted, "default")) {
		if (wanted->count == OSD_POOLS_CONFIGURED)
			return "too many pools";
		wanted->pools[wanted->count++] = (struct osd_pool_words){.name = "default"};
	}
	return wrong;
}

/* Called before anything is changed.  A pool that was removed keeps its place until its last sandbox
 * has ended. */
static const char *check_room(struct osd_daemon *daemon, const struct wanted *wanted)
{
	unsigned used = 0;

	for (unsigned i = 0; i < OSD_POOLS_MAX; i++)
		used += daemon->pools[i].name != NULL;
	for (size_t i = 0; i < wanted->count; i++) {
		const char *name = wanted->pools[i].name;

		used += !osd_zygotes_find(daemon, name, strlen(name));
	}
	return used > OSD_POOLS_MAX ? "too many pools that were removed still have sandboxes" : NULL;
}

static bool take(struct osd_daemon *daemon, const struct osd_pool_words *words)
{
	struct osd_zygotes *pool = osd_zygotes_find(daemon, words->name, strlen(words->name));
	bool wanted = pool && pool->wanted, unbounded = pool && pool->unbounded;
	bool rotate = pool && pool->rotate; /* the target waits for the answer */
	unsigned cpu_share = pool ? pool->cpu_share : 0;

	if (pool && same(pool->engine, engine_of(words)) &&
	    same(pool->packages, words->packages) && same(pool->set, words->set) &&
	    same(pool->preload, words->preload)) {
		pool->leaving = false;
		return true;
	}
	if (!osd_zygotes_add(daemon, words))
		return false;
	/* After osd_zygotes_add(): if there is no memory, the pool serves as before. */
	if (pool)
		osd_zygotes_retire(daemon, pool);
	pool = osd_zygotes_find(daemon, words->name, strlen(words->name));
	pool->wanted = wanted;
	pool->cpu_share = cpu_share;
	pool->unbounded = unbounded;
	pool->rotate = rotate;
	osd_target_tell_pool(daemon, pool);
	return true;
}

static const char *take_all(struct osd_daemon *daemon, const struct wanted *wanted)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		struct osd_zygotes *pool = &daemon->pools[i];

		pool->leaving = pool->name && !find_wanted(wanted, pool->name);
	}
	for (size_t i = 0; i < wanted->count; i++) {
		if (!take(daemon, &wanted->pools[i]))
			return "no memory; some of its pools are as before";
	}
	return NULL;
}

bool osd_pools_load(struct osd_daemon *daemon)
{
	struct wanted wanted = {.count = 0};
	const char *wrong;
	OSD_CLEANUP_FREE char *text = osd_pool_file_read(daemon->pools_file, &wrong);

	if (text)
		wrong = parse(text, &wanted);
	if (!wrong)
		wrong = check_room(daemon, &wanted);
	if (!wrong)
		wrong = take_all(daemon, &wanted);
	if (wrong)
		osd_error("pools of '%s': %s", daemon->pools_file, wrong);
	return !wrong;
}
