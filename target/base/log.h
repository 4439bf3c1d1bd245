/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log.h -- log lines.  One line per call: time, level, what it is about, text; written with a single
 * write(2) to stderr (tgtd's log) or to the file descriptor given to osd_log_init.  Thread safe, no
 * locks held by the caller matter.  Text that came from outside goes through osd_log_quote.
 *
 * The environment rules: IOSD_LOG_LEVEL (error, warning, info, debug), IOSD_LOG_FORMAT (text, json:
 * one object a line, docs/logs.md). */
#ifndef OSD_BASE_LOG_H
#define OSD_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum osd_log_level { OSD_LOG_ERROR, OSD_LOG_WARNING, OSD_LOG_INFO, OSD_LOG_DEBUG };

/* fd: the destination of lines; tag: program name at the start of each line (borrowed for the life of
 * the process). */
void osd_log_init(int fd, const char *tag, enum osd_log_level threshold);

/* Whether lines of this level are written. */
bool osd_log_wants(enum osd_log_level level);

/* The subject of a line; 0 and NULL: none.  It has the same form in all lines, so that a search for
 * a job finds all of them. */
struct osd_log_about {
	uint64_t job_partition, job_object, sandbox;
	const char *pool; /* of characters that need no quoting */
};

/* At levels info and debug a line never waits for the reader of the log: lines that find no room
 * are counted, and the number is logged. */
void osd_log_about(const struct osd_log_about *about, enum osd_log_level level, const char *format,
		   ...) __attribute__((format(printf, 3, 4)));
extern const struct osd_log_about osd_log_nothing;
#define osd_log(...) osd_log_about(&osd_log_nothing, __VA_ARGS__)

/* Copies text into buffer with control and non-ASCII bytes escaped (\xNN), always terminated, cut
 * with "..." where it does not fit.  Returns buffer. */
const char *osd_log_quote(char *buffer, size_t size, const char *text, size_t length);

#define osd_error(...)   osd_log(OSD_LOG_ERROR, __VA_ARGS__)
#define osd_warning(...) osd_log(OSD_LOG_WARNING, __VA_ARGS__)
#define osd_info(...)    osd_log(OSD_LOG_INFO, __VA_ARGS__)
#define osd_debug(...)   osd_log(OSD_LOG_DEBUG, __VA_ARGS__)

#endif
