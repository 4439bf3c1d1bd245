/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums_file.c -- see sums_impl.h.  A file of sums: a header, then 4 bytes for each block. */
#include "store/sums_impl.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

#define MAGIC	"IOSDSUMS"
#define VERSION 1u
#define SEALED	1u
#define SHIFT	12u

_Static_assert(1u << SHIFT == OSD_SUM_BLOCK, "bytes of a block");

struct header {
	uint32_t epoch;
	bool is_sealed;
};

static void header_encode(const struct header *header, uint8_t bytes[OSD_SUMS_HEADER])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_SUMS_HEADER);

	osd_wr_bytes(&w, MAGIC, 8);
	osd_wr_be(&w, VERSION, 4);
	osd_wr_be(&w, header->epoch, 4);
	osd_wr_be(&w, header->is_sealed ? SEALED : 0, 4);
	osd_wr_be(&w, SHIFT, 4);
	osd_wr_be(&w, 0, 4);
	osd_wr_be(&w, osd_crc32c(0, bytes, OSD_SUMS_HEADER - 4), 4);
}

static bool header_decode(const uint8_t bytes[OSD_SUMS_HEADER], struct header *ret_header)
{
	struct osd_rd r = osd_rd_init(bytes + 8, OSD_SUMS_HEADER - 8);
	uint64_t version = osd_rd_be(&r, 4), epoch = osd_rd_be(&r, 4), state = osd_rd_be(&r, 4);
	uint64_t shift = osd_rd_be(&r, 4);

	if (memcmp(bytes, MAGIC, 8) != 0 || version != VERSION || shift != SHIFT ||
	    osd_get_be(bytes + OSD_SUMS_HEADER - 4, 4) != osd_crc32c(0, bytes, OSD_SUMS_HEADER - 4))
		return false;
	*ret_header = (struct header){(uint32_t)epoch, state == SEALED};
	return true;
}

static uint64_t place_of(uint64_t block)
{
	return OSD_SUMS_HEADER + block * OSD_SUMS_BYTES;
}

uint32_t osd_sums_of_part(const uint8_t *bytes, size_t length)
{
	static const uint8_t zeros[OSD_SUM_BLOCK];

	return osd_sums_of_crc(
		osd_crc32c(osd_crc32c(0, bytes, length), zeros, OSD_SUM_BLOCK - length));
}

/* ---- opening ----------------------------------------------------------------------------- */

static enum osd_status write_header(struct osd_sums_file *file, bool seal)
{
	const struct header header = {osd_sums_data_of(file->base.data)->epoch, seal};
	uint8_t bytes[OSD_SUMS_HEADER];

	header_encode(&header, bytes);
	return osd_data_write(atomic_load(&file->sums), 0, bytes, sizeof(bytes));
}

/* Its sums may be older or newer than the data. */
static enum osd_status give_up(struct osd_sums_file *file, struct osd_data_file *sums)
{
	struct osd_sums_data *data = osd_sums_data_of(file->base.data);

	atomic_fetch_add_explicit(&data->figures->forgotten, 1, memory_order_relaxed);
	return osd_data_truncate(sums, 0);
}

/* Checks the header of a file that has just been opened. */
static enum osd_status look(struct osd_sums_file *file, struct osd_data_file *sums)
{
	uint32_t epoch = osd_sums_data_of(file->base.data)->epoch;
	uint8_t bytes[OSD_SUMS_HEADER];
	struct header header = {0};
	struct osd_data_stat stat;
	size_t got;
	enum osd_status status = osd_data_stat(sums, &stat);

	osd_assert_held(&file->lock);
	if (status == OSD_OK)
		status = osd_data_read(sums, 0, bytes, sizeof(bytes), 0, &got);
	if (status != OSD_OK)
		return status;
	file->has_header = got == sizeof(bytes) && header_decode(bytes, &header) &&
			   (header.is_sealed || header.epoch == epoch);
	if (!file->has_header && stat.size > 0)
		status = give_up(file, sums);
	atomic_store(&file->ready, !file->has_header || !header.is_sealed);
	atomic_store(&file->end, file->has_header && stat.size > OSD_SUMS_HEADER
					 ? (stat.size - OSD_SUMS_HEADER + OSD_SUMS_BYTES - 1) /
						   OSD_SUMS_BYTES
					 : 0);
	return status;
}

static enum osd_status open_locked(struct osd_sums_file *file, unsigned flags)
{
	struct osd_sums_data *data = osd_sums_data_of(file->base.data);
	struct osd_data_file *sums;
	enum osd_status status;

	osd_assert_held(&file->lock);
	if (atomic_load(&file->sums))
		return OSD_OK;
	status = osd_data_open_file(data->base.inner, &file->name, flags, &sums);
	if (status == OSD_OK) {
		status = look(file, sums);
		if (status == OSD_OK)
			atomic_store_explicit(&file->sums, sums, memory_order_release);
		else
			osd_data_close_file(sums);
	}
	/* So reads of a file without sums look for them once. */
	atomic_store(&file->absent, status == OSD_E_NO_OBJECT);
	return status;
}

enum osd_status osd_sums_open(struct osd_sums_file *file, unsigned flags)
{
	enum osd_status status;

	if (atomic_load_explicit(&file->sums, memory_order_acquire))
		return OSD_OK;
	if (atomic_load(&file->absent))
		return OSD_E_NO_OBJECT;
	if (flags & OSD_DATA_READ_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	osd_lock(&file->lock);
	status = open_locked(file, 0);
	osd_unlock(&file->lock);
	return status;
}

/* The seal must be removed from the device before a byte changes there. */
static enum osd_status prepare_locked(struct osd_sums_file *file)
{
	enum osd_status status = open_locked(file, OSD_DATA_CREATE);

	osd_assert_held(&file->lock);
	if (status != OSD_OK || atomic_load(&file->ready))
		return status;
	status = write_header(file, false);
	if (status == OSD_OK)
		status = osd_data_sync(atomic_load(&file->sums));
	atomic_store(&file->ready, status == OSD_OK);
	return status;
}

enum osd_status osd_sums_prepare(struct osd_sums_file *file, bool locked)
{
	enum osd_status status;

	if (atomic_load_explicit(&file->ready, memory_order_acquire))
		return OSD_OK;
	if (!locked)
		osd_lock(&file->lock);
	status = prepare_locked(file);
	if (!locked)
		osd_unlock(&file->lock);
	return status;
}

void osd_sums_close(struct osd_sums_file *file)
{
	osd_data_close_file(atomic_exchange(&file->sums, NULL));
}

enum osd_status osd_sums_seal(struct osd_data_file *base)
{
	struct osd_sums_file *file = osd_sums_file_of(base);
	enum osd_status status = osd_sums_open(file, 0);

	if (status != OSD_OK || !atomic_load(&file->ready))
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	/* Data and sums are on the device before the seal is written.  The seal itself needs no
	 * sync: if it is lost, the sums are dropped, and the next scrub makes them again. */
	status = osd_data_sync(file->base.inner);
	if (status == OSD_OK && !file->has_header) {
		status = write_header(file, false);
		file->has_header = status == OSD_OK;
	}
	if (status == OSD_OK)
		status = osd_data_sync(atomic_load(&file->sums));
	if (status != OSD_OK)
		return status;
	/* From here on the next change first removes the seal, however much of it was written. */
	atomic_store(&file->ready, false);
	return write_header(file, true);
}

/* ---- sums -------------------------------------------------------------------------------- */

enum osd_status osd_sums_read(struct osd_sums_file *file, uint64_t first, size_t count,
			      unsigned flags, uint32_t *ret_sums)
{
	struct osd_data_file *sums = atomic_load_explicit(&file->sums, memory_order_acquire);
	uint8_t bytes[OSD_SUMS_BATCH * OSD_SUMS_BYTES] = {0};
	enum osd_status status = OSD_OK;
	size_t got;

	for (size_t done = 0, part; status == OSD_OK && done < count; done += part) {
		part = OSD_MIN(count - done, OSD_SUMS_BATCH);
		got = 0;
		if (first + done < atomic_load(&file->end))
			status = osd_data_read(sums, place_of(first + done), bytes,
					       part * OSD_SUMS_BYTES, flags, &got);
		for (size_t i = 0; i < part; i++)
			ret_sums[done + i] =
				(i + 1) * OSD_SUMS_BYTES <= got
					? (uint32_t)osd_get_be(bytes + i * OSD_SUMS_BYTES, 4)
					: 0;
	}
	return status;
}

/* The first sums of a file are written together with its header. */
static enum osd_status write_batch(struct osd_sums_file *file, uint64_t first, size_t count,
				   const uint32_t *sums)
{
	uint8_t bytes[OSD_SUMS_HEADER + OSD_SUMS_BATCH * OSD_SUMS_BYTES];
	const struct header header = {osd_sums_data_of(file->base.data)->epoch, false};
	uint8_t *from = bytes + OSD_SUMS_HEADER;
	uint64_t at = place_of(first);
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < count; i++)
		osd_put_be(bytes + OSD_SUMS_HEADER + i * OSD_SUMS_BYTES, sums[i], 4);
	if (!file->has_header && first == 0) {
		header_encode(&header, bytes);
		from = bytes;
		at = 0;
	} else if (!file->has_header) {
		status = write_header(file, false);
	}
	if (status == OSD_OK)
		status = osd_data_write(
			atomic_load(&file->sums), at, from,
			(size_t)(bytes + OSD_SUMS_HEADER + count * OSD_SUMS_BYTES - from));
	if (status == OSD_OK)
		file->has_header = true;
	return status;
}

enum osd_status osd_sums_cut(struct osd_sums_file *file, uint64_t first)
{
	enum osd_status status;

	if (first >= atomic_load(&file->end))
		return OSD_OK;
	status = osd_data_truncate(atomic_load(&file->sums), place_of(first));
	if (status == OSD_OK)
		atomic_store(&file->end, first);
	return status;
}

/* A write of zeros that fails half-way may leave one sum half changed. */
enum osd_status osd_sums_forget(struct osd_sums_file *file, uint64_t first, uint64_t end)
{
	static const uint32_t none[OSD_SUMS_BATCH];
	enum osd_status status;

	end = OSD_MIN(end, atomic_load(&file->end));
	if (first >= end)
		return OSD_OK;
	if (end - first > OSD_SUMS_BATCH)
		status = osd_data_zero(atomic_load(&file->sums), place_of(first),
				       (end - first) * OSD_SUMS_BYTES);
	else
		status = write_batch(file, first, (size_t)(end - first), none);
	/* Other threads may put sums behind these meanwhile, so the end stays where it is. */
	return status == OSD_OK ? OSD_OK
				: osd_data_truncate(atomic_load(&file->sums), place_of(first));
}

enum osd_status osd_sums_put(struct osd_sums_file *file, uint64_t first, size_t count,
			     const uint32_t *sums)
{
	enum osd_status status = OSD_OK;

	/* Raised first: if a write fails, osd_sums_forget reaches only up to this end. */
	osd_raise_to(&file->end, first + count);
	for (size_t done = 0, part; status == OSD_OK && done < count; done += part) {
		part = OSD_MIN(count - done, OSD_SUMS_BATCH);
		status = write_batch(file, first + done, part, sums + done);
	}
	return status == OSD_OK ? OSD_OK : osd_sums_forget(file, first, first + count);
}
