/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_socket.c -- the control socket (control_impl.h): its path, the users it admits, packets
 * in and out.  Nothing here waits. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "unit/control_impl.h"

#define FRAMES_AT_ONCE 16     /* of one peer, before the others have their turn */
#define PAUSE_USEC     200000 /* before another try where no descriptor was free */

/* ---- listening ------------------------------------------------------------------------------- */

static struct sockaddr_un address_of(const struct osd_control *control)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, control->path, sizeof(address.sun_path));
	return address;
}

static int make_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* If two targets start at once, only one of them checks and binds at a time.  The lock is a file of
 * our own, not the folder: another user who can open the folder could hold its lock for ever. */
static int lock_path(const char *lock)
{
	struct stat held, there;

	for (;;) {
		int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -1;
		/* The previous holder has removed its file, so there may be a new one by now. */
		if (flock(fd, LOCK_EX) == 0 && fstat(fd, &held) == 0 && lstat(lock, &there) == 0 &&
		    held.st_dev == there.st_dev && held.st_ino == there.st_ino)
			return fd;
		close(fd);
	}
}

/* Removes the socket of a target that was killed.  NULL: the path is free. */
static const char *clear_path(const struct osd_control *control)
{
	OSD_CLEANUP_CLOSE int probe = make_socket();
	struct sockaddr_un address = address_of(control);
	struct stat there;

	if (lstat(control->path, &there) < 0)
		return errno == ENOENT ? NULL : strerror(errno);
	if (!S_ISSOCK(there.st_mode))
		return "something else is there";
	if (there.st_uid != geteuid() && geteuid() != 0)
		return "another user's socket is there";
	if (probe < 0 || connect(probe, (struct sockaddr *)&address, sizeof(address)) == 0 ||
	    errno != ECONNREFUSED)
		return "another target listens there";
	return unlink(control->path) == 0 ? NULL : strerror(errno);
}

static const char *bind_and_listen(struct osd_control *control)
{
	struct sockaddr_un address = address_of(control);
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = OSD_CONTROL_LISTENER};
	struct stat made;

	control->listen_fd = make_socket();
	/* Set the mode before the socket has a name, so that no other user can ever open it. */
	if (control->listen_fd < 0 || fchmod(control->listen_fd, 0600) < 0 ||
	    bind(control->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return strerror(errno);
	/* If the folder has the set-group-id bit, the socket's group is the folder's: the
	 * manager's. */
	if (control->targets.manager_uid && chmod(control->path, 0660) < 0)
		return strerror(errno);
	if (lstat(control->path, &made) == 0)
		control->inode = made.st_ino;
	if (listen(control->listen_fd, OSD_CONTROL_PEERS) < 0 ||
	    epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, control->listen_fd, &event) < 0)
		return strerror(errno);
	return NULL;
}

enum osd_status osd_control_listen(struct osd_control *control, const char *path, char message[256])
{
	char lock[sizeof(control->path) + sizeof(".lock")];
	OSD_CLEANUP_CLOSE int held = -1;
	const char *why;

	if (strlen(path) >= sizeof(control->path))
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "control socket: the path is longer than %zu bytes",
				   sizeof(control->path) - 1);
	memcpy(control->path, path, strlen(path) + 1);
	snprintf(lock, sizeof(lock), "%s.lock", control->path);
	held = lock_path(lock);
	why = held < 0 ? strerror(errno) : clear_path(control);
	if (!why)
		why = bind_and_listen(control);
	if (held >= 0)
		unlink(lock);
	if (!why)
		return OSD_OK;
	snprintf(message, 256, "control socket '%.120s': %.100s", path, why);
	osd_control_unlisten(control);
	return OSD_E_PARAM_FIELD;
}

void osd_control_unlisten(struct osd_control *control)
{
	struct stat there;

	for (unsigned i = 0; i < OSD_CONTROL_PEERS; i++)
		osd_closep(&control->peers[i].fd);
	if (control->inode && lstat(control->path, &there) == 0 && there.st_ino == control->inode)
		unlink(control->path);
	control->inode = 0;
	osd_closep(&control->listen_fd);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void listen_again(struct osd_control *control, bool on)
{
	struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.u32 = OSD_CONTROL_LISTENER};

	epoll_ctl(control->epoll_fd, EPOLL_CTL_MOD, control->listen_fd, &event);
	control->deaf_until_usec = on ? 0 : osd_monotonic_usec() + PAUSE_USEC;
}

static bool may_come_in(const struct osd_control *control, int fd, struct osd_control_peer *peer)
{
	struct ucred who;
	socklen_t length = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
		return false;
	if (who.uid != 0 && who.uid != geteuid() && who.uid != control->targets.manager_uid) {
		osd_warning("control: user %u (process %d) is not let in", (unsigned)who.uid,
			    (int)who.pid);
		return false;
	}
	*peer = (struct osd_control_peer){
		.fd = fd, .pid = who.pid, .uid = who.uid, .heard_usec = osd_monotonic_usec()};
	snprintf(peer->who, sizeof(peer->who), "process %d", (int)who.pid);
	return true;
}

/* NULL: all places are taken. */
static struct osd_control_peer *free_place(struct osd_control *control)
{
	for (unsigned i = 0; i < OSD_CONTROL_PEERS; i++)
		if (control->peers[i].fd < 0)
			return &control->peers[i];
	return NULL;
}

static void let_in(struct osd_control *control, int fd)
{
	struct osd_control_peer *place = free_place(control), peer;
	struct epoll_event event = {.events = EPOLLIN};

	if (!may_come_in(control, fd, &peer)) {
		close(fd);
		return;
	}
	if (!place) {
		osd_warning("control: %s is not let in: %u are connected", peer.who,
			    OSD_CONTROL_PEERS);
		osd_control_error(control, &peer, 0, "failed", "too many are connected");
		osd_closep(&peer.fd);
		return;
	}
	*place = peer;
	event.data.u32 = (uint32_t)(place - control->peers);
	if (epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		osd_control_drop(control, place, strerror(errno));
}

void osd_control_accept(struct osd_control *control)
{
	int fd;

	if (control->deaf_until_usec)
		listen_again(control, true);
	fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		let_in(control, fd);
	} else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		osd_error("control: cannot take a connection: %s", strerror(errno));
		listen_again(control, false);
	}
}

void osd_control_count_watchers(struct osd_control *control)
{
	bool watched = false;

	for (unsigned i = 0; i < OSD_CONTROL_PEERS; i++)
		watched = watched || (control->peers[i].fd >= 0 && control->peers[i].interval_usec);
	atomic_store(&control->watched, watched);
}

void osd_control_drop(struct osd_control *control, struct osd_control_peer *peer, const char *why)
{
	if (why)
		osd_warning("control: the connection of %s is closed: it %s", peer->who, why);
	control->peer_left(control, peer);
	osd_closep(&peer->fd);
	*peer = (struct osd_control_peer){.fd = -1};
	osd_control_count_watchers(control);
}

/* ---- packets --------------------------------------------------------------------------------- */

bool osd_control_unread(const struct osd_control_peer *peer)
{
	int bytes = 0;

	return ioctl(peer->fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

struct osd_json osd_control_begin(struct osd_control *control)
{
	struct osd_json json = osd_json_init(control->text, sizeof(control->text));

	osd_json_open(&json, NULL, '{');
	osd_json_text(&json, "schema", "iosd.control/1");
	return json;
}

bool osd_control_send(struct osd_control *control, struct osd_control_peer *peer,
		      enum osd_control_type type, uint32_t serial, struct osd_json *json)
{
	struct osd_control_frame frame = {.type = (uint16_t)type, .serial = serial};
	size_t length = 0;

	osd_json_close(json, '}');
	frame.payload = control->text;
	frame.payload_bytes = (uint32_t)osd_wr_used(&json->w);
	if (!json->w.bad)
		length = osd_control_encode(&frame, control->answer, sizeof(control->answer));
	if (!length) { /* far more pools than are ever configured */
		osd_error("control: an answer of type %d is too long for a frame", (int)type);
		osd_control_error(control, peer, serial, "failed", "the answer is too long");
		return peer->fd >= 0;
	}
	if (send(peer->fd, control->answer, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	osd_control_drop(control, peer, errno == EAGAIN ? "does not read its answers" : NULL);
	return false;
}

void osd_control_error(struct osd_control *control, struct osd_control_peer *peer, uint32_t serial,
		       const char *code, const char *message)
{
	struct osd_json json = osd_control_begin(control);

	osd_json_text(&json, "code", code);
	osd_json_text(&json, "message", message);
	osd_control_send(control, peer, OSD_CONTROL_ERROR, serial, &json);
}

/* False: there was none, or the connection is over. */
static bool hear_one(struct osd_control *control, struct osd_control_peer *peer)
{
	ssize_t length =
		recv(peer->fd, control->packet, sizeof(control->packet), MSG_DONTWAIT | MSG_TRUNC);
	struct osd_control_frame frame = {0};

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (length <= 0) {
		osd_control_drop(control, peer, NULL);
		return false;
	}
	peer->heard_usec = osd_monotonic_usec();
	switch ((size_t)length > sizeof(control->packet)
			? OSD_CONTROL_NO_FRAME
			: osd_control_decode(control->packet, (size_t)length, &frame)) {
	case OSD_CONTROL_FINE:
		control->answer_to(control, peer, &frame);
		return peer->fd >= 0;
	case OSD_CONTROL_OTHER_VERSION:
		osd_control_error(control, peer, frame.serial, "version",
				  "this target speaks version 1");
		break;
	case OSD_CONTROL_NO_FRAME:
		osd_control_error(control, peer, 0, "frame", "this is no frame");
		break;
	}
	if (peer->fd >= 0)
		osd_control_drop(control, peer, "sent what is no frame of this version");
	return false;
}

void osd_control_hear(struct osd_control *control, struct osd_control_peer *peer)
{
	for (unsigned i = 0; i < FRAMES_AT_ONCE && hear_one(control, peer); i++)
		;
}
