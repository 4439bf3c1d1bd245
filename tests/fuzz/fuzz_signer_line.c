/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_signer_line.c -- invariant: a line of a list of signers is refused with a message, is blank, or has a name and
 * a key that opens. */
#include "fuzz.h"
#include "wire/signer_line.h"
#include "wire/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct osd_signer_line line;
	struct osd_ssh_key key;
	char message[128] = "";
	bool blank;

	if (memchr(data, '\n', size))
		return 0;
	if (!osd_signer_line_parse((const char *)data, size, &line, &blank, message)) {
		HOLDS(message[0] && memchr(message, '\0', sizeof(message)));
		return 0;
	}
	if (blank)
		return 0;
	HOLDS(line.name[0] && strlen(line.name) <= OSD_SIGNER_NAME_MAX);
	HOLDS(osd_text_is_clean((const uint8_t *)line.name, strlen(line.name)));
	HOLDS(osd_ssh_key_parse((struct osd_span){line.key, line.key_length}, &key));
	if (osd_signer_line_has_space(&line, "iosd-function", true))
		HOLDS(line.spaces[0]);
	return 0;
}
