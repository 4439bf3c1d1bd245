/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier_extents.c -- see tier.h.  Here: extents, length, times and sizes of an object's two files,
 * and copies of ranges and of whole objects.  Elsewhere: opening, reading and writing (tier.c). */
#include "store/tier_impl.h"

#include <stdatomic.h>

#include "base/util.h"
#include "store/sums.h"

enum osd_status osd_tier_stat(struct osd_tier_file *file, bool all, struct osd_data_stat *ret_stat)
{
	struct osd_data_stat head = {0}, tail = {0};
	enum osd_status status = osd_tier_open_parts(file, all);
	struct osd_data_file *part;

	if (status == OSD_OK)
		status = osd_tier_of_half(file, false,
					  osd_data_stat(atomic_load(&file->head), &head));
	part = atomic_load(&file->tail);
	if (status == OSD_OK && part) {
		status = osd_tier_of_half(file, true, osd_data_stat(part, &tail));
		head.size = OSD_MAX(head.size, file->head_bytes + tail.size);
	}
	if (status == OSD_OK)
		*ret_stat = (struct osd_data_stat){head.size, head.allocated + tail.allocated,
						   OSD_MAX(head.modified_ms, tail.modified_ms)};
	return status;
}

static enum osd_status part_size(struct osd_tier_file *file, bool tail, uint64_t *ret_size)
{
	struct osd_data_file *part;
	struct osd_data_stat stat = {0};
	enum osd_status status = osd_tier_open_part(file, tail, false, &part);

	if (status == OSD_OK)
		status = osd_tier_of_half(file, tail, osd_data_stat(part, &stat));
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	*ret_size = stat.size;
	return OSD_OK;
}

enum osd_status osd_tier_tail_size(struct osd_tier_file *file, uint64_t *ret_tail)
{
	*ret_tail = 0;
	return osd_tier_has_tail(file) ? part_size(file, true, ret_tail) : OSD_OK;
}

enum osd_status osd_tier_part_sizes(struct osd_tier_file *file, uint64_t *ret_head,
				    uint64_t *ret_tail)
{
	enum osd_status status = part_size(file, false, ret_head);

	return status == OSD_OK ? osd_tier_tail_size(file, ret_tail) : status;
}

/* The extent in one of the files, in offsets of that file.  OSD_E_BEYOND_END also if there is no
 * such file. */
static enum osd_status part_extent(struct osd_tier_file *file, bool tail, uint64_t offset,
				   uint64_t *ret_start, uint64_t *ret_end)
{
	struct osd_data_file *part;
	enum osd_status status = osd_tier_open_part(file, tail, false, &part);

	if (status == OSD_OK)
		status = osd_tier_of_half(file, tail,
					  osd_data_next_extent(part, offset, ret_start, ret_end));
	return status == OSD_E_NO_OBJECT ? OSD_E_BEYOND_END : status;
}

static enum osd_status tail_extent(struct osd_tier_file *file, uint64_t offset, uint64_t *ret_start,
				   uint64_t *ret_end)
{
	uint64_t start, end;
	enum osd_status status =
		osd_tier_has_tail(file)
			? part_extent(file, true, offset - file->head_bytes, &start, &end)
			: OSD_E_BEYOND_END;

	if (status != OSD_OK)
		return status;
	*ret_start = start + file->head_bytes;
	*ret_end = end + file->head_bytes;
	return OSD_OK;
}

enum osd_status osd_tier_next_extent(struct osd_tier_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = 0, end = 0, tail_start, tail_end;
	enum osd_status status = OSD_E_BEYOND_END;

	if (offset < file->head_bytes)
		status = part_extent(file, false, offset, &start, &end);
	if (status == OSD_OK && start >= file->head_bytes)
		status = OSD_E_BEYOND_END;
	if (status == OSD_E_BEYOND_END)
		return tail_extent(file, OSD_MAX(offset, file->head_bytes), ret_start, ret_end);
	if (status != OSD_OK)
		return status;
	end = OSD_MIN(end, file->head_bytes);
	if (end == file->head_bytes) {
		status = tail_extent(file, end, &tail_start, &tail_end);
		if (status == OSD_OK && tail_start == end)
			end = tail_end;
		else if (status != OSD_OK && status != OSD_E_BEYOND_END)
			return status;
	}
	*ret_start = start;
	*ret_end = end;
	return OSD_OK;
}

/* The length of the range at offset, up to the end of its file. */
static uint64_t in_one_part(const struct osd_tier_file *file, uint64_t offset, uint64_t length)
{
	return offset < file->head_bytes ? OSD_MIN(length, file->head_bytes - offset) : length;
}

enum osd_status osd_tier_copy(struct osd_tier_file *from, uint64_t from_offset,
			      struct osd_tier_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags)
{
	enum osd_status status = OSD_OK;

	while (status == OSD_OK && length > 0) {
		bool from_tail = from_offset >= from->head_bytes,
		     to_tail = to_offset >= to->head_bytes;
		uint64_t piece = in_one_part(from, from_offset, length);
		struct osd_data_file *source, *target;

		/* The borders of the two objects may differ: a piece ends at the first of them. */
		piece = in_one_part(to, to_offset, piece);
		status = osd_tier_open_part(from, from_tail, false, &source);
		if (status == OSD_OK)
			status = to_tail ? osd_tier_begin_tail(to, &target)
					 : osd_tier_open_part(to, false, true, &target);
		if (status == OSD_OK)
			status = osd_data_copy(
				source, from_offset - (from_tail ? from->head_bytes : 0), target,
				to_offset - (to_tail ? to->head_bytes : 0), piece, flags);
		from_offset += piece;
		to_offset += piece;
		length -= piece;
	}
	return status;
}

enum osd_status osd_tier_clone(struct osd_tier_file *from, struct osd_tier_file *to)
{
	struct osd_data_file *source, *target;
	enum osd_status status = OSD_OK;

	/* With another border, bytes would have to move from one file to the other. */
	if (from->head_bytes != to->head_bytes)
		return OSD_E_UNSUPPORTED;
	for (int tail = 0; status == OSD_OK && tail < (osd_tier_has_tail(from) ? 2 : 1); tail++) {
		status = osd_tier_open_part(from, tail, false, &source);
		/* The two stores may be on two file systems, which share no blocks. */
		if (status == OSD_OK &&
		    osd_tier_store_of(from, tail) != osd_tier_store_of(to, tail))
			status = OSD_E_UNSUPPORTED;
		if (status == OSD_OK)
			status = osd_tier_open_part(to, tail, true, &target);
		if (status == OSD_OK)
			status = osd_data_clone(source, target);
		if (status == OSD_E_NO_OBJECT) /* nothing of it was ever written */
			status = OSD_OK;
	}
	return status;
}

bool osd_tier_can_clone(const struct osd_tier *tier)
{
	return osd_data_can_clone(tier->head) && (!tier->tail || osd_data_can_clone(tier->tail));
}

/* ---- checksums --------------------------------------------------------------------------- */

enum osd_status osd_tier_check_sums(struct osd_tier_file *file, bool tail, uint64_t offset,
				    uint64_t length, struct osd_sums_check *check)
{
	struct osd_data_file *part;
	enum osd_status status = osd_tier_open_part(file, tail, false, &part);

	if (status == OSD_OK)
		status = osd_tier_of_half(file, tail, osd_sums_check(part, offset, length, check));
	return status;
}

enum osd_status osd_tier_seal_sums(struct osd_tier_file *file)
{
	enum osd_status status = OSD_OK;
	struct osd_data_file *part;

	for (int tail = 0; status == OSD_OK && tail < (osd_tier_has_tail(file) ? 2 : 1); tail++) {
		status = osd_tier_open_part(file, tail, false, &part);
		if (status == OSD_OK)
			status = osd_tier_of_half(file, tail, osd_sums_seal(part));
		if (status == OSD_E_NO_OBJECT) /* nothing was ever written there */
			status = OSD_OK;
	}
	return status;
}
