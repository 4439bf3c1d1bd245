/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_log.c -- a line as text and as JSON, what is hostile in it, what is too long, levels, and a log
 * that nobody reads. */
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/test.h"

static int ends[2];
static char got[8192];

static void begin(const char *format, const char *level)
{
	CHECK(pipe(ends) == 0);
	setenv("IOSD_LOG_FORMAT", format, 1);
	setenv("IOSD_LOG_LEVEL", level, 1);
	osd_log_init(ends[1], "tester", OSD_LOG_INFO);
}

/* The written text without the time, which begins at the same place in each line. */
static const char *written(size_t time_at)
{
	ssize_t length;

	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	length = read(ends[0], got, sizeof(got) - 1);
	got[length < 0 ? 0 : length] = '\0';
	close(ends[0]);
	close(ends[1]);
	return length > (ssize_t)time_at + 24 ? got + time_at + 24 : "";
}

static void test_text(void)
{
	const struct osd_log_about about = {0x10000, 0x10007, 12, "numpy"};

	begin("text", "info");
	osd_log_about(&about, OSD_LOG_INFO, "ended %s", "well");
	CHECK(strcmp(written(0),
		     " tester info: job=0x10000/0x10007 pool=numpy sandbox=12 ended well\n") == 0);
	begin("text", "info");
	osd_warning("plain");
	CHECK(strcmp(written(0), " tester warning: plain\n") == 0);
}

static void test_json(void)
{
	const struct osd_log_about about = {0x10000, 0x10007, 12, "numpy"};

	begin("json", "info");
	osd_log_about(&about, OSD_LOG_ERROR, "a \"b\" \\ \n\x01 \xff");
	CHECK(strcmp(written(10),
		     "\", \"level\": \"error\", \"component\": \"tester\", "
		     "\"job\": \"0x10000/0x10007\", \"pool\": \"numpy\", \"sandbox\": 12, "
		     "\"message\": \"a \\\"b\\\" \\\\ \\u000a\\u0001 \\u00ff\"}\n") == 0);
}

/* A line ends correctly, however long its text is. */
static void test_long(void)
{
	char text[3000];
	size_t length;

	memset(text, '\n', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	begin("json", "info");
	osd_info("%s", text);
	length = strlen(written(10));
	CHECK(length > 1500 && length < 2048);
	CHECK(strcmp(got + 24 + 10 + length - 3, "\"}\n") == 0);
	begin("text", "info");
	osd_info("%s", text);
	length = strlen(written(0));
	CHECK(length > 1000 && length < 2048);
}

static void test_levels(void)
{
	begin("text", "warning");
	osd_info("not this");
	osd_warning("this");
	CHECK(strcmp(written(0), " tester warning: this\n") == 0);
	begin("text", "debug");
	osd_debug("this too");
	CHECK(strcmp(written(0), " tester debug: this too\n") == 0);
	begin("text", "nonsense"); /* as the program's own */
	osd_debug("not this");
	CHECK(strcmp(written(0), "") == 0);
}

/* The writer continues, and logs later how many lines were lost. */
static void test_nobody_reads(void)
{
	char drop[4096];

	begin("text", "info");
	for (int i = 0; i < 10000; i++)
		osd_info("line %d", i);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	while (read(ends[0], drop, sizeof(drop)) > 0)
		;
	osd_info("again");
	CHECK(strstr(written(0), " lines were lost: the log was not read\n"));
	CHECK(strstr(got, " tester info: again\n"));
}

int main(void)
{
	test_text();
	test_json();
	test_long();
	test_levels();
	test_nobody_reads();
	return 0;
}
