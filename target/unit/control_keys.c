/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_keys.c -- reads the keys of a request, and refuses it (control_request.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/control_request.h"

bool osd_control_is_key(const struct osd_control_pair *pair, const char *key)
{
	return pair->key_bytes == strlen(key) && memcmp(pair->key, key, pair->key_bytes) == 0;
}

const struct osd_control_pair *osd_control_find(const struct osd_control_request *request,
						const char *key)
{
	for (size_t i = 0; i < request->count; i++)
		if (osd_control_is_key(&request->pairs[i], key))
			return &request->pairs[i];
	return NULL;
}

bool osd_control_fail(struct osd_control_request *request, const char *code, const char *format,
		      ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	osd_control_error(request->control, request->peer, request->serial, code, message);
	return false;
}

bool osd_control_text_of(struct osd_control_request *request, const char *key, char *text,
			 size_t size)
{
	const struct osd_control_pair *pair = osd_control_find(request, key);

	if (!pair || pair->value_bytes == 0 || pair->value_bytes >= size)
		return osd_control_fail(request, "bad-value", "%s must be 1 to %zu bytes", key,
					size - 1);
	memcpy(text, pair->value, pair->value_bytes);
	text[pair->value_bytes] = '\0';
	return true;
}

bool osd_control_number_of(struct osd_control_request *request, const char *key, uint64_t least,
			   uint64_t most, uint64_t *ret_number)
{
	const struct osd_control_pair *pair = osd_control_find(request, key);
	char digits[21] = "", *end;
	uint64_t number;

	if (pair && pair->value_bytes < sizeof(digits))
		memcpy(digits, pair->value, pair->value_bytes);
	errno = 0;
	number = strtoull(digits, &end, 10);
	if (*digits < '0' || *digits > '9' || *end || errno || number < least || number > most)
		return osd_control_fail(request, "bad-value",
					"%s must be a number from %" PRIu64 " to %" PRIu64, key,
					least, most);
	*ret_number = number;
	return true;
}
