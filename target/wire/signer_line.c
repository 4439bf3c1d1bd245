/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signer_line.c -- see signer_line.h. */
#include "wire/signer_line.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/util.h"
#include "wire/base64.h"
#include "wire/text.h"

/* The rest of a line. */
struct rest {
	const char *at, *end;
	char *message; /* of 128 bytes */
};

static bool fail(const struct rest *rest, const char *message)
{
	snprintf(rest->message, 128, "%s", message);
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static void skip_space(struct rest *rest)
{
	while (rest->at < rest->end && is_space(*rest->at))
		rest->at++;
}

/* The next word; quoted text may have spaces. */
static struct osd_span take_word(struct rest *rest)
{
	const char *start;
	bool quoted = false;

	skip_space(rest);
	start = rest->at;
	for (; rest->at < rest->end && (quoted || !is_space(*rest->at)); rest->at++)
		quoted ^= *rest->at == '"';
	return (struct osd_span){(const uint8_t *)start, (size_t)(rest->at - start)};
}

static bool is_word(struct osd_span word, const char *text)
{
	return word.length == strlen(text) &&
	       strncasecmp((const char *)word.bytes, text, word.length) == 0;
}

/* ---- options --------------------------------------------------------------------------------------- */

static int digits(const char *text, size_t count)
{
	int value = 0;

	for (size_t i = 0; i < count; i++)
		value = 10 * value + (text[i] - '0');
	return value;
}

/* YYYYMMDD[HHMM[SS]][Z]; without Z in the time zone of the target's host, as ssh-keygen has it. */
static bool parse_time(const char *text, uint64_t *ret_msec)
{
	static const int last[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	size_t length = strlen(text), count = strspn(text, "0123456789");
	bool universal = length == count + 1 && text[count] == 'Z';
	struct tm parts = {.tm_isdst = -1};
	time_t seconds;

	if ((count != 8 && count != 12 && count != 14) || (length != count && !universal))
		return false;
	parts.tm_year = digits(text, 4) - 1900;
	parts.tm_mon = digits(text + 4, 2) - 1;
	parts.tm_mday = digits(text + 6, 2);
	parts.tm_hour = count > 8 ? digits(text + 8, 2) : 0;
	parts.tm_min = count > 8 ? digits(text + 10, 2) : 0;
	parts.tm_sec = count > 12 ? digits(text + 12, 2) : 0;
	if (parts.tm_year < 70 || parts.tm_mon < 0 || parts.tm_mon > 11 || parts.tm_mday < 1 ||
	    parts.tm_mday > last[parts.tm_mon] || parts.tm_hour > 23 || parts.tm_min > 59 ||
	    parts.tm_sec > 60)
		return false;
	seconds = universal ? timegm(&parts) : mktime(&parts);
	if (seconds <= 0)
		return false;
	*ret_msec = (uint64_t)seconds * 1000;
	return true;
}

/* Copies what is between quotes. */
static bool unquote(struct osd_span quoted, char *text, size_t capacity)
{
	if (quoted.length < 3 || quoted.bytes[0] != '"' || quoted.bytes[quoted.length - 1] != '"' ||
	    quoted.length - 2 >= capacity)
		return false;
	memcpy(text, quoted.bytes + 1, quoted.length - 2);
	text[quoted.length - 2] = '\0';
	return !strpbrk(text, "\"\\[");
}

static bool set_time(const struct rest *rest, struct osd_span value, uint64_t *at)
{
	char text[OSD_SIGNER_SPACES_MAX + 1];

	if (*at || !unquote(value, text, sizeof(text)) || !parse_time(text, at))
		return fail(rest, "valid-after and valid-before must be \"YYYYMMDD[HHMM[SS]][Z]\", once");
	return true;
}

/* ---- caps ------------------------------------------------------------------------------------------ */

#define CAP "iosd-"

struct unit {
	const char *name;
	uint64_t factor;
};

/* A number above 0 and one of the units; the last unit has no name. */
static bool parse_amount(const char *text, const struct unit *units, uint64_t *ret_amount)
{
	uint64_t number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno)
		return false;
	for (; units->name; units++)
		if (strcmp(end, units->name) == 0)
			return number && osd_mul_u64(number, units->factor, ret_amount);
	return false;
}

static bool parse_duration(const char *text, uint64_t *ret_usec)
{
	static const struct unit units[] = {{"us", 1},	      {"ms", 1000},
					    {"s", 1000000},   {"m", 60000000},
					    {"h", 3600000000}, {NULL, 0}};

	return parse_amount(text, units, ret_usec);
}

static bool parse_size(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = {{"", 1},
					    {"KiB", UINT64_C(1) << 10},
					    {"MiB", UINT64_C(1) << 20},
					    {"GiB", UINT64_C(1) << 30},
					    {NULL, 0}};

	return parse_amount(text, units, ret_bytes);
}

static bool parse_access(const char *text, uint8_t *ret_access)
{
	static const char *const words[] = {"", "none", "read", "write"};

	return *text && osd_find_word(words, OSD_ARRAY_SIZE(words), text, ret_access);
}

/* Ids of partitions, decimal or with 0x. */
static bool parse_zones(char *text, struct osd_signer_caps *caps)
{
	char *rest = NULL, *end;

	for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (caps->zone_count == OSD_SIGNER_ZONES_MAX || *word < '0' || *word > '9')
			return false;
		errno = 0;
		caps->zones[caps->zone_count] = strtoull(word, &end, 0);
		if (errno || *end || caps->zones[caps->zone_count] == 0)
			return false;
		caps->zone_count++;
	}
	return caps->zone_count > 0;
}

static bool set_cap(const struct rest *rest, struct osd_span name, struct osd_span value,
		    struct osd_signer_caps *caps)
{
	char text[OSD_SIGNER_SPACES_MAX + 1];
	bool good = unquote(value, text, sizeof(text));

	if (is_word(name, CAP "engines"))
		good = good && !caps->engines[0] && strlen(text) < sizeof(caps->engines) &&
		       memcpy(caps->engines, text, strlen(text) + 1);
	else if (is_word(name, CAP "access"))
		good = good && !caps->access && parse_access(text, &caps->access);
	else if (is_word(name, CAP "wall"))
		good = good && !caps->wall_usec && parse_duration(text, &caps->wall_usec);
	else if (is_word(name, CAP "cpu"))
		good = good && !caps->cpu_usec && parse_duration(text, &caps->cpu_usec);
	else if (is_word(name, CAP "memory"))
		good = good && !caps->memory_bytes && parse_size(text, &caps->memory_bytes);
	else if (is_word(name, CAP "zones"))
		good = good && !caps->zone_count && parse_zones(text, caps);
	else
		good = false;
	return good || fail(rest, "the caps are iosd-engines, -access, -wall, -cpu, -memory and -zones, "
				  "each once, with \"VALUE\" (docs/functions.md)");
}

static bool set_option(const struct rest *rest, struct osd_span option,
		       struct osd_signer_line *line)
{
	const uint8_t *equals = memchr(option.bytes, '=', option.length);
	struct osd_span name = {option.bytes,
				equals ? (size_t)(equals - option.bytes) : option.length};
	struct osd_span value = {equals ? equals + 1 : NULL,
				 equals ? option.length - name.length - 1 : 0};

	if (is_word(name, "cert-authority"))
		return fail(rest, "cert-authority is not supported: list the key that signs");
	if (is_word(name, "valid-after"))
		return set_time(rest, value, &line->after_msec);
	if (is_word(name, "valid-before"))
		return set_time(rest, value, &line->before_msec);
	if (name.length > strlen(CAP) && strncasecmp((const char *)name.bytes, CAP, strlen(CAP)) == 0)
		return set_cap(rest, name, value, &line->caps);
	if (!is_word(name, "namespaces"))
		return fail(rest, "the options are namespaces, valid-after, valid-before, iosd-*; the key "
				  "types ssh-ed25519, ecdsa-sha2-nistp256/384, ssh-rsa");
	if (line->spaces[0] || !unquote(value, line->spaces, sizeof(line->spaces)))
		return fail(rest, "namespaces must be a quoted list with commas, once");
	return true;
}

/* Options are separated by commas outside of quotes. */
static bool set_options(const struct rest *rest, struct osd_span word, struct osd_signer_line *line)
{
	size_t start = 0;
	bool quoted = false;

	for (size_t i = 0; i <= word.length; i++) {
		if (i < word.length && (quoted || word.bytes[i] != ',')) {
			quoted ^= word.bytes[i] == '"';
			continue;
		}
		if (!set_option(rest, (struct osd_span){word.bytes + start, i - start}, line))
			return false;
		start = i + 1;
	}
	return true;
}

/* ---- the line -------------------------------------------------------------------------------------- */

static bool is_type(struct osd_span word)
{
	for (unsigned type = 0; type < OSD_SSH_TYPES; type++)
		if (is_word(word, osd_ssh_type_name((enum osd_ssh_type)type)))
			return true;
	return false;
}

static bool set_name(const struct rest *rest, struct osd_span word, struct osd_signer_line *line)
{
	if (word.length > OSD_SIGNER_NAME_MAX)
		return fail(rest, "the principals must be at most 128 bytes");
	memcpy(line->name, word.bytes, word.length);
	if (strpbrk(line->name, "*?!\"") || !osd_text_is_clean(word.bytes, word.length))
		return fail(rest, "a principal must be a name, not a pattern or quoted text");
	return true;
}

static bool set_key(const struct rest *rest, struct osd_span type, struct osd_span text,
		    struct osd_signer_line *line)
{
	struct osd_ssh_key key;

	if (!osd_base64_decode(text.bytes, text.length, line->key, sizeof(line->key),
			       &line->key_length) ||
	    !osd_ssh_key_parse((struct osd_span){line->key, line->key_length}, &key) ||
	    !is_word(type, osd_ssh_type_name(key.type)))
		return fail(rest, "the key is damaged, is of another type, or is an RSA key of "
				  "less than 2048 or more than 8192 bits");
	return true;
}

bool osd_signer_line_parse(const char *text, size_t length, struct osd_signer_line *ret_line,
			   bool *ret_blank, char message[128])
{
	struct rest rest = {text, text + length, message};
	struct osd_signer_line line = {0};
	struct osd_span name, type;

	while (rest.end > rest.at && (is_space(rest.end[-1]) || rest.end[-1] == '\r'))
		rest.end--;
	skip_space(&rest);
	*ret_blank = rest.at == rest.end || *rest.at == '#';
	if (*ret_blank)
		return true;
	for (const char *at = rest.at; at < rest.end; at++)
		if (!is_space(*at) && !osd_text_is_clean((const uint8_t *)at, 1) &&
		    !((uint8_t)*at & 0x80))
			return fail(&rest, "the line has a control character");
	name = take_word(&rest);
	if (!set_name(&rest, name, &line))
		return false;
	type = take_word(&rest);
	if (!is_type(type)) {
		if (!set_options(&rest, type, &line))
			return false;
		type = take_word(&rest);
	}
	if (!is_type(type))
		return fail(&rest, "the key type must be ssh-ed25519, ecdsa-sha2-nistp256, "
				   "ecdsa-sha2-nistp384 or ssh-rsa");
	if (!set_key(&rest, type, take_word(&rest), &line))
		return false;
	*ret_line = line;
	return true;
}

/* As match_pattern_list of OpenSSH: a pattern after '!' that matches decides against it. */
bool osd_signer_line_has_space(const struct osd_signer_line *line, const char *name_space,
			       bool exact)
{
	bool found = !line->spaces[0] && !exact;

	for (const char *at = line->spaces; *at;) {
		char pattern[OSD_SIGNER_SPACES_MAX + 1];
		size_t length = strcspn(at, ",");
		const char *plain = pattern + (*at == '!');

		memcpy(pattern, at, length);
		pattern[length] = '\0';
		if (fnmatch(plain, name_space, FNM_NOESCAPE) == 0) {
			if (*at == '!')
				return false;
			found = found || !exact || strcmp(plain, name_space) == 0;
		}
		at += length + (at[length] == ',');
	}
	return found;
}
