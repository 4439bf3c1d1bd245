/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test.h -- for test_*.c only: checks that stay on in release builds and end the program on
 * failure. */
#ifndef OSD_BASE_TEST_H
#define OSD_BASE_TEST_H

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Loops in which the n-th call fails try every `step`-th n, from one on that IOSD_SEED chooses; with
 * IOSD_EVERY_CALL all of them. */
static inline unsigned test_nth_step(unsigned step)
{
	return getenv("IOSD_EVERY_CALL") ? 1 : step;
}

static inline unsigned test_nth_first(unsigned step)
{
	const char *text = getenv("IOSD_SEED");

	return 1 + (text ? strtoull(text, NULL, 0) % test_nth_step(step) : 0);
}

/* The seed of random numbers: IOSD_SEED, or another number in each run.  Printed, so that a failure can be repeated. */
static inline uint64_t test_seed(void)
{
	const char *text = getenv("IOSD_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)getpid();

	printf("IOSD_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* So many rounds of chance; a quarter of them where each takes ten times as long, and a race shows as soon as
 * both of its accesses have happened. */
#ifdef __SANITIZE_THREAD__
#define TEST_ROUNDS(count) ((count) / 4)
#else
#define TEST_ROUNDS(count) (count)
#endif

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Makes a folder in TMPDIR, which a test run has in memory, or in /tmp. */
static inline void test_folder(char *path, size_t size)
{
	const char *top = getenv("TMPDIR");

	CHECK((size_t)snprintf(path, size, "%s/iosd-test-XXXXXX", top ? top : "/tmp") < size);
	CHECK(mkdtemp(path) != NULL);
}

static inline int test_remove_entry(const char *path, const struct stat *stat, int type,
				    struct FTW *ftw)
{
	(void)stat, (void)type, (void)ftw;
	return remove(path);
}

/* With all that is in it. */
static inline void test_folder_remove(const char *path)
{
	nftw(path, test_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#define OK(call) CHECK_EQ(call, OSD_OK)

/* Compares unsigned 64-bit numbers, and prints both if they differ. */
#define CHECK_EQ(got, wanted)                                                                      \
	do {                                                                                       \
		unsigned long long got_ = (unsigned long long)(got);                               \
		unsigned long long wanted_ = (unsigned long long)(wanted);                         \
		if (got_ != wanted_) {                                                             \
			fprintf(stderr, "%s:%d: %s is 0x%llx, not 0x%llx\n", __FILE__, __LINE__,   \
				#got, got_, wanted_);                                              \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Compares bytes and lengths, and prints the first byte that differs. */
static inline void osd_check_bytes(const char *file, int line, const void *got, size_t got_length,
				   const void *wanted, size_t wanted_length)
{
	const unsigned char *a = got, *b = wanted;

	if (got_length == wanted_length && (!got_length || memcmp(got, wanted, got_length) == 0))
		return; /* fast, also with sanitizers */
	for (size_t i = 0; i < got_length && i < wanted_length; i++) {
		if (a[i] == b[i])
			continue;
		fprintf(stderr, "%s:%d: byte %zu is %02x, not %02x\n", file, line, i, a[i], b[i]);
		exit(1);
	}
	if (got_length != wanted_length) {
		fprintf(stderr, "%s:%d: %zu bytes, not %zu\n", file, line, got_length,
			wanted_length);
		exit(1);
	}
}

#define CHECK_BYTES(got, got_length, wanted, wanted_length)                                        \
	osd_check_bytes(__FILE__, __LINE__, got, got_length, wanted, wanted_length)

#endif
