/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_text.c -- the reason of a failure or a refusal as a line of text (hook_call.h). */
#include <string.h>

#include "command/hook_call.h"
#include "wire/text.h"

static unsigned digit_of(uint8_t c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* One character of a JSON string, as UTF-8.  Characters outside the basic plane are two escapes, which become question
 * marks.  Returns the bytes read. */
static size_t unescape(const uint8_t *at, size_t left, uint8_t out[3], size_t *ret_count)
{
	unsigned code = 0;

	*ret_count = 1;
	if (at[0] != '\\' || left < 2) {
		out[0] = at[0];
		return 1;
	}
	if (at[1] != 'u' || left < 6) {
		out[0] = at[1] == 'n' || at[1] == 't' || at[1] == 'r' ? ' ' : at[1];
		return 2;
	}
	for (size_t i = 2; i < 6; i++)
		code = code << 4 | (digit_of(at[i]) & 15);
	if (code < 0x80 || (code >= 0xd800 && code < 0xe000)) {
		out[0] = code < 0x80 ? (uint8_t)code : '?';
	} else if (code < 0x800) {
		out[0] = (uint8_t)(0xc0 | code >> 6);
		out[1] = (uint8_t)(0x80 | (code & 0x3f));
		*ret_count = 2;
	} else {
		out[0] = (uint8_t)(0xe0 | code >> 12);
		out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (code & 0x3f));
		*ret_count = 3;
	}
	return 6;
}

/* As much as fits, in whole characters. */
static size_t from_json(const uint8_t *bytes, size_t length, char text[OSD_HOOK_TEXT_MAX + 1])
{
	size_t used = 0, count;

	for (size_t at = 0; at < length;) {
		uint8_t out[3];

		at += unescape(bytes + at, length - at, out, &count);
		if (used + count > OSD_HOOK_TEXT_MAX)
			break;
		memcpy(text + used, out, count);
		used += count;
	}
	return used;
}

/* Without the part of a character at the end. */
static size_t cut_at_character(const uint8_t *bytes, size_t length)
{
	if (length <= OSD_HOOK_TEXT_MAX)
		return length;
	for (length = OSD_HOOK_TEXT_MAX; length && (bytes[length] & 0xc0) == 0x80;)
		length--;
	return length;
}

const uint8_t *osd_last_line(const uint8_t *text, size_t *length)
{
	size_t end = *length, from;

	while (end && (text[end - 1] == '\n' || text[end - 1] == '\r'))
		end--;
	for (from = end; from && text[from - 1] != '\n';)
		from--;
	*length = end - from;
	return text + from;
}

static size_t from_bytes(const uint8_t *bytes, size_t length, char text[OSD_HOOK_TEXT_MAX + 1])
{
	const uint8_t *line = osd_last_line(bytes, &length);

	length = cut_at_character(line, length);
	memcpy(text, line, length);
	return length;
}

size_t osd_hook_text(const struct osd_exec_outcome *outcome, char text[OSD_HOOK_TEXT_MAX + 1])
{
	const uint8_t *bytes = outcome->result;
	size_t length = outcome->result ? outcome->result_length : 0, used = 0;

	if (outcome->status == OSD_OK && outcome->form == OSD_RESULT_JSON && length >= 2 &&
	    bytes[0] == '"')
		used = from_json(bytes + 1, length - 2, text);
	else if (length)
		used = from_bytes(bytes, length, text);
	for (size_t i = 0; i < used; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
	if (!osd_text_is_clean((const uint8_t *)text, used))
		for (size_t i = 0; i < used; i++)
			if ((uint8_t)text[i] >= 0x80)
				text[i] = '?';
	text[used] = '\0';
	return used;
}
