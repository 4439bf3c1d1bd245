/* SPDX-License-Identifier: GPL-2.0-or-later */
/* page.c -- page 2000_0006h, the manifest of a function.  The store keeps its values as they are set; a manifest is
 * fixed while the function is active.  State, SHA-256 and time of activation are the target's. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "function/signing.h"
#include "object/txn_run.h"
#include "security/box.h"
#include "wire/osd2.h"
#include "wire/cursor.h"
#include "wire/text.h"

enum form { OWN, TEXT, NAME, WORDS, NUMBER, ACCESS, BYTES, SIZE, BLOCK, RATIO, FLAG, RECORDS };

#define RATIO_BYTES 12u /* header, numerator, denominator: 4 bytes each */

struct field {
	enum form form;
	size_t most;	  /* bytes of a text */
	const char *name; /* in the statement that is signed; NULL: it is no part of that */
};

static const struct field fields[MANIFEST_END] = {
	[MANIFEST_ENGINE] = {NAME, OSD_FUNCTION_WORD_MAX, "engine"},
	[MANIFEST_ABI] = {NUMBER, 4, "abi"},
	[MANIFEST_VERSION] = {TEXT, OSD_FUNCTION_WORD_MAX, "version"},
	[MANIFEST_ACCESS] = {ACCESS, 1, "access"},
	[MANIFEST_ALIAS] = {NAME, OSD_FUNCTION_WORD_MAX, "alias"},
	[MANIFEST_DESCRIPTION] = {TEXT, OSD_FUNCTION_TEXT_MAX, "description"},
	[MANIFEST_METHODS] = {WORDS, OSD_FUNCTION_TEXT_MAX, "methods"},
	[MANIFEST_POOL] = {TEXT, OSD_FUNCTION_WORD_MAX, "pool"},
	[MANIFEST_WALL] = {NUMBER, 8, "wall_usec"},
	[MANIFEST_CPU] = {NUMBER, 8, "cpu_usec"},
	[MANIFEST_MEMORY] = {NUMBER, 8, "memory_bytes"},
	[MANIFEST_OUTPUT] = {NUMBER, 8, "output_bytes"},
	[MANIFEST_SIGNATURE] = {BYTES, OSD_SSHSIG_MAX, NULL},
	[MANIFEST_SIZE] = {SIZE, 1, "size"},
	[MANIFEST_BLOCK] = {BLOCK, 4, "block"},
	[MANIFEST_RATIO] = {RATIO, RATIO_BYTES, "ratio"},
	[MANIFEST_INVERSE] = {NAME, OSD_FUNCTION_WORD_MAX, "inverse"},
	[MANIFEST_DETERMINISTIC] = {FLAG, 1, "deterministic"},
	[MANIFEST_OPTIONAL] = {FLAG, 1, "optional"},
	[MANIFEST_RECORDS] = {RECORDS, 1, "records"},
};

bool osd_function_is_one(struct osd_object_id id)
{
	return osd_function_is_partition(id.partition_id) && id.object_id >= OSD_FIRST_ID;
}

bool osd_function_is_partition(uint64_t partition_id)
{
	return partition_id != 0 && partition_id <= OSD_FUNCTION_PARTITION_LAST;
}

/* ---- what may be set ----------------------------------------------------------------------------- */

static bool is_name_byte(uint8_t byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
}

static bool is_name(const uint8_t *value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!is_name_byte(value[i]))
			return false;
	return length > 0;
}

/* Names, with one space between two. */
static bool are_words(const uint8_t *value, size_t length)
{
	const uint8_t *space = memchr(value, ' ', length);
	size_t word = space ? (size_t)(space - value) : length;

	if (word > OSD_FUNCTION_WORD_MAX || !is_name(value, word))
		return false;
	return !space || are_words(space + 1, length - word - 1);
}

/* Digits alone would be taken for a SHA-256. */
static bool is_digits(const uint8_t *value, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!((value[i] >= '0' && value[i] <= '9') || (value[i] >= 'a' && value[i] <= 'f')))
			return false;
	return length >= OSD_FUNCTION_DIGITS;
}

static bool fits(uint32_t number, const uint8_t *value, size_t length)
{
	const struct field *field = &fields[number];

	switch (field->form) {
	case TEXT: /* without newlines, which would add lines to the signed statement */
		return length <= field->most && osd_text_is_clean(value, length);
	case NAME:
		return length <= field->most && is_name(value, length) &&
		       !(number == MANIFEST_ALIAS && is_digits(value, length));
	case WORDS:
		return length <= field->most && are_words(value, length);
	case NUMBER: /* 0 stands for a value that is not set (struct osd_function) */
		return length == field->most && osd_get_be(value, length) != 0;
	case ACCESS:
		return length == 1 && value[0] <= OSD_FUNCTION_WRITE;
	case BYTES:
		return length <= field->most;
	case SIZE:
		return length == 1 && value[0] >= OSD_SIZE_SAME && value[0] <= OSD_SIZE_UNKNOWN;
	case BLOCK:
		return length == 4 && osd_get_be(value, 4) - 1 < OSD_CONTRACT_BLOCK_MAX;
	case RATIO:
		return length == RATIO_BYTES && osd_get_be(value + 4, 4) && osd_get_be(value + 8, 4);
	case FLAG:
		return length == 1 && value[0] == 1;
	case RECORDS:
		return length == 1 && value[0] && value[0] <= OSD_RECORDS_TABLE;
	case OWN:
		break;
	}
	return false;
}

static enum osd_status has_value(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
				 bool *ret_has)
{
	uint8_t byte;
	size_t length = 0;
	enum osd_status status =
		osd_page_kept_get(txn, id, OSD_PAGE_FUNCTION, number, &byte, 1, &length);

	*ret_has = length > 0;
	return status;
}

static enum osd_status set(void *context, struct osd_txn *txn, struct osd_object_id id,
			   uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	bool active;
	enum osd_status status;

	(void)context;
	if (!osd_function_is_one(id) || number == 0 || number >= MANIFEST_END ||
	    fields[number].form == OWN || (length && !fits(number, value, length)))
		return OSD_E_PARAM_FIELD;
	/* osd_attr_set holds the record, and so does an activation: this is so until the commit. */
	status = has_value(txn, id, MANIFEST_SHA256, &active);
	if (status == OSD_OK && active)
		status = OSD_E_PARAM_FIELD;
	return status == OSD_OK ? osd_page_kept_set(txn, id, page, number, value, length) : status;
}

/* ---- what is read ---------------------------------------------------------------------------------- */

static enum osd_status get_box_key(const struct osd_functions *functions, uint8_t *buffer,
				   size_t capacity, size_t *ret_length)
{
	uint8_t key[OSD_BOX_KEY];
	enum osd_status status = osd_box_public(functions->objects, key);

	if (status == OSD_OK) {
		memcpy(buffer, key, OSD_MIN(capacity, sizeof(key)));
		*ret_length = sizeof(key);
	}
	return status;
}

/* A list that is too long is cut between two lines. */
static size_t list_users(const struct osd_functions *functions, struct osd_object_id id,
			 uint8_t *buffer, size_t capacity)
{
	const struct osd_functions_jobs *jobs = &functions->jobs;

	return jobs->list_users
		       ? jobs->list_users(jobs->arg, id, (char *)buffer,
					  OSD_MIN(capacity, (size_t)OSD_FUNCTION_CALLS_MAX))
		       : 0;
}

static enum osd_status get(void *context, struct osd_txn *txn, struct osd_object_id id,
			   uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
			   size_t *ret_length)
{
	bool active;
	enum osd_status status;

	*ret_length = 0;
	if (!osd_function_is_one(id) || number == 0 || number >= MANIFEST_END)
		return OSD_OK;
	if (number == MANIFEST_BOX_KEY)
		return get_box_key(context, buffer, capacity, ret_length);
	if (number == MANIFEST_CALLS) {
		osd_function_get_calls(context, id, osd_txn_acts_for(txn), buffer, capacity,
				       ret_length);
		return OSD_OK;
	}
	if (number == MANIFEST_USERS) {
		*ret_length = list_users(context, id, buffer, capacity);
		return OSD_OK;
	}
	if (number != MANIFEST_STATE)
		return osd_page_kept_get(txn, id, page, number, buffer, capacity, ret_length);
	status = has_value(txn, id, MANIFEST_SHA256, &active);
	if (status == OSD_OK) {
		*ret_length = 1;
		if (capacity)
			buffer[0] = active;
	}
	return status;
}

void osd_function_add_page(struct osd_functions *functions)
{
	functions->page = (struct osd_page_provider){.page = OSD_PAGE_FUNCTION,
						     .page_name = "iosd function",
						     .context = functions,
						     .get = get,
						     .last = MANIFEST_END - 1,
						     .set = set};
	osd_objects_add_page(functions->objects, &functions->page);
}

/* ---- the manifest as a whole ------------------------------------------------------------------------- */

/* A value from the disk; what does not fit is as if it were not there. */
struct reading {
	struct osd_txn *txn;
	struct osd_object_id id;
	enum osd_status status;
};

static size_t read_bytes(struct reading *reading, uint32_t number, void *bytes, size_t most)
{
	size_t length = 0;

	if (reading->status == OSD_OK)
		reading->status = osd_page_kept_get(reading->txn, reading->id, OSD_PAGE_FUNCTION,
						    number, bytes, most, &length);
	return reading->status == OSD_OK && length <= most ? length : 0;
}

static void read_text(struct reading *reading, uint32_t number, char *text, size_t capacity)
{
	text[read_bytes(reading, number, text, capacity - 1)] = '\0';
}

static uint64_t read_number(struct reading *reading, uint32_t number)
{
	uint8_t bytes[8];

	return osd_get_be(bytes, read_bytes(reading, number, bytes, sizeof(bytes)));
}

static void read_contract(struct reading *reading, struct osd_function *function)
{
	struct osd_contract *contract = &function->contract;
	uint8_t ratio[RATIO_BYTES];

	contract->size = (uint8_t)read_number(reading, MANIFEST_SIZE);
	contract->block = (uint32_t)read_number(reading, MANIFEST_BLOCK);
	if (read_bytes(reading, MANIFEST_RATIO, ratio, sizeof(ratio)) == sizeof(ratio)) {
		contract->header = (int32_t)(uint32_t)osd_get_be(ratio, 4);
		contract->numerator = (uint32_t)osd_get_be(ratio + 4, 4);
		contract->denominator = (uint32_t)osd_get_be(ratio + 8, 4);
	}
	read_text(reading, MANIFEST_INVERSE, function->inverse, sizeof(function->inverse));
	contract->inverse = function->inverse[0];
	contract->deterministic = read_number(reading, MANIFEST_DETERMINISTIC);
	contract->optional = read_number(reading, MANIFEST_OPTIONAL);
	contract->records = (uint8_t)read_number(reading, MANIFEST_RECORDS);
}

enum osd_status osd_function_read(struct osd_txn *txn, struct osd_object_id id,
				  struct osd_function *ret_function)
{
	struct reading reading = {txn, id, OSD_OK};
	struct osd_function function = {.id = id};

	read_text(&reading, MANIFEST_ENGINE, function.engine, sizeof(function.engine));
	read_text(&reading, MANIFEST_ALIAS, function.alias, sizeof(function.alias));
	read_text(&reading, MANIFEST_POOL, function.pool, sizeof(function.pool));
	read_text(&reading, MANIFEST_METHODS, function.methods, sizeof(function.methods));
	read_contract(&reading, &function);
	function.access = (uint8_t)read_number(&reading, MANIFEST_ACCESS);
	function.abi = (uint32_t)read_number(&reading, MANIFEST_ABI);
	function.wall_usec = read_number(&reading, MANIFEST_WALL);
	function.cpu_usec = read_number(&reading, MANIFEST_CPU);
	function.memory_bytes = read_number(&reading, MANIFEST_MEMORY);
	function.output_bytes = read_number(&reading, MANIFEST_OUTPUT);
	read_text(&reading, MANIFEST_SIGNER, function.signer, sizeof(function.signer));
	read_text(&reading, MANIFEST_FINGERPRINT, function.fingerprint,
		  sizeof(function.fingerprint));
	function.activated_msec = read_number(&reading, MANIFEST_ACTIVATED);
	/* A value of another length is damaged, and may have left bytes.  Zeros: not active. */
	if (read_bytes(&reading, MANIFEST_SHA256, function.sha256, sizeof(function.sha256)) !=
	    sizeof(function.sha256))
		memset(function.sha256, 0, sizeof(function.sha256));
	if (reading.status == OSD_OK)
		*ret_function = function;
	return reading.status;
}

static enum osd_status load(struct osd_txn *txn, void *arg)
{
	struct osd_function *function = arg;

	return osd_function_read(txn, function->id, function);
}

enum osd_status osd_function_load(struct osd_functions *functions, struct osd_function *function)
{
	return osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, load, function);
}

enum osd_status osd_function_mark(struct osd_txn *txn, struct osd_object_id id,
				  const struct osd_function *function)
{
	static const struct osd_function none;
	const struct osd_function *is = function ? function : &none;
	uint8_t time[6];
	const struct {
		uint32_t number;
		const void *value;
		size_t length;
	} values[] = {
		{MANIFEST_SHA256, is->sha256, sizeof(is->sha256)},
		{MANIFEST_ACTIVATED, time, sizeof(time)},
		{MANIFEST_SIGNER, is->signer, strlen(is->signer)},
		{MANIFEST_FINGERPRINT, is->fingerprint, strlen(is->fingerprint)},
	};
	enum osd_status status = OSD_OK;

	osd_put_be(time, is->activated_msec, sizeof(time));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(values) && status == OSD_OK; i++)
		status = osd_page_kept_set(txn, id, OSD_PAGE_FUNCTION, values[i].number,
					   values[i].value, function ? values[i].length : 0);
	return status;
}

/* ---- what is signed ---------------------------------------------------------------------------------- */

/* Adds to a statement; every value is short enough for it. */
__attribute__((format(printf, 2, 3))) static void add(struct osd_signing *signing,
						      const char *format, ...)
{
	const size_t room = sizeof(signing->statement) - signing->statement_length;
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(signing->statement + signing->statement_length, room, format, values);
	va_end(values);
	signing->statement_length += OSD_MIN((size_t)OSD_MAX(length, 0), room - 1);
}

/* A line "NAME VALUE" for a value that is set. */
static void add_value(struct reading *reading, uint32_t number, struct osd_signing *signing)
{
	static const char *const accesses[] = {OSD_FUNCTION_ACCESSES(OSD_NAME_AT)};
	static const char *const sizes[] = {OSD_CONTRACT_SIZES(OSD_NAME_AT)};
	static const char *const records[] = {OSD_CONTRACT_RECORDS(OSD_NAME_AT)};
	const struct field *field = &fields[number];
	uint8_t value[OSD_FUNCTION_TEXT_MAX];
	size_t length = read_bytes(reading, number, value, sizeof(value));

	if (length == 0)
		return;
	if (field->form == NUMBER || field->form == BLOCK || field->form == FLAG)
		add(signing, "%s %" PRIu64 "\n", field->name, osd_get_be(value, OSD_MIN(length, 8)));
	else if (field->form == RATIO && length == RATIO_BYTES)
		add(signing, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", field->name,
		    osd_get_be(value, 4), osd_get_be(value + 4, 4), osd_get_be(value + 8, 4));
	else if (field->form == SIZE)
		add(signing, "%s %s\n", field->name,
		    value[0] <= OSD_SIZE_UNKNOWN ? sizes[value[0]] : "");
	else if (field->form == RECORDS)
		add(signing, "%s %s\n", field->name,
		    value[0] <= OSD_RECORDS_TABLE ? records[value[0]] : "");
	else if (field->form == ACCESS)
		add(signing, "%s %s\n", field->name,
		    value[0] <= OSD_FUNCTION_WRITE ? accesses[value[0]] : "");
	else
		add(signing, "%s %.*s\n", field->name, (int)length, (const char *)value);
}

enum osd_status osd_function_signing(struct osd_txn *txn, struct osd_object_id id,
				     const uint8_t sha256[32], struct osd_signing *ret_signing)
{
	struct reading reading = {txn, id, OSD_OK};

	*ret_signing = (struct osd_signing){0};
	add(ret_signing, "iosd-function 1\nsha256 ");
	for (size_t i = 0; i < 32; i++)
		add(ret_signing, "%02x", sha256[i]);
	add(ret_signing, "\n");
	/* The client signs the same text, so the order of the lines is fixed: that of the numbers
	 * (pyosd/security/function_signature.py). */
	for (uint32_t number = 1; number < MANIFEST_END; number++)
		if (fields[number].name)
			add_value(&reading, number, ret_signing);
	ret_signing->signature_length =
		read_bytes(&reading, MANIFEST_SIGNATURE, ret_signing->signature,
			   sizeof(ret_signing->signature));
	return reading.status;
}
