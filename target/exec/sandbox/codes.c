/* SPDX-License-Identifier: GPL-2.0-or-later */
/* codes.c -- which codes of functions a sandbox keeps (sandbox.h). */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "exec/sandbox/sandbox.h"

#define SHORT_CPU_USEC 150
#define MISSED_MOST    6

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
	code->prove = 1;
	code->missed = 0;
	memcpy(code->sha256, sha256, sizeof(code->sha256));
	snprintf(code->name, sizeof(code->name), "%s", name);
	return slot;
}

void osd_kept_codes_note(struct osd_kept_codes *codes, uint8_t slot, uint64_t cpu_usec)
{
	struct osd_kept_code *code = &codes->slots[slot - 1];

	code->kept = true;
	if (cpu_usec > SHORT_CPU_USEC)
		code->prove = OSD_MAX(code->prove, 1);
	else if (code->prove)
		code->prove--;
}

bool osd_kept_codes_are_short(const struct osd_kept_codes *codes, uint8_t slot)
{
	return codes->slots[slot - 1].kept && !codes->slots[slot - 1].prove;
}

/* Its processor is needed elsewhere, or it calls: each time that is found out costs the submitter its wait. */
void osd_kept_codes_waited(struct osd_kept_codes *codes, uint8_t slot, bool in_vain)
{
	struct osd_kept_code *code = &codes->slots[slot - 1];

	code->missed = in_vain ? OSD_MIN(code->missed + 1, MISSED_MOST) : 0;
	code->prove = in_vain ? (uint8_t)(1u << code->missed) : 0;
}
