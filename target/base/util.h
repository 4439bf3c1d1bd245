/* SPDX-License-Identifier: GPL-2.0-or-later */
/* util.h -- scope cleanup, ownership transfer, checked arithmetic, whole writes, lists of words.  Header only; used by every layer. */
#ifndef OSD_BASE_UTIL_H
#define OSD_BASE_UTIL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OSD_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define OSD_MIN(a, b)     ((a) < (b) ? (a) : (b))
#define OSD_MAX(a, b)     ((a) > (b) ? (a) : (b))

/* For lists of X(symbol, name) or X(number, symbol, name): the names as the values of an array. */
#define OSD_NAME_OF(symbol, name)	  name,
#define OSD_NAME_AT(number, symbol, name) [number] = (name),

/* Run fn(&variable) when the variable leaves its scope; fn accepts what the variable holds then. */
#define OSD_CLEANUP(fn)   __attribute__((cleanup(fn)))
#define OSD_CLEANUP_FREE  OSD_CLEANUP(osd_freep)
#define OSD_CLEANUP_CLOSE OSD_CLEANUP(osd_closep)

/* Defines fn##p, for OSD_CLEANUP, from fn, which releases a value of the type. */
#define OSD_DEFINE_CLEANUP(type, fn)                                                               \
	static inline void fn##p(type *value)                                                      \
	{                                                                                          \
		fn(*value);                                                                        \
	}

/* Give the resource away: yields the pointer and leaves NULL for the cleanup. */
#define OSD_STEAL(p)                                                                               \
	({                                                                                         \
		__typeof__(p) stolen_ = (p);                                                       \
		(p) = NULL;                                                                        \
		stolen_;                                                                           \
	})

#define osd_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void osd_freep(void *p)
{
	free(*(void **)p);
}

static inline void osd_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void osd_fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

/* Writes all of it, or returns false with an errno. */
static inline bool osd_write_all(int fd, const void *bytes, size_t length)
{
	for (const uint8_t *at = bytes; length > 0;) {
		ssize_t written = write(fd, at, length);

		if (written < 0 && errno != EINTR)
			return false;
		at += OSD_MAX(written, 0);
		length -= (size_t)OSD_MAX(written, 0);
	}
	return true;
}

static inline bool osd_grow_(void *list, size_t *capacity, size_t size, void **ret_list)
{
	size_t wanted = OSD_MAX((size_t)8, *capacity * 2);
	void *grown = realloc(list, wanted * size);

	if (!grown)
		return false;
	*capacity = wanted;
	*ret_list = grown;
	return true;
}

/* Makes room for one more element in a list on the heap: list and capacity are variables.  False: out of memory, and the
 * list is unchanged. */
#define OSD_MAKE_ROOM(list, count, capacity)                                                       \
	((count) < (capacity) || ({                                                                \
		 void *grown_;                                                                     \
		 bool good_ = osd_grow_((list), &(capacity), sizeof(*(list)), &grown_);            \
		 if (good_)                                                                        \
			 (list) = grown_;                                                          \
		 good_;                                                                            \
	 }))

/* false when a + b or a * b does not fit 64 bits; *ret is then unset. */
static inline bool osd_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
	return !__builtin_add_overflow(a, b, ret);
}

static inline bool osd_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
	return !__builtin_mul_overflow(a, b, ret);
}

/* a + b, or UINT64_MAX if that does not fit. */
static inline uint64_t osd_add_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return osd_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static inline uint64_t osd_round_up(uint64_t value, uint64_t power_of_two)
{
	return (value + power_of_two - 1) & ~(power_of_two - 1);
}

/* Makes the value at least so large; other threads may change it meanwhile. */
static inline void osd_raise_to(_Atomic uint64_t *value, uint64_t least)
{
	uint64_t before = atomic_load(value);

	while (before < least && !atomic_compare_exchange_weak(value, &before, least))
		;
}

/* The place of a word in a list, at most 256 of them; false: it is not there. */
static inline bool osd_find_word(const char *const *words, size_t count, const char *word,
				 uint8_t *ret_place)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], word) == 0) {
			*ret_place = (uint8_t)i;
			return true;
		}
	}
	return false;
}

/* Whether a text of words, with this character between two, has this word, which is not empty. */
static inline bool osd_has_word(const char *list, char separator, const void *word, size_t length)
{
	for (const char *at = list, *end; length && *at; at = end + (*end == separator)) {
		end = strchrnul(at, separator);
		if ((size_t)(end - at) == length && memcmp(at, word, length) == 0)
			return true;
	}
	return false;
}

#endif
