/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signers.c -- see signers.h. */
#include "function/signers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

#define POLICY	  "policy"
#define NATIVE	  2		   /* of engines */
#define MOST	  1024		   /* signers */
#define FILE_MAX  (4u << 20)	   /* bytes */
#define WORDS_MAX 256		   /* bytes of the policy */

static const char *const engines[] = {
#define X(name, first, last) name,
	OSD_FUNCTION_ENGINES(X)
#undef X
};
_Static_assert(OSD_ARRAY_SIZE(engines) == OSD_SIGNING_ENGINES, "each has a level");
static const char *const levels[] = {"unsigned", "signed", "named"};

enum osd_signing_level osd_signers_level(const struct osd_signers *signers, const char *engine)
{
	for (size_t i = 0; i < OSD_SIGNING_ENGINES; i++)
		if (strcmp(engines[i], engine) == 0)
			return (enum osd_signing_level)signers->levels[i];
	return OSD_SIGNING_NAMED;
}

/* ---- the policy -------------------------------------------------------------------------------------- */

/* A level alone is that of all engines that the policy does not name. */
static bool take_word(char *word, bool named[OSD_SIGNING_ENGINES], struct osd_signers *signers)
{
	char *colon = strchr(word, ':');
	bool found = false;
	uint8_t level;

	if (colon)
		*colon = '\0';
	if (!osd_find_word(levels, OSD_ARRAY_SIZE(levels), colon ? colon + 1 : word, &level))
		return false;
	for (size_t i = 0; i < OSD_SIGNING_ENGINES; i++) {
		if (colon ? strcmp(word, engines[i]) != 0 : named[i])
			continue;
		signers->levels[i] = level;
		named[i] = named[i] || colon;
		found = true;
	}
	return found || !colon;
}

static bool parse_policy(const char *text, size_t length, struct osd_signers *signers)
{
	bool named[OSD_SIGNING_ENGINES] = {false};
	char words[WORDS_MAX], *rest, *word;

	if (length >= sizeof(words) || memchr(text, '\0', length))
		return false;
	memcpy(words, text, length);
	words[length] = '\0';
	word = strtok_r(words, " ", &rest);
	if (!word || strcmp(word, POLICY) != 0)
		return false;
	while ((word = strtok_r(NULL, " ", &rest)))
		if (!take_word(word, named, signers))
			return false;
	signers->levels[NATIVE] = OSD_SIGNING_NAMED; /* machine code is never for everybody */
	return true;
}

bool osd_signers_are_looser(const struct osd_signers *was, const struct osd_signers *now,
			    char message[256])
{
	for (size_t i = 0; i < OSD_SIGNING_ENGINES; i++) {
		if (now->levels[i] >= was->levels[i])
			continue;
		snprintf(message, 256,
			 "function_policy would be looser for %s: %s, now %s; restart the target "
			 "to loosen it",
			 engines[i], levels[now->levels[i]], levels[was->levels[i]]);
		return true;
	}
	return false;
}

void osd_signers_describe(const struct osd_signers *signers, char text[128])
{
	size_t used = 0;

	for (size_t i = 0; i < OSD_SIGNING_ENGINES && used < 128; i++)
		used += (size_t)snprintf(text + used, 128 - used, "%s%s:%s", i ? " " : "",
					 engines[i], levels[signers->levels[i]]);
}

/* ---- the file ---------------------------------------------------------------------------------------- */

static bool are_engines(const char *list)
{
#define X(name, first, last) name ","
	static const char known[] = OSD_FUNCTION_ENGINES(X);
#undef X

	for (const char *at = list; *at;) {
		size_t word = strcspn(at, ",");

		if (!osd_has_word(known, ',', at, word))
			return false;
		at += word + (at[word] == ',');
	}
	return true;
}

static bool add_line(struct osd_signers *signers, const char *text, size_t length,
		     char message[128])
{
	struct osd_signer_line line, *lines;
	bool blank;

	if (!osd_signer_line_parse(text, length, &line, &blank, message))
		return false;
	if (blank)
		return true;
	if (!are_engines(line.caps.engines)) {
		snprintf(message, 128, "iosd-engines must be names of engines, with commas");
		return false;
	}
	if (signers->count == MOST) {
		snprintf(message, 128, "more than %d signers", MOST);
		return false;
	}
	lines = reallocarray(signers->lines, signers->count + 1, sizeof(*lines));
	if (!lines) {
		snprintf(message, 128, "out of memory");
		return false;
	}
	lines[signers->count++] = line;
	signers->lines = lines;
	return true;
}

/* The first line is number 0, so that the list's own lines begin with 1. */
static bool parse_line(struct osd_signers *signers, unsigned number, const char *text,
		       size_t length, char message[256])
{
	char why[128];

	if (number == 0 && !parse_policy(text, length, signers))
		return OSD_EXPLAIN(
			message, false,
			"function_policy must be words like 'signed' or 'wasm:named': levels are "
			"unsigned, signed and named, engines python, wasm, native and java");
	if (number && !add_line(signers, text, length, why))
		return OSD_EXPLAIN(message, false, "line %u of the list of signers: %s", number,
				   why);
	return true;
}

static enum osd_status read_file(struct osd_signers *signers, const char *path, char message[256])
{
	OSD_CLEANUP(osd_fclosep) FILE *file = fopen(path, "re");
	OSD_CLEANUP_FREE char *line = NULL;
	size_t room = 0, bytes = 0;
	unsigned number = 0;
	struct stat stat;
	ssize_t length;

	if (!file)
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "cannot read the list of signers %.120s: %s", path,
				   strerror(errno));
	if (fstat(fileno(file), &stat) == 0 && (uint64_t)stat.st_size > FILE_MAX)
		bytes = (size_t)FILE_MAX + 1; /* not read: one line may be all of it */
	while (bytes <= FILE_MAX && (length = getline(&line, &room, file)) > 0) {
		bytes += (size_t)length;
		length -= line[length - 1] == '\n';
		if (!parse_line(signers, number++, line, (size_t)length, message))
			return OSD_E_PARAM_FIELD;
	}
	if (bytes > FILE_MAX || !feof(file))
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "cannot read the list of signers %.120s: it must be a file of "
				   "at most 4 MiB",
				   path);
	return number || parse_line(signers, 0, "", 0, message) ? OSD_OK : OSD_E_PARAM_FIELD;
}

OSD_DEFINE_CLEANUP(struct osd_signers *, osd_signers_free)

enum osd_status osd_signers_read(const char *file, char message[256],
				 struct osd_signers **ret_signers)
{
	OSD_CLEANUP(osd_signers_freep) struct osd_signers *signers = calloc(1, sizeof(*signers));
	enum osd_status status = OSD_OK;

	if (!signers)
		return OSD_EXPLAIN(message, OSD_E_NO_MEMORY, "out of memory");
	signers->references = 1;
	signers->levels[NATIVE] = OSD_SIGNING_NAMED;
	if (file)
		status = read_file(signers, file, message);
	if (status == OSD_OK)
		*ret_signers = OSD_STEAL(signers);
	return status;
}

void osd_signers_free(struct osd_signers *signers)
{
	if (!signers)
		return;
	free(signers->lines);
	free(signers);
}
