/* SPDX-License-Identifier: GPL-2.0-or-later */
/* send.c -- messages to the target and to zygotes.  Nothing waits for a receiver that does not read. */
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon.h"
#include "base/fd_message.h"

void osd_target_send(struct osd_daemon *daemon, enum osd_sandboxd_type type, uint64_t id,
		     const void *body, size_t length, const int *fds, size_t fd_count)
{
	const struct osd_sandboxd_message message = {type, id, body, (uint32_t)length};
	uint8_t bytes[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	size_t used = osd_sandboxd_encode(&message, bytes, sizeof(bytes));
	int error;

	if (daemon->target_fd < 0 || !used)
		return;
	error = osd_fd_send(daemon->target_fd, bytes, used, fds, fd_count, MSG_DONTWAIT);
	if (!error)
		return;
	osd_warning("cannot send to the target: %s", strerror(-error));
	osd_closep(&daemon->target_fd); /* the loop then drops what was made for it */
}

void osd_target_refuse(struct osd_daemon *daemon, uint64_t id, const char *text)
{
	osd_target_send(daemon, OSD_SANDBOXD_REFUSED, id, text, strlen(text), NULL, 0);
}

const char osd_no_bound[] = "this host gives no control group that bounds processor time, so the "
			    "pool's share.cpu cannot be enforced";

void osd_target_tell_pool(struct osd_daemon *daemon, const struct osd_zygotes *pool)
{
	const char *set = pool->set ? pool->set : "";
	const char *why = pool->unbounded ? osd_no_bound : pool->why;
	const struct osd_pool_news news = {
		.state = pool->unbounded ? OSD_POOL_FAILED : pool->state,
		.name = (const uint8_t *)pool->name,
		.name_bytes = (uint16_t)strlen(pool->name),
		.set = (const uint8_t *)set,
		.set_bytes = (uint16_t)strlen(set),
		.why = (const uint8_t *)why,
		.why_bytes = (uint16_t)strlen(why),
	};
	uint8_t body[OSD_SANDBOXD_BODY_MAX];

	if (daemon->greeted)
		osd_target_send(daemon, OSD_SANDBOXD_POOL, 0, body,
				osd_pool_news_encode(&news, body, sizeof(body)), NULL, 0);
}

bool osd_zygote_send(struct osd_zygote *zygote, const struct zygote_message *message,
		     const int *fds, size_t fd_count)
{
	return osd_fd_send(zygote->socket, message, sizeof(*message), fds, fd_count,
			   MSG_DONTWAIT) == 0;
}
