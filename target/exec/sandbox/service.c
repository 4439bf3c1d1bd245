/* SPDX-License-Identifier: GPL-2.0-or-later */
/* service.c -- what iosd-sandboxd sends, with descriptors, and what each message means (sandbox.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd_message.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"
#include "wire/cursor.h"

static const char *const levels[] = {"minimal", "no-userns", "no-cgroup", "full"};

static int level_rank(const char *name)
{
	uint8_t rank;

	return osd_find_word(levels, OSD_ARRAY_SIZE(levels), name, &rank) ? rank : -1;
}

static void welcome(struct osd_sandboxes *sandboxes, const struct osd_sandboxd_message *message)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	size_t level_length = osd_rd_be(&r, 2), why_length;
	const uint8_t *level = osd_rd_bytes(&r, level_length), *why;
	const char *demanded = sandboxes->demanded;
	char quoted[256];

	why_length = osd_rd_be(&r, 2);
	why = osd_rd_bytes(&r, why_length);
	if (r.bad || level_length >= sizeof(sandboxes->isolation)) {
		osd_service_lost(sandboxes);
		return;
	}
	sandboxes->allowed = sandboxes->asked;
	if (sandboxes->welcomed) { /* it was about their number alone */
		osd_sandboxes_refill(sandboxes);
		return;
	}
	memcpy(sandboxes->isolation, level, level_length);
	sandboxes->isolation[level_length] = '\0';
	osd_log_quote(quoted, sizeof(quoted), (const char *)why, why_length);
	sandboxes->isolation_refused = strcmp(demanded, "best") != 0 &&
				       level_rank(sandboxes->isolation) < level_rank(demanded);
	if (sandboxes->isolation_refused) {
		osd_error("isolation %s is demanded, this host gives %s: %s; no job will run",
			  demanded, sandboxes->isolation, quoted);
		return;
	}
	osd_info("iosd-sandboxd connected, isolation %s%s%s", sandboxes->isolation,
		 why_length ? ": " : "", quoted);
	sandboxes->welcomed = true;
	sandboxes->retry_delay_usec = 0;
	sandboxes->unfit[0] = '\0';
	osd_sandboxes_refill(sandboxes);
}

static void refused(struct osd_sandboxes *sandboxes, const struct osd_sandboxd_message *message)
{
	char quoted[256];

	osd_log_quote(quoted, sizeof(quoted), (const char *)message->body, message->body_bytes);
	if (message->sandbox_id) {
		osd_sandbox_refused(sandboxes, message->sandbox_id, quoted);
		return;
	}
	osd_warning("iosd-sandboxd: %s", quoted);
	if (!sandboxes->welcomed && sandboxes->asked > 1) /* more than it keeps: fewer, then */
		osd_service_hello(sandboxes, sandboxes->asked / 2);
}

static bool dispatch(struct osd_sandboxes *sandboxes, const struct osd_sandboxd_message *message,
		     int fds[], size_t count)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	struct osd_sandbox_exit status;
	struct osd_pool_news news;

	switch (message->type) {
	case OSD_SANDBOXD_WELCOME:
		welcome(sandboxes, message);
		return true;
	case OSD_SANDBOXD_SPAWNED:
		if (count != OSD_SPAWNED_FDS || message->body_bytes != 4)
			return false;
		osd_sandbox_spawned(sandboxes, message->sandbox_id, (pid_t)osd_rd_be(&r, 4), fds);
		return true;
	case OSD_SANDBOXD_EXITED:
		if (!osd_sandbox_exit_decode(message->body, message->body_bytes, &status))
			return false;
		osd_sandbox_exited(sandboxes, message->sandbox_id, &status);
		return true;
	case OSD_SANDBOXD_REFUSED:
		refused(sandboxes, message);
		return true;
	case OSD_SANDBOXD_LIMITS_SET:
		osd_sandbox_limits_set(sandboxes, message->sandbox_id);
		return true;
	case OSD_SANDBOXD_ROTATED:
		sandboxes->ops->rotated(sandboxes->arg, message->body, message->body_bytes);
		return true;
	case OSD_SANDBOXD_POOL:
		if (!osd_pool_news_decode(message->body, message->body_bytes, &news))
			return false;
		sandboxes->ops->news(sandboxes->arg, &news);
		return true;
	default:
		return false;
	}
}

/* It sent something we do not understand.  Told once, not at each attempt. */
static void say_unfit(struct osd_sandboxes *sandboxes, unsigned version)
{
	char text[sizeof(sandboxes->unfit)];

	if (version != OSD_SANDBOXD_VERSION)
		snprintf(text, sizeof(text),
			 "iosd-sandboxd speaks version %u, the target %u: install both of one "
			 "release",
			 version, OSD_SANDBOXD_VERSION);
	else
		snprintf(text, sizeof(text), "iosd-sandboxd sent something that is not ours");
	if (strcmp(text, sandboxes->unfit) != 0)
		osd_error("%s; closing the connection", text);
	memcpy(sandboxes->unfit, text, sizeof(text));
}

/* One message; false when there is none (any more). */
static bool receive_one(struct osd_sandboxes *sandboxes)
{
	uint8_t bytes[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	struct osd_sandboxd_message message;
	int fds[OSD_SPAWNED_FDS];
	size_t count = 0;
	ssize_t length =
		osd_fd_receive(sandboxes->fd, bytes, sizeof(bytes), fds, OSD_SPAWNED_FDS, &count);
	bool good = length > 0 && osd_sandboxd_decode(bytes, (size_t)length, &message) &&
		    dispatch(sandboxes, &message, fds, count);

	if (length == -EAGAIN)
		return false;
	osd_fds_close(fds, count); /* those that were not taken */
	if (length == -EMSGSIZE)
		length = sizeof(bytes); /* longer than any of ours */
	if (length > 0 && !good)
		say_unfit(sandboxes, osd_sandboxd_version(bytes, (size_t)length));
	if (!good)
		osd_service_lost(sandboxes);
	return sandboxes->fd >= 0;
}

void osd_service_receive(struct osd_sandboxes *sandboxes)
{
	while (sandboxes->fd >= 0 && receive_one(sandboxes))
		;
}
