/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_tier.c -- how often each of the two stores is asked: what concerns the head alone never asks that
 * of tails, which is the slow one. */
#include "base/test.h"
#include "base/util.h"
#include "store/tier.h"
#include "testing/stores.h"

#define HEAD	 4096u

static struct osd_data *counted(struct osd_fault_plan *plan)
{
	struct osd_data *inner, *data;

	OK(osd_mem_data_open(&inner));
	OK(osd_fault_data_wrap(inner, plan, &data));
	return data;
}

/* Calls since this was asked last. */
static uint64_t calls(struct osd_fault_plan *plan)
{
	return atomic_exchange(&plan->calls, 0);
}

static void begin(struct osd_tier *tier, struct osd_tier_file *file)
{
	static uint64_t object_id = 0x10000;

	osd_tier_file_init(file, tier);
	file->head_bytes = HEAD;
	file->name = (struct osd_data_name){0x10000, 1, ++object_id, 1, false, false};
}

static void test_head_alone(struct osd_tier *tier, struct osd_fault_plan *tails)
{
	static const uint8_t bytes[HEAD];
	uint8_t back[HEAD + 100];
	struct osd_tier_file file;
	struct osd_data_stat stat;
	size_t got;

	begin(tier, &file);
	OK(osd_tier_write(&file, 0, bytes, 100));
	OK(osd_tier_sync(&file));
	OK(osd_tier_read(&file, 0, back, 100, 0, &got));
	CHECK_EQ(got, 100);
	osd_tier_shut(&file);
	OK(osd_tier_read(&file, 0, back, 100, 0, &got));
	OK(osd_tier_zero(&file, 10, 10));
	OK(osd_tier_stat(&file, false, &stat));
	OK(osd_tier_truncate(&file, 50));
	OK(osd_tier_truncate(&file, 60));
	CHECK_EQ(calls(tails), 0);
	/* A whole head may have a tail: looked for once. */
	OK(osd_tier_write(&file, 0, bytes, HEAD));
	CHECK_EQ(calls(tails), 0);
	OK(osd_tier_stat(&file, false, &stat));
	CHECK_EQ(calls(tails), 1);
	OK(osd_tier_sync(&file));
	OK(osd_tier_stat(&file, false, &stat));
	CHECK_EQ(stat.size, HEAD);
	CHECK_EQ(calls(tails), 0);
	OK(osd_tier_write(&file, HEAD, bytes, 1));
	CHECK_EQ(calls(tails), 2);
	OK(osd_tier_stat(&file, false, &stat));
	CHECK_EQ(stat.size, HEAD + 1);
	OK(osd_tier_truncate(&file, HEAD));
	OK(osd_tier_stat(&file, false, &stat));
	CHECK_EQ(stat.size, HEAD);
	calls(tails);
	osd_tier_file_release(&file);
}

static void test_tail_begins(struct osd_tier *tier, struct osd_fault_plan *tails)
{
	uint8_t bytes[HEAD + 100], back[HEAD + 100];
	struct osd_tier_file file;
	uint64_t head, tail;
	size_t got;

	memset(bytes, 7, sizeof(bytes));
	begin(tier, &file);
	OK(osd_tier_write(&file, 0, bytes, sizeof(bytes)));
	CHECK_EQ(calls(tails), 2); /* made, written */
	OK(osd_tier_write(&file, HEAD, bytes, 100));
	CHECK_EQ(calls(tails), 1);
	osd_tier_shut(&file);
	OK(osd_tier_write(&file, HEAD, bytes, 100));
	CHECK_EQ(calls(tails), 2); /* opened, written */
	OK(osd_tier_read(&file, 0, back, sizeof(back), 0, &got));
	CHECK_BYTES(back, got, bytes, sizeof(bytes));
	CHECK_EQ(calls(tails), 1);
	OK(osd_tier_sync(&file));
	CHECK_EQ(calls(tails), 2); /* its data, and its name, which is new */
	OK(osd_tier_sync(&file));
	CHECK_EQ(calls(tails), 1);
	osd_tier_shut(&file);
	OK(osd_tier_sync(&file));
	CHECK_EQ(calls(tails), 2); /* opened, synced */
	OK(osd_tier_part_sizes(&file, &head, &tail));
	CHECK_EQ(head, HEAD);
	CHECK_EQ(tail, 100);
	calls(tails);
	osd_tier_file_release(&file);
}

/* A tail far behind a short head, which is then as long as it must be. */
static void test_short_head(struct osd_tier *tier, struct osd_fault_plan *tails)
{
	struct osd_tier_file file;
	uint64_t head, tail;

	begin(tier, &file);
	OK(osd_tier_write(&file, 0, "x", 1));
	OK(osd_tier_write(&file, 2 * HEAD, "y", 1));
	CHECK_EQ(calls(tails), 2);
	OK(osd_tier_part_sizes(&file, &head, &tail));
	CHECK_EQ(head, HEAD);
	CHECK_EQ(tail, HEAD + 1);
	calls(tails);
	osd_tier_file_release(&file);
}

/* Of files that are gone: what touches a part is refused, what writes all there was may make them again. */
static void test_missing(struct osd_tier *tier)
{
	static const struct {
		uint64_t length, from, to;
		enum osd_status status;
	} table[] = {
		{0, 0, 10, OSD_OK},
		{100, 0, 100, OSD_OK},
		{100, 0, 200, OSD_OK},
		{100, 50, 60, OSD_E_HEAD_FAILED},
		{100, 10, 100, OSD_E_HEAD_FAILED},  /* a shorter length */
		{100, 100, 101, OSD_E_HEAD_FAILED}, /* a longer one, APPEND */
		{100, HEAD, HEAD + 1, OSD_E_HEAD_FAILED},
		{HEAD + 10, 0, HEAD + 10, OSD_OK},
		{HEAD + 10, 0, HEAD, OSD_OK},
		{HEAD + 10, HEAD, HEAD + 10, OSD_E_HEAD_FAILED}, /* a tail begins with its head */
		{HEAD + 10, HEAD + 1, HEAD + 10, OSD_E_TAIL_FAILED},
		{HEAD + 10, 0, HEAD + 9, OSD_E_TAIL_FAILED},
	};
	struct osd_tier_file file;

	for (size_t i = 0; i < OSD_ARRAY_SIZE(table); i++) {
		begin(tier, &file);
		CHECK_EQ(osd_tier_miss(&file, table[i].length, table[i].from, table[i].to),
			 table[i].status);
		osd_tier_file_release(&file);
	}
}

int main(void)
{
	struct osd_fault_plan heads = {0}, tails = {0};
	struct osd_tier tier = {0};

	tier.head = counted(&heads);
	tier.tail = counted(&tails);
	test_head_alone(&tier, &tails);
	test_tail_begins(&tier, &tails);
	test_short_head(&tier, &tails);
	test_missing(&tier);
	osd_tier_close(&tier);
	return 0;
}
