/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandboxd_client.c -- the connection to iosd-sandboxd: connect with backoff, send, receive
 * descriptors. Everything under exec->lock; nothing here waits.  Not here: what a message means for
 * a sandbox (sandbox_pool.c). */
#include "exec/sandboxd_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "wire/cursor.h"

#define RETRY_FIRST_USEC 100000
#define RETRY_MOST_USEC	 5000000
#define NUDGE_UNREAD	 2048 /* bytes as the kernel counts them: two or three messages */

static const char *const levels[] = {"minimal", "no-userns", "no-cgroup", "full"};

static int level_rank(const char *name)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(levels); i++)
		if (strcmp(levels[i], name) == 0)
			return (int)i;
	return -1;
}

static int try_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	OSD_CLEANUP_CLOSE int fd = -1;
	int kept;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	kept = fd;
	fd = -1;
	return kept;
}

bool osd_service_send(struct osd_exec *exec, enum osd_sandboxd_type type, uint64_t id,
		      const void *body, size_t length)
{
	const struct osd_sandboxd_message message = {(uint16_t)type, id, body, (uint32_t)length};
	uint8_t bytes[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	size_t used = osd_sandboxd_encode(&message, bytes, sizeof(bytes));

	if (exec->pool.fd < 0 || used == 0)
		return false;
	if (send(exec->pool.fd, bytes, used, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)used)
		return true;
	osd_warning("iosd-sandboxd does not take messages: %s", strerror(errno));
	osd_service_lost(exec);
	return false;
}

/* Only when iosd-sandboxd keeps up with what it was sent. */
static void send_if_read(struct osd_exec *exec, const struct osd_sandboxd_message *message)
{
	uint8_t bytes[OSD_SANDBOXD_HEADER + sizeof(uint32_t)];
	size_t used = osd_sandboxd_encode(message, bytes, sizeof(bytes));
	int unread = 0;

	if (exec->pool.fd < 0 || ioctl(exec->pool.fd, SIOCOUTQ, &unread) < 0 ||
	    unread > NUDGE_UNREAD)
		return;
	if (send(exec->pool.fd, bytes, used, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		osd_debug("iosd-sandboxd takes no message of type %u: %s", message->type,
			  strerror(errno));
}

void osd_service_nudge(struct osd_exec *exec, uint64_t id)
{
	send_if_read(exec, &(struct osd_sandboxd_message){.type = OSD_SANDBOXD_NUDGE,
							  .sandbox_id = id});
}

void osd_service_report_share(struct osd_exec *exec, unsigned per_mille)
{
	uint8_t body[4];

	osd_put_be(body, per_mille, sizeof(body));
	send_if_read(exec, &(struct osd_sandboxd_message){.type = OSD_SANDBOXD_SHARE,
							  .body = body,
							  .body_bytes = sizeof(body)});
}

static void hello(struct osd_exec *exec, unsigned most)
{
	uint8_t body[4];

	exec->pool.asked = most;
	osd_put_be(body, most, 4);
	osd_service_send(exec, OSD_SANDBOXD_HELLO, 0, body, sizeof(body));
}

void osd_service_resize(struct osd_exec *exec)
{
	if (exec->pool.welcomed && exec->pool.alive_max > exec->pool.asked)
		hello(exec, exec->pool.alive_max);
}

void osd_service_ask(struct osd_exec *exec)
{
	if (exec->pool.welcomed)
		hello(exec, OSD_MAX(exec->pool.allowed, exec->pool.alive_max));
}

/* Until we try to connect again; longer each time in vain. */
static uint64_t retry_delay(struct osd_sandbox_pool *pool, bool welcomed)
{
	pool->retry_delay_usec =
		welcomed ? RETRY_FIRST_USEC
			 : OSD_MIN(OSD_MAX(pool->retry_delay_usec * 2, RETRY_FIRST_USEC),
				   RETRY_MOST_USEC);
	return pool->retry_delay_usec;
}

void osd_pool_connect(struct osd_exec *exec, uint64_t now_usec, uint64_t *deadline)
{
	struct osd_sandbox_pool *pool = &exec->pool;
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = OSD_EVENT_SERVICE};

	if (!exec->config.sandboxd || pool->fd >= 0)
		return;
	if (now_usec >= pool->retry_usec) {
		pool->fd = try_connect(exec->config.sandboxd);
		if (pool->fd >= 0) {
			epoll_ctl(exec->monitor_epoll, EPOLL_CTL_ADD, pool->fd, &event);
			hello(exec, pool->alive_max);
			return;
		}
		pool->retry_usec = now_usec + retry_delay(pool, false);
	}
	*deadline = OSD_MIN(*deadline, pool->retry_usec);
}

void osd_service_lost(struct osd_exec *exec)
{
	struct osd_sandbox_pool *pool = &exec->pool;
	bool welcomed;

	if (pool->fd < 0)
		return;
	if (pool->welcomed && !exec->stopping)
		osd_warning("lost iosd-sandboxd; jobs wait until it is back");
	close(pool->fd);
	pool->fd = -1;
	welcomed = pool->welcomed;
	pool->welcomed = false;
	pool->isolation[0] = '\0';
	osd_pools_unserved(exec);
	pool->retry_usec = osd_monotonic_usec() + retry_delay(pool, welcomed);
	osd_pool_service_lost(exec);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void welcome(struct osd_exec *exec, const struct osd_sandboxd_message *message)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	struct osd_sandbox_pool *pool = &exec->pool;
	size_t level_length = osd_rd_be(&r, 2), why_length;
	const uint8_t *level = osd_rd_bytes(&r, level_length), *why;
	const char *demanded = exec->config.isolation;
	char quoted[256];

	why_length = osd_rd_be(&r, 2);
	why = osd_rd_bytes(&r, why_length);
	if (r.bad || level_length >= sizeof(pool->isolation)) {
		osd_service_lost(exec);
		return;
	}
	pool->allowed = pool->asked;
	if (pool->welcomed) { /* it was about their number alone */
		osd_pool_refill(exec);
		return;
	}
	memcpy(pool->isolation, level, level_length);
	pool->isolation[level_length] = '\0';
	osd_log_quote(quoted, sizeof(quoted), (const char *)why, why_length);
	pool->isolation_refused =
		strcmp(demanded, "best") != 0 && level_rank(pool->isolation) < level_rank(demanded);
	if (pool->isolation_refused) {
		osd_error("isolation %s is demanded, this host gives %s: %s; no job will run",
			  demanded, pool->isolation, quoted);
		return;
	}
	osd_info("iosd-sandboxd connected, isolation %s%s%s", pool->isolation,
		 why_length ? ": " : "", quoted);
	pool->welcomed = true;
	pool->retry_delay_usec = 0;
	pool->unfit[0] = '\0';
	osd_pool_refill(exec);
}

static void refused(struct osd_exec *exec, const struct osd_sandboxd_message *message)
{
	char quoted[256];

	osd_log_quote(quoted, sizeof(quoted), (const char *)message->body, message->body_bytes);
	if (message->sandbox_id) {
		osd_pool_refused(exec, message->sandbox_id, quoted);
		return;
	}
	osd_warning("iosd-sandboxd: %s", quoted);
	if (!exec->pool.welcomed && exec->pool.asked > 1)
		hello(exec, exec->pool.asked / 2); /* more than it keeps: fewer, then */
}

static bool dispatch(struct osd_exec *exec, const struct osd_sandboxd_message *message, int fds[],
		     size_t count)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	struct osd_sandbox_exit status;
	struct osd_pool_news news;

	switch (message->type) {
	case OSD_SANDBOXD_WELCOME:
		welcome(exec, message);
		return true;
	case OSD_SANDBOXD_SPAWNED:
		if (count != OSD_SPAWNED_FDS || message->body_bytes != 4)
			return false;
		osd_pool_spawned(exec, message->sandbox_id, (pid_t)osd_rd_be(&r, 4), fds);
		return true;
	case OSD_SANDBOXD_EXITED:
		if (!osd_sandbox_exit_decode(message->body, message->body_bytes, &status))
			return false;
		osd_pool_exited(exec, message->sandbox_id, &status);
		return true;
	case OSD_SANDBOXD_REFUSED:
		refused(exec, message);
		return true;
	case OSD_SANDBOXD_LIMITS_SET:
		osd_pool_limits_set(exec, message->sandbox_id);
		return true;
	case OSD_SANDBOXD_ROTATED:
		osd_pool_rotated(exec, message->body, message->body_bytes);
		return true;
	case OSD_SANDBOXD_POOL:
		if (!osd_pool_news_decode(message->body, message->body_bytes, &news))
			return false;
		osd_pool_news(exec, &news);
		return true;
	default:
		return false;
	}
}

static size_t take_fds(struct msghdr *header, int fds[OSD_SPAWNED_FDS])
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (count < OSD_SPAWNED_FDS)
				fds[count++] = fd;
			else
				close(fd);
		}
	}
	return count;
}

/* It sent something we do not understand.  Told once, not at each attempt. */
static void say_unfit(struct osd_exec *exec, unsigned version)
{
	char text[sizeof(exec->pool.unfit)];

	if (version != OSD_SANDBOXD_VERSION)
		snprintf(text, sizeof(text),
			 "iosd-sandboxd speaks version %u, the target %u: install both of one release",
			 version, OSD_SANDBOXD_VERSION);
	else
		snprintf(text, sizeof(text), "iosd-sandboxd sent something that is not ours");
	if (strcmp(text, exec->pool.unfit) != 0)
		osd_error("%s; closing the connection", text);
	memcpy(exec->pool.unfit, text, sizeof(text));
}

/* One message; false when there is none (any more). */
static bool receive_one(struct osd_exec *exec)
{
	uint8_t bytes[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 8)];
		struct cmsghdr align;
	} control;
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr header = {.msg_iov = &iov,
				.msg_iovlen = 1,
				.msg_control = control.bytes,
				.msg_controllen = sizeof(control.bytes)};
	struct osd_sandboxd_message message;
	int fds[OSD_SPAWNED_FDS] = {-1, -1, -1, -1, -1};
	ssize_t length = recvmsg(exec->pool.fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t count;
	bool good;

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (length <= 0) {
		osd_service_lost(exec);
		return false;
	}
	count = take_fds(&header, fds);
	good = osd_sandboxd_decode(bytes, (size_t)length, &message) &&
	       dispatch(exec, &message, fds, count);
	for (size_t i = 0; i < OSD_SPAWNED_FDS; i++)
		osd_closep(&fds[i]); /* those that were not taken */
	if (!good) {
		say_unfit(exec, osd_sandboxd_version(bytes, (size_t)length));
		osd_service_lost(exec);
	}
	return exec->pool.fd >= 0;
}

void osd_pool_receive(struct osd_exec *exec)
{
	while (exec->pool.fd >= 0 && receive_one(exec))
		;
}
