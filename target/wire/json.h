/* SPDX-License-Identifier: GPL-2.0-or-later */
/* json.h -- writes JSON into a buffer of given size; text that does not fit makes it bad, as with
 * struct osd_wr.  The caller closes what it opens.  key: NULL in arrays. */
#ifndef OSD_WIRE_JSON_H
#define OSD_WIRE_JSON_H

#include "base/histogram.h"
#include "wire/cursor.h"

struct osd_json {
	struct osd_wr w;
	bool comma; /* something stands before */
};

static inline struct osd_json osd_json_init(void *data, size_t capacity)
{
	return (struct osd_json){.w = osd_wr_init(data, capacity)};
}

/* bracket: '{' or '[', and '}' or ']'. */
void osd_json_open(struct osd_json *json, const char *key, char bracket);
void osd_json_close(struct osd_json *json, char bracket);
void osd_json_null(struct osd_json *json, const char *key);
void osd_json_bool(struct osd_json *json, const char *key, bool value);
void osd_json_number(struct osd_json *json, const char *key, uint64_t value);
/* As seconds, with a fraction where there is one. */
void osd_json_usec(struct osd_json *json, const char *key, uint64_t usec);
/* Text that is not clean UTF-8 (wire/text.h) shows each byte above 7Fh as the letter of that number. */
void osd_json_text(struct osd_json *json, const char *key, const char *text);
void osd_json_text_n(struct osd_json *json, const char *key, const char *text, size_t length);
/* {"counts": [...], "sum": seconds}: one count for each bound, and one for longer times. */
void osd_json_histogram(struct osd_json *json, const char *key,
			const struct osd_histogram *histogram);

#endif
