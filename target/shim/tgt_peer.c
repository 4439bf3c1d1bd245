/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tgt_peer.c -- who a session is of, and where it comes from.  No structure of tgt that we pin holds it, but
 * functions that it exports tell: the initiator's name is in its TransportID, and the address in what
 * `tgtadm --op show --mode conn` shows:
 *
 *   Session: 2
 *       Connection: 0
 *           Initiator: NAME
 *           IP Address: 127.0.0.1
 *
 * Both are kept for a moment: tgtd looks through its sessions for either, and prints, which takes longer than
 * to answer a poll. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "shim/shim.h"

#define TARGETS_MOST 256
#define KEPT	     64
#define KEPT_USEC    1000000 /* a session's number does not come back as soon as that */

#define TRANSPORT_ID_NAME 4 /* where the name begins in an iSCSI TransportID */

struct answer {
	uint64_t session, asked_usec; /* asked_usec 0: none */
};

static struct {
	struct answer of;
	char name[SHIM_NAME_SIZE];
} names[KEPT];

static struct {
	struct answer of;
	char address[SHIM_ADDRESS_SIZE];
} addresses[KEPT];

/* Whether what is kept of the session still counts; else the caller asks now. */
static bool is_fresh(struct answer *answer, uint64_t session)
{
	uint64_t now = osd_monotonic_usec();

	if (answer->asked_usec && answer->session == session &&
	    now < answer->asked_usec + KEPT_USEC)
		return true;
	*answer = (struct answer){session, now};
	return false;
}

static bool starts(const char *line, const char *word, const char **ret_rest)
{
	size_t length = strlen(word);

	*ret_rest = line + length;
	return strncmp(line, word, length) == 0;
}

/* An initiator may have line ends in its name.  So what is said twice, and differently, is not believed;
 * then the session is one of those without address.  False: the session is not there. */
static bool find(const char *text, uint64_t session, char address[SHIM_ADDRESS_SIZE])
{
	bool here = false, found = false;

	address[0] = '\0';
	for (const char *line = text, *end, *rest; *line; line = end + (*end == '\n')) {
		size_t length;

		end = line + strcspn(line, "\n");
		line += strspn(line, " \t");
		if (starts(line, "Session: ", &rest))
			here = strtoull(rest, NULL, 10) == session;
		if (!here || !starts(line, "IP Address: ", &rest))
			continue;
		length = (size_t)(end - rest);
		if (length >= SHIM_ADDRESS_SIZE ||
		    (found && (strlen(address) != length || memcmp(address, rest, length) != 0))) {
			address[0] = '\0';
			return true;
		}
		memcpy(address, rest, length);
		address[length] = '\0';
		found = true;
	}
	return found;
}

static bool ask(int target, uint64_t session, char address[SHIM_ADDRESS_SIZE])
{
	struct tgt_text text = {.stream = NULL};
	bool found = false;

	concat_buf_init(&text);
	if (iscsi_target_show(TGT_SHOW_CONNECTIONS, target, 0, 0, 0, &text) == TGTADM_SUCCESS &&
	    concat_buf_finish(&text) == 0 && text.text)
		found = find(text.text, session, address);
	concat_buf_release(&text);
	return found;
}

/* Targets are numbered by who makes them, mostly from 1 on. */
static void look_up(struct shim_lu *lu, uint64_t session, char address[SHIM_ADDRESS_SIZE])
{
	if (ask(lu->target, session, address))
		return;
	for (int target = 1; target < TARGETS_MOST; target++) {
		if (target != lu->target && ask(target, session, address)) {
			lu->target = target;
			return;
		}
	}
}

void shim_peer_address(struct shim_lu *lu, uint64_t session, char address[SHIM_ADDRESS_SIZE])
{
	size_t at = session % KEPT;

	if (!is_fresh(&addresses[at].of, session))
		look_up(lu, session, addresses[at].address);
	memcpy(address, addresses[at].address, SHIM_ADDRESS_SIZE);
}

static void ask_name(uint64_t session, char name[SHIM_NAME_SIZE])
{
	char id[TRANSPORT_ID_NAME + SHIM_NAME_SIZE + 16];
	int length = iscsi_transportid(0, session, id, sizeof(id));

	name[0] = '\0';
	if (length > TRANSPORT_ID_NAME && length <= (int)sizeof(id))
		snprintf(name, SHIM_NAME_SIZE, "%.*s", length - TRANSPORT_ID_NAME,
			 id + TRANSPORT_ID_NAME);
}

void shim_peer_name(uint64_t session, char name[SHIM_NAME_SIZE])
{
	size_t at = session % KEPT;

	if (!is_fresh(&names[at].of, session))
		ask_name(session, names[at].name);
	memcpy(name, names[at].name, strlen(names[at].name) + 1);
}
