/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_impl.h -- the state of the control socket, which its files share.  Only the thread uses it,
 * except for members that say otherwise.  From above, each file calls those below it:
 *
 *   control.c           the thread, and the readings that it pushes
 *   control_requests.c  a row for each request; roles and the lease
 *   control_changes.c, control_jobs.c, control_usage.c   requests that change or list something
 *   control_snapshot.c  the figures
 *   control_freeze.c    keeps the store's files as they are during a backup
 *   control_keys.c      the keys of a request
 *   control_socket.c    listening, connections, packets in and out */
#ifndef OSD_UNIT_CONTROL_IMPL_H
#define OSD_UNIT_CONTROL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "unit/control.h"
#include "wire/control_frame.h"
#include "wire/json.h"

#define OSD_CONTROL_PEERS      16
#define OSD_CONTROL_WHO_MAX    128
#define OSD_CONTROL_LEASE_USEC UINT64_C(3000000)

/* The subject of an epoll event: the number of a peer, or one of these. */
enum { OSD_CONTROL_LISTENER = OSD_CONTROL_PEERS, OSD_CONTROL_WAKE };

enum osd_control_role {
	OSD_CONTROL_STRANGER, /* has not sent HELLO */
	OSD_CONTROL_TOOL,
	OSD_CONTROL_MANAGER, /* has the lease */
	OSD_CONTROL_STANDBY  /* another peer had the lease, or its own has expired */
};

struct osd_control_peer {
	int fd; /* -1: free */
	pid_t pid;
	uid_t uid;
	enum osd_control_role role;
	char who[OSD_CONTROL_WHO_MAX + 1];
	uint64_t heard_usec;	/* its last frame; monotonic, as all of these */
	uint64_t interval_usec; /* of WATCH; 0: it does not watch */
	uint64_t pushed_usec;	/* when the last reading was sent, or not sent because one was unread */
	uint64_t deaf_usec;	/* when the reading was sent that it has not read; 0: it has read all */
	bool hurry;		/* send it the next reading soon */
};

struct osd_control {
	struct osd_control_targets targets;
	int epoll_fd, wake_fd;
	_Atomic bool stopping;
	_Atomic bool watched; /* a peer watches: wake the thread when jobs wait */
	_Atomic bool told;    /* the thread has been woken for this, and has not looked yet */
	pthread_t thread;
	bool started; /* constant from start to stop */

	int listen_fd;
	uint64_t
		deaf_until_usec; /* no descriptor is free: admit no peer until then; 0: admit now */
	char path[108];
	ino_t inode; /* of the socket we have made */

	char boot[33]; /* of this run of the target; hexadecimal */
	uint64_t started_usec;
	struct osd_control_peer peers[OSD_CONTROL_PEERS];
	struct osd_control_peer *manager; /* NULL: none */
	uint64_t manager_since_usec;
	bool shedding;
	struct osd_control_peer *freezer; /* has frozen the store; NULL: none */

	/* The functions that the connections need of the files above them; constant. */
	void (*answer_to)(struct osd_control *control, struct osd_control_peer *peer,
			  const struct osd_control_frame *frame);
	void (*peer_left)(struct osd_control *control, struct osd_control_peer *peer);

	uint8_t packet[OSD_CONTROL_MAX];		 /* in */
	char text[OSD_CONTROL_MAX - OSD_CONTROL_HEADER]; /* of an answer */
	uint8_t answer[OSD_CONTROL_MAX];		 /* out */
};

/* ---- control_socket.c ------------------------------------------------------------------------ */

enum osd_status osd_control_listen(struct osd_control *control, const char *path,
				   char message[256]);
/* Closes everything, and removes the socket if it is still ours. */
void osd_control_unlisten(struct osd_control *control);
void osd_control_accept(struct osd_control *control);
/* Closes a connection; why: for the log; NULL: not logged. */
void osd_control_drop(struct osd_control *control, struct osd_control_peer *peer, const char *why);
/* Reads and answers some of what a peer has sent. */
void osd_control_hear(struct osd_control *control, struct osd_control_peer *peer);
/* Begins the text of an answer; what follows are its fields. */
struct osd_json osd_control_begin(struct osd_control *control);
/* Ends and sends it.  False: the peer did not take it, and is dropped. */
bool osd_control_send(struct osd_control *control, struct osd_control_peer *peer,
		      enum osd_control_type type, uint32_t serial, struct osd_json *json);
void osd_control_error(struct osd_control *control, struct osd_control_peer *peer, uint32_t serial,
		       const char *code, const char *message);
/* Counts the watchers again: see watched. */
void osd_control_count_watchers(struct osd_control *control);
/* Whether an earlier message still waits to be read. */
bool osd_control_unread(const struct osd_control_peer *peer);

/* ---- control_requests.c ---------------------------------------------------------------------- */

/* Answers a frame; may drop the peer. */
void osd_control_answer(struct osd_control *control, struct osd_control_peer *peer,
			const struct osd_control_frame *frame);
/* Frees the lease, and logs why.  Does nothing if the peer does not hold it. */
void osd_control_release(struct osd_control *control, struct osd_control_peer *peer,
			 const char *why);

/* ---- control_freeze.c ------------------------------------------------------------------------ */

#define OSD_CONTROL_STORE_ID 41 /* hexadecimal, with its end */
/* The OSD system id of the store in text, which is returned. */
const char *osd_control_store_id(const struct osd_control *control,
				 char text[OSD_CONTROL_STORE_ID]);
/* The peer's connection ends: thaws what it has frozen. */
void osd_control_melt(struct osd_control *control, const struct osd_control_peer *peer);

/* ---- control_snapshot.c ---------------------------------------------------------------------- */

/* Sends the figures to the peer; serial: of its request, or 0. */
void osd_control_send_snapshot(struct osd_control *control, struct osd_control_peer *peer,
			       uint32_t serial);

#endif
