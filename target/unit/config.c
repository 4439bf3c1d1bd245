/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.c -- see config.h.  One table of options; the parser and the help text both read it. */
#include "unit/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "function/kept.h"

const struct osd_test_options *osd_test_options;

#define AT(member) offsetof(struct osd_config, member)

/* The path of a socket has 107 bytes at most, in sun_path.  UINT32_MAX is (uid_t)-1, which is no
 * user. */
static const struct osd_option options[] = {
	{"dir", OPTION_TEXT, AT(directory), 1, 4000, NULL, "data directory"},
	{"ssd", OPTION_TEXT, AT(ssd_directory), 1, 4000, NULL, "second directory, for heads"},
	{"heads", OPTION_CHOICE, AT(heads.policy), 0, 0, "first",
	 "which objects begin on the SSD: first (all), small-only (up to the head size), off"},
	{"head_size", OPTION_SIZE, AT(heads.head_bytes), 0, OSD_HEAD_MAX, NULL,
	 "bytes of new objects on the SSD; without it as formatted, 2MiB where it is formatted"},
	{"head_high", OPTION_NUMBER, AT(heads.high_percent), 1, 99, "95",
	 "per cent of the SSD above which new heads go to the other directory"},
	{"head_low", OPTION_NUMBER, AT(heads.low_percent), 1, 99, "90",
	 "per cent below which heads are brought back to the SSD"},
	{"head_rate", OPTION_SIZE, AT(heads.move_rate), 64 << 10, UINT64_C(1) << 40, "64MiB",
	 "bytes a second that are moved between the two at most"},
	{"sandboxd", OPTION_TEXT, AT(sandboxd), 1, 107, NULL, "socket of iosd-sandboxd"},
	{"control", OPTION_TEXT, AT(control), 1, 107, NULL,
	 "socket to make for a resource manager (docs/control.md)"},
	{"control_uid", OPTION_NUMBER, AT(control_uid), 0, UINT32_MAX - 1, "0",
	 "user of the resource manager, let in there beside root and the target's own, 0: nobody"},
	{"isolation", OPTION_TEXT, AT(isolation), 1, 32, "full", "isolation demanded of sandboxes"},
	{"pools", OPTION_TEXT, AT(pools), 1, 4000, NULL,
	 "file that tells the pools of sandboxes, as osd target serve writes it"},
	{"signers", OPTION_TEXT, AT(signers), 1, 4000, NULL,
	 "file with the policy and the signers of functions, as osd target serve writes it"},
	{"function_memory", OPTION_SIZE, AT(function_memory), 0, INT64_MAX, "0",
	 "memory that active functions may reserve together, 0: no bound"},
	{"kept_results", OPTION_SIZE, AT(kept_results), 0, OSD_KEPT_MAX, "1GiB",
	 "bytes of what functions have computed that are kept for later READs, 0: none"},
	{"machine_code", OPTION_TEXT, AT(machine_code), 1, 128, NULL,
	 "name of compiler and processor: keeps machine code of functions in the store"},
	{"master-key", OPTION_TEXT, AT(master_key), 1, 4000, NULL,
	 "file with the first master key; made when absent (docs/security-protocol.md)"},
	{"local-key", OPTION_TEXT, AT(local_key), 1, 4000, NULL,
	 "file to write the local administrator's key to, in a private folder (docs/security-protocol.md)"},
	{"reuse", OPTION_CHOICE, AT(reuse), 0, 0, "never",
	 "another job in a used sandbox, for one principal: never, verified (by CHAP), trusted (any)"},
	{"allow_bytecode", OPTION_BOOL, AT(allow_bytecode), 0, 1, "0",
	 "jobs may be byte-code (.pyc files), which is as trusted as native code"},
	{"script_turn", OPTION_NUMBER, AT(script_turn), 0, 10000, "1000",
	 "us a script keeps a processor from who is ready, while commands come; 0: as the kernel likes"},
	{"queue_principal", OPTION_NUMBER, AT(queue_principal), 0, 10000, "0",
	 "jobs one principal may have in the queue, 0: 1,000; longer arrays are refused"},
	{"stored_principal", OPTION_SIZE, AT(stored_principal), 0, INT64_MAX, "0",
	 "code, arguments and results of one principal in the jobs partition, 0: 256 MiB"},
	{"security", OPTION_CHOICE, AT(security), 0, 0, "nosec",
	 "least security method of a store made or formatted now: nosec, capkey, cmdrsp, alldata"},
	{"secure", OPTION_BOOL, AT(secure), 0, 1, "0",
	 "refuse a store that asks for no capabilities: whose root or new partitions have nosec"},
	{"workers", OPTION_NUMBER, AT(workers), 1, 64, "4", "worker threads"},
	{"slots", OPTION_NUMBER, AT(slots), 0, 256, "0", "sandboxes at a time, 0: one a processor"},
	{"cache", OPTION_SIZE, AT(cache_bytes), 0, UINT64_C(1) << 40, "0",
	 "database cache, 0: 256 MiB"},
	{"durability", OPTION_CHOICE, AT(durability), 0, 0, "process",
	 "process: acknowledged changes survive kill -9; sync: power loss too"},
	{"on_ssd_loss", OPTION_CHOICE, AT(on_ssd_loss), 0, 0, "fail",
	 "when the second directory is absent: fail to start; read-through: serve what lies elsewhere"},
	{"io", OPTION_CHOICE, AT(io), 0, 0, "cached",
	 "cached: objects' bytes through the page cache; direct: past it (no descriptors for scripts)"},
	{"checksums", OPTION_CHOICE, AT(sums.use), 0, 0, "as-stored",
	 "of every 4 KiB of objects' data: as-stored (a new store: off), on, off (docs/reliability.md)"},
	{"verify", OPTION_CHOICE, AT(sums.verify), 0, 0, "scrub",
	 "who compares them: scrub, or always: every read too (no descriptors for scripts)"},
	{"scrub_rate", OPTION_SIZE, AT(sums.scrub_rate), OSD_SCRUB_RATE_MIN, OSD_SCRUB_RATE_MAX, "64MiB",
	 "bytes a second that the scrub reads at most"},
	{"scrub_days", OPTION_NUMBER, AT(sums.scrub_days), 0, 3650, "30",
	 "days between the end of one scrub and the next, 0: only when told to"},
	{"osc_compat", OPTION_BOOL, AT(osc_compat), 0, 1, "0",
	 "speak OSC's dialect where it contradicts the standard (docs/commands.md)"},
};

/* For options with a choice: the words, in the order of the enumeration. */
static const struct {
	const char *name, *words[5];
} choices[] = {
	{"heads", {"first", "small-only", "off"}},
	{"reuse", {"never", "verified", "trusted"}},
	{"security", {"nosec", "capkey", "cmdrsp", "alldata"}},
	{"durability", {"process", "sync"}},
	{"on_ssd_loss", {"fail", "read-through"}},
	{"io", {"cached", "direct"}},
	{"checksums", {"as-stored", "on", "off"}},
	{"verify", {"scrub", "always"}},
};

static const char *const *words_of(const struct osd_option *option)
{
	size_t i = 0;

	/* Each option of this kind has a row; test libraries have none of this kind. */
	while (strcmp(choices[i].name, option->name))
		i++;
	return choices[i].words;
}

/* The i-th option of the product and then of a library for tests; *ret_value: the place of its value.  NULL: there are no
 * more. */
static const struct osd_option *option_at(struct osd_config *config, size_t i, void **ret_value)
{
	const struct osd_test_options *test = config->test.values ? osd_test_options : NULL;
	const size_t own = OSD_ARRAY_SIZE(options);
	const struct osd_option *option = i < own ? &options[i] : NULL;
	char *values = (char *)config;

	if (!option && test && i - own < test->count) {
		option = &test->options[i - own];
		values = config->test.values;
	}
	if (option)
		*ret_value = values + option->offset;
	return option;
}

/* "17", "64KiB", "2MiB", "1GiB", "1TiB"; units only where the option is a size. */
static bool parse_number(const char *text, bool units, uint64_t *ret_value)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} factors[] = {{"", 1},
		    {"KiB", UINT64_C(1) << 10},
		    {"MiB", UINT64_C(1) << 20},
		    {"GiB", UINT64_C(1) << 30},
		    {"TiB", UINT64_C(1) << 40}};
	char *end;
	uint64_t value;

	/* strtoull() would also accept spaces and a sign. */
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	for (size_t i = 0; i < (units ? OSD_ARRAY_SIZE(factors) : 1); i++) {
		if (!strcmp(end, factors[i].name))
			return osd_mul_u64(value, factors[i].factor, ret_value);
	}
	return false;
}

/* "first, small-only or off" */
static void list_words(const char *const *words, char text[80])
{
	for (size_t i = 0, used = 0; words[i]; i++)
		used += (size_t)snprintf(text + used, 80 - used, "%s%s",
					 i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

static enum osd_status bad_value(char message[256], const struct osd_option *option,
				 const char *value)
{
	char words[80];

	switch (option->kind) {
	case OPTION_TEXT:
		snprintf(message, 256, "option '%s' must be 1 to %" PRIu64 " bytes of text",
			 option->name, option->max);
		break;
	case OPTION_BOOL:
		snprintf(message, 256, "option '%s' must be 0 or 1, not '%.80s'", option->name,
			 value);
		break;
	case OPTION_CHOICE:
		list_words(words_of(option), words);
		snprintf(message, 256, "option '%s' must be %s, not '%.80s'", option->name, words,
			 value);
		break;
	case OPTION_NUMBER:
	case OPTION_SIZE:
		snprintf(message, 256, "option '%s' must be a number from %" PRIu64 " to %" PRIu64
			 "%s, not '%.80s'", option->name, option->min, option->max,
			 option->kind == OPTION_NUMBER ? "" : " (KiB, MiB, GiB, TiB allowed)", value);
		break;
	}
	return OSD_E_PARAM_FIELD;
}

static enum osd_status set_text(char **at, const struct osd_option *option, const char *value,
				char message[256])
{
	size_t length = strlen(value);
	char *copy;

	if (length < option->min || length > option->max)
		return bad_value(message, option, value);
	copy = strdup(value);
	if (!copy)
		return OSD_EXPLAIN(message, OSD_E_NO_MEMORY, "out of memory");
	free(*at);
	*at = copy;
	return OSD_OK;
}

static enum osd_status set_choice(int *at, const struct osd_option *option, const char *value,
				  char message[256])
{
	const char *const *words = words_of(option);

	for (int i = 0; words[i]; i++) {
		if (!strcmp(value, words[i])) {
			*at = i;
			return OSD_OK;
		}
	}
	return bad_value(message, option, value);
}

static enum osd_status set_value(void *at, const struct osd_option *option, const char *value,
				 char message[256])
{
	uint64_t number;

	switch (option->kind) {
	case OPTION_TEXT:
		return set_text(at, option, value, message);
	case OPTION_CHOICE:
		return set_choice(at, option, value, message);
	case OPTION_BOOL:
		if (strcmp(value, "0") && strcmp(value, "1"))
			return bad_value(message, option, value);
		*(bool *)at = value[0] == '1';
		return OSD_OK;
	case OPTION_NUMBER:
	case OPTION_SIZE:
		if (!parse_number(value, option->kind != OPTION_NUMBER, &number) ||
		    number < option->min || number > option->max)
			return bad_value(message, option, value);
		*(uint64_t *)at = number;
		return OSD_OK;
	}
	return osd_internal("option '%s' has no kind", option->name);
}

static enum osd_status set_option(struct osd_config *config, const char *name, const char *value,
				  char message[256])
{
	const struct osd_option *option;
	void *at;

	for (size_t i = 0; (option = option_at(config, i, &at)); i++)
		if (!strcmp(option->name, name))
			return set_value(at, option, value, message);
	return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD, "option '%.80s' is unknown", name);
}

/* text: "name=value", changed in place. */
static enum osd_status parse_option(struct osd_config *config, char *text, char message[256])
{
	char *value = strchr(text, '=');

	if (!value)
		return OSD_EXPLAIN(
			message, OSD_E_PARAM_FIELD,
			"option '%.80s' has no value: write name=value, separated by ';'", text);
	*value++ = '\0';
	return set_option(config, text, value, message);
}

static enum osd_status set_defaults(struct osd_config *config, char message[256])
{
	const struct osd_option *option;
	enum osd_status status = OSD_OK;
	void *at;

	for (size_t i = 0; status == OSD_OK && (option = option_at(config, i, &at)); i++)
		if (option->value)
			status = set_value(at, option, option->value, message);
	return status;
}

static enum osd_status set_directory(struct osd_config *config, const char *directory,
				     char message[256])
{
	return directory && !config->directory && !config->test.in_memory
		       ? set_option(config, "dir", directory, message)
		       : OSD_OK;
}

static enum osd_status check_together(const struct osd_config *config, char message[256])
{
	if (!config->test.in_memory && !config->directory)
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "option 'dir' is missing: name the data directory");
	if (config->heads.low_percent > config->heads.high_percent)
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "option 'head_low' must not be above 'head_high'");
	return OSD_OK;
}

enum osd_status osd_config_parse(const char *text, const char *directory, char message[256],
				 struct osd_config *ret_config)
{
	OSD_CLEANUP(osd_config_release)
	struct osd_config config = {.heads.head_bytes = OSD_HEAD_AS_FORMATTED};
	OSD_CLEANUP_FREE char *copy = strdup(text ? text : "");
	enum osd_status status;
	char *rest;

	if (osd_test_options)
		config.test.values = calloc(1, osd_test_options->size);
	if (!copy || (osd_test_options && !config.test.values))
		return OSD_EXPLAIN(message, OSD_E_NO_MEMORY, "out of memory");
	status = set_defaults(&config, message);
	if (status != OSD_OK)
		return status;
	for (char *word = strtok_r(copy, ";", &rest); word; word = strtok_r(NULL, ";", &rest)) {
		status = parse_option(&config, word, message);
		if (status != OSD_OK)
			return status;
	}
	/* It sets in_memory, which decides whether a directory is needed. */
	if (osd_test_options)
		status = osd_test_options->apply(&config, message);
	if (status == OSD_OK)
		status = set_directory(&config, directory, message);
	if (status == OSD_OK)
		status = check_together(&config, message);
	if (status != OSD_OK)
		return status;
	*ret_config = config;
	config = (struct osd_config){0};
	return OSD_OK;
}

void osd_config_release(struct osd_config *config)
{
	const struct osd_option *option;
	void *at;

	for (size_t i = 0; (option = option_at(config, i, &at)); i++) {
		if (option->kind != OPTION_TEXT)
			continue;
		free(*(char **)at);
		*(char **)at = NULL;
	}
	free(config->test.values);
	config->test = (struct osd_config_test){0};
}

static void print_options(const struct osd_option *option, size_t count, FILE *out)
{
	for (; count > 0; option++, count--) {
		fprintf(out, "  %-14s %s", option->name, option->meaning);
		if (option->kind == OPTION_NUMBER)
			fprintf(out, " (%" PRIu64 "-%" PRIu64 ")", option->min, option->max);
		if (option->value)
			fprintf(out, " [%s]", option->value);
		fputc('\n', out);
	}
}

void osd_config_help(FILE *out)
{
	print_options(options, OSD_ARRAY_SIZE(options), out);
	if (!osd_test_options)
		return;
	fputs("of programs for tests alone:\n", out);
	print_options(osd_test_options->options, osd_test_options->count, out);
}
