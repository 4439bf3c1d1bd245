/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log.h -- log lines.  One line per call: time, level, text; written with a single write(2) to
 * stderr (tgtd's log) or to the file descriptor given to osd_log_init.  Thread safe, no locks held
 * by the caller matter.  Text that came from outside goes through osd_log_quote. */
#ifndef OSD_BASE_LOG_H
#define OSD_BASE_LOG_H

#include <stddef.h>

enum osd_log_level { OSD_LOG_ERROR, OSD_LOG_WARNING, OSD_LOG_INFO, OSD_LOG_DEBUG };

/* fd: where lines go; tag: program name at the start of each line (borrowed, lives on). */
void osd_log_init(int fd, const char *tag, enum osd_log_level threshold);

void osd_log(enum osd_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Copies text into buffer with control and non-ASCII bytes escaped (\xNN), always terminated, cut
 * with "..." where it does not fit.  Returns buffer. */
const char *osd_log_quote(char *buffer, size_t size, const char *text, size_t length);

#define osd_error(...)   osd_log(OSD_LOG_ERROR, __VA_ARGS__)
#define osd_warning(...) osd_log(OSD_LOG_WARNING, __VA_ARGS__)
#define osd_info(...)    osd_log(OSD_LOG_INFO, __VA_ARGS__)
#define osd_debug(...)   osd_log(OSD_LOG_DEBUG, __VA_ARGS__)

#endif
