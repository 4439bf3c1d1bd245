/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signing.c -- see signing.h. */
#include "function/signing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "function/signers.h"
#include "object/txn_run.h"

#define SPACE "iosd-function"

/* ---- the list in use --------------------------------------------------------------------------------- */

static struct osd_signers *get_signers(struct osd_functions *functions)
{
	struct osd_signers *signers;

	osd_lock(&functions->lock);
	signers = functions->signers;
	signers->references++;
	osd_unlock(&functions->lock);
	return signers;
}

void osd_signers_put(struct osd_functions *functions, struct osd_signers *signers)
{
	bool last;

	if (!signers)
		return;
	osd_lock(&functions->lock);
	last = --signers->references == 0;
	osd_unlock(&functions->lock);
	if (last)
		osd_signers_free(signers);
}

bool osd_signers_are_current(struct osd_functions *functions, const struct osd_signers *signers)
{
	bool current;

	osd_lock(&functions->lock);
	current = functions->signers == signers;
	osd_unlock(&functions->lock);
	return current;
}

/* ---- one signature ----------------------------------------------------------------------------------- */

bool osd_signing_is_refusal(enum osd_status status)
{
	return status == OSD_E_FUNCTION_UNSIGNED || status == OSD_E_FUNCTION_SIGNATURE ||
	       status == OSD_E_FUNCTION_SIGNER || status == OSD_E_FUNCTION_CAPS;
}

static enum osd_status refuse(const struct osd_function *function, enum osd_status status,
			      const char *why)
{
	osd_warning("function 0x%" PRIx64 "/0x%" PRIx64 " is refused: %s", function->id.partition_id,
		    function->id.object_id, why);
	return status;
}

/* NULL: the line is good for the function. */
static const char *fault_of(const struct osd_signer_line *line, const struct osd_function *function,
			    enum osd_signing_level level)
{
	char space[sizeof(SPACE) + 1 + OSD_FUNCTION_WORD_MAX];

	snprintf(space, sizeof(space), SPACE "-%s", osd_function_engine(function));
	if (!osd_signer_line_has_space(line, SPACE, false))
		return "the namespaces of its line do not include " SPACE;
	if (level == OSD_SIGNING_NAMED && !osd_signer_line_has_space(line, space, true))
		return "it is not listed for the engine: its line needs "
		       "namespaces=\"" SPACE "," SPACE "-ENGINE\"";
	if (line->after_msec && function->activated_msec < line->after_msec)
		return "the line's valid-after is later than the activation";
	if (line->before_msec && function->activated_msec >= line->before_msec)
		return "the line's valid-before is earlier than the activation";
	return NULL;
}

/* ---- caps -------------------------------------------------------------------------------------------- */

static bool exceeds(uint64_t limit, uint64_t cap)
{
	return cap && limit > cap;
}

/* A limit that the manifest does not have is the cap at each call. */
static const char *excess_of(const struct osd_signer_caps *caps, const struct osd_function *function)
{
	const char *engine = osd_function_engine(function);

	if (caps->engines[0] && !osd_has_word(caps->engines, ',', engine, strlen(engine)))
		return "its signer may not sign for this engine (iosd-engines)";
	if (caps->access && function->access > caps->access - 1)
		return "its access class is more than its signer's (iosd-access)";
	if (exceeds(function->wall_usec, caps->wall_usec))
		return "its limit of wall time is more than its signer's (iosd-wall)";
	if (exceeds(function->cpu_usec, caps->cpu_usec))
		return "its limit of processor time is more than its signer's (iosd-cpu)";
	if (exceeds(function->memory_bytes, caps->memory_bytes))
		return "its limit of memory is more than its signer's (iosd-memory)";
	return NULL;
}

/* A function without access uses nothing of its zone. */
bool osd_function_permits(const struct osd_function *function, uint64_t partition_id)
{
	const struct osd_signer_caps *caps = &function->caps;
	bool found = caps->zone_count == 0 || function->access == OSD_FUNCTION_NONE;

	for (size_t i = 0; i < caps->zone_count && !found; i++)
		found = caps->zones[i] == partition_id;
	return found;
}

/* A key may have several lines: one that is good is enough. */
static enum osd_status find_signer(const struct osd_signers *signers,
				   const struct osd_sshsig *signature,
				   enum osd_signing_level level, struct osd_function *function)
{
	const char *fault = "no line of the list of signers has it; add one, then reload", *excess;
	enum osd_status status = OSD_E_FUNCTION_SIGNER;
	char why[256];

	for (size_t i = 0; i < signers->count; i++) {
		const struct osd_signer_line *line = &signers->lines[i];

		if (line->key_length != signature->blob.length ||
		    memcmp(line->key, signature->blob.bytes, line->key_length) != 0)
			continue;
		fault = fault_of(line, function, level);
		excess = fault ? NULL : excess_of(&line->caps, function);
		if (!fault && !excess) {
			memcpy(function->signer, line->name, sizeof(line->name));
			function->caps = line->caps;
			return OSD_OK;
		}
		status = excess ? OSD_E_FUNCTION_CAPS : OSD_E_FUNCTION_SIGNER;
		fault = excess ? excess : fault;
	}
	snprintf(why, sizeof(why), "key %s: %s", function->fingerprint, fault);
	return refuse(function, status, why);
}

static enum osd_status check_signature(const struct osd_signers *signers,
				       const struct osd_signing *signing,
				       enum osd_signing_level level, struct osd_function *function)
{
	uint8_t buffer[OSD_SSHSIG_MAX];
	const struct osd_span text = {signing->signature, signing->signature_length};
	const struct osd_span statement = {(const uint8_t *)signing->statement,
					   signing->statement_length};
	struct osd_sshsig signature;
	enum osd_status status;

	if (!osd_sshsig_parse(text, buffer, &signature))
		return refuse(function, OSD_E_FUNCTION_SIGNATURE,
			      "its signature is damaged, or not of an Ed25519, ECDSA (P-256, "
			      "P-384) or RSA key (2048 to 8192 bits)");
	if (signature.name_space.length != strlen(SPACE) ||
	    memcmp(signature.name_space.bytes, SPACE, strlen(SPACE)) != 0)
		return refuse(function, OSD_E_FUNCTION_SIGNATURE,
			      "its signature is for another namespace: sign with -n " SPACE);
	osd_ssh_fingerprint(signature.blob, function->fingerprint);
	status = find_signer(signers, &signature, level, function);
	if (status == OSD_OK && !osd_sshsig_verify(&signature, statement))
		status = refuse(function, OSD_E_FUNCTION_SIGNATURE,
				"its signature is of other code or of another manifest: sign the "
				"statement again");
	return status;
}

/* A signature that is there must be good, also where none is needed. */
static enum osd_status check(const struct osd_signers *signers, const struct osd_signing *signing,
			     struct osd_function *function)
{
	enum osd_signing_level level = osd_signers_level(signers, osd_function_engine(function));
	enum osd_status status = OSD_OK;

	function->signer[0] = function->fingerprint[0] = '\0';
	function->caps = (struct osd_signer_caps){0};
	if (signing->signature_length)
		status = check_signature(signers, signing, level, function);
	else if (level != OSD_SIGNING_UNSIGNED)
		status = refuse(function, OSD_E_FUNCTION_UNSIGNED,
				"it has no signature, and the policy requires one for its engine");
	if (status != OSD_OK)
		function->signer[0] = function->fingerprint[0] = '\0';
	return status;
}

/* ---- a function -------------------------------------------------------------------------------------- */

struct reading {
	const struct osd_function *function;
	struct osd_signing *signing;
};

static enum osd_status read_signing(struct osd_txn *txn, void *arg)
{
	struct reading *reading = arg;

	return osd_function_signing(txn, reading->function->id, reading->function->sha256,
				    reading->signing);
}

enum osd_status osd_signing_check(struct osd_functions *functions, struct osd_function *function,
				  struct osd_signing *ret_signing, struct osd_signers **ret_signers)
{
	struct reading reading = {function, ret_signing};
	struct osd_signers *signers = get_signers(functions);
	enum osd_status status =
		osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, read_signing, &reading);

	if (status == OSD_OK)
		status = check(signers, ret_signing, function);
	if (status == OSD_OK)
		*ret_signers = signers;
	else
		osd_signers_put(functions, signers);
	return status;
}

enum osd_status osd_signing_same(struct osd_txn *txn, const struct osd_function *function,
				 const struct osd_signing *checked)
{
	struct osd_signing now;
	enum osd_status status = osd_function_signing(txn, function->id, function->sha256, &now);

	if (status != OSD_OK)
		return status;
	return now.statement_length == checked->statement_length &&
			       now.signature_length == checked->signature_length &&
			       memcmp(now.statement, checked->statement, now.statement_length) ==
				       0 &&
			       memcmp(now.signature, checked->signature, now.signature_length) == 0
		       ? OSD_OK
		       : OSD_E_BUSY;
}

enum osd_status osd_signing_recheck(struct osd_functions *functions,
				    struct osd_function *function)
{
	struct osd_function copy = *function;
	struct osd_signing signing;
	struct osd_signers *signers;
	enum osd_status status, ended;

	status = osd_signing_check(functions, &copy, &signing, &signers);
	if (status == OSD_OK) {
		osd_signers_put(functions, signers);
		function->caps = copy.caps;
		osd_function_set_caps(functions, function);
	}
	/* It was removed meanwhile. */
	if (osd_status_is_gone(status))
		return OSD_OK;
	if (!osd_signing_is_refusal(status))
		return status;
	ended = osd_function_end(functions, function);
	if (ended != OSD_OK)
		return ended;
	osd_warning("function 0x%" PRIx64 "/0x%" PRIx64 " is not active any more",
		    function->id.partition_id, function->id.object_id);
	return status;
}

/* ---- another list ------------------------------------------------------------------------------------ */

enum osd_status osd_functions_prepare(struct osd_functions *functions, char message[256],
				      struct osd_signers **ret_signers)
{
	struct osd_signers *signers = NULL, *was;
	enum osd_status status = osd_signers_read(functions->signers_file, message, &signers);
	bool looser;

	if (status != OSD_OK)
		return status;
	was = get_signers(functions);
	looser = osd_signers_are_looser(was, signers, message);
	osd_signers_put(functions, was);
	if (looser) {
		osd_signers_free(signers);
		return OSD_E_PARAM_FIELD;
	}
	*ret_signers = signers;
	return OSD_OK;
}

/* The active function at the last place before *at.  Backwards, since an entry that goes is replaced by the last.
 * False: there is none. */
static bool copy_active(struct osd_functions *functions, size_t *at, struct osd_function *ret)
{
	bool found = false;

	osd_lock(&functions->lock);
	*at = OSD_MIN(*at, functions->count);
	while (*at > 0 && !found) {
		const struct entry *entry = &functions->entries[--*at];

		found = !entry->pending;
		if (found)
			*ret = entry->function;
	}
	osd_unlock(&functions->lock);
	return found;
}

/* Activations that are checked by the old list look for this one when they are stored (activate.c). */
void osd_functions_use(struct osd_functions *functions, struct osd_signers *signers)
{
	struct osd_function function;
	struct osd_signers *was;
	size_t at = SIZE_MAX, refused = 0;
	char policy[128];

	osd_lock(&functions->lock);
	was = functions->signers;
	functions->signers = signers;
	osd_unlock(&functions->lock);
	osd_signers_put(functions, was);
	while (copy_active(functions, &at, &function)) {
		enum osd_status status = osd_signing_recheck(functions, &function);

		refused += osd_signing_is_refusal(status);
		if (status != OSD_OK && !osd_signing_is_refusal(status))
			osd_error("function 0x%" PRIx64 "/0x%" PRIx64 ": its signature cannot be "
				  "checked: %s", function.id.partition_id, function.id.object_id,
				  osd_status_info(status)->meaning);
	}
	osd_signers_describe(signers, policy);
	osd_info("functions: %zu signers, %s; %zu functions deactivated", signers->count, policy,
		 refused);
}
