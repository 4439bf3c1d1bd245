/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_changes.c -- the requests of the control socket that change something
 * (control_request.h), and their log lines: author, reason, value before, value now. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "unit/control_request.h"
#include "unit/unit.h"
#include "exec/admin.h"
#include "function/function.h"

#define WORDS_MAX      4096
#define CHANGED_MAX    16384
#define POOL_NAME_SIZE 65
#define PRINCIPAL_SIZE 512

/* ---- what was, what is ----------------------------------------------------------------------- */

/* words: "key=value;...", in the end without the last ';'. */
struct words {
	char text[WORDS_MAX];
	size_t used;
};

/* False: there is no room. */
static bool add_word(struct words *words, const char *key, size_t key_bytes, const char *value,
		     size_t value_bytes)
{
	int length = snprintf(words->text + words->used, sizeof(words->text) - words->used,
			      "%s%.*s=%.*s", words->used ? ";" : "", (int)key_bytes, key,
			      (int)value_bytes, value);

	if ((size_t)length >= sizeof(words->text) - words->used)
		return false;
	words->used += (size_t)length;
	return true;
}

static void add_number(struct words *words, const char *key, uint64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRIu64, number);
	add_word(words, key, strlen(key), digits, strlen(digits));
}

static struct words one_word(const char *key, uint64_t number)
{
	struct words words = {.used = 0};

	add_number(&words, key, number);
	return words;
}

static void put_words(struct osd_json *json, const char *name, const struct words *words)
{
	osd_json_open(json, name, '{');
	for (const char *at = words->text; *at;) {
		size_t key = strcspn(at, "="), value = strcspn(at + key + 1, ";");
		char text[OSD_CONTROL_KEY_MAX + 1];

		snprintf(text, sizeof(text), "%.*s", (int)key, at);
		osd_json_text_n(json, text, at + key + 1, value);
		at += key + 1 + value;
		at += *at == ';';
	}
	osd_json_close(json, '}');
}

/* Logs author, reason, value before and value now. */
static void log_change(const struct osd_control_request *request, const char *what, const char *was,
		       const char *is)
{
	const struct osd_control_pair *by = osd_control_find(request, "by"),
				      *why = osd_control_find(request, "why");
	char by_text[OSD_CONTROL_NOTE_MAX], why_text[OSD_CONTROL_NOTE_MAX];

	osd_log_quote(by_text, sizeof(by_text), by ? by->value : "", by ? by->value_bytes : 0);
	osd_log_quote(why_text, sizeof(why_text), why ? why->value : "",
		      why ? why->value_bytes : 0);
	osd_info("control: %s: %.200s -> %.200s, by %s%s%s%s%s", what, was, is, request->peer->who,
		 by ? " for " : "", by_text, why ? ": " : "", why_text);
}

/* what: of the log; NULL: that has it. */
static void answer_changed(struct osd_control_request *request, const char *what,
			   const struct words *was, const struct words *is)
{
	struct osd_json json = osd_control_begin(request->control);

	if (what)
		log_change(request, what, was->text, is->text);
	put_words(&json, "was", was);
	put_words(&json, "is", is);
	osd_control_send(request->control, request->peer, OSD_CONTROL_OK, request->serial, &json);
}

/* ---- requests -------------------------------------------------------------------------------- */

void osd_control_do_workers(struct osd_control_request *request)
{
	struct osd_unit *unit = request->control->targets.unit;
	struct osd_unit_load load;
	struct words was, is;
	uint64_t count;

	if (!osd_control_number_of(request, "count", 1, OSD_WORKERS_MAX, &count))
		return;
	osd_unit_load(unit, &load);
	was = one_word("count", load.workers);
	is = one_word("count", osd_unit_set_workers(unit, (unsigned)count));
	answer_changed(request, "workers", &was, &is);
}

/* The keys to change, or their present values; false: an answer was sent. */
static bool pool_words(struct osd_control_request *request, struct words *words, const char *pool)
{
	for (size_t i = 0; i < request->count; i++) {
		const struct osd_control_pair *pair = &request->pairs[i];
		char key[OSD_CONTROL_KEY_MAX + 1] = "", now[OSD_POOL_VALUE_MAX];
		const char *value = pair->value;
		size_t length = pair->value_bytes;

		if (osd_control_is_key(pair, "name") || osd_control_is_key(pair, "by") ||
		    osd_control_is_key(pair, "why"))
			continue;
		memcpy(key, pair->key, pair->key_bytes);
		if (pool) {
			if (!osd_exec_pool_value(request->control->targets.exec, pool, key, now))
				continue; /* refused where it is set */
			value = now;
			length = strlen(now);
		}
		if (memchr(value, ';', length) || !add_word(words, key, strlen(key), value, length))
			return osd_control_fail(request, "bad-value",
						"%s: the value is too long, or has a ';'", key);
	}
	if (words->used || pool)
		return true;
	return osd_control_fail(request, "bad-value", "nothing is to change");
}

/* Whether a change has failed; then the error is sent. */
static bool has_failed(struct osd_control_request *request, enum osd_status status,
		       const char *message)
{
	if (status != OSD_OK)
		osd_control_fail(request,
				 status == OSD_E_NO_OBJECT     ? "no-such-pool"
				 : status == OSD_E_PARAM_FIELD ? "bad-value"
							       : "failed",
				 "%s", message);
	return status != OSD_OK;
}

void osd_control_do_pool(struct osd_control_request *request)
{
	struct osd_exec *exec = request->control->targets.exec;
	char name[POOL_NAME_SIZE], what[POOL_NAME_SIZE + 5], message[OSD_ADMIN_MESSAGE_MAX];
	struct words wanted = {.used = 0}, was = wanted, is = wanted;
	enum osd_status status;

	if (!osd_control_text_of(request, "name", name, sizeof(name)) ||
	    !pool_words(request, &wanted, NULL) || !pool_words(request, &was, name))
		return;
	status = osd_exec_pool_set(exec, name, wanted.text, message);
	if (has_failed(request, status, message))
		return;
	snprintf(what, sizeof(what), "pool %s", name);
	if (pool_words(request, &is, name))
		answer_changed(request, what, &was, &is);
}

void osd_control_do_recycle(struct osd_control_request *request)
{
	char name[POOL_NAME_SIZE], what[POOL_NAME_SIZE + 5], message[OSD_ADMIN_MESSAGE_MAX];
	const struct words none = {.used = 0};
	enum osd_status status;

	if (!osd_control_text_of(request, "name", name, sizeof(name)))
		return;
	status = osd_exec_pool_recycle(request->control->targets.exec, name, message);
	if (has_failed(request, status, message))
		return;
	snprintf(what, sizeof(what), "pool %s", name);
	log_change(request, what, "its sandboxes", "new ones");
	answer_changed(request, NULL, &none, &none);
}

/* Pools and signers: both, or neither if one of the files is wrong. */
static enum osd_status reload(const struct osd_control_targets *targets, char changed[CHANGED_MAX],
			      char message[OSD_ADMIN_MESSAGE_MAX])
{
	char why[256];
	struct osd_signers *signers = NULL;
	enum osd_status status = osd_functions_prepare(targets->functions, why, &signers);

	if (status != OSD_OK) {
		snprintf(message, OSD_ADMIN_MESSAGE_MAX, "%s", why);
		return status;
	}
	status = osd_exec_pools_reload(targets->exec, changed, CHANGED_MAX, message);
	if (status == OSD_OK)
		osd_functions_use(targets->functions, signers);
	else
		osd_signers_free(signers);
	return status;
}

void osd_control_do_reload(struct osd_control_request *request)
{
	char changed[CHANGED_MAX], message[OSD_ADMIN_MESSAGE_MAX];
	enum osd_status status = reload(&request->control->targets, changed, message);
	struct osd_json json;

	if (has_failed(request, status, message))
		return;
	log_change(request, "pools", "the file", "read again");
	json = osd_control_begin(request->control);
	osd_json_open(&json, "changed", '[');
	for (const char *at = changed; *at;) {
		size_t length = strcspn(at, "\n");

		osd_info("control: pool %.*s", (int)length, at);
		osd_json_text_n(&json, NULL, at, length);
		at += length + (at[length] == '\n');
	}
	osd_json_close(&json, ']');
	osd_control_send(request->control, request->peer, OSD_CONTROL_OK, request->serial, &json);
}

static const struct {
	const char *key;
	size_t at; /* of its number, unsigned */
} share_keys[] = {{"weight", offsetof(struct osd_principal_share, weight)},
		  {"queue", offsetof(struct osd_principal_share, queue_max)},
		  {"at_once", offsetof(struct osd_principal_share, at_once)}};

static unsigned *share_number(struct osd_principal_share *share, size_t i)
{
	return (unsigned *)(void *)((char *)share + share_keys[i].at);
}

/* The requested keys with their values in share. */
static struct words share_words(const struct osd_control_request *request,
				struct osd_principal_share *share)
{
	struct words words = {.used = 0};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(share_keys); i++)
		if (osd_control_find(request, share_keys[i].key))
			add_number(&words, share_keys[i].key, *share_number(share, i));
	return words;
}

/* False: it is answered. */
static bool read_share(struct osd_control_request *request, struct osd_principal_share *share)
{
	bool any = false;
	uint64_t value;

	for (size_t i = 0; i < OSD_ARRAY_SIZE(share_keys); i++) {
		if (!osd_control_find(request, share_keys[i].key))
			continue;
		if (!osd_control_number_of(request, share_keys[i].key, 0, UINT32_MAX, &value))
			return false;
		*share_number(share, i) = (unsigned)value;
		any = true;
	}
	return any || osd_control_fail(request, "bad-value", "nothing is to change");
}

void osd_control_do_principal(struct osd_control_request *request)
{
	struct osd_exec *exec = request->control->targets.exec;
	char name[PRINCIPAL_SIZE], quoted[PRINCIPAL_SIZE], what[PRINCIPAL_SIZE + 10];
	char message[OSD_ADMIN_MESSAGE_MAX];
	struct osd_principal_share share;
	struct words was, is;
	enum osd_status status;

	if (!osd_control_text_of(request, "name", name, sizeof(name)))
		return;
	osd_exec_principal_share(exec, name, &share);
	was = share_words(request, &share);
	if (!read_share(request, &share))
		return;
	status = osd_exec_principal_set(exec, name, &share, message);
	if (has_failed(request, status, message))
		return;
	is = share_words(request, &share);
	snprintf(what, sizeof(what), "principal %s",
		 osd_log_quote(quoted, sizeof(quoted), name, strlen(name)));
	answer_changed(request, what, &was, &is);
}

void osd_control_do_shed(struct osd_control_request *request)
{
	struct osd_control *control = request->control;
	struct words was, is;
	uint64_t on;

	if (!osd_control_number_of(request, "on", 0, 1, &on))
		return;
	was = one_word("on", control->shedding);
	is = one_word("on", on);
	control->shedding = on;
	osd_exec_shed(control->targets.exec, on);
	answer_changed(request, "shedding", &was, &is);
}
