/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cursor.h -- bounds-checked big-endian reader and writer with a sticky error: read or write all
 * fields, then test `bad` once.  A cursor borrows its buffer.  No casts over bytes anywhere
 * else. */
#ifndef OSD_WIRE_CURSOR_H
#define OSD_WIRE_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct osd_rd {
	const uint8_t *at, *end;
	bool bad; /* once short, always short */
};

struct osd_wr {
	uint8_t *start, *at, *end;
	bool bad; /* something did not fit; nothing was written past end */
};

/* Accessors for fixed buffers whose size the caller has checked.  If the width is a compile-time
 * constant, as usual, the loop over bytes becomes a load and a swap. */
static inline uint64_t osd_get_be(const uint8_t *bytes, size_t width)
{
	uint64_t value = 0;
	uint32_t low;
	uint16_t high;

	if (__builtin_constant_p(width) && width == 8) {
		memcpy(&value, bytes, 8);
		return be64toh(value);
	}
	if (__builtin_constant_p(width) && width == 6) {
		memcpy(&high, bytes, 2);
		memcpy(&low, bytes + 2, 4);
		return (uint64_t)be16toh(high) << 32 | be32toh(low);
	}
	if (__builtin_constant_p(width) && width == 4) {
		memcpy(&low, bytes, 4);
		return be32toh(low);
	}
	if (__builtin_constant_p(width) && width == 2) {
		memcpy(&high, bytes, 2);
		return be16toh(high);
	}
	for (size_t i = 0; i < width; i++)
		value = value << 8 | bytes[i];
	return value;
}

static inline void osd_put_be(uint8_t *bytes, uint64_t value, size_t width)
{
	uint64_t all = htobe64(value);
	uint32_t low = htobe32((uint32_t)value);
	uint16_t high = htobe16((uint16_t)(width == 6 ? value >> 32 : value));

	if (__builtin_constant_p(width) && width == 8) {
		memcpy(bytes, &all, 8);
	} else if (__builtin_constant_p(width) && width == 6) {
		memcpy(bytes, &high, 2);
		memcpy(bytes + 2, &low, 4);
	} else if (__builtin_constant_p(width) && width == 4) {
		memcpy(bytes, &low, 4);
	} else if (__builtin_constant_p(width) && width == 2) {
		memcpy(bytes, &high, 2);
	} else {
		for (size_t i = width; i-- > 0; value >>= 8)
			bytes[i] = (uint8_t)value;
	}
}

static inline struct osd_rd osd_rd_init(const void *data, size_t length)
{
	const uint8_t *bytes = data;

	return (struct osd_rd){bytes, bytes ? bytes + length : NULL, false};
}

static inline size_t osd_rd_left(const struct osd_rd *r)
{
	return r->bad ? 0 : (size_t)(r->end - r->at);
}

/* Borrowed pointer to the next length bytes, or NULL (and bad). */
static inline const uint8_t *osd_rd_bytes(struct osd_rd *r, size_t length)
{
	const uint8_t *bytes = r->at;

	if (r->bad || (size_t)(r->end - r->at) < length) {
		r->bad = true;
		return NULL;
	}
	r->at += length;
	return bytes;
}

static inline uint64_t osd_rd_be(struct osd_rd *r, size_t width)
{
	const uint8_t *bytes = osd_rd_bytes(r, width);

	return bytes ? osd_get_be(bytes, width) : 0;
}

static inline struct osd_wr osd_wr_init(void *data, size_t capacity)
{
	uint8_t *bytes = data;

	return (struct osd_wr){bytes, bytes, bytes ? bytes + capacity : NULL, false};
}

static inline size_t osd_wr_used(const struct osd_wr *w)
{
	return (size_t)(w->at - w->start);
}

/* Room for length bytes to be filled by the caller, or NULL (and bad). */
static inline uint8_t *osd_wr_room(struct osd_wr *w, size_t length)
{
	uint8_t *room = w->at;

	if (w->bad || (size_t)(w->end - w->at) < length) {
		w->bad = true;
		return NULL;
	}
	w->at += length;
	return room;
}

static inline void osd_wr_be(struct osd_wr *w, uint64_t value, size_t width)
{
	if (w->bad || (size_t)(w->end - w->at) < width) {
		w->bad = true;
		return;
	}
	osd_put_be(w->at, value, width);
	w->at += width;
}

static inline void osd_wr_bytes(struct osd_wr *w, const void *bytes, size_t length)
{
	uint8_t *room = osd_wr_room(w, length);

	if (room && length)
		memcpy(room, bytes, length);
}

/* Without the zero byte at its end. */
static inline void osd_wr_text(struct osd_wr *w, const char *text)
{
	osd_wr_bytes(w, text, strlen(text));
}

static inline void osd_wr_zero(struct osd_wr *w, size_t length)
{
	uint8_t *room = osd_wr_room(w, length);

	if (room && length)
		memset(room, 0, length);
}

#endif
