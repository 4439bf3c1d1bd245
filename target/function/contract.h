/* SPDX-License-Identifier: GPL-2.0-or-later */
/* contract.h -- what a function promises of the data that it transforms (docs/views.md, "Contracts"), and what follows
 * for a stack of them.  Pure: no store, no lock. */
#ifndef OSD_FUNCTION_CONTRACT_H
#define OSD_FUNCTION_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of what a function returns. */
#define OSD_CONTRACT_SIZES(X)                                                                      \
	X(0, NONE, "")		 /* it declares nothing: it transforms no data */                  \
	X(1, SAME, "same")	 /* that of the input */                                           \
	X(2, FIXED, "fixed")	 /* follows from that of the input (ratio) */                      \
	X(3, UNKNOWN, "unknown") /* depends on the data */

enum osd_contract_size {
#define X(number, symbol, name) OSD_SIZE_##symbol = number,
	OSD_CONTRACT_SIZES(X)
#undef X
};

/* The records of the input of a sequential function.  The outputs of parts that end with a record, one after the other,
 * are the output of the whole. */
#define OSD_CONTRACT_RECORDS(X)                                                                    \
	X(0, NONE, "")	     /* it needs all of the input at once */                               \
	X(1, LINES, "lines") /* each ends with a newline */                                        \
	X(2, TABLE, "table") /* the same; each part gets the first line of the input, too */

enum osd_contract_records {
#define X(number, symbol, name) OSD_RECORDS_##symbol = number,
	OSD_CONTRACT_RECORDS(X)
#undef X
};

#define OSD_CONTRACT_BLOCK_MAX (1u << 20) /* bytes of a block, of one function and of a stack */

struct osd_contract {
	uint8_t size; /* enum osd_contract_size */
	/* Bytes of a block: a block of the output depends on the same block of the input alone.  0: it needs all of the
	 * input (sequential).  Only with SAME. */
	uint32_t block;
	uint8_t records; /* enum osd_contract_records; only of a sequential function, and not with FIXED */
	/* FIXED: so many bytes more than numerator / denominator of the input, rounded up; less if header is negative. */
	int32_t header;
	uint32_t numerator, denominator;
	bool optional;	    /* if it fails, its input stands for its output */
	bool deterministic; /* the same input gives the same output */
	bool inverse;	    /* an entry point computes the input from the output */
};

static inline bool osd_contract_same(const struct osd_contract *a, const struct osd_contract *b)
{
	return a->size == b->size && a->block == b->block &&
	       a->records == b->records && a->header == b->header &&
	       a->numerator == b->numerator && a->denominator == b->denominator &&
	       a->optional == b->optional && a->deterministic == b->deterministic;
}
/* Whether the function can get its input in parts. */
static inline bool osd_contract_takes_parts(const struct osd_contract *contract)
{
	return contract->block || contract->records;
}
/* Whether the values may stand together. */
bool osd_contract_is_sound(const struct osd_contract *contract);
/* The contract of a stack of count functions, at least one.  Its size is SAME, FIXED (the length is the functions'
 * lengths one after the other) or UNKNOWN.  Its block is the least that is whole blocks of each; 0 if one function is
 * sequential, or if that would exceed OSD_CONTRACT_BLOCK_MAX. */
struct osd_contract osd_contract_of_stack(const struct osd_contract *functions, size_t count);
/* The length of the output for an input of this length.  False: it is not known, or there is none. */
bool osd_contract_length(const struct osd_contract *contract, uint64_t input, uint64_t *ret_output);

#endif
