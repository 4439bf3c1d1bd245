/* SPDX-License-Identifier: GPL-2.0-or-later */
/* link.c -- the connection to iosd-sandboxd: made, with longer pauses after each failure, written to, lost
 * (sandbox.h).  Not here: what comes in (service.c). */
#include <errno.h>
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
#include "exec/sandbox/sandbox.h"
#include "wire/cursor.h"

#define RETRY_FIRST_USEC 100000
#define RETRY_MOST_USEC	 5000000
#define WELCOME_USEC	 5000000 /* iosd-sandboxd answers HELLO in this time, or is stuck */
#define NUDGE_UNREAD	 2048 /* bytes as the kernel counts them: two or three messages */

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

bool osd_service_send(struct osd_sandboxes *sandboxes, enum osd_sandboxd_type type, uint64_t id,
		      const void *body, size_t length)
{
	const struct osd_sandboxd_message message = {(uint16_t)type, id, body, (uint32_t)length};
	uint8_t bytes[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	size_t used = osd_sandboxd_encode(&message, bytes, sizeof(bytes));

	if (sandboxes->fd < 0 || used == 0)
		return false;
	if (send(sandboxes->fd, bytes, used, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)used)
		return true;
	osd_warning("iosd-sandboxd does not take messages: %s", strerror(errno));
	osd_service_lost(sandboxes);
	return false;
}

/* Only when iosd-sandboxd keeps up with what it was sent. */
static void send_if_read(struct osd_sandboxes *sandboxes,
			 const struct osd_sandboxd_message *message)
{
	uint8_t bytes[OSD_SANDBOXD_HEADER + sizeof(uint32_t)];
	size_t used = osd_sandboxd_encode(message, bytes, sizeof(bytes));
	int unread = 0;

	if (sandboxes->fd < 0 || ioctl(sandboxes->fd, SIOCOUTQ, &unread) < 0 ||
	    unread > NUDGE_UNREAD)
		return;
	if (send(sandboxes->fd, bytes, used, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		osd_debug("iosd-sandboxd takes no message of type %u: %s", message->type,
			  strerror(errno));
}

void osd_service_nudge(struct osd_sandboxes *sandboxes, uint64_t id)
{
	send_if_read(sandboxes,
		     &(struct osd_sandboxd_message){.type = OSD_SANDBOXD_NUDGE, .sandbox_id = id});
}

void osd_service_report_share(struct osd_sandboxes *sandboxes, unsigned per_mille)
{
	uint8_t body[4];

	osd_put_be(body, per_mille, sizeof(body));
	send_if_read(sandboxes, &(struct osd_sandboxd_message){.type = OSD_SANDBOXD_SHARE,
							       .body = body,
							       .body_bytes = sizeof(body)});
}

void osd_service_bound(struct osd_sandboxes *sandboxes, struct osd_supply *supply)
{
	uint8_t body[4 + OSD_SANDBOXD_POOL_MAX];
	struct osd_wr w = osd_wr_init(body, sizeof(body));
	unsigned sent = supply->cpu_share_sent ? supply->cpu_share_sent : OSD_CPU_SHARE_WHOLE;

	if (!sandboxes->welcomed || sent == supply->cpu_share)
		return;
	osd_wr_be(&w, supply->cpu_share, 4);
	osd_wr_text(&w, supply->name);
	if (!w.bad && osd_service_send(sandboxes, OSD_SANDBOXD_BOUND, 0, body, osd_wr_used(&w)))
		supply->cpu_share_sent = supply->cpu_share;
}

void osd_service_hello(struct osd_sandboxes *sandboxes, unsigned most)
{
	uint8_t body[4];

	sandboxes->asked = most;
	sandboxes->hello_usec = osd_monotonic_usec();
	osd_put_be(body, most, 4);
	osd_service_send(sandboxes, OSD_SANDBOXD_HELLO, 0, body, sizeof(body));
}

void osd_service_resize(struct osd_sandboxes *sandboxes)
{
	if (sandboxes->welcomed && sandboxes->alive_max > sandboxes->asked)
		osd_service_hello(sandboxes, sandboxes->alive_max);
}

void osd_service_ask(struct osd_sandboxes *sandboxes)
{
	if (sandboxes->welcomed)
		osd_service_hello(sandboxes, OSD_MAX(sandboxes->allowed, sandboxes->alive_max));
}

/* Until we try to connect again; longer each time in vain. */
static uint64_t retry_delay(struct osd_sandboxes *sandboxes, bool welcomed)
{
	sandboxes->retry_delay_usec =
		welcomed ? RETRY_FIRST_USEC
			 : OSD_MIN(OSD_MAX(sandboxes->retry_delay_usec * 2, RETRY_FIRST_USEC),
				   RETRY_MOST_USEC);
	return sandboxes->retry_delay_usec;
}

void osd_service_connect(struct osd_sandboxes *sandboxes, uint64_t now_usec, uint64_t *deadline)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = OSD_EVENT_SERVICE};

	if (!sandboxes->path || sandboxes->fd >= 0)
		return;
	if (now_usec >= sandboxes->retry_usec) {
		sandboxes->fd = try_connect(sandboxes->path);
		if (sandboxes->fd >= 0) {
			epoll_ctl(sandboxes->watch_epoll, EPOLL_CTL_ADD, sandboxes->fd, &event);
			osd_service_hello(sandboxes, sandboxes->alive_max);
			return;
		}
		sandboxes->retry_usec = now_usec + retry_delay(sandboxes, false);
	}
	*deadline = OSD_MIN(*deadline, sandboxes->retry_usec);
}

bool osd_service_is_due(const struct osd_sandboxes *sandboxes)
{
	if (!sandboxes->path || sandboxes->unfit[0])
		return false;
	if (sandboxes->fd < 0)
		return sandboxes->retry_usec == 0;
	return osd_monotonic_usec() < sandboxes->hello_usec + WELCOME_USEC;
}

void osd_service_lost(struct osd_sandboxes *sandboxes)
{
	bool welcomed;

	if (sandboxes->fd < 0)
		return;
	if (sandboxes->welcomed && !sandboxes->stopping)
		osd_warning("lost iosd-sandboxd; jobs wait until it is back");
	close(sandboxes->fd);
	sandboxes->fd = -1;
	welcomed = sandboxes->welcomed;
	sandboxes->welcomed = false;
	sandboxes->isolation[0] = '\0';
	sandboxes->retry_usec = osd_monotonic_usec() + retry_delay(sandboxes, welcomed);
	sandboxes->lost(sandboxes);
}
