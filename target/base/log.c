/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log.c -- see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int log_fd = STDERR_FILENO;
static const char *log_tag = "iosd";
static enum osd_log_level log_threshold = OSD_LOG_INFO;

void osd_log_init(int fd, const char *tag, enum osd_log_level threshold)
{
	log_fd = fd;
	log_tag = tag;
	log_threshold = threshold;
}

void osd_log(enum osd_log_level level, const char *format, ...)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	char line[1024];
	struct timespec now;
	struct tm utc;
	va_list arguments;
	int used;

	if (level > log_threshold)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	used = (int)strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &utc);
	used += snprintf(line + used, sizeof(line) - (size_t)used, ".%03ldZ %s %s: ",
			 now.tv_nsec / 1000000, log_tag, names[level]);
	va_start(arguments, format);
	used += vsnprintf(line + used, sizeof(line) - (size_t)used, format, arguments);
	va_end(arguments);
	if ((size_t)used > sizeof(line) - 1)
		used = sizeof(line) - 1;
	line[used] = '\n';
	if (write(log_fd, line, (size_t)used + 1) < 0)
		return; /* nowhere left to report it */
}

const char *osd_log_quote(char *buffer, size_t size, const char *text, size_t length)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];

		if (used + 8 > size) {
			memcpy(buffer + used, "...", 4);
			return buffer;
		}
		if (c >= 0x20 && c < 0x7f && c != '\\' && c != '\'')
			buffer[used++] = (char)c;
		else
			used += (size_t)snprintf(buffer + used, size - used, "\\x%02x", c);
	}
	buffer[used] = '\0';
	return buffer;
}
