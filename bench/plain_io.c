/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plain_io.c -- what a script's reads and writes are measured against: pread and pwrite at the begin
 * of a local file, into and from one buffer (figure 5 of the iOSD paper).
 *
 * plain_io FILE MILLISECONDS BYTES...: for each number of BYTES prints a line of JSON, nanoseconds of
 * [pread, pwrite], each the mean of as many as MILLISECONDS have room for.  FILE is as long as the
 * longest. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES_MAX (1ul << 30)
#define ROUND	  8 /* between two looks at the clock */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool once(int fd, uint8_t *buffer, size_t bytes, bool writing)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t count = writing ? pwrite(fd, buffer + done, bytes - done, (off_t)done)
					: pread(fd, buffer + done, bytes - done, (off_t)done);

		if (count <= 0)
			return false;
		done += (size_t)count;
	}
	return true;
}

/* Nanoseconds of one; 0: it failed. */
static uint64_t mean(int fd, uint8_t *buffer, size_t bytes, bool writing, uint64_t room_ns)
{
	uint64_t start = now_ns(), took, count = 0;

	do {
		for (int i = 0; i < ROUND; i++, count++)
			if (!once(fd, buffer, bytes, writing))
				return 0;
		took = now_ns() - start;
	} while (took < room_ns);
	return took / count;
}

int main(int argc, char **argv)
{
	uint64_t room_ns = argc > 3 ? strtoull(argv[2], NULL, 10) * 1000000u : 0;
	int fd = argc > 3 ? open(argv[1], O_RDWR) : -1;

	if (fd < 0) {
		fprintf(stderr, "usage: plain_io FILE MILLISECONDS BYTES...\n");
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		size_t bytes = strtoul(argv[i], NULL, 10);
		uint8_t *buffer = bytes && bytes <= BYTES_MAX ? malloc(bytes) : NULL;
		uint64_t read_ns, write_ns;

		if (!buffer)
			return 1;
		memset(buffer, 'z', bytes);
		read_ns = mean(fd, buffer, bytes, false, room_ns);
		write_ns = mean(fd, buffer, bytes, true, room_ns);
		free(buffer);
		if (!read_ns || !write_ns)
			return 1;
		printf("[%" PRIu64 ", %" PRIu64 "]\n", read_ns, write_ns);
	}
	return 0;
}
