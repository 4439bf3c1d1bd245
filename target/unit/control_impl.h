/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_impl.h -- what the files of the control socket share: its state, all of it the thread's own
 * but for what says otherwise.
 *
 *   control.c           thread, lease, what is pushed
 *   control_socket.c    listening, connections, packets in and out
 *   control_requests.c  what each request does: a row each; what changes something: control_changes.c
 *   control_freeze.c    keeping the store's files still for a backup
 *   control_snapshot.c  the figures */
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
	OSD_CONTROL_STRANGER, /* has not said HELLO */
	OSD_CONTROL_TOOL,
	OSD_CONTROL_MANAGER, /* has the lease */
	OSD_CONTROL_STANDBY  /* another one had it, or its own has run out */
};

struct osd_control_peer {
	int fd; /* -1: free */
	pid_t pid;
	uid_t uid;
	enum osd_control_role role;
	char who[OSD_CONTROL_WHO_MAX + 1];
	uint64_t heard_usec;	/* its last frame; monotonic, as all of these */
	uint64_t interval_usec; /* WATCH; 0: it does not */
	uint64_t pushed_usec;	/* last time, or tried to */
	uint64_t deaf_usec;	/* since when it has not read what was pushed; 0: it has */
	bool hurry;		/* tell it soon */
};

struct osd_control {
	struct osd_control_targets targets;
	int epoll_fd, wake_fd;
	_Atomic bool stopping;
	_Atomic bool watched; /* somebody wants to be told of waiting jobs */
	_Atomic bool told;    /* that there are some, and the thread is on its way */
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

	uint8_t packet[OSD_CONTROL_MAX];		 /* in */
	char text[OSD_CONTROL_MAX - OSD_CONTROL_HEADER]; /* of an answer */
	uint8_t answer[OSD_CONTROL_MAX];		 /* out */
};

/* ---- control.c ------------------------------------------------------------------------------- */

void *osd_control_main(void *control);
/* Frees the lease, and logs why.  Does nothing if the peer does not hold it. */
void osd_control_release(struct osd_control *control, struct osd_control_peer *peer,
			 const char *why);
/* Counts the watchers again: see watched. */
void osd_control_count_watchers(struct osd_control *control);

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
/* Whether an earlier message still waits to be read. */
bool osd_control_unread(const struct osd_control_peer *peer);

/* ---- control_requests.c ---------------------------------------------------------------------- */

/* Answers a frame; may drop the peer. */
void osd_control_answer(struct osd_control *control, struct osd_control_peer *peer,
			const struct osd_control_frame *frame);
void osd_control_error(struct osd_control *control, struct osd_control_peer *peer, uint32_t serial,
		       const char *code, const char *message);

/* ---- control_freeze.c ------------------------------------------------------------------------ */

#define OSD_CONTROL_STORE_ID 41 /* hexadecimal, with its end */
/* The OSD system id of the store in text, which is returned. */
const char *osd_control_store_id(const struct osd_control *control,
				 char text[OSD_CONTROL_STORE_ID]);
/* The peer's connection ends: thaws what it has frozen. */
void osd_control_melt(struct osd_control *control, const struct osd_control_peer *peer);

/* ---- control_snapshot.c ---------------------------------------------------------------------- */

/* The fields of SNAPSHOT, for this peer. */
void osd_control_write_snapshot(struct osd_control *control, const struct osd_control_peer *peer,
				struct osd_json *json);

#endif
