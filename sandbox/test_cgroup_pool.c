/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_cgroup_pool.c -- groups of pools with cgroup v2, in an ordinary folder that has the files of a kernel: which of
 * them are written, and where the groups of slots are.  tests/sandbox/test_daemon.py has a kernel's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "cgroup.h"

#define LAYERS OSD_LAYERS_CGROUP

static const char *const files[] = {"cpu.max",	  "cgroup.subtree_control", "cgroup.procs",
				    "memory.max", "memory.swap.max",	    "memory.events",
				    "pids.max"};
static char root[64];
static struct osd_cgroup_slot slots[2];
static struct osd_cgroups groups;

static void make_group(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	CHECK(mkdir(path, 0755) == 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s/%s", root, name, files[i]);
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		CHECK(fd >= 0);
		close(fd);
	}
}

static void check_file(const char *name, const char *expected)
{
	char path[PATH_MAX], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	file = fopen(path, "re");
	CHECK(file);
	CHECK(fgets(text, sizeof(text), file) || !expected[0]);
	fclose(file);
	CHECK(strcmp(text, expected) == 0);
}

static void empty(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	CHECK(truncate(path, 0) == 0);
}

static void start(unsigned layers)
{
	snprintf(root, sizeof(root), "/tmp/iosd-cgroup-XXXXXX");
	CHECK(mkdtemp(root));
	groups = (struct osd_cgroups){.count = 1, .slots = 2};
	groups.hierarchies[0] =
		(struct osd_hierarchy){.layers = layers, .unified = true, .slots = slots};
	snprintf(groups.hierarchies[0].path, sizeof(groups.hierarchies[0].path), "%s", root);
	for (size_t i = 0; i < 2; i++)
		slots[i] = (struct osd_cgroup_slot){
			.directory = -1, .tasks = -1, .oom = -1, .peak = -1};
}

static void end(void)
{
	char command[128];

	for (size_t i = 0; i < 2; i++) {
		osd_closep(&slots[i].directory);
		osd_closep(&slots[i].tasks);
		osd_closep(&slots[i].oom);
	}
	snprintf(command, sizeof(command), "rm -r %s", root);
	CHECK(system(command) == 0);
}

static void test_a_share_is_a_quota_of_all_processors(void)
{
	char quota[48];

	start(LAYERS);
	make_group("pool-3");
	CHECK(osd_cgroups_bound(&groups, 3, OSD_CPU_SHARE_WHOLE) == 0);
	CHECK(groups.pools == 0); /* it needs no group */
	CHECK(osd_cgroups_bound(&groups, 3, 25) == 0);
	snprintf(quota, sizeof(quota), "%ld 100000", 25000 * sysconf(_SC_NPROCESSORS_ONLN));
	check_file("pool-3/cpu.max", quota);
	CHECK(groups.pools == 1u << 3);
	empty("pool-3/cpu.max");
	CHECK(osd_cgroups_bound(&groups, 3, OSD_CPU_SHARE_WHOLE) == 0);
	check_file("pool-3/cpu.max", "max");
	end();
}

static void test_slots_are_where_their_pool_is(void)
{
	const struct osd_sandbox_limits limits = {.memory_bytes = 64u << 20, .processes = 1};
	int fds[OSD_HIERARCHIES];

	start(LAYERS);
	make_group("pool-3");
	make_group("pool-3/slot-0");
	make_group("slot-0");
	CHECK(osd_cgroups_bound(&groups, 3, 25) == 0);
	CHECK(osd_cgroups_prepare(&groups, 0, 3, &limits, fds) == 1);
	check_file("pool-3/slot-0/pids.max", "1");
	check_file("slot-0/pids.max", "");
	CHECK(osd_cgroups_prepare(&groups, 0, 4, &limits, fds) == 1); /* a pool without a group */
	check_file("slot-0/pids.max", "1");
	empty("pool-3/slot-0/pids.max");
	CHECK(osd_cgroups_prepare(&groups, 0, 3, &limits, fds) == 1);
	check_file("pool-3/slot-0/pids.max", "1");
	end();
}

static void test_without_the_controller_nothing_is_bound(void)
{
	start(OSD_LAYER_CGROUP_MEMORY);
	CHECK(osd_cgroups_bound(&groups, 3, 25) == -ENOENT);
	groups.hierarchies[0].layers = LAYERS;
	CHECK(osd_cgroups_bound(&groups, 3, 25) == -ENOENT); /* the kernel made no files */
	CHECK(groups.pools == 0);
	end();
}

int main(void)
{
	test_a_share_is_a_quota_of_all_processors();
	test_slots_are_where_their_pool_is();
	test_without_the_controller_nothing_is_bound();
	return 0;
}
