/* SPDX-License-Identifier: GPL-2.0-or-later */
/* config.c -- reads the file of pools (wire/pool_file.h).  The supervisor writes that file from
 * TOML, so it has no units, and the error messages are short.  Pure, except for reading the
 * file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "exec/pool/pool.h"
#include "wire/pool_file.h"

#define WORD_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define SLOTS_MAX     64u
#define SANDBOXES_MAX 320u /* iosd-sandboxd keeps no more (its option --max) */
#define IDLE_STANDARD (UINT64_C(300) * 1000000)
#define UNSET	      UINT64_MAX

#define AT(member) offsetof(struct osd_pool_change, config.member)

/* The numbers of a pool, and their permitted values. */
static const struct number {
	const char *key;
	size_t offset;
	uint64_t least, most;
} numbers[] = {
	{"min", AT(min), 0, SLOTS_MAX},
	{"max", AT(max), 1, SLOTS_MAX},
	{"warm_spare", AT(spares), 0, 2 * SLOTS_MAX},
	{"queue", AT(queue_max), 1, 10000},
	{"idle_timeout", AT(idle_usec), 1000, OSD_DAY},
	{"max_jobs_per_sandbox", AT(sandbox_jobs), 1, 1000000},
	{"wall", AT(standard.wall_usec), 1000, OSD_DAY},
	{"wall_max", AT(maximum.wall_usec), 1000, OSD_DAY},
	{"cpu", AT(standard.cpu_usec), 1000, OSD_DAY},
	{"cpu_max", AT(maximum.cpu_usec), 1000, OSD_DAY},
	{"memory", AT(standard.memory_bytes), OSD_POOL_LEAST_MEMORY, INT64_MAX / 2},
	{"memory_max", AT(maximum.memory_bytes), OSD_POOL_LEAST_MEMORY, INT64_MAX / 2},
	{"threads", AT(standard.processes), 1, 16},
	{"threads_max", AT(maximum.processes), 1, 16},
	{"output", AT(standard.output_bytes), 1, OSD_GIB},
	{"output_max", AT(maximum.output_bytes), 1, OSD_GIB},
	{"cpu_share", AT(cpu_share), 1, OSD_CPU_SHARE_WHOLE},
	{"bandwidth", AT(bandwidth), 0, INT64_MAX / 2},
	{"deadline", AT(deadline_usec), 0, OSD_DAY},
};

/* Only for a pool that serves; it is not a key of the file. */
static const struct number active = {"active", offsetof(struct osd_pool_change, active), 1,
				     SLOTS_MAX};
static const char *const modes[] = {[OSD_POOL_RUNNING] = "running",
				    [OSD_POOL_PAUSED] = "paused",
				    [OSD_POOL_DRAINING] = "draining"};

struct parse {
	struct osd_pool_table table;
	unsigned line;
	char *message;
};

static enum osd_status wrong(const struct parse *parse, const char *what, const char *word)
{
	snprintf(parse->message, 256, "pools, line %u: %s '%.80s'", parse->line, what, word);
	return OSD_E_PARAM_FIELD;
}

/* ---- defaults -------------------------------------------------------------------------------- */

static struct osd_pool_config blank(void)
{
	struct osd_pool_config config = {.engine = OSD_POOL_ENGINE,
					 .min = UNSET,
					 .spares = UNSET,
					 .idle_usec = IDLE_STANDARD,
					 .cpu_share = OSD_CPU_SHARE_WHOLE,
					 .sandbox_jobs = OSD_REUSE_JOBS_MAX};

	config.queue_max = osd_exec_limits[OSD_LIMIT_QUEUE].maximum;
#define X(field, row)                                                                              \
	config.standard.field = osd_exec_limits[OSD_LIMIT_##row].standard;                         \
	config.maximum.field = osd_exec_limits[OSD_LIMIT_##row].maximum;
	OSD_JOB_LIMITS(X)
#undef X
	config.standard.cpu_usec = 0; /* as wall */
	return config;
}

bool osd_pool_is_native(const struct osd_pool_config *config)
{
	return strcmp(config->engine, OSD_POOL_NATIVE) == 0;
}

/* Machine code can leave traces that nothing finds. */
static bool may_reuse(const struct osd_pool_config *config)
{
	return config->reuse == OSD_REUSE_NEVER || !osd_pool_is_native(config);
}

/* Derives the values that were not given from those that were. */
static bool complete(struct osd_pool_config *config)
{
	if (config->min == UNSET)
		config->min = OSD_MIN(config->max, UINT64_C(1));
	if (config->spares == UNSET)
		config->spares = config->max + 1;
#define X(field, row)                                                                              \
	if (config->standard.field > config->maximum.field)                                        \
		return false;
	OSD_JOB_LIMITS(X)
#undef X
	return config->min <= config->max;
}

static struct osd_pool_config plain(unsigned slots, enum osd_reuse reuse)
{
	struct osd_pool_config config = blank();

	memcpy(config.name, OSD_POOL_DEFAULT, sizeof(OSD_POOL_DEFAULT));
	config.max = slots;
	config.reuse = reuse;
	complete(&config);
	return config;
}

/* ---- one line -------------------------------------------------------------------------------- */

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret_number)
{
	char *end;
	uint64_t number;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number < least || number > most)
		return false;
	*ret_number = number;
	return true;
}

/* Copies a value that is shown in attributes and one-line messages. */
static bool set_word(char *to, size_t capacity, const char *text)
{
	size_t length = strlen(text);

	if (length == 0 || length >= capacity || text[strspn(text, WORD_LETTERS)])
		return false;
	memcpy(to, text, length + 1);
	return true;
}

/* Nobody named: anybody. */
static bool set_users(char users[OSD_POOL_USERS_MAX + 1], const char *value)
{
	size_t length = strlen(value);

	for (const char *c = value; *c; c++)
		if (*c <= ' ' || *c > '~')
			return false;
	if (length > OSD_POOL_USERS_MAX)
		return false;
	memset(users, 0, OSD_POOL_USERS_MAX + 1);
	memcpy(users, value, length);
	return true;
}

const char *osd_pool_mode_name(enum osd_pool_mode mode)
{
	return modes[mode];
}

static bool set_mode(enum osd_pool_mode *mode, const char *value)
{
	uint8_t place = 0;
	bool found = osd_find_word(modes, OSD_ARRAY_SIZE(modes), value, &place);

	if (found)
		*mode = (enum osd_pool_mode)place;
	return found;
}

static const struct number *find_number(const char *key, bool live)
{
	if (live && strcmp(key, active.key) == 0)
		return &active;
	if (strcmp(key, "spares") == 0) /* the earlier name of the key */
		key = "warm_spare";
	for (size_t i = 0; i < OSD_ARRAY_SIZE(numbers); i++)
		if (strcmp(key, numbers[i].key) == 0)
			return &numbers[i];
	return NULL;
}

/* Sets a key=value of the file, or of a change to a pool that serves.  expected: the permitted
 * values, if the value is wrong. */
static bool set_key(struct osd_pool_change *change, bool live, const char *key, const char *value,
		    char expected[64])
{
	struct osd_pool_config *config = &change->config;
	const struct number *number = find_number(key, live);

	expected[0] = '\0';
	if (number) {
		snprintf(expected, 64, "%" PRIu64 " to %" PRIu64, number->least, number->most);
		return parse_number(value, number->least, number->most,
				    (uint64_t *)((char *)change + number->offset));
	}
	if (strcmp(key, "reuse") == 0) {
		snprintf(expected, 64, "never, verified, trusted");
		return osd_reuse_parse(value, &config->reuse);
	}
	if (strcmp(key, "users") == 0) {
		snprintf(expected, 64, "principals, by commas, up to %d bytes", OSD_POOL_USERS_MAX);
		return set_users(config->users, value);
	}
	if (live && strcmp(key, "mode") == 0) {
		snprintf(expected, 64, "running, paused, draining");
		return set_mode(&change->mode, value);
	}
	if (!live && strcmp(key, "name") == 0)
		return set_word(config->name, sizeof(config->name), value);
	if (!live && strcmp(key, "set") == 0)
		return set_word(config->set, sizeof(config->set), value);
	if (!live && strcmp(key, "engine") == 0)
		return set_word(config->engine, sizeof(config->engine), value);
	return !live && osd_pool_file_is_sandbox_key(key);
}

/* Of a key that is the name of a number; else 0. */
static uint64_t number_of(const struct osd_pool_change *change, const char *key)
{
	const struct number *number = find_number(key, true);

	return number ? *(const uint64_t *)((const char *)change + number->offset) : 0;
}

bool osd_pool_change_value(const struct osd_pool_change *change, const char *key,
			   char value[OSD_POOL_VALUE_MAX])
{
	const char *word = NULL;

	if (find_number(key, true)) {
		snprintf(value, OSD_POOL_VALUE_MAX, "%" PRIu64, number_of(change, key));
		return true;
	}
	if (strcmp(key, "reuse") == 0)
		word = osd_reuse_name(change->config.reuse);
	else if (strcmp(key, "mode") == 0)
		word = osd_pool_mode_name(change->mode);
	else if (strcmp(key, "users") == 0)
		word = change->config.users;
	if (word)
		snprintf(value, OSD_POOL_VALUE_MAX, "%s", word);
	return word;
}

const struct osd_pool_config *osd_pool_table_find(const struct osd_pool_table *table,
						  const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(table->pools[i].name, name) == 0)
			return &table->pools[i];
	return NULL;
}

static enum osd_status add(struct parse *parse, struct osd_pool_config *config)
{
	struct osd_pool_table *table = &parse->table;
	bool first = strcmp(config->name, OSD_POOL_DEFAULT) == 0;

	if (!config->name[0] || !config->max)
		return wrong(parse, "a pool needs both", "name and max");
	if (!complete(config))
		return wrong(parse, "min or a limit is above its maximum in pool", config->name);
	if (!may_reuse(config))
		return wrong(parse, "the engine native has no reuse: pool", config->name);
	if (!first && osd_pool_table_find(table, config->name))
		return wrong(parse, "another pool", config->name);
	if (!first && table->count == OSD_POOLS_MAX)
		return wrong(parse, "too many pools, at", config->name);
	table->pools[first ? 0 : table->count++] = *config;
	return OSD_OK;
}

static enum osd_status parse_line(struct parse *parse, char *line)
{
	struct osd_pool_change change = {.config = blank()};
	const size_t budget = strlen(OSD_POOL_BUDGET);
	char *word, *value, expected[64];

	if (strncmp(line, OSD_POOL_BUDGET, budget) == 0)
		return parse_number(line + budget, 1, INT64_MAX, &parse->table.budget_bytes)
			       ? OSD_OK
			       : wrong(parse, "not a number of bytes:", line + budget);
	while (osd_pool_file_next(&line, &word, &value)) {
		if (!value)
			return wrong(parse, "no value:", word);
		if (!set_key(&change, false, word, value, expected))
			return wrong(parse, "unknown key, or a value out of range:", word);
	}
	return add(parse, &change.config);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The memory that all jobs together may use fits, whatever the jobs ask for: it is reserved, not
 * measured. */
enum osd_status osd_pool_table_check(const struct osd_pool_table *table, char message[256])
{
	uint64_t slots = 0, memory = 0, sandboxes = 0;
	size_t used = 0;
	char sum[160] = "";

	for (size_t i = 0; i < table->count; i++) {
		const struct osd_pool_config *config = &table->pools[i];
		uint64_t each = config->maximum.memory_bytes, all;

		slots += config->max;
		sandboxes += osd_pool_alive_max(config);
		if (used < sizeof(sum))
			used += (size_t)snprintf(sum + used, sizeof(sum) - used,
						 "%s%s %" PRIu64 " x %" PRIu64 " MiB",
						 i ? ", " : "", config->name, config->max,
						 each >> 20);
		if (!osd_mul_u64(config->max, each, &all) ||
		    __builtin_add_overflow(memory, all, &memory))
			memory = UINT64_MAX;
	}
	if (slots > SLOTS_MAX)
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "pools have %" PRIu64 " slots together, at most %u can be",
				   slots, SLOTS_MAX);
	if (sandboxes > SANDBOXES_MAX)
		return OSD_EXPLAIN(
			message, OSD_E_PARAM_FIELD,
			"pools may keep %" PRIu64
			" sandboxes together, at most %u can be: lower max or warm_spare",
			sandboxes, SANDBOXES_MAX);
	if (!table->budget_bytes || memory <= table->budget_bytes)
		return OSD_OK;
	return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
			   "pools may need %" PRIu64 " MiB, the budget is %" PRIu64 " MiB: %s",
			   memory >> 20, table->budget_bytes >> 20, sum);
}

enum osd_status osd_pool_table_parse(char *text, unsigned slots, enum osd_reuse reuse,
				     char message[256], struct osd_pool_table *ret_table)
{
	struct parse parse = {.message = message, .table.count = 1};
	enum osd_status status = OSD_OK;
	char *line;

	parse.table.pools = calloc(OSD_POOLS_MAX, sizeof(*parse.table.pools));
	if (!parse.table.pools)
		return OSD_E_NO_MEMORY;
	parse.table.pools[0] = plain(slots, reuse);
	while (status == OSD_OK && (line = strsep(&text, "\n"))) {
		parse.line++;
		if (*line)
			status = parse_line(&parse, line);
	}
	if (status == OSD_OK)
		status = osd_pool_table_check(&parse.table, message);
	if (status == OSD_OK)
		*ret_table = parse.table;
	else
		osd_pool_table_release(&parse.table);
	return status;
}

enum osd_status osd_pool_table_load(const char *path, unsigned slots, enum osd_reuse reuse,
				    char message[256], struct osd_pool_table *ret_table)
{
	const char *why = "";
	OSD_CLEANUP_FREE char *text = path ? osd_pool_file_read(path, &why) : strdup("");

	if (!text)
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "cannot read the pools of '%.150s': %.60s", path ? path : "",
				   why);
	return osd_pool_table_parse(text, slots, reuse, message, ret_table);
}

/* ---- a pool that serves ---------------------------------------------------------------------- */

static enum osd_status explain_above(const struct osd_pool_change *change, char message[256])
{
	static const char *const bounds[][2] = {
		{"min", "max"},		  {"wall", "wall_max"},	      {"cpu", "cpu_max"},
		{"memory", "memory_max"}, {"threads", "threads_max"}, {"output", "output_max"},
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(bounds); i++) {
		const char *key = bounds[i][0], *most = bounds[i][1];
		uint64_t value = number_of(change, key), bound = number_of(change, most);

		if (value > bound)
			return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
					   "%s is %" PRIu64 ", above %s, which is %" PRIu64, key,
					   value, most, bound);
	}
	return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD, "a limit is above its maximum");
}

/* Moves the bounds that were not given to match those that were. */
static enum osd_status settle_change(const struct osd_pool_change *before,
				     struct osd_pool_change *change, char message[256])
{
	struct osd_pool_config *config = &change->config;
	if (config->min == before->config.min)
		config->min = OSD_MIN(config->min, config->max);
	if (!complete(config))
		return explain_above(change, message);
	if (!may_reuse(config))
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD, "the engine native has no reuse");
	if (change->active == UNSET)
		change->active = osd_pool_active_then(&before->config, before->active, config);
	if (change->active >= osd_pool_active_least(config) && change->active <= config->max)
		return OSD_OK;
	return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
			   "active must be from %" PRIu64 " (min) to %" PRIu64 " (max)",
			   osd_pool_active_least(config), config->max);
}

enum osd_status osd_pool_change_parse(char *words, char message[256],
				      struct osd_pool_change *change)
{
	struct osd_pool_change next = *change;
	char *word, *value, expected[64];
	enum osd_status status;

	next.active = UNSET;
	while (osd_pool_file_next(&words, &word, &value)) {
		if (value && set_key(&next, true, word, value, expected))
			continue;
		if (!value)
			snprintf(message, 256, "no value: '%.80s'", word);
		else if (expected[0])
			snprintf(message, 256, "%.80s must be %s, not '%.80s'", word, expected,
				 value);
		else
			snprintf(message, 256, "no such key of a pool that serves: '%.80s'", word);
		return OSD_E_PARAM_FIELD;
	}
	status = settle_change(change, &next, message);
	if (status == OSD_OK)
		*change = next;
	return status;
}

static void put_diff(char *text, size_t size, const char *key, const char *before,
		     const char *after)
{
	size_t used = strlen(text);

	if (strcmp(before, after) != 0)
		snprintf(text + used, size - used, "%s%s %s -> %s", used ? ", " : "", key, before,
			 after);
}

void osd_pool_config_diff(const struct osd_pool_config *before, const struct osd_pool_config *after,
			  char *text, size_t size)
{
	const struct osd_pool_change from = {.config = *before}, to = {.config = *after};

	text[0] = '\0';
	for (size_t i = 0; i < OSD_ARRAY_SIZE(numbers); i++) {
		size_t at = numbers[i].offset;
		char old[24], new[24];

		snprintf(old, sizeof(old), "%" PRIu64,
			 *(const uint64_t *)((const char *)&from + at));
		snprintf(new, sizeof(new), "%" PRIu64, *(const uint64_t *)((const char *)&to + at));
		put_diff(text, size, numbers[i].key, old, new);
	}
	put_diff(text, size, "engine", before->engine, after->engine);
	put_diff(text, size, "set", before->set[0] ? before->set : "none",
		 after->set[0] ? after->set : "none");
	put_diff(text, size, "users", before->users[0] ? before->users : "anybody",
		 after->users[0] ? after->users : "anybody");
	put_diff(text, size, "reuse", osd_reuse_name(before->reuse), osd_reuse_name(after->reuse));
}

void osd_pool_table_release(struct osd_pool_table *table)
{
	free(table->pools);
	*table = (struct osd_pool_table){0};
}
