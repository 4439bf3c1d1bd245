/* SPDX-License-Identifier: GPL-2.0-or-later */
/* log.c -- see log.h. */
#include "base/log.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Less than PIPE_BUF: a pipe takes such a line whole, so lines of several threads do not mix. */
#define LINE_MAX_BYTES 2048

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static int log_fd = STDERR_FILENO;
static const char *log_tag = "iosd";
static enum osd_log_level log_threshold = OSD_LOG_INFO;
static bool log_json;
const struct osd_log_about osd_log_nothing;

void osd_log_init(int fd, const char *tag, enum osd_log_level threshold)
{
	const char *level = getenv("IOSD_LOG_LEVEL"), *format = getenv("IOSD_LOG_FORMAT");

	log_fd = fd;
	log_tag = tag;
	log_threshold = threshold;
	for (int i = OSD_LOG_ERROR; level && i <= OSD_LOG_DEBUG; i++)
		if (strcmp(level, level_names[i]) == 0)
			log_threshold = (enum osd_log_level)i;
	log_json = format && strcmp(format, "json") == 0;
}

bool osd_log_wants(enum osd_log_level level)
{
	return level <= log_threshold;
}

/* ---- a line ---------------------------------------------------------------------------------- */

struct line {
	size_t used;
	char bytes[LINE_MAX_BYTES];
};

static __attribute__((format(printf, 2, 3))) void add(struct line *line, const char *format, ...)
{
	size_t room = sizeof(line->bytes) - line->used;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line->bytes + line->used, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		line->used += (size_t)length < room ? (size_t)length : room - 1;
}

/* Appends text as the inside of a JSON string, and leaves room for the rest of the line.  Bytes of
 * UTF-8 are escaped one by one: the text may have been cut inside a character, and the line must
 * stay valid JSON. */
static void add_escaped(struct line *line, const char *text)
{
	for (; *text && line->used < sizeof(line->bytes) - 16; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			add(line, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			add(line, "\\u%04x", c);
		else
			line->bytes[line->used++] = (char)c;
	}
}

static void add_time(struct line *line)
{
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	line->used += strftime(line->bytes + line->used, 32, "%Y-%m-%dT%H:%M:%S", &utc);
	add(line, ".%03ldZ", now.tv_nsec / 1000000);
}

static void write_json(struct line *line, const struct osd_log_about *about,
		       enum osd_log_level level, const char *text)
{
	add(line, "{\"time\": \"");
	add_time(line);
	add(line, "\", \"level\": \"%s\", \"component\": \"%s\"", level_names[level], log_tag);
	if (about->job_object)
		add(line, ", \"job\": \"0x%" PRIx64 "/0x%" PRIx64 "\"", about->job_partition,
		    about->job_object);
	if (about->pool)
		add(line, ", \"pool\": \"%s\"", about->pool);
	if (about->sandbox)
		add(line, ", \"sandbox\": %" PRIu64, about->sandbox);
	add(line, ", \"message\": \"");
	add_escaped(line, text);
	add(line, "\"}");
}

static void write_text(struct line *line, const struct osd_log_about *about,
		       enum osd_log_level level, const char *text)
{
	add_time(line);
	add(line, " %s %s: ", log_tag, level_names[level]);
	if (about->job_object)
		add(line, "job=0x%" PRIx64 "/0x%" PRIx64 " ", about->job_partition,
		    about->job_object);
	if (about->pool)
		add(line, "pool=%s ", about->pool);
	if (about->sandbox)
		add(line, "sandbox=%" PRIu64 " ", about->sandbox);
	add(line, "%s", text);
}

static void emit(const struct osd_log_about *about, enum osd_log_level level, const char *text)
{
	struct line line = {0};

	if (log_json)
		write_json(&line, about, level, text);
	else
		write_text(&line, about, level, text);
	line.bytes[line.used++] = '\n'; /* add() always leaves a byte */
	if (write(log_fd, line.bytes, line.used) < 0)
		return; /* there is no other place to report it */
}

/* A pipe without a reader must not stop the target for lines of level info or debug. */
static bool has_room(enum osd_log_level level)
{
	static unsigned lost;
	struct pollfd poll_fd = {.fd = log_fd, .events = POLLOUT};
	char text[64];
	unsigned count;

	if (level <= OSD_LOG_WARNING)
		return true;
	if (poll(&poll_fd, 1, 0) == 0) {
		__atomic_add_fetch(&lost, 1, __ATOMIC_RELAXED);
		return false;
	}
	count = __atomic_exchange_n(&lost, 0, __ATOMIC_RELAXED);
	if (count) {
		snprintf(text, sizeof(text), "%u lines were lost: the log was not read", count);
		emit(&osd_log_nothing, OSD_LOG_WARNING, text);
	}
	return true;
}

void osd_log_about(const struct osd_log_about *about, enum osd_log_level level, const char *format,
		   ...)
{
	va_list arguments;
	char text[1024];

	if (!osd_log_wants(level))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (has_room(level))
		emit(about, level, text);
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
