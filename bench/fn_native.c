/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fn_native.c -- a function of examples/functions as a program of this machine, over a local file: prints the
 * nanoseconds of each call.  fn_native FILE TIMES */
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "osd.h"

static int file = -1;

int64_t osd_zone(enum osd_zone_part part)
{
	return part;
}

int64_t osd_read(uint64_t partition, uint64_t object, uint64_t offset, void *to, uint32_t length)
{
	(void)partition, (void)object;
	return pread(file, to, length, (off_t)offset);
}

int64_t osd_result(enum osd_encoding encoding, const void *from, uint32_t length)
{
	(void)encoding, (void)from, (void)length;
	return 0;
}

int osd_function_main(void);

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int argc, char **argv)
{
	int times = argc == 3 ? atoi(argv[2]) : 0;

	file = times > 0 ? open(argv[1], O_RDONLY) : -1;
	if (file < 0)
		return 2;
	while (times-- > 0) {
		int64_t begin = now();

		if (osd_function_main())
			return 1;
		printf("%lld\n", (long long)(now() - begin));
	}
	return 0;
}
