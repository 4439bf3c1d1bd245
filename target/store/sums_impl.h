/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums_impl.h -- shared by sums_file.c, the file of sums, and the files of the store (sums_data.c,
 * sums_check.c, sums_copy.c) alone. */
#ifndef OSD_STORE_SUMS_IMPL_H
#define OSD_STORE_SUMS_IMPL_H

#include "base/lock.h"
#include "store/sums.h"

#define OSD_SUMS_HEADER 32u
#define OSD_SUMS_BYTES	4u
#define OSD_SUMS_BATCH	512u /* read or written in one call: of 2 MiB */

struct osd_sums_data {
	struct osd_data base;
	uint32_t epoch;		/* constant once files are opened */
	bool verify;
	struct osd_sums_figures *figures; /* borrowed */
};

struct osd_sums_file {
	struct osd_data_file base;
	struct osd_data_name name;   /* of the file of sums */
	/* Taken for changes and reads of parts of blocks, and while the file of sums is opened. */
	struct osd_lock lock;
	_Atomic(struct osd_data_file *) sums; /* owned; NULL: not open */
	_Atomic bool ready;		      /* it is of this epoch, and not sealed */
	_Atomic bool absent;		      /* looked for, and not there */
	_Atomic bool has_header;		      /* its first bytes are written */
	_Atomic uint64_t end;		      /* from this block on no sum was ever written */
};

static inline struct osd_sums_data *osd_sums_data_of(struct osd_data *data)
{
	return (struct osd_sums_data *)((char *)data - offsetof(struct osd_sums_data, base));
}

static inline struct osd_sums_file *osd_sums_file_of(struct osd_data_file *file)
{
	return (struct osd_sums_file *)((char *)file - offsetof(struct osd_sums_file, base));
}

/* The sum as it is stored: never 0. */
static inline uint32_t osd_sums_of_crc(uint32_t crc)
{
	return crc ? crc : UINT32_MAX;
}

/* A sum that differs from the block's: keeps damage detectable after a write of a part of the
 * block. */
static inline uint32_t osd_sums_wrong(uint32_t sum)
{
	return sum == 1 ? 2 : sum ^ 1;
}

/* The sum of a block with only length bytes, followed by zeros. */
uint32_t osd_sums_of_part(const uint8_t *bytes, size_t length);

/* Opens the file of sums, of whatever epoch; OSD_E_NO_OBJECT: all sums are unknown.  flags: those
 * of osd_data_read; OSD_E_WOULD_BLOCK: it would have to be opened. */
enum osd_status osd_sums_open(struct osd_sums_file *file, unsigned flags);
/* Called before a change: creates the file if needed, and removes its seal, durably. */
enum osd_status osd_sums_prepare(struct osd_sums_file *file, bool locked);
void osd_sums_close(struct osd_sums_file *file);
/* count sums from block first on; 0 where nothing is known. */
enum osd_status osd_sums_read(struct osd_sums_file *file, uint64_t first, size_t count,
			      unsigned flags, uint32_t *ret_sums);
/* Called after osd_sums_prepare, when the bytes are written.  If the sums cannot be written, they
 * become unknown. */
enum osd_status osd_sums_put(struct osd_sums_file *file, uint64_t first, size_t count,
			     const uint32_t *sums);
/* Makes the sums of blocks [first, end) unknown; also those of later blocks if the sums cannot be
 * written. */
enum osd_status osd_sums_forget(struct osd_sums_file *file, uint64_t first, uint64_t end);
/* Makes the sums of this block and of all later ones unknown. */
enum osd_status osd_sums_cut(struct osd_sums_file *file, uint64_t first);

/* Of the store: sums_check.c, sums_copy.c. */
enum osd_status osd_sums_data_read(struct osd_data_file *file, uint64_t offset, void *buffer,
				   size_t length, unsigned flags, size_t *ret_read);
enum osd_status osd_sums_data_copy(struct osd_data_file *from, uint64_t from_offset,
				   struct osd_data_file *to, uint64_t to_offset, uint64_t length,
				   unsigned flags);
enum osd_status osd_sums_data_clone(struct osd_data_file *from, struct osd_data_file *to);
/* The same, and compares the bytes with their sums; OSD_E_SUM: they differ. */
enum osd_status osd_sums_read_checked(struct osd_sums_file *file, uint64_t offset, void *buffer,
				      size_t length, unsigned flags, size_t *ret_read);

#endif
