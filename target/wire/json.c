/* SPDX-License-Identifier: GPL-2.0-or-later */
/* json.c -- see json.h. */
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>

#include "wire/text.h"

#define USEC UINT64_C(1000000)

static void put_letter(struct osd_json *json, uint8_t letter, bool clean)
{
	char escaped[8];

	if (letter >= 0x20 && letter != '"' && letter != '\\' && (letter < 0x7f || clean)) {
		osd_wr_be(&json->w, letter, 1);
		return;
	}
	snprintf(escaped, sizeof(escaped), "\\u%04x", letter);
	osd_wr_text(&json->w, escaped);
}

static void put_text(struct osd_json *json, const char *text, size_t length)
{
	bool clean = osd_text_is_clean((const uint8_t *)text, length);

	osd_wr_text(&json->w, "\"");
	for (size_t i = 0; i < length; i++)
		put_letter(json, (uint8_t)text[i], clean);
	osd_wr_text(&json->w, "\"");
}

static void begin(struct osd_json *json, const char *key)
{
	if (json->comma)
		osd_wr_text(&json->w, ",");
	json->comma = true;
	if (!key)
		return;
	put_text(json, key, strlen(key));
	osd_wr_text(&json->w, ":");
}

void osd_json_open(struct osd_json *json, const char *key, char bracket)
{
	begin(json, key);
	osd_wr_be(&json->w, (uint8_t)bracket, 1);
	json->comma = false;
}

void osd_json_close(struct osd_json *json, char bracket)
{
	osd_wr_be(&json->w, (uint8_t)bracket, 1);
	json->comma = true;
}

void osd_json_null(struct osd_json *json, const char *key)
{
	begin(json, key);
	osd_wr_text(&json->w, "null");
}

void osd_json_bool(struct osd_json *json, const char *key, bool value)
{
	begin(json, key);
	osd_wr_text(&json->w, value ? "true" : "false");
}

void osd_json_number(struct osd_json *json, const char *key, uint64_t value)
{
	char digits[24];

	begin(json, key);
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	osd_wr_text(&json->w, digits);
}

void osd_json_usec(struct osd_json *json, const char *key, uint64_t usec)
{
	char digits[40];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64 ".%06" PRIu64, usec / USEC,
			      usec % USEC);

	while (digits[length - 1] == '0')
		digits[--length] = '\0';
	if (digits[length - 1] == '.')
		digits[--length] = '\0';
	begin(json, key);
	osd_wr_text(&json->w, digits);
}

void osd_json_text_n(struct osd_json *json, const char *key, const char *text, size_t length)
{
	begin(json, key);
	put_text(json, text, length);
}

void osd_json_text(struct osd_json *json, const char *key, const char *text)
{
	osd_json_text_n(json, key, text, strlen(text));
}

void osd_json_histogram(struct osd_json *json, const char *key,
			const struct osd_histogram *histogram)
{
	osd_json_open(json, key, '{');
	osd_json_open(json, "counts", '[');
	for (unsigned i = 0; i <= OSD_HISTOGRAM_STEPS; i++)
		osd_json_number(json, NULL,
				atomic_load_explicit(&histogram->counts[i], memory_order_relaxed));
	osd_json_close(json, ']');
	osd_json_usec(json, "sum",
		      atomic_load_explicit(&histogram->sum_usec, memory_order_relaxed));
	osd_json_close(json, '}');
}
