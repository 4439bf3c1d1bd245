/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_contract.c -- contracts of functions, alone and in stacks. */
#include "function/contract.h"

#include "base/test.h"
#include "base/util.h"

static void test_soundness(void)
{
	const struct {
		struct osd_contract contract;
		bool sound;
	} rows[] = {
		{{0}, true},
		{{.block = 4096}, false},
		{{.inverse = true}, false},
		{{.optional = true}, false},
		{{.deterministic = true}, false},
		{{.size = OSD_SIZE_SAME}, true},
		{{.size = OSD_SIZE_SAME, .block = 16, .inverse = true, .deterministic = true}, true},
		{{.size = OSD_SIZE_SAME, .numerator = 1, .denominator = 1}, false},
		{{.size = OSD_SIZE_FIXED}, false},
		{{.size = OSD_SIZE_FIXED, .numerator = 2}, false},
		{{.size = OSD_SIZE_FIXED, .numerator = 2, .denominator = 1}, true},
		{{.size = OSD_SIZE_FIXED, .numerator = 2, .denominator = 1, .block = 16}, false},
		{{.size = OSD_SIZE_UNKNOWN, .optional = true}, true},
		{{.size = OSD_SIZE_UNKNOWN, .block = 1}, false},
		{{.records = OSD_RECORDS_LINES}, false},
		{{.size = OSD_SIZE_UNKNOWN, .records = OSD_RECORDS_LINES}, true},
		{{.size = OSD_SIZE_SAME, .records = OSD_RECORDS_TABLE}, true},
		{{.size = OSD_SIZE_SAME, .records = OSD_RECORDS_TABLE + 1}, false},
		{{.size = OSD_SIZE_SAME, .records = OSD_RECORDS_LINES, .block = 16}, false},
		{{.size = OSD_SIZE_FIXED,
		  .numerator = 2,
		  .denominator = 1,
		  .records = OSD_RECORDS_LINES},
		 false},
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		CHECK_EQ(osd_contract_is_sound(&rows[i].contract), rows[i].sound);
}

static void test_stacks(void)
{
	const struct osd_contract block = {
		.size = OSD_SIZE_SAME, .block = 4096, .inverse = true, .deterministic = true};
	const struct osd_contract odd = {.size = OSD_SIZE_SAME, .block = 6, .inverse = true};
	const struct osd_contract prime = {.size = OSD_SIZE_SAME, .block = 1048573};
	const struct osd_contract twice = {
		.size = OSD_SIZE_FIXED, .header = 8, .numerator = 2, .denominator = 1};
	const struct osd_contract unknown = {.size = OSD_SIZE_UNKNOWN, .inverse = true};
	const struct osd_contract none = {0};
	struct osd_contract stack = osd_contract_of_stack(&block, 1);

	CHECK_EQ(stack.size, OSD_SIZE_SAME);
	CHECK_EQ(stack.block, 4096);
	CHECK(stack.inverse && stack.deterministic);
	stack = osd_contract_of_stack((struct osd_contract[]){block, odd}, 2);
	CHECK_EQ(stack.block, 12288);
	CHECK(stack.inverse && !stack.deterministic);
	stack = osd_contract_of_stack((struct osd_contract[]){block, prime}, 2);
	CHECK_EQ(stack.block, 0);
	CHECK(!stack.inverse);
	stack = osd_contract_of_stack((struct osd_contract[]){block, twice}, 2);
	CHECK_EQ(stack.size, OSD_SIZE_FIXED);
	CHECK_EQ(stack.block, 0);
	stack = osd_contract_of_stack((struct osd_contract[]){twice, unknown}, 2);
	CHECK_EQ(stack.size, OSD_SIZE_UNKNOWN);
	stack = osd_contract_of_stack((struct osd_contract[]){block, none}, 2);
	CHECK_EQ(stack.size, OSD_SIZE_UNKNOWN);
}

static void test_lengths(void)
{
	const struct osd_contract same = {.size = OSD_SIZE_SAME};
	const struct osd_contract base64 = {
		.size = OSD_SIZE_FIXED, .header = 5, .numerator = 4, .denominator = 3};
	const struct osd_contract huge = {
		.size = OSD_SIZE_FIXED, .numerator = UINT32_MAX, .denominator = 1};
	const struct osd_contract sealed = {
		.size = OSD_SIZE_FIXED, .header = -28, .numerator = 1, .denominator = 1};
	const struct osd_contract unknown = {.size = OSD_SIZE_UNKNOWN};
	uint64_t length = 1;

	CHECK(osd_contract_length(&same, 77, &length));
	CHECK_EQ(length, 77);
	CHECK(osd_contract_length(&base64, 7, &length));
	CHECK_EQ(length, 5 + 10); /* 28/3, rounded up */
	CHECK(osd_contract_length(&base64, 0, &length));
	CHECK_EQ(length, 0);
	CHECK(osd_contract_length(&sealed, 29, &length));
	CHECK_EQ(length, 1);
	CHECK(osd_contract_length(&sealed, 28, &length));
	CHECK_EQ(length, 0);
	CHECK(!osd_contract_length(&sealed, 27, &length));
	CHECK(!osd_contract_length(&huge, UINT64_C(1) << 40, &length));
	CHECK(!osd_contract_length(&unknown, 1, &length));
	CHECK(osd_contract_length(&unknown, 0, &length));
}

int main(void)
{
	test_soundness();
	test_stacks();
	test_lengths();
	return 0;
}
