/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums_copy.c -- see sums.h.  Copies include the sums, so that damage is detected in the copy as
 * well.  If bytes move to another offset within their blocks, they are checked first, and damaged
 * ones are not copied. */
#include <stdlib.h>

#include "base/util.h"
#include "store/sums_impl.h"

#define COPY_BYTES (UINT64_C(256) << 10)

/* ---- whole blocks ------------------------------------------------------------------------ */

static enum osd_status carry(struct osd_sums_file *from, uint64_t first, struct osd_sums_file *to,
			     uint64_t to_first, uint64_t blocks)
{
	uint32_t sums[OSD_SUMS_BATCH];
	enum osd_status status = osd_sums_open(from, 0);
	size_t part;

	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	blocks = OSD_MIN(blocks, atomic_load(&from->end) - OSD_MIN(first, atomic_load(&from->end)));
	for (uint64_t done = 0; status == OSD_OK && done < blocks; done += part) {
		part = (size_t)OSD_MIN(blocks - done, OSD_SUMS_BATCH);
		status = osd_sums_read(from, first + done, part, 0, sums);
		if (status == OSD_OK)
			status = osd_sums_put(to, to_first + done, part, sums);
	}
	return status;
}

static enum osd_status copy_blocks(struct osd_sums_file *from, uint64_t from_offset,
				   struct osd_sums_file *to, uint64_t to_offset, uint64_t length,
				   unsigned flags)
{
	uint64_t first = to_offset / OSD_SUM_BLOCK, blocks;
	enum osd_status status = osd_sums_prepare(to, false);

	blocks = (length + OSD_SUM_BLOCK - 1) / OSD_SUM_BLOCK;
	if (status == OSD_OK)
		status = osd_sums_forget(to, first, first + blocks);
	if (status == OSD_OK)
		status = osd_data_copy(from->base.inner, from_offset, to->base.inner, to_offset,
				       length, flags);
	if (status == OSD_OK)
		status = carry(from, from_offset / OSD_SUM_BLOCK, to, first, blocks);
	return status;
}

/* ---- anything else ----------------------------------------------------------------------- */

static enum osd_status copy_bytes(struct osd_data_file *from, uint64_t from_offset,
				  struct osd_data_file *to, uint64_t to_offset, uint64_t length)
{
	OSD_CLEANUP_FREE uint8_t *buffer = malloc(OSD_MIN(length, COPY_BYTES));
	enum osd_status status = buffer || length == 0 ? OSD_OK : OSD_E_NO_MEMORY;
	size_t got = 1;

	while (status == OSD_OK && length > 0 && got > 0) {
		size_t piece = (size_t)OSD_MIN(length, COPY_BYTES);

		status = osd_sums_read_checked(osd_sums_file_of(from), from_offset, buffer, piece,
					       0, &got);
		if (status == OSD_OK && got > 0)
			status = osd_data_write(to, to_offset, buffer, got);
		from_offset += got;
		to_offset += got;
		length -= OSD_MIN(got, length);
	}
	return status;
}

/* The last block counts as whole if both files end in it or before it. */
static enum osd_status split(const struct osd_sums_file *from, uint64_t from_offset,
			     const struct osd_sums_file *to, uint64_t to_offset, uint64_t *length,
			     uint64_t *ret_blocks)
{
	struct osd_data_stat from_stat, to_stat;
	enum osd_status status = osd_data_stat(from->base.inner, &from_stat);

	if (status == OSD_OK)
		status = osd_data_stat(to->base.inner, &to_stat);
	if (status != OSD_OK)
		return status;
	*length = from_offset < from_stat.size ? OSD_MIN(*length, from_stat.size - from_offset) : 0;
	*ret_blocks = 0;
	if ((from_offset | to_offset) % OSD_SUM_BLOCK)
		return OSD_OK;
	*ret_blocks = *length - *length % OSD_SUM_BLOCK;
	if (from_offset + *length == from_stat.size && to_stat.size <= to_offset + *length)
		*ret_blocks = *length;
	return OSD_OK;
}

enum osd_status osd_sums_data_copy(struct osd_data_file *from, uint64_t from_offset,
				   struct osd_data_file *to, uint64_t to_offset, uint64_t length,
				   unsigned flags)
{
	struct osd_sums_file *source = osd_sums_file_of(from), *target = osd_sums_file_of(to);
	uint64_t blocks;
	enum osd_status status =
		split(source, from_offset, target, to_offset, &length, &blocks);

	if (status == OSD_OK && blocks)
		status = copy_blocks(source, from_offset, target, to_offset, blocks, flags);
	if (status != OSD_OK || blocks == length)
		return status;
	return copy_bytes(from, from_offset + blocks, to, to_offset + blocks, length - blocks);
}

enum osd_status osd_sums_data_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	struct osd_sums_file *source = osd_sums_file_of(from), *target = osd_sums_file_of(to);
	enum osd_status status = osd_data_clone(source->base.inner, target->base.inner);

	if (status == OSD_OK)
		status = osd_sums_open(source, 0);
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	status = osd_sums_prepare(target, false);
	return status == OSD_OK ? carry(source, 0, target, 0, UINT64_MAX) : status;
}
