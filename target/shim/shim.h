/* SPDX-License-Identifier: GPL-2.0-or-later */
/* shim.h -- what the three files of the tgt module share.
 * Threads: everything here runs on tgtd's main thread, but shim_done(), which workers call. */
#ifndef OSD_SHIM_SHIM_H
#define OSD_SHIM_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "command/request.h"
#include "unit/unit.h"
#include "shim/tgt_abi.h"

#define SHIM_NAME_SIZE	  256 /* of an iSCSI name */
#define SHIM_ADDRESS_SIZE 64
#define SHIM_CDB_MAX	  260 /* the longest CDB tgtd passes on */

/* One logical unit of ours.  Found by tgtd's lu pointer: nothing of ours lives in tgtd's memory. */
struct shim_lu {
	struct shim_lu *next;
	struct tgt_lu *lu;
	char *options; /* owned; as given at bs_init */
	struct osd_unit *unit; /* NULL until bs_open */
	struct osd_inline_window window; /* of tgtd's one thread */
	struct shim_completions *completions; /* NULL until bs_open */
	struct shim_command *free_commands;
	unsigned free_count;
	int target; /* tgtd's number of its target, once it was needed; else 0 */
};

/* One command between bs_cmd_submit and target_cmd_io_done. */
struct shim_command {
	struct osd_request request;
	struct shim_lu *lu;
	struct tgt_cmd *cmd;
	struct shim_command *next; /* in the done list, or among free ones */
	bool done; /* by the thread that submitted it */
	struct shim_command *watch_next, **watch_at; /* among those the unit has, or NULL */
	struct osd_identity *identity; /* owned; only with PERFORM SCSI COMMAND */
	uint8_t cdb[SHIM_CDB_MAX];
	char initiator_name[SHIM_NAME_SIZE];
	char chap_user[SHIM_NAME_SIZE];
	char address[SHIM_ADDRESS_SIZE];
};

/* The other end of a session; "": not known. */
struct shim_peer {
	char name[SHIM_NAME_SIZE]; /* the initiator's, as it says */
	char chap_user[SHIM_NAME_SIZE]; /* proven by CHAP in this session; a stock tgtd does not report it */
	char address[SHIM_ADDRESS_SIZE];
};

/* tgt_peer.c: the peer of a session, at most a second old.  `whole`: with user and address, which
 * take longer with a stock tgtd; otherwise only the name is valid.  Main thread only; valid until
 * the next call. */
const struct shim_peer *shim_peer(struct shim_lu *lu, uint64_t session, bool whole);

/* tgt_cmd.c */
/* Does the work of backingstore_template.bs_cmd_submit: a SAM status when the command is finished,
 * else 0 with async set.  lu NULL: the unit is not one of ours. */
int shim_cmd_submit(struct shim_lu *lu, struct tgt_cmd *cmd);
/* Hands the answer to tgtd and frees the command. */
void shim_cmd_finish(struct shim_command *command);
void shim_commands_free(struct shim_lu *lu);

/* tgt_complete.c: from workers back to tgtd's loop. */
struct shim_completions;
/* finish is called in that loop for each finished command. */
struct shim_completions *shim_completions_create(struct osd_unit **unit,
						 void (*finish)(struct shim_command *));
void shim_completions_free(struct shim_completions *completions);
/* osd_request.done; any thread. */
void shim_done(struct osd_request *request);
/* Called before a command is submitted, and after that.  True: this thread has run it to its end, which no event
 * reports. */
void shim_expect(struct shim_command *command);
bool shim_is_done(const struct shim_command *command);
/* Checks every 20 ms whether a task management request covers the command. */
void shim_watch(struct shim_completions *completions, struct shim_command *command);
void shim_unwatch(struct shim_command *command);

#endif
