/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tgt_peer.c -- where a session comes from.  No structure of tgt that we pin holds it, but tgtd says it to
 * `tgtadm --op show --mode conn`, by a function that it exports:
 *
 *   Session: 2
 *       Connection: 0
 *           Initiator: NAME
 *           IP Address: 127.0.0.1 */
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

static struct {
	uint64_t session, asked_usec; /* asked_usec 0: none */
	char address[SHIM_ADDRESS_SIZE];
} kept[KEPT];

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
	uint64_t now = osd_monotonic_usec();

	if (!kept[at].asked_usec || kept[at].session != session ||
	    now >= kept[at].asked_usec + KEPT_USEC) {
		kept[at].session = session;
		kept[at].asked_usec = now;
		look_up(lu, session, kept[at].address);
	}
	memcpy(address, kept[at].address, SHIM_ADDRESS_SIZE);
}
