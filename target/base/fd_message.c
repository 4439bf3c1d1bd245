/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fd_message.c -- see fd_message.h. */
#include "base/fd_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(OSD_FD_MESSAGE_MAX * sizeof(int))];
};

void osd_fds_close(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		osd_closep(&fds[i]);
}

int osd_fd_send_parts(int socket, struct iovec *parts, size_t count, const int *fds,
		      size_t fd_count, int flags)
{
	union control control;
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t sent;

	if (fd_count > OSD_FD_MESSAGE_MAX)
		return -EINVAL;
	if (fd_count) {
		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
	}
	do {
		sent = sendmsg(socket, &message, flags | MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int osd_fd_send(int socket, const void *data, size_t length, const int *fds, size_t fd_count,
		int flags)
{
	struct iovec part = {(void *)data, length};

	return osd_fd_send_parts(socket, &part, 1, fds, fd_count, flags);
}

static size_t take_fds(struct msghdr *message, int *fds)
{
	size_t count = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
		size_t here;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		here = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds + count, CMSG_DATA(h), here * sizeof(int));
		count += here;
	}
	return count;
}

ssize_t osd_fd_receive(int socket, void *buffer, size_t capacity, int *fds, size_t fd_capacity,
		       size_t *ret_fd_count)
{
	union control control;
	int received[OSD_FD_MESSAGE_MAX];
	struct iovec part = {buffer, capacity};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control)};
	size_t count;
	ssize_t length;

	do {
		length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	} while (length < 0 && errno == EINTR);
	if (length < 0)
		return -errno;
	count = take_fds(&message, received);
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || count > fd_capacity) {
		osd_fds_close(received, count);
		return message.msg_flags & MSG_TRUNC || count > fd_capacity ? -EMSGSIZE : -EMFILE;
	}
	memcpy(fds, received, count * sizeof(int));
	*ret_fd_count = count;
	return length;
}
