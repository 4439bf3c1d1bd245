/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copy.c -- the function of appendix A of Runde's thesis: copies an object in pieces of 4 MiB, in its form of an entry
 * point, for the engine native.
 *
 * Access: write.  Zone: the partition, or the device.  Arguments: the ids of partition and object, first of the
 * source and then of the destination, 8 bytes big-endian each.  Result: the bytes copied, 8 bytes big-endian. */
#include "osd.h"

#define PIECE (4u << 20)

struct name {
	uint64_t partition, object;
};

static uint64_t get_be64(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | bytes[i];
	return value;
}

static struct name get_name(const uint8_t *bytes)
{
	return (struct name){get_be64(bytes), get_be64(bytes + 8)};
}

/* Bytes copied; negative: an error. */
static int64_t copy(struct name from, struct name to, uint8_t *piece)
{
	int64_t at = 0, got;

	while ((got = osd_read(from.partition, from.object, (uint64_t)at, piece, PIECE)) > 0) {
		int64_t put = osd_write(to.partition, to.object, (uint64_t)at, piece, (uint32_t)got);

		if (put != got)
			return put < 0 ? put : OSD_STORAGE;
		at += got;
	}
	return got < 0 ? got : at;
}

int start(void *in, size_t in_length, void *out, size_t room, size_t *out_length)
{
	uint8_t *piece, *result = out;
	int64_t copied;

	if (in_length != 2 * sizeof(struct name) || room < sizeof(copied))
		return 2;
	piece = osd_allocate(PIECE);
	if (!piece)
		return 1;
	copied = copy(get_name(in), get_name((const uint8_t *)in + 16), piece);
	osd_free(piece);
	if (copied < 0)
		return 1;
	for (int i = 0; i < 8; i++)
		result[i] = (uint8_t)((uint64_t)copied >> (56 - 8 * i));
	*out_length = sizeof(copied);
	return 0;
}
