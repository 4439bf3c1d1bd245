/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fd_message.h -- one packet with descriptors over a Unix SEQPACKET socket.
 * Results: >= 0, or -errno. */
#ifndef OSD_BASE_FD_MESSAGE_H
#define OSD_BASE_FD_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#define OSD_FD_MESSAGE_MAX 12 /* descriptors in one packet */

/* Sends all of data and the descriptors (borrowed), or nothing.  flags as of sendmsg(2). */
int osd_fd_send(int socket, const void *data, size_t length, const int *fds, size_t fd_count,
		int flags);
/* The same of data in parts. */
int osd_fd_send_parts(int socket, struct iovec *parts, size_t count, const int *fds,
		      size_t fd_count, int flags);

/* Receives a packet.  Returns its length, or 0 at end of file. -EMSGSIZE: it did not fit, or had too
 * many descriptors. -EMFILE: it is whole, but there was no room for its descriptors, and none is kept.
 * The caller owns the received descriptors, which are close-on-exec. */
ssize_t osd_fd_receive(int socket, void *buffer, size_t capacity, int *fds, size_t fd_capacity,
		       size_t *ret_fd_count);

void osd_fds_close(int *fds, size_t count); /* they are -1 then */

#endif
