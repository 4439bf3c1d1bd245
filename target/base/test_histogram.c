/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_histogram.c -- each bound belongs to its step and one more to the next; threads lose nothing. */
#include "base/histogram.h"

#include <pthread.h>

#include "base/test.h"

#define THREADS	  4
#define ADDITIONS 20000

static uint64_t total(const struct osd_histogram *histogram)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i <= OSD_HISTOGRAM_STEPS; i++)
		sum += histogram->counts[i];
	return sum;
}

static void test_bounds(void)
{
	struct osd_histogram histogram = {0};

	CHECK_EQ(osd_histogram_bounds[0], 50);
	CHECK_EQ(osd_histogram_bounds[OSD_HISTOGRAM_STEPS - 1], 60000000);
	osd_histogram_add(&histogram, 0);
	CHECK_EQ(histogram.counts[0], 1);
	for (unsigned i = 0; i < OSD_HISTOGRAM_STEPS; i++) {
		osd_histogram_add(&histogram, osd_histogram_bounds[i]);
		osd_histogram_add(&histogram, osd_histogram_bounds[i] + 1);
	}
	CHECK_EQ(histogram.counts[0], 2);
	for (unsigned i = 1; i < OSD_HISTOGRAM_STEPS; i++)
		CHECK_EQ(histogram.counts[i], 2);
	CHECK_EQ(histogram.counts[OSD_HISTOGRAM_STEPS], 1);
	CHECK_EQ(total(&histogram), 2 * OSD_HISTOGRAM_STEPS + 1);
}

static void *add(void *argument)
{
	struct osd_histogram *histogram = argument;

	for (unsigned i = 0; i < ADDITIONS; i++)
		osd_histogram_add(histogram, i);
	return NULL;
}

static void test_threads(void)
{
	struct osd_histogram histogram = {0};
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, add, &histogram));
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(total(&histogram), THREADS * ADDITIONS);
	CHECK_EQ(histogram.sum_usec, UINT64_C(1) * THREADS * ADDITIONS * (ADDITIONS - 1) / 2);
}

int main(void)
{
	test_bounds();
	test_threads();
	return 0;
}
