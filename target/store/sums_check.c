/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums_check.c -- see sums.h.  Reads bytes and compares them with their sums, for readers and for
 * the scrub. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "store/sums_impl.h"

#define CHECK_BLOCKS 64u /* of a check, read at a time */
#define READ_BLOCKS  64u /* of a read */

static void count(_Atomic uint64_t *figure, uint64_t number)
{
	if (number)
		atomic_fetch_add_explicit(figure, number, memory_order_relaxed);
}

/* ---- a reader ---------------------------------------------------------------------------- */

/* Compares count whole blocks from first on; the file had `got` bytes of them. */
static enum osd_status compare(struct osd_sums_file *file, uint64_t first, size_t blocks,
			       const uint8_t *bytes, size_t got, unsigned flags)
{
	struct osd_sums_figures *figures = osd_sums_data_of(file->base.data)->figures;
	uint32_t wanted[READ_BLOCKS], found[READ_BLOCKS];
	size_t there = OSD_MIN(got / OSD_SUM_BLOCK, blocks), damaged = 0;
	enum osd_status status = osd_sums_read(file, first, blocks, flags, wanted);

	if (status != OSD_OK)
		return status;
	osd_crc32c_blocks(bytes, there, found);
	for (size_t i = there; i < blocks; i++)
		found[i] = osd_sums_of_part(bytes + i * OSD_SUM_BLOCK,
					    i == there ? got % OSD_SUM_BLOCK : 0);
	for (size_t i = 0; i < blocks; i++)
		damaged += wanted[i] != 0 && wanted[i] != osd_sums_of_crc(found[i]);
	count(&figures->checked, blocks);
	count(&figures->damaged, damaged);
	return damaged ? OSD_E_SUM : OSD_OK;
}

/* Reads a part of one block.  It reads and checks the whole block, while no other thread may change
 * another part. */
static enum osd_status read_part(struct osd_sums_file *file, uint64_t offset, void *buffer,
				 size_t length, unsigned flags, size_t *ret_read)
{
	uint64_t block = offset / OSD_SUM_BLOCK;
	size_t from = (size_t)(offset % OSD_SUM_BLOCK), got = 0;
	uint8_t bytes[OSD_SUM_BLOCK];
	enum osd_status status;

	if (!(flags & OSD_DATA_READ_NOWAIT))
		osd_lock(&file->lock);
	else if (!osd_trylock(&file->lock))
		return OSD_E_WOULD_BLOCK;
	status = osd_data_read(file->base.inner, block * OSD_SUM_BLOCK, bytes, OSD_SUM_BLOCK, flags,
			       &got);
	if (status == OSD_OK)
		status = compare(file, block, 1, bytes, got, flags);
	osd_unlock(&file->lock);
	if (status != OSD_OK)
		return status;
	*ret_read = got > from ? OSD_MIN(length, got - from) : 0;
	memcpy(buffer, bytes + from, *ret_read);
	return OSD_OK;
}

static enum osd_status read_whole(struct osd_sums_file *file, uint64_t offset, uint8_t *buffer,
				  size_t length, unsigned flags, size_t *ret_read)
{
	enum osd_status status =
		osd_data_read(file->base.inner, offset, buffer, length, flags, ret_read);

	return status == OSD_OK ? compare(file, offset / OSD_SUM_BLOCK, length / OSD_SUM_BLOCK,
					  buffer, *ret_read, flags)
				: status;
}

/* Reads up to the first block border, then whole blocks, then the rest.  A long range is read in
 * pieces, so that the bytes are still in the processor's cache when they are compared. */
enum osd_status osd_sums_read_checked(struct osd_sums_file *file, uint64_t offset, void *buffer,
				      size_t length, unsigned flags, size_t *ret_read)
{
	enum osd_status status = osd_sums_open(file, flags);
	size_t done = 0, got = 0, part;
	bool more = true;

	if (status == OSD_E_NO_OBJECT) /* nothing is known */
		return osd_data_read(file->base.inner, offset, buffer, length, flags, ret_read);
	while (status == OSD_OK && more && done < length) {
		uint64_t at = offset + done;

		part = OSD_MIN((length - done) / OSD_SUM_BLOCK, READ_BLOCKS) * OSD_SUM_BLOCK;
		if (at % OSD_SUM_BLOCK || part == 0) {
			part = (size_t)OSD_MIN(length - done,
					       OSD_SUM_BLOCK - at % OSD_SUM_BLOCK);
			status = read_part(file, at, (uint8_t *)buffer + done, part, flags, &got);
		} else {
			status = read_whole(file, at, (uint8_t *)buffer + done, part, flags, &got);
		}
		more = status == OSD_OK && got == part;
		done += status == OSD_OK ? got : 0;
	}
	if (status == OSD_OK)
		*ret_read = done;
	return status;
}

enum osd_status osd_sums_data_read(struct osd_data_file *base, uint64_t offset, void *buffer,
				   size_t length, unsigned flags, size_t *ret_read)
{
	struct osd_sums_file *file = osd_sums_file_of(base);

	if (osd_sums_data_of(base->data)->verify || (flags & OSD_DATA_READ_CHECKED))
		return osd_sums_read_checked(file, offset, buffer, length,
					     flags & ~(unsigned)OSD_DATA_READ_CHECKED, ret_read);
	return osd_data_read(file->base.inner, offset, buffer, length, flags, ret_read);
}

/* ---- the scrub --------------------------------------------------------------------------- */

struct batch {
	struct osd_sums_file *file;
	struct osd_sums_check *check;
	uint64_t first;
	size_t blocks;
	bool is_hole;
	uint8_t *bytes; /* owned: CHECK_BLOCKS blocks */
};

static enum osd_status read_batch(struct batch *batch, size_t *ret_got)
{
	unsigned flags = batch->check->device ? OSD_DATA_READ_DEVICE : 0;
	size_t length = batch->blocks * OSD_SUM_BLOCK;
	enum osd_status status;

	*ret_got = 0;
	if (batch->is_hole)
		return OSD_OK;
	status = osd_data_read(batch->file->base.inner, batch->first * OSD_SUM_BLOCK, batch->bytes,
			       length, flags, ret_got);
	if (status == OSD_OK)
		memset(batch->bytes + *ret_got, 0, length - *ret_got);
	return status;
}

static enum osd_status compare_batch(struct batch *batch)
{
	struct osd_sums_check *check = batch->check;
	struct osd_sums_figures *figures = osd_sums_data_of(batch->file->base.data)->figures;
	uint32_t wanted[CHECK_BLOCKS], found[CHECK_BLOCKS];
	uint64_t unknown = 0, damaged = 0;
	size_t got;
	enum osd_status status = read_batch(batch, &got);

	if (status == OSD_OK)
		status = osd_sums_read(batch->file, batch->first, batch->blocks, 0, wanted);
	if (status != OSD_OK)
		return status;
	osd_crc32c_blocks(batch->bytes, batch->blocks, found);
	for (size_t i = 0; i < batch->blocks; i++) {
		if (wanted[i] == 0 && !batch->is_hole && i * OSD_SUM_BLOCK < got) {
			wanted[i] = osd_sums_of_crc(found[i]);
			unknown++;
		} else if (wanted[i] != 0 && wanted[i] != osd_sums_of_crc(found[i])) {
			damaged++;
			if (check->damage)
				check->damage(check->arg,
					      (batch->first + i) * OSD_SUM_BLOCK);
		}
	}
	if (unknown && check->make)
		status = osd_sums_put(batch->file, batch->first, batch->blocks, wanted);
	check->blocks += batch->blocks;
	check->unknown += unknown;
	check->damaged += damaged;
	count(&figures->checked, batch->blocks);
	count(&figures->damaged, damaged);
	count(&figures->made, check->make && status == OSD_OK ? unknown : 0);
	return status;
}

/* The next blocks to check, from batch->first on; OSD_E_BEYOND_END: none up to `end`. */
static enum osd_status next_batch(struct batch *batch, uint64_t end)
{
	uint64_t at = batch->first * OSD_SUM_BLOCK, start, stop, until;
	enum osd_status status = osd_data_next_extent(batch->file->base.inner, at, &start, &stop);

	if (status == OSD_E_BEYOND_END) {
		start = stop = UINT64_MAX - OSD_SUM_BLOCK;
		status = OSD_OK;
	}
	if (status != OSD_OK)
		return status;
	batch->is_hole = start / OSD_SUM_BLOCK > batch->first;
	until = batch->is_hole ? start / OSD_SUM_BLOCK
			       : (stop + OSD_SUM_BLOCK - 1) / OSD_SUM_BLOCK;
	/* A hole after the last sum needs no check. */
	if (batch->is_hole && batch->first >= atomic_load(&batch->file->end)) {
		batch->first = until;
		batch->blocks = 0;
	} else {
		batch->blocks = (size_t)OSD_MIN(until - batch->first, CHECK_BLOCKS);
	}
	if (batch->first >= end)
		return OSD_E_BEYOND_END;
	batch->blocks = (size_t)OSD_MIN(batch->blocks, end - batch->first);
	return OSD_OK;
}

static enum osd_status check_locked(struct batch *batch, uint64_t end)
{
	struct osd_sums_file *file = batch->file;
	enum osd_status status = OSD_OK;

	osd_lock(&file->lock);
	if (batch->check->make)
		status = osd_sums_prepare(file, true);
	if (status == OSD_OK)
		status = next_batch(batch, end);
	if (status == OSD_OK && batch->is_hole)
		memset(batch->bytes, 0, batch->blocks * OSD_SUM_BLOCK);
	if (status == OSD_OK && batch->blocks)
		status = compare_batch(batch);
	osd_unlock(&file->lock);
	batch->first += batch->blocks;
	return status;
}

enum osd_status osd_sums_check(struct osd_data_file *base, uint64_t offset, uint64_t length,
			       struct osd_sums_check *check)
{
	struct batch batch = {.file = osd_sums_file_of(base),
			      .check = check,
			      .first = offset / OSD_SUM_BLOCK};
	uint64_t to = OSD_MIN(osd_add_capped(offset, length), (uint64_t)INT64_MAX);
	enum osd_status status = osd_sums_open(batch.file, 0);

	if (status == OSD_E_NO_OBJECT && !check->make)
		return OSD_OK;
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	batch.bytes = malloc(CHECK_BLOCKS * OSD_SUM_BLOCK);
	status = batch.bytes ? OSD_OK : OSD_E_NO_MEMORY;
	while (status == OSD_OK)
		status = check_locked(&batch, (to + OSD_SUM_BLOCK - 1) / OSD_SUM_BLOCK);
	free(batch.bytes);
	return status == OSD_E_BEYOND_END ? OSD_OK : status;
}
