/* SPDX-License-Identifier: GPL-2.0-or-later */
/* long_read.c -- see long_read.h. */
#include "long_read.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "fd_message.h"
#include "proxy_client.h"
#include "shared_read.h"

#define LONG_BYTES (64u << 10) /* shorter reads are not worth a share */
#define PAGE_BYTES 4096u

static struct {
	bool asked, shared; /* asked for this object; the proxy gave it */
	uint64_t partition_id, object_id;
	struct osd_shared_reading reading;
} now;

/* Ends the share on this side. */
static void forget(void)
{
	if (now.shared) {
		munmap((void *)now.reading.words, PAGE_BYTES);
		osd_closep(&now.reading.head_fd);
		osd_closep(&now.reading.tail_fd);
	}
	now.asked = now.shared = false;
}

void osd_long_read_drop(void)
{
	const struct osd_call call = {.op = OSD_CALL_UNSHARE,
				      .partition_id = now.partition_id,
				      .object_id = now.object_id};
	struct osd_answer answer;
	const uint8_t *body;

	if (now.shared)
		osd_proxy_call(&call, NULL, &answer, &body);
	forget();
}

/* fds: head and tail, as far as they are present, then the version page, which is closed. */
static bool take(const struct osd_answer *answer, int *fds, size_t count)
{
	bool head = answer->flags & 1, tail = answer->flags & 2;
	void *page = MAP_FAILED;

	if (count == (size_t)head + tail + 1)
		page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fds[count - 1], 0);
	if (page == MAP_FAILED) {
		osd_fds_close(fds, count);
		return false;
	}
	close(fds[count - 1]);
	now.reading = (struct osd_shared_reading){.words = page,
						  .head_bytes = answer->a,
						  .head_fd = head ? fds[0] : -1,
						  .tail_fd = tail ? fds[head] : -1};
	now.reading.layout = atomic_load(&now.reading.words[OSD_SHARED_LAYOUT]);
	return true;
}

static void share(uint64_t partition_id, uint64_t object_id)
{
	const struct osd_call call = {
		.op = OSD_CALL_SHARE, .partition_id = partition_id, .object_id = object_id};
	struct osd_answer answer;
	const uint8_t *body;
	int fds[OSD_ANSWER_FDS], count;

	now.asked = true;
	now.partition_id = partition_id;
	now.object_id = object_id;
	if (!osd_proxy_call(&call, NULL, &answer, &body) || answer.code != OSD_ANSWER_OK)
		return;
	count = osd_proxy_receive_fds(fds, OSD_ANSWER_FDS);
	now.shared = count > 0 && take(&answer, fds, (size_t)count);
}

ssize_t osd_long_read(uint64_t partition_id, uint64_t object_id, uint64_t offset, uint8_t *to,
		      size_t length)
{
	ssize_t count;

	if (length < LONG_BYTES || offset > INT64_MAX)
		return -1;
	if (now.asked && (now.partition_id != partition_id || now.object_id != object_id))
		osd_long_read_drop();
	if (!now.asked)
		share(partition_id, object_id);
	if (!now.shared)
		return -1;
	now.reading.offset = offset;
	now.reading.bytes = to;
	now.reading.room = length;
	count = osd_shared_read(&now.reading);
	if (count < 0) /* a write runs, or the files were replaced: the next read shares anew */
		osd_long_read_drop();
	return count;
}
