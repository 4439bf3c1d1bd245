/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fn_native.c -- a function of examples/functions as a program of this machine, over local files: prints the
 * nanoseconds of each call.  fn_native FILE TIMES [DESTINATION] */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "osd.h"

enum { SOURCE_ID = 1, DESTINATION_ID = 2 };

static int file = -1, destination = -1;

int64_t osd_zone(enum osd_zone_part part)
{
	return part;
}

int64_t osd_read(uint64_t partition, uint64_t object, uint64_t offset, void *to, uint32_t length)
{
	(void)partition, (void)object;
	return pread(file, to, length, (off_t)offset);
}

int64_t osd_write(uint64_t partition, uint64_t object, uint64_t offset, const void *from, uint32_t length)
{
	(void)partition, (void)object;
	return pwrite(destination, from, length, (off_t)offset);
}

int64_t osd_length(uint64_t partition, uint64_t object)
{
	struct stat status;

	(void)partition, (void)object;
	return fstat(file, &status) < 0 ? OSD_STORAGE : status.st_size;
}

/* Those of encrypt.c: two ids of 8 bytes, then key and nonce. */
int64_t osd_args(void *to, uint32_t room)
{
	uint8_t *bytes = to;

	if (room < 16)
		return OSD_INVALID;
	memset(bytes, 0, room);
	bytes[7] = SOURCE_ID;
	bytes[15] = DESTINATION_ID;
	return room;
}

int64_t osd_log(enum osd_stream stream, const void *from, uint32_t length)
{
	return write((int)stream, from, length) < 0 ? OSD_STORAGE : 0;
}

void *osd_allocate(size_t size)
{
	return calloc(1, size);
}

void osd_free(void *memory)
{
	free(memory);
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
	int times = argc >= 3 ? atoi(argv[2]) : 0;

	file = times > 0 ? open(argv[1], O_RDONLY) : -1;
	destination = argc == 4 ? open(argv[3], O_WRONLY) : -1;
	if (file < 0 || (argc == 4 && destination < 0))
		return 2;
	while (times-- > 0) {
		int64_t begin = now();

		if (osd_function_main())
			return 1;
		printf("%lld\n", (long long)(now() - begin));
	}
	return 0;
}
