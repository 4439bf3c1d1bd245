/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums_data.c -- see sums.h.  Here: the store, and changes of files.  Elsewhere: the file of sums
 * (sums_file.c), reading and comparing (sums_check.c), copies (sums_copy.c). */
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/util.h"
#include "store/sums_impl.h"

static struct osd_data_name sums_name(const struct osd_data_name *name)
{
	struct osd_data_name sums = *name;

	sums.sums = true;
	return sums;
}

/* ---- changes ----------------------------------------------------------------------------- */

/* Blocks [first, end) of a change of [offset, offset + length).  The first and the last may be
 * covered only in part. */
struct change {
	struct osd_sums_file *file;
	uint64_t offset, first, end;
	size_t length;
	const uint8_t *bytes; /* NULL: zeros */
	bool first_part, last_part;
	uint32_t first_sum, last_sum; /* when it is done */
};

static void plan(struct change *change)
{
	uint64_t to = change->offset + change->length;

	change->first = change->offset / OSD_SUM_BLOCK;
	change->end = (to + OSD_SUM_BLOCK - 1) / OSD_SUM_BLOCK;
	change->first_part = change->offset % OSD_SUM_BLOCK ||
			     (change->end == change->first + 1 && to % OSD_SUM_BLOCK);
	change->last_part = change->end > change->first + 1 && to % OSD_SUM_BLOCK;
}

/* The sum of a block of which a part is changed.  Damage outside that part must stay detectable. */
static enum osd_status part_sum(const struct change *change, uint64_t block, uint32_t *ret_sum)
{
	uint64_t start = block * OSD_SUM_BLOCK, to = change->offset + change->length;
	size_t from = change->offset > start ? (size_t)(change->offset - start) : 0;
	size_t end = (size_t)OSD_MIN(to - start, OSD_SUM_BLOCK), got;
	uint8_t bytes[OSD_SUM_BLOCK];
	uint32_t before, sum;
	enum osd_status status =
		osd_data_read(change->file->base.inner, start, bytes, OSD_SUM_BLOCK, 0, &got);

	if (status == OSD_OK)
		status = osd_sums_read(change->file, block, 1, 0, &before);
	if (status != OSD_OK)
		return status;
	memset(bytes + got, 0, OSD_SUM_BLOCK - got);
	sum = before ? osd_sums_of_part(bytes, OSD_SUM_BLOCK) : 0;
	if (change->bytes)
		memcpy(bytes + from, change->bytes + (start + from - change->offset), end - from);
	else
		memset(bytes + from, 0, end - from);
	*ret_sum = osd_sums_of_part(bytes, OSD_SUM_BLOCK);
	if (sum != before) {
		atomic_fetch_add_explicit(
			&osd_sums_data_of(change->file->base.data)->figures->damaged, 1,
			memory_order_relaxed);
		*ret_sum = osd_sums_wrong(*ret_sum);
	}
	return OSD_OK;
}

static enum osd_status part_sums(struct change *change)
{
	enum osd_status status = OSD_OK;

	if (change->first_part)
		status = part_sum(change, change->first, &change->first_sum);
	if (status == OSD_OK && change->last_part)
		status = part_sum(change, change->end - 1, &change->last_sum);
	return status;
}

/* The sums of count whole blocks of the change. */
static void whole_sums(const struct change *change, uint64_t block, size_t count, uint32_t *sums)
{
	osd_crc32c_blocks(change->bytes + (block * OSD_SUM_BLOCK - change->offset), count, sums);
	for (size_t i = 0; i < count; i++)
		sums[i] = osd_sums_of_crc(sums[i]);
}

/* The sums of zeros stay unknown: a hole cannot be damaged. */
static enum osd_status put_parts(const struct change *change)
{
	enum osd_status status = OSD_OK;

	if (change->first_part)
		status = osd_sums_put(change->file, change->first, 1, &change->first_sum);
	if (status == OSD_OK && change->last_part)
		status = osd_sums_put(change->file, change->end - 1, 1,
				      &change->last_sum);
	return status;
}

static enum osd_status put_sums(const struct change *change)
{
	uint32_t sums[OSD_SUMS_BATCH];
	enum osd_status status = OSD_OK;
	size_t count;

	for (uint64_t at = change->first; status == OSD_OK && at < change->end; at += count) {
		bool first = at == change->first && change->first_part, last;

		count = (size_t)OSD_MIN(change->end - at, OSD_SUMS_BATCH);
		last = at + count == change->end && change->last_part;
		if (first)
			sums[0] = change->first_sum;
		if (last)
			sums[count - 1] = change->last_sum;
		whole_sums(change, at + first, count - first - last, sums + first);
		status = osd_sums_put(change->file, at, count, sums);
	}
	return status;
}

static enum osd_status change_bytes(const struct change *change)
{
	struct osd_data_file *file = change->file->base.inner;

	return change->bytes
		       ? osd_data_write(file, change->offset, change->bytes, change->length)
		       : osd_data_zero(file, change->offset, change->length);
}

static enum osd_status make_change(struct change *change)
{
	struct osd_sums_file *file = change->file;
	enum osd_status status = part_sums(change);

	if (status == OSD_OK)
		status = osd_sums_forget(file, change->first, change->end);
	if (status == OSD_OK)
		status = change_bytes(change);
	if (status != OSD_OK)
		return status;
	return change->bytes ? put_sums(change) : put_parts(change);
}

/* Whether the file has no sums and needs none for this change.  Freeing space must not need space
 * for sums, and a full disk must still accept bytes that fit. */
static bool goes_without(struct osd_sums_file *file, bool makes_sums, enum osd_status *status)
{
	*status = OSD_OK;
	if (!makes_sums)
		*status = osd_sums_open(file, 0);
	if (*status == OSD_OK)
		*status = osd_sums_prepare(file, false);
	if (*status != OSD_E_NO_OBJECT &&
	    (*status != OSD_E_NO_SPACE || atomic_load(&file->sums)))
		return false;
	*status = OSD_OK;
	return true;
}

static enum osd_status run_change(struct change *change)
{
	struct osd_sums_file *file = change->file;
	enum osd_status status;
	bool parts;

	if (goes_without(file, change->bytes != NULL, &status))
		return change_bytes(change);
	if (status != OSD_OK)
		return status;
	plan(change);
	parts = change->first_part || change->last_part;
	if (parts)
		osd_lock(&file->lock);
	status = make_change(change);
	if (parts)
		osd_unlock(&file->lock);
	return status;
}

static enum osd_status sums_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
				  size_t length)
{
	struct change change = {
		.file = osd_sums_file_of(file), .offset = offset, .length = length, .bytes = bytes};

	return length ? run_change(&change) : osd_data_write(file->inner, offset, bytes, 0);
}

/* There is nothing to change after the end of the file. */
static enum osd_status sums_zero(struct osd_data_file *file, uint64_t offset, uint64_t length)
{
	struct change change = {.file = osd_sums_file_of(file), .offset = offset};
	struct osd_data_stat stat;
	enum osd_status status = osd_data_stat(file->inner, &stat);

	if (status != OSD_OK || offset >= stat.size)
		return status;
	change.length = (size_t)OSD_MIN(length, stat.size - offset);
	return run_change(&change);
}

/* For the sums, the removed bytes become zeros. */
static enum osd_status cut(struct osd_sums_file *file, uint64_t size, uint64_t old_size)
{
	struct change change = {.file = file, .offset = size, .first = size / OSD_SUM_BLOCK};
	enum osd_status status = OSD_OK;

	change.first_part = size % OSD_SUM_BLOCK;
	change.length = (size_t)(old_size - size);
	if (change.first_part)
		status = part_sum(&change, change.first, &change.first_sum);
	if (status == OSD_OK)
		status = osd_sums_cut(file, change.first);
	if (status == OSD_OK)
		status = osd_data_truncate(file->base.inner, size);
	return status == OSD_OK ? put_parts(&change) : status;
}

static enum osd_status sums_truncate(struct osd_data_file *base, uint64_t size)
{
	struct osd_sums_file *file = osd_sums_file_of(base);
	struct osd_data_stat stat;
	enum osd_status status = osd_data_stat(file->base.inner, &stat);

	if (status != OSD_OK || size >= stat.size)
		return status == OSD_OK ? osd_data_truncate(file->base.inner, size) : status;
	if (goes_without(file, false, &status))
		return osd_data_truncate(file->base.inner, size);
	if (status != OSD_OK)
		return status;
	osd_lock(&file->lock);
	status = cut(file, size, stat.size);
	osd_unlock(&file->lock);
	return status;
}

/* ---- files ------------------------------------------------------------------------------- */

static enum osd_status sums_open_file(struct osd_data *data, const struct osd_data_name *name,
				      unsigned flags, struct osd_data_file **ret_file)
{
	struct osd_sums_file *file = calloc(1, sizeof(*file));
	enum osd_status status;

	if (!file)
		return OSD_E_NO_MEMORY;
	status = osd_data_open_file(data->inner, name, flags, &file->base.inner);
	if (status != OSD_OK) {
		free(file);
		return status;
	}
	file->base.data = data;
	file->name = sums_name(name);
	osd_lock_init(&file->lock, OSD_RANK_SUMS_FILE);
	*ret_file = &file->base;
	return OSD_OK;
}

static void sums_close_file(struct osd_data_file *base)
{
	struct osd_sums_file *file = osd_sums_file_of(base);

	osd_sums_close(file);
	osd_data_close_file(file->base.inner);
	osd_lock_destroy(&file->lock);
	free(file);
}

/* Reads through a descriptor bypass the check of the sums. */
static enum osd_status sums_share(struct osd_data_file *file, int *ret_fd)
{
	return osd_sums_data_of(file->data)->verify ? OSD_E_UNSUPPORTED
						    : osd_data_share(file->inner, ret_fd);
}

/* ---- the store --------------------------------------------------------------------------- */

static void sums_close(struct osd_data *data)
{
	osd_data_close(data->inner);
	free(osd_sums_data_of(data));
}

static enum osd_status sums_link(struct osd_data *data, const struct osd_data_name *from,
				 const struct osd_data_name *to)
{
	const struct osd_data_name from_sums = sums_name(from), to_sums = sums_name(to);
	enum osd_status status = osd_data_link(data->inner, from, to);

	if (status == OSD_OK)
		status = osd_data_link(data->inner, &from_sums, &to_sums);
	else
		return status;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status sums_remove(struct osd_data *data, const struct osd_data_name *name)
{
	const struct osd_data_name sums = sums_name(name);
	enum osd_status status = osd_data_remove(data->inner, name);

	return status == OSD_OK ? osd_data_remove(data->inner, &sums) : status;
}

/* A sync does not sync the sums: after a power failure those of the file are dropped. */
static const struct osd_data_ops sums_ops = {
	.close = sums_close,
	.open_file = sums_open_file,
	.close_file = sums_close_file,
	.read = osd_sums_data_read,
	.write = sums_write,
	.truncate = sums_truncate,
	.zero = sums_zero,
	.copy = osd_sums_data_copy,
	.clone = osd_sums_data_clone,
	.share = sums_share,
	.link = sums_link,
	.remove = sums_remove,
};

enum osd_status osd_sums_data_wrap(struct osd_data *inner, bool verify,
				   struct osd_sums_figures *figures, struct osd_data **ret_data)
{
	struct osd_sums_data *data = calloc(1, sizeof(*data));

	if (!data) {
		osd_data_close(inner);
		return OSD_E_NO_MEMORY;
	}
	*data = (struct osd_sums_data){{.ops = &sums_ops, .inner = inner}, 0, verify, figures};
	*ret_data = &data->base;
	return OSD_OK;
}

void osd_sums_set_epoch(struct osd_data *data, uint32_t epoch)
{
	osd_sums_data_of(data)->epoch = epoch;
}

/* ---- for the layer above ------------------------------------------------------------------ */

bool osd_sums_are_kept(const struct osd_data *data)
{
	return data && data->ops == &sums_ops;
}
