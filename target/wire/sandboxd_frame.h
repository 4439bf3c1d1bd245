/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandboxd_frame.h -- messages between the target and iosd-sandboxd on a Unix SEQPACKET socket, one
 * message a packet.  The target connects and asks; iosd-sandboxd forks, limits, kills and reaps, because it
 * has the rights and the target has not.  When the target's connection closes, all its sandboxes are killed.
 *
 * All messages: be16 version, be16 type, be32 body length, be64 sandbox id (chosen by the target, unique for
 * the connection's life, 0 where none is meant), then the body. */
#ifndef OSD_WIRE_SANDBOXD_FRAME_H
#define OSD_WIRE_SANDBOXD_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSD_SANDBOXD_VERSION   1
#define OSD_SANDBOXD_BODY_MAX  4096u
#define OSD_SANDBOXD_HEADER    16u
#define OSD_SANDBOXD_POOL_MAX  64u /* bytes of a pool's name */

#define OSD_CPU_SHARE_WHOLE 100u /* percent: no bound */

enum osd_sandboxd_type {
	/* target -> iosd-sandboxd; all numbers from HELLO to BOUND */
	OSD_SANDBOXD_HELLO = 1, /* body: be32 most sandboxes alive at once */
	OSD_SANDBOXD_SPAWN =
		2, /* body: struct osd_sandbox_limits, then the pool's name (none: default) */
	OSD_SANDBOXD_LIMITS =
		3, /* body: struct osd_sandbox_limits, for a sandbox that has not got its job yet */
	OSD_SANDBOXD_KILL = 4,
	OSD_SANDBOXD_ROTATE = 6, /* body: a pool's name: make its sandboxes from another zygote */
	OSD_SANDBOXD_FORGET =
		7, /* body: a pool's name: no sandbox of it is needed until the next SPAWN */
	OSD_SANDBOXD_NUDGE = 8, /* the sandbox is to look at its control line (proxy_frame.h) */
	OSD_SANDBOXD_SHARE =
		9, /* body: be32 per mille of the processor time they want that scripts get now */
	/* body: be32 percent of the processors that a pool's sandboxes may use together, from 1 to
	 * OSD_CPU_SHARE_WHOLE; then the pool's name.  If the host cannot enforce it, the pool fails. */
	OSD_SANDBOXD_BOUND = 10,
	OSD_SANDBOXD_JOB =
		5, /* body: be64 partition, be64 object of the job it works for, for the log */
	/* iosd-sandboxd -> target; all numbers from WELCOME to ROTATED */
	OSD_SANDBOXD_WELCOME =
		17, /* body: be16 n, isolation level reached (text), be16 n, why not full (text) */
	OSD_SANDBOXD_SPAWNED =
		18, /* body: be32 host pid; descriptors: pidfd, shared memory, job socket,
				      stdout read end, stderr read end */
	OSD_SANDBOXD_EXITED = 19,  /* body: struct osd_sandbox_exit */
	OSD_SANDBOXD_REFUSED = 20, /* SPAWN or LIMITS failed; body: text */
	OSD_SANDBOXD_LIMITS_SET = 21,
	OSD_SANDBOXD_ROTATED = 23, /* body: a pool's name: ROTATE is done */
	OSD_SANDBOXD_POOL = 22, /* after WELCOME, and at each change; body: struct osd_pool_news */
};

enum osd_pool_state {
	OSD_POOL_STARTING, /* its zygote warms up, or is about to be started again */
	OSD_POOL_SERVING,
	OSD_POOL_FAILED, /* it did not come up; it is tried again now and then */
};

/* be8 state, then three texts, each be16 n and n bytes. */
struct osd_pool_news {
	enum osd_pool_state state;
	const uint8_t *name, *set, *why; /* borrowed; set: id of its package set, none: empty */
	uint16_t name_bytes, set_bytes, why_bytes;
};

#define OSD_SANDBOX_LIMITS_BYTES 20u /* encoded; in a SPAWN the pool's name follows */

struct osd_sandbox_limits {
	uint64_t memory_bytes;
	uint32_t cpu_seconds; /* RLIMIT_CPU hard limit, rounded up from the job's; the target ends it exactly */
	uint32_t processes;   /* threads included */
	uint32_t open_files;
};

static inline bool osd_sandbox_limits_equal(const struct osd_sandbox_limits *a,
					    const struct osd_sandbox_limits *b)
{
	return a->memory_bytes == b->memory_bytes && a->cpu_seconds == b->cpu_seconds &&
	       a->processes == b->processes && a->open_files == b->open_files;
}

struct osd_sandbox_exit {
	int32_t wait_status; /* as of waitpid(2) */
	uint64_t cpu_user_usec, cpu_system_usec, peak_bytes;
	bool out_of_memory;  /* the kernel's OOM killer ended it */
};

struct osd_sandboxd_message {
	uint16_t type;
	uint64_t sandbox_id;
	const uint8_t *body; /* borrowed */
	uint32_t body_bytes;
};

/* Encode header and body into bytes (capacity >= header + body); returns the length, 0 when it does not fit. */
size_t osd_sandboxd_encode(const struct osd_sandboxd_message *message, uint8_t *bytes, size_t capacity);
/* False: version, type or length is not ours. */
/* Of a message, whether the rest of it is understood or not; 0: it is too short to say. */
static inline unsigned osd_sandboxd_version(const uint8_t *bytes, size_t length)
{
	return length < 2 ? 0 : (unsigned)bytes[0] << 8 | bytes[1];
}
bool osd_sandboxd_decode(const uint8_t *bytes, size_t length, struct osd_sandboxd_message *ret_message);
size_t osd_sandbox_limits_encode(const struct osd_sandbox_limits *limits, uint8_t *bytes, size_t capacity);
bool osd_sandbox_limits_decode(const uint8_t *bytes, size_t length, struct osd_sandbox_limits *ret_limits);
size_t osd_pool_news_encode(const struct osd_pool_news *news, uint8_t *bytes, size_t capacity);
bool osd_pool_news_decode(const uint8_t *bytes, size_t length, struct osd_pool_news *ret_news);
size_t osd_sandbox_exit_encode(const struct osd_sandbox_exit *status, uint8_t *bytes, size_t capacity);
bool osd_sandbox_exit_decode(const uint8_t *bytes, size_t length, struct osd_sandbox_exit *ret_status);

#endif
