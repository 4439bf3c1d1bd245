/* SPDX-License-Identifier: GPL-2.0-or-later */
/* contract.c -- see contract.h. */
#include "function/contract.h"

#include "base/util.h"

bool osd_contract_is_sound(const struct osd_contract *contract)
{
	bool has_ratio = contract->numerator && contract->denominator;

	if (contract->size > OSD_SIZE_UNKNOWN || contract->records > OSD_RECORDS_TABLE)
		return false;
	if (contract->size == OSD_SIZE_NONE)
		return !contract->block && !contract->records && !has_ratio &&
		       !contract->optional && !contract->deterministic && !contract->inverse;
	if (contract->block && (contract->size != OSD_SIZE_SAME || contract->records))
		return false;
	if (contract->records && contract->size == OSD_SIZE_FIXED)
		return false;
	return has_ratio == (contract->size == OSD_SIZE_FIXED);
}

static uint64_t divisor_of(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The least block that is whole blocks of both. */
static uint32_t block_of(uint32_t a, uint32_t b)
{
	uint64_t block;

	if (!a || !b)
		return 0;
	block = (uint64_t)a / divisor_of(a, b) * b;
	return block <= OSD_CONTRACT_BLOCK_MAX ? (uint32_t)block : 0;
}

struct osd_contract osd_contract_of_stack(const struct osd_contract *functions, size_t count)
{
	struct osd_contract stack = {.size = OSD_SIZE_SAME,
				     .block = 1,
				     .optional = true,
				     .deterministic = true,
				     .inverse = true};

	for (size_t i = 0; i < count; i++) {
		const struct osd_contract *each = &functions[i];

		stack.size = OSD_MAX(stack.size, each->size ? each->size : OSD_SIZE_UNKNOWN);
		stack.block = block_of(stack.block, each->block);
		stack.optional &= each->optional;
		stack.deterministic &= each->deterministic;
		stack.inverse &= each->inverse;
	}
	return stack;
}

bool osd_contract_length(const struct osd_contract *contract, uint64_t input, uint64_t *ret_output)
{
	uint64_t output;

	if (contract->size == OSD_SIZE_SAME || input == 0) {
		*ret_output = input;
		return true;
	}
	if (contract->size != OSD_SIZE_FIXED || !contract->denominator ||
	    __builtin_mul_overflow(input, (uint64_t)contract->numerator, &output) ||
	    __builtin_add_overflow(output, (uint64_t)contract->denominator - 1, &output) ||
	    __builtin_add_overflow(output / contract->denominator, contract->header, &output))
		return false;
	*ret_output = output;
	return true;
}
