/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_pool.c -- the file of pools: defaults, mistakes, the memory budget; limits of jobs in a
 * pool. */
#include <string.h>

#include "base/test.h"
#include "exec/pool/pool.h"

#define MIB (UINT64_C(1) << 20)

static char message[256];

static struct osd_pool_table parse(const char *text)
{
	struct osd_pool_table table = {0};
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", text);
	message[0] = '\0';
	if (osd_pool_table_parse(copy, 2, OSD_REUSE_NEVER, message, &table) != OSD_OK)
		CHECK(message[0] && !table.pools);
	return table;
}

static void check_wrong(const char *text, const char *words)
{
	struct osd_pool_table table = parse(text);

	CHECK(!table.pools);
	CHECK(strstr(message, words));
}

static void test_default_alone(void)
{
	struct osd_pool_table table = parse("");

	CHECK(table.count == 1 && strcmp(table.pools[0].name, "default") == 0);
	CHECK(table.pools[0].max == 2 && table.pools[0].min == 1 && table.pools[0].spares == 3);
	CHECK(table.pools[0].queue_max == 10000 && !table.pools[0].set[0]);
	osd_pool_table_release(&table);
}

static void test_several(void)
{
	struct osd_pool_table table =
		parse("budget=8589934592\n"
		      "name=numpy;set=numpy-0123;max=4;min=1;memory=536870912;"
		      "memory_max=1073741824\n\n"
		      "name=default;max=8;reuse=trusted;memory_max=268435456\n");

	CHECK(table.count == 2 && table.budget_bytes == 8192 * MIB);
	CHECK(strcmp(table.pools[0].name, "default") == 0 && table.pools[0].max == 8);
	CHECK(table.pools[0].reuse == OSD_REUSE_TRUSTED);
	CHECK(strcmp(table.pools[1].name, "numpy") == 0 && table.pools[1].min == 1);
	CHECK(strcmp(table.pools[1].set, "numpy-0123") == 0 && table.pools[1].spares == 5);
	CHECK(table.pools[1].standard.memory_bytes == 512 * MIB);
	osd_pool_table_release(&table);
}

static void test_mistakes(void)
{
	check_wrong("name=a;max=1\nname=b;maxi=2",
		    "line 2: unknown key, or a value out of range: 'maxi'");
	check_wrong("name=a;max=0", "'max'");
	check_wrong("name=a;max=65", "'max'");
	check_wrong("name=a;max=1x", "'max'");
	check_wrong("name=a b;max=1", "'name'");
	check_wrong("name=a;max", "no value: 'max'");
	check_wrong("max=1", "name and max");
	check_wrong("name=a", "name and max");
	check_wrong("name=a;max=1;min=2", "above its maximum in pool 'a'");
	check_wrong("name=a;max=1;wall=2000000;wall_max=1000000", "above its maximum");
	check_wrong("name=a;max=1;memory=1048576", "'memory'");
	check_wrong("name=a;max=1\nname=a;max=1", "another pool 'a'");
	check_wrong("name=a;max=1;engine=native;reuse=trusted", "no reuse: pool 'a'");
	check_wrong("budget=much", "'much'");
	check_wrong("name=a;max=40\nname=b;max=40", "82 slots together, at most 64");
}

/* Reliability 39: the numbers are in the message. */
static void test_budget(void)
{
	check_wrong(
		"budget=1073741824\nname=default;max=4;memory_max=268435456\n"
		"name=big;max=2;memory_max=1073741824",
		"may need 3072 MiB, the budget is 1024 MiB: default 4 x 256 MiB, big 2 x 1024 MiB");
	check_wrong("budget=1073741824\nname=default;max=1;memory=268435456",
		    "the budget is 1024 MiB");
	osd_pool_table_release(&(struct osd_pool_table){
		parse("budget=1073741824\nname=default;max=4;memory_max=268435456").pools, 1, 0});
	CHECK(!message[0]);
}

static void test_limits(void)
{
	struct osd_pool_table table = parse(
		"name=default;max=1;wall=7000000;wall_max=9000000;cpu_max=5000000;threads_max=4");
	struct osd_job_limits limits = {0};

	CHECK(osd_pool_settle_limits(&table.pools[0], &limits));
	CHECK(limits.wall_usec == 7000000 && limits.cpu_usec == 5000000);
	CHECK(limits.memory_bytes == 256 * MIB && limits.processes == 1);
	CHECK(limits.result_bytes == UINT64_C(1) << 30);
	limits = (struct osd_job_limits){.processes = 4, .wall_usec = 3000000};
	CHECK(osd_pool_settle_limits(&table.pools[0], &limits) && limits.cpu_usec == 3000000);
	limits = (struct osd_job_limits){.processes = 5};
	CHECK(!osd_pool_settle_limits(&table.pools[0], &limits));
	limits = (struct osd_job_limits){.wall_usec = 9000001};
	CHECK(!osd_pool_settle_limits(&table.pools[0], &limits));
	limits = (struct osd_job_limits){.memory_bytes = MIB};
	CHECK(!osd_pool_settle_limits(&table.pools[0], &limits));
	CHECK(sizeof(limits) == 64);
	osd_pool_table_release(&table);
	table = parse("name=default;max=1");
	limits = (struct osd_job_limits){.processes = 16};
	CHECK(osd_pool_settle_limits(&table.pools[0], &limits));
	limits = (struct osd_job_limits){.processes = 17};
	CHECK(!osd_pool_settle_limits(&table.pools[0], &limits));
	osd_pool_table_release(&table);
}

static void test_share_of_the_host(void)
{
	struct osd_pool_table table =
		parse("name=a;max=1;cpu_share=20;bandwidth=1048576;deadline=30000000");
	struct osd_pool_change change = {.active = 1, .mode = OSD_POOL_RUNNING};
	char words[] = "cpu_share=100;deadline=0;bandwidth=0", value[OSD_POOL_VALUE_MAX];

	CHECK(table.pools[0].cpu_share == 100 && table.pools[0].bandwidth == 0);
	CHECK(table.pools[1].cpu_share == 20 && table.pools[1].bandwidth == MIB);
	CHECK(table.pools[1].deadline_usec == 30000000);
	change.config = table.pools[1];
	CHECK(osd_pool_change_value(&change, "deadline", value) && strcmp(value, "30000000") == 0);
	CHECK(osd_pool_change_parse(words, message, &change) == OSD_OK);
	CHECK(change.config.cpu_share == 100 && !change.config.bandwidth &&
	      !change.config.deadline_usec);
	osd_pool_table_release(&table);
	check_wrong("name=a;max=1;cpu_share=0", "'cpu_share'");
	check_wrong("name=a;max=1;cpu_share=101", "'cpu_share'");
	check_wrong("name=a;max=1;deadline=86400000001", "'deadline'");
}

int main(void)
{
	test_share_of_the_host();
	test_default_alone();
	test_several();
	test_mistakes();
	test_budget();
	test_limits();
	return 0;
}
