/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup.c -- see cgroup.h.  Finding the hierarchies: cgroup_find.c.  Groups of pools: cgroup_pool.c. */
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cgroup_file.h"
#include "cgroup_find.h"

#define NAME_PREFIX    "iosd-sandboxd-"
/* page tables, stacks, shared memory: above what RLIMIT_DATA counts */
#define SPARE_BYTES    (8u << 20)
/* the weight of an ordinary process (v1) or group (v2), and the number of such competitors on one CPU
 * for which the share is computed */
#define ORDINARY_V1    1024u
#define ORDINARY_V2    100u
#define BESIDE         4u
#define WEIGHT_MOST_V1 262144u
#define WEIGHT_MOST_V2 10000u
#define REMOVE_STEP_MS 5
#define REMOVE_STEPS   2000

/* ---- small files ----------------------------------------------------------------------------- */

/* Reads the file from its beginning, any number of times. */
static bool read_again(int fd, char *text, size_t size)
{
	ssize_t length = pread(fd, text, size - 1, 0);

	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool read_text(int directory, const char *file, char *text, size_t size)
{
	OSD_CLEANUP_CLOSE int fd = openat(directory, file, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read_again(fd, text, size);
}

/* ---- making and removing --------------------------------------------------------------------- */

static void kill_members(int directory)
{
	char text[4096];

	if (osd_cgroup_write(directory, "cgroup.kill", "1") == 0 ||
	    !read_text(directory, "cgroup.procs", text, sizeof(text)))
		return;
	for (char *at = text, *next; *at; at = next) {
		long pid = strtol(at, &next, 10);

		if (next == at)
			break;
		if (pid > 0)
			kill((pid_t)pid, SIGKILL);
	}
}

/* A group can be removed once its last member is reaped. v1 has no event for that, so this polls. */
static void remove_group(const char *path)
{
	for (int i = 0; rmdir(path) < 0 && errno == EBUSY && i < REMOVE_STEPS; i++) {
		OSD_CLEANUP_CLOSE int directory = osd_cgroup_open(path);

		if (directory >= 0)
			kill_members(directory);
		poll(NULL, 0, REMOVE_STEP_MS);
	}
}

/* Calls it for each group below the path. */
static void each_below(const char *path, void (*fn)(const char *path))
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char below[PATH_MAX];

	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
		    (int)sizeof(below))
			fn(below);
	}
	closedir(directory);
}

/* Removes the group of a slot, or of a pool with its slots. */
static void remove_part(const char *path)
{
	each_below(path, remove_group);
	remove_group(path);
}

/* Removes the group of a daemon and those below it. */
static void remove_tree(const char *path)
{
	each_below(path, remove_part);
	remove_group(path);
}

/* Removes the group if it is that of a daemon that has ended. */
static void remove_stale(const char *path)
{
	int pid;

	if (sscanf(strrchr(path, '/'), "/" NAME_PREFIX "%d", &pid) == 1 && pid > 0 &&
	    kill(pid, 0) < 0 && errno == ESRCH)
		remove_tree(path);
}

static const struct osd_cgroup_slot no_slot = {.directory = -1, .tasks = -1, .oom = -1, .peak = -1};

static void close_slot(struct osd_cgroup_slot *slot)
{
	osd_closep(&slot->directory);
	osd_closep(&slot->tasks);
	osd_closep(&slot->oom);
	osd_closep(&slot->peak);
	*slot = no_slot;
}

static void close_slots(struct osd_hierarchy *h, unsigned slots)
{
	for (unsigned i = 0; i < slots && h->slots; i++)
		close_slot(&h->slots[i]);
	free(h->slots);
	h->slots = NULL;
}

/* In v1 a process that joins as a thread takes no lock that all forks of the host need. */
static int make_group(const struct osd_hierarchy *h, unsigned index, unsigned pool,
		      struct osd_cgroup_slot *slot)
{
	char parent[PATH_MAX], path[PATH_MAX];
	int error = osd_cgroup_place_of(h, pool, parent);

	if (error)
		return error;
	if (snprintf(path, sizeof(path), "%s/slot-%u", parent, index) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	slot->directory = osd_cgroup_open(path);
	if (slot->directory < 0)
		return slot->directory;
	slot->tasks = openat(slot->directory, h->unified ? "cgroup.procs" : "tasks",
			     O_WRONLY | O_CLOEXEC);
	return slot->tasks < 0 ? -errno : 0;
}

/* Kernels before 5.15 have no idle groups: there the group gets the least weight. */
static int make_idle(int directory, bool unified)
{
	int error = unified ? osd_cgroup_write(directory, "cpu.weight", "1")
			    : osd_cgroup_write(directory, "cpu.shares", "2");

	if (!error)
		osd_cgroup_write(directory, "cpu.idle", "1");
	return error;
}

static int weigh(const struct osd_hierarchy *h, unsigned share, unsigned times)
{
	uint64_t others = BESIDE * (h->unified ? ORDINARY_V2 : ORDINARY_V1);
	uint64_t most = h->unified ? WEIGHT_MOST_V2 : WEIGHT_MOST_V1;
	uint64_t weight = others * share / (100 - share) * times;
	OSD_CLEANUP_CLOSE int directory = -1;

	if (!(h->layers & OSD_LAYER_CGROUP_CPU))
		return 0;
	directory = osd_cgroup_open(h->path);
	if (directory < 0)
		return directory;
	osd_cgroup_write(directory, "cpu.idle", "0"); /* an idle group takes no weight */
	return share == 0 ? make_idle(directory, h->unified)
			  : osd_cgroup_write_number(directory,
						    h->unified ? "cpu.weight" : "cpu.shares",
						    OSD_MIN(OSD_MAX(weight, UINT64_C(2)), most));
}

void osd_cgroups_weigh(const struct osd_cgroups *groups, unsigned share, unsigned times)
{
	for (size_t i = 0; i < groups->count; i++) {
		int error = weigh(&groups->hierarchies[i], share, times);

		if (error)
			osd_warning("cannot change the weight of the sandboxes' control group: %s",
				    strerror(-error));
	}
}

static int set_limits(const struct osd_hierarchy *h, struct osd_cgroup_slot *slot,
		      const struct osd_sandbox_limits *limits)
{
	uint64_t memory = limits->memory_bytes + limits->memory_bytes / 64 + SPARE_BYTES;
	int error = 0;

	if (slot->memory_bytes == memory && slot->processes == limits->processes)
		return 0;
	slot->memory_bytes = 0;
	if (h->layers & OSD_LAYER_CGROUP_MEMORY)
		error = osd_cgroup_write_number(slot->directory,
						h->unified ? "memory.max" : "memory.limit_in_bytes",
						memory);
	if (!error && h->layers & OSD_LAYER_CGROUP_PIDS)
		error = osd_cgroup_write_number(slot->directory, "pids.max", limits->processes);
	if (!error) {
		slot->memory_bytes = memory;
		slot->processes = limits->processes;
	}
	return error;
}

/* Files that are read before and after each sandbox stay open. */
static int watch_memory(const struct osd_hierarchy *h, struct osd_cgroup_slot *slot)
{
	/* no swap, so that the memory limit is the real limit */
	osd_cgroup_write(slot->directory, h->unified ? "memory.swap.max" : "memory.swappiness",
			 "0");
	if (!h->unified)
		slot->peak =
			openat(slot->directory, "memory.max_usage_in_bytes", O_RDWR | O_CLOEXEC);
	slot->oom = openat(slot->directory, h->unified ? "memory.events" : "memory.oom_control",
			   O_RDONLY | O_CLOEXEC);
	return slot->oom < 0 ? -errno : 0;
}

/* Makes the group of a slot with its first sandbox, and when it comes to another pool that has a group: the number of
 * slots is a maximum, and few hosts need all of them. */
static int make_slot(struct osd_hierarchy *h, unsigned index, unsigned pool)
{
	struct osd_cgroup_slot *slot = &h->slots[index];
	int error;

	if (slot->tasks >= 0 && slot->pool == pool)
		return 0;
	close_slot(slot);
	slot->pool = pool;
	error = make_group(h, index, pool, slot);
	if (!error && h->layers & OSD_LAYER_CGROUP_MEMORY)
		error = watch_memory(h, slot);
	if (error)
		close_slot(slot);
	return error;
}

static int open_hierarchy(struct osd_hierarchy *h, const char *base, unsigned slots)
{
	static const struct osd_sandbox_limits probe = {.memory_bytes = 64u << 20, .processes = 1};
	int error;

	if (snprintf(h->path, sizeof(h->path), "%s/" NAME_PREFIX "%d", base, (int)getpid()) >=
	    (int)sizeof(h->path))
		return -ENAMETOOLONG;
	each_below(base, remove_stale);
	if (mkdir(h->path, 0755) < 0)
		return -errno;
	error = weigh(h, 0, 1);
	if (h->common) {
		if (error)
			remove_tree(h->path);
		return error;
	}
	h->slots = calloc(slots, sizeof(*h->slots));
	if (!error && !h->slots)
		error = -ENOMEM;
	if (!error && h->unified)
		error = osd_cgroup_delegate(h->path, h->layers);
	for (unsigned i = 0; i < slots && h->slots; i++)
		h->slots[i] = no_slot;
	if (!error)
		error = make_slot(h, 0, OSD_CGROUP_COMMON);
	if (!error)
		error = set_limits(h, &h->slots[0], &probe);
	if (error) {
		close_slots(h, slots);
		remove_tree(h->path);
	}
	return error;
}

void osd_cgroups_open(struct osd_cgroups *groups, const char *parent, unsigned slots,
		      struct osd_layer_states *states)
{
	static const enum osd_layer_index controllers[] = {OSD_LAYER_INDEX_CGROUP_MEMORY,
							   OSD_LAYER_INDEX_CGROUP_PIDS,
							   OSD_LAYER_INDEX_CGROUP_CPU};
	struct osd_cgroup_place places[OSD_HIERARCHIES];
	size_t count = osd_cgroup_find(parent, places);

	*groups = (struct osd_cgroups){.slots = slots};
	for (size_t i = 0; i < OSD_ARRAY_SIZE(controllers); i++)
		states->error[controllers[i]] = ENOENT;
	for (size_t i = 0; i < count; i++) {
		struct osd_hierarchy *h = &groups->hierarchies[groups->count];
		int error;

		*h = (struct osd_hierarchy){
			.layers = places[i].layers,
			.unified = places[i].unified,
			.common = places[i].layers == OSD_LAYER_CGROUP_CPU && !places[i].unified,
		};
		error = open_hierarchy(h, places[i].base, slots);
		for (size_t c = 0; c < OSD_ARRAY_SIZE(controllers); c++) {
			if (h->layers & 1u << controllers[c])
				states->error[controllers[c]] = -error;
		}
		if (!error)
			groups->count++;
	}
}

bool osd_cgroups_need_override(const struct osd_cgroups *groups)
{
	for (size_t i = 0; i < groups->count; i++) {
		char parent[PATH_MAX + 3];
		struct stat status;

		snprintf(parent, sizeof(parent), "%s/..", groups->hierarchies[i].path);
		if (stat(parent, &status) < 0 || status.st_uid != geteuid() ||
		    !(status.st_mode & S_IWUSR))
			return true;
	}
	return false;
}

void osd_cgroups_remove(const struct osd_cgroups *groups)
{
	for (size_t i = 0; i < groups->count; i++)
		remove_tree(groups->hierarchies[i].path);
}

void osd_cgroups_close(struct osd_cgroups *groups)
{
	osd_cgroups_remove(groups);
	for (size_t i = 0; i < groups->count; i++)
		close_slots(&groups->hierarchies[i], groups->slots);
	groups->count = 0;
}

/* ---- use ------------------------------------------------------------------------------------- */

/* "oom_kill N" of memory.oom_control (v1) or memory.events (v2). */
static uint64_t oom_kills(const struct osd_cgroup_slot *slot)
{
	char text[512];
	const char *at;

	if (!read_again(slot->oom, text, sizeof(text)))
		return 0;
	at = strstr(text, "oom_kill ");
	return at ? strtoull(at + 9, NULL, 10) : 0;
}

int osd_cgroups_limit(struct osd_cgroups *groups, unsigned slot,
		      const struct osd_sandbox_limits *limits)
{
	for (size_t i = 0; i < groups->count; i++) {
		struct osd_hierarchy *h = &groups->hierarchies[i];
		int error = h->common ? 0 : set_limits(h, &h->slots[slot], limits);

		if (error)
			return error;
	}
	return 0;
}

int osd_cgroups_adopt(const struct osd_cgroups *groups, unsigned pool, pid_t pid)
{
	for (size_t i = 0; i < groups->count; i++) {
		const struct osd_hierarchy *h = &groups->hierarchies[i];
		OSD_CLEANUP_CLOSE int directory = -1;
		char path[PATH_MAX];
		int error;

		if (!h->common)
			continue;
		error = osd_cgroup_place_of(h, osd_cgroups_pool(groups, h, pool), path);
		if (error)
			return error;
		directory = osd_cgroup_open(path);
		if (directory < 0)
			return directory;
		error = osd_cgroup_write_number(directory, "cgroup.procs", (uint64_t)pid);
		if (error)
			return error;
	}
	return 0;
}

int osd_cgroups_prepare(struct osd_cgroups *groups, unsigned slot, unsigned pool,
			const struct osd_sandbox_limits *limits, int fds[OSD_HIERARCHIES])
{
	int error = 0, count = 0;

	for (size_t i = 0; i < groups->count && !error; i++) {
		struct osd_hierarchy *h = &groups->hierarchies[i];

		if (!h->common)
			error = make_slot(h, slot, osd_cgroups_pool(groups, h, pool));
	}
	if (!error)
		error = osd_cgroups_limit(groups, slot, limits);
	if (error)
		return error;
	for (size_t i = 0; i < groups->count; i++) {
		struct osd_hierarchy *h = &groups->hierarchies[i];
		struct osd_cgroup_slot *s;

		if (h->common)
			continue;
		s = &h->slots[slot];
		fds[count++] = s->tasks;
		if (!(h->layers & OSD_LAYER_CGROUP_MEMORY))
			continue;
		s->oom_kills = oom_kills(s);
		if (s->peak >= 0 && pwrite(s->peak, "0", 1, 0) < 0)
			osd_closep(&s->peak); /* it would count an earlier sandbox */
	}
	return count;
}

void osd_cgroups_usage(struct osd_cgroups *groups, unsigned slot, struct osd_sandbox_exit *status)
{
	char text[32];

	for (size_t i = 0; i < groups->count; i++) {
		const struct osd_hierarchy *h = &groups->hierarchies[i];
		const struct osd_cgroup_slot *s;

		if (!(h->layers & OSD_LAYER_CGROUP_MEMORY))
			continue;
		s = &h->slots[slot];
		status->out_of_memory = oom_kills(s) > s->oom_kills;
		/* v2 keeps the peak of the group, which may be that of an earlier sandbox */
		if (read_again(s->peak, text, sizeof(text)))
			status->peak_bytes = strtoull(text, NULL, 10);
	}
}
