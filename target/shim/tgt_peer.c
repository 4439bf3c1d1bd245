/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tgt_peer.c -- who a session is of, and where it comes from.  Neither is in a structure of tgt's that we pin.
 *
 * The hardened tgtd has a function that fills in a structure: iscsi_nexus_peer() (patch 23).
 *
 * A stock one exports two others.  iscsi_transportid() gives the initiator's name, which may hold any bytes
 * but NUL.  The address is in the text that `tgtadm --op show --mode conn` prints, one such block for each
 * connection of a target:
 *
 *   Session: 2
 *       Connection: 0
 *           Initiator: NAME
 *           IP Address: 127.0.0.1
 *
 * A NAME with line feeds can look like further lines and blocks.  So the text is read from its beginning, block by
 * block, and each NAME is skipped by comparing it with what iscsi_transportid() gives for that session: all the
 * rest of the text is tgtd's own.  If anything differs, no address is believed.  A stock tgtd does not
 * report which CHAP user has logged in.
 *
 * Answers are kept for a second: tgtd searches its sessions for each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shim/shim.h"

#define TARGETS_MOST 256
#define KEPT	     64
#define KEPT_USEC    1000000 /* a session's number does not come back as soon as that */

#define TRANSPORT_ID_NAME 4 /* where the name begins in an iSCSI TransportID */
#define TRANSPORT_ID_MAX  16384 /* a login's text has at most 8 KiB */
#define NAME_MAX_BYTES	  223 /* RFC 7143, 4.2.7.1 */

static struct kept {
	uint64_t session, asked_usec; /* asked_usec 0: nothing is kept here */
	bool whole;
	struct shim_peer peer;
} kept[KEPT];

/* ---- a stock tgtd ---------------------------------------------------------------------------- */

/* The name as the initiator has sent it; NULL: the session has ended, or the name is too long.  Valid
 * until the next call. */
static const char *raw_name(uint64_t session)
{
	static char id[TRANSPORT_ID_MAX];
	int length = iscsi_transportid(0, session, id, sizeof(id) - 1);

	if (length <= TRANSPORT_ID_NAME || length >= (int)sizeof(id))
		return NULL;
	id[length] = '\0';
	return id + TRANSPORT_ID_NAME;
}

/* A name that has other bytes in it than names have is none. */
static void ask_name(uint64_t session, char name[SHIM_NAME_SIZE])
{
	const char *raw = raw_name(session);

	name[0] = '\0';
	if (!raw || strlen(raw) > NAME_MAX_BYTES)
		return;
	for (const char *c = raw; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return;
	memcpy(name, raw, strlen(raw) + 1);
}

static bool take(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

static bool take_number(const char **at, uint64_t *ret_number)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*ret_number = strtoull(*at, &end, 10);
	*at = end;
	return true;
}

static bool take_indent(const char **at)
{
	if (!take(at, "\n "))
		return false;
	*at += strspn(*at, " ");
	return true;
}

/* One block; the line with the address is from *ret_line to *at. */
static bool take_block(const char **at, uint64_t *ret_session, const char **ret_line)
{
	uint64_t connection;
	const char *name;

	if (!take(at, "Session: ") || !take_number(at, ret_session) || !take_indent(at) ||
	    !take(at, "Connection: ") || !take_number(at, &connection) || !take_indent(at) ||
	    !take(at, "Initiator: "))
		return false;
	name = raw_name(*ret_session);
	if (!name || !take(at, name) || !take_indent(at))
		return false;
	*ret_line = *at;
	*at += strcspn(*at, "\n");
	return **at == '\n';
}

/* False: differs from the one before, or is none. */
static bool note_address(const char *line, const char *end, char address[SHIM_ADDRESS_SIZE])
{
	size_t length;

	if (!take(&line, "IP Address: "))
		return false;
	length = (size_t)(end - line);
	if (length == 0 || length >= SHIM_ADDRESS_SIZE)
		return false;
	if (address[0] && (strlen(address) != length || memcmp(address, line, length) != 0))
		return false;
	memcpy(address, line, length);
	address[length] = '\0';
	return true;
}

/* False: the session is not there.  A session with connections from two addresses has none, as has one in a
 * text that is not as described above. */
static bool find(const char *text, uint64_t session, char address[SHIM_ADDRESS_SIZE])
{
	bool found = false, believed = true;

	address[0] = '\0';
	for (const char *at = text, *line; *at; at++) { /* at++: the end of the block's last line */
		uint64_t number;

		if (!take_block(&at, &number, &line)) {
			address[0] = '\0';
			return true;
		}
		if (number != session)
			continue;
		found = true;
		believed = believed && note_address(line, at, address);
	}
	if (!believed)
		address[0] = '\0';
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

/* Targets are numbered by the administrator, mostly from 1 on. */
static void ask_address(struct shim_lu *lu, uint64_t session, char address[SHIM_ADDRESS_SIZE])
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

/* ---- either ---------------------------------------------------------------------------------- */

static void ask_hardened(uint64_t session, struct shim_peer *peer)
{
	struct tgt_peer found;

	if (iscsi_nexus_peer(session, &found, sizeof(found)) != 0)
		return;
	snprintf(peer->name, sizeof(peer->name), "%s", found.initiator);
	snprintf(peer->chap_user, sizeof(peer->chap_user), "%s", found.chap_user);
	snprintf(peer->address, sizeof(peer->address), "%s", found.address);
}

static void ask_stock(struct shim_lu *lu, uint64_t session, bool whole, struct shim_peer *peer)
{
	ask_name(session, peer->name);
	if (whole)
		ask_address(lu, session, peer->address);
}

static bool is_fresh(const struct kept *answer, uint64_t session, bool whole)
{
	return answer->asked_usec && answer->session == session && (answer->whole || !whole) &&
	       osd_monotonic_usec() < answer->asked_usec + KEPT_USEC;
}

const struct shim_peer *shim_peer(struct shim_lu *lu, uint64_t session, bool whole)
{
	struct kept *answer = &kept[session % KEPT];

	if (is_fresh(answer, session, whole))
		return &answer->peer;
	answer->session = session;
	answer->asked_usec = osd_monotonic_usec();
	answer->whole = whole || iscsi_nexus_peer;
	answer->peer = (struct shim_peer){.name = ""};
	if (iscsi_nexus_peer)
		ask_hardened(session, &answer->peer);
	else
		ask_stock(lu, session, whole, &answer->peer);
	return &answer->peer;
}
