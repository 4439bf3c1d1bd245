/* SPDX-License-Identifier: GPL-2.0-or-later */
/* long_read.c -- see long_read.h. */
#include "long_read.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
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

static bool take(const struct osd_answer *answer)
{
	struct osd_shared_fds fds;
	void *page;

	if (osd_proxy_receive_share(answer, &fds) < 0)
		return false;
	page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fds.version, 0);
	close(fds.version);
	if (page == MAP_FAILED) {
		osd_closep(&fds.head);
		osd_closep(&fds.tail);
		return false;
	}
	now.reading = (struct osd_shared_reading){
		.words = page, .head_bytes = answer->a, .head_fd = fds.head, .tail_fd = fds.tail};
	now.reading.layout = atomic_load(&now.reading.words[OSD_SHARED_LAYOUT]);
	return true;
}

static void share(uint64_t partition_id, uint64_t object_id)
{
	const struct osd_call call = {
		.op = OSD_CALL_SHARE, .partition_id = partition_id, .object_id = object_id};
	struct osd_answer answer;
	const uint8_t *body;

	now.asked = true;
	now.partition_id = partition_id;
	now.object_id = object_id;
	now.shared = osd_proxy_call(&call, NULL, &answer, &body) && answer.code == OSD_ANSWER_OK &&
		     take(&answer);
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
