/* SPDX-License-Identifier: GPL-2.0-or-later */
/* codes.c -- which codes of functions a sandbox keeps (sandbox.h). */
#include <stdio.h>
#include <string.h>

#include "exec/sandbox/sandbox.h"

bool osd_kept_codes_holds(const struct osd_kept_codes *codes, uint8_t slot, const uint8_t sha256[32],
			  const char *name)
{
	const struct osd_kept_code *code = &codes->slots[slot - 1];

	return code->kept && memcmp(code->sha256, sha256, sizeof(code->sha256)) == 0 &&
	       strcmp(code->name, name) == 0;
}

uint8_t osd_kept_codes_place(struct osd_kept_codes *codes, const uint8_t sha256[32], const char *name,
			     bool *ret_kept)
{
	struct osd_kept_code *code = &codes->slots[codes->next];
	uint8_t slot = 1;

	while (slot <= OSD_CODE_SLOTS && !osd_kept_codes_holds(codes, slot, sha256, name))
		slot++;
	*ret_kept = slot <= OSD_CODE_SLOTS;
	if (*ret_kept)
		return slot;
	slot = (uint8_t)(codes->next + 1);
	codes->next = slot % OSD_CODE_SLOTS;
	code->kept = false;
	memcpy(code->sha256, sha256, sizeof(code->sha256));
	snprintf(code->name, sizeof(code->name), "%s", name);
	return slot;
}

void osd_kept_codes_note(struct osd_kept_codes *codes, uint8_t slot)
{
	codes->slots[slot - 1].kept = true;
}
