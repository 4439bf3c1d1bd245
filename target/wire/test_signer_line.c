/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_signer_line.c -- lines of allowed_signers: what they say, and what is refused. */
#include "wire/signer_line.h"

#include "base/test.h"

#define KEY "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL9+QVhB0Do4DWXDmdTmZZ2cvW/jkIHFeCGulTbHMEAx"

static struct osd_signer_line parse(const char *text)
{
	struct osd_signer_line line;
	char message[128] = "";
	bool blank;

	if (!osd_signer_line_parse(text, strlen(text), &line, &blank, message) || blank)
		fprintf(stderr, "%s: %s\n", text, message);
	CHECK(message[0] == '\0' && !blank);
	return line;
}

static void test_lines(void)
{
	struct osd_signer_line line = parse("ann@example.org " KEY " a comment");

	CHECK(!strcmp(line.name, "ann@example.org"));
	CHECK(line.key_length == 51 && !line.after_msec && !line.before_msec);
	CHECK(osd_signer_line_has_space(&line, "iosd-function", false));
	CHECK(!osd_signer_line_has_space(&line, "iosd-function", true));
	line = parse("  a,b\tvalid-after=\"20260102Z\",valid-before=\"20260102030405Z\" " KEY "\r");
	CHECK(!strcmp(line.name, "a,b"));
	CHECK_EQ(line.after_msec, UINT64_C(1767312000000));
	CHECK_EQ(line.before_msec, UINT64_C(1767323045000));
}

static void test_namespaces(void)
{
	struct osd_signer_line line =
		parse("a namespaces=\"file,iosd-*,!iosd-function-java,iosd-function-wasm\" " KEY);

	CHECK(osd_signer_line_has_space(&line, "file", true));
	CHECK(osd_signer_line_has_space(&line, "iosd-function", false));
	CHECK(!osd_signer_line_has_space(&line, "iosd-function", true));
	CHECK(osd_signer_line_has_space(&line, "iosd-function-wasm", true));
	CHECK(!osd_signer_line_has_space(&line, "iosd-function-native", true));
	CHECK(!osd_signer_line_has_space(&line, "iosd-function-java", false));
	CHECK(!osd_signer_line_has_space(&line, "git", false));
}

static void test_caps(void)
{
	struct osd_signer_line line = parse("a " KEY);

	CHECK(!line.caps.access && !line.caps.zone_count && !line.caps.engines[0] &&
	      !line.caps.wall_usec && !line.caps.cpu_usec && !line.caps.memory_bytes);
	line = parse("a iosd-engines=\"python,wasm\",iosd-access=\"none\",iosd-wall=\"2h\",iosd-cpu=\"7us\","
		     "IOSD-memory=\"3GiB\",iosd-zones=\"0x10,17\",namespaces=\"x\" " KEY);
	CHECK(!strcmp(line.caps.engines, "python,wasm"));
	CHECK_EQ(line.caps.access, 1);
	CHECK_EQ(line.caps.wall_usec, UINT64_C(7200000000));
	CHECK_EQ(line.caps.cpu_usec, 7);
	CHECK_EQ(line.caps.memory_bytes, UINT64_C(3) << 30);
	CHECK_EQ(line.caps.zone_count, 2);
	CHECK_EQ(line.caps.zones[0], 16);
	CHECK_EQ(line.caps.zones[1], 17);
	CHECK(osd_signer_line_has_space(&line, "x", true));
	line = parse("a iosd-memory=\"5\",iosd-access=\"write\" " KEY);
	CHECK_EQ(line.caps.memory_bytes, 5);
	CHECK_EQ(line.caps.access, 3);
}

static void test_blank(void)
{
	static const char *const blank_lines[] = {"", "  ", "# " KEY, "\t#", "\r"};
	struct osd_signer_line line;
	char message[128];
	bool blank;

	for (size_t i = 0; i < sizeof(blank_lines) / sizeof(blank_lines[0]); i++)
		CHECK(osd_signer_line_parse(blank_lines[i], strlen(blank_lines[i]), &line, &blank,
					    message) &&
		      blank);
}

static void test_refused(void)
{
	static const struct {
		const char *line, *message;
	} rows[] = {
		{"a cert-authority " KEY, "cert-authority"},
		{"a namespaces=\"x\",cert-authority " KEY, "cert-authority"},
		{"* " KEY, "pattern"},
		{"a,!b " KEY, "pattern"},
		{"\"a b\" " KEY, "pattern"},
		{"a\x01 " KEY, "control"},
		{"a\xff " KEY, "pattern"},
		{"a", "key type"},
		{"a ssh-ed25519", "damaged"},
		{"a ssh-rsa AAAAC3NzaC1lZDI1NTE5", "damaged"},
		{"a ssh-dss AAAA", "key types"},
		{"a sk-ssh-ed25519@openssh.com AAAA", "key types"},
		{"a color=\"red\" " KEY, "options"},
		{"a iosd-wall=\"10\" " KEY, "caps"},
		{"a iosd-wall=\"0s\" " KEY, "caps"},
		{"a iosd-wall=\"18446744073709551615h\" " KEY, "caps"},
		{"a iosd-cpu=\"99999999999999999999s\" " KEY, "caps"},
		{"a iosd-memory=1MiB " KEY, "caps"},
		{"a iosd-memory=\"1MB\" " KEY, "caps"},
		{"a iosd-memory=\"1\",iosd-memory=\"1\" " KEY, "caps"},
		{"a iosd-access=\"all\" " KEY, "caps"},
		{"a iosd-zones=\"0\" " KEY, "caps"},
		{"a iosd-zones=\"-1\" " KEY, "caps"},
		{"a iosd-zones=\"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\" " KEY, "caps"},
		{"a iosd-engines " KEY, "caps"},
		{"a iosd-=\"1\" " KEY, "options"},
		{"a namespaces=x " KEY, "quoted"},
		{"a namespaces=\"\" " KEY, "quoted"},
		{"a namespaces=\"[x]\" " KEY, "quoted"},
		{"a namespaces=\"x\",namespaces=\"y\" " KEY, "once"},
		{"a valid-after=\"2026\" " KEY, "YYYYMMDD"},
		{"a valid-after=\"20261301\" " KEY, "YYYYMMDD"},
		{"a valid-before=\"20260101X\" " KEY, "YYYYMMDD"},
		{"a valid-before=\"20260101\",valid-before=\"20260101\" " KEY, "YYYYMMDD"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct osd_signer_line line;
		char message[128] = "";
		bool blank;

		CHECK(!osd_signer_line_parse(rows[i].line, strlen(rows[i].line), &line, &blank, message));
		if (!strstr(message, rows[i].message))
			fprintf(stderr, "%s: %s\n", rows[i].line, message);
		CHECK(strstr(message, rows[i].message));
	}
}

int main(void)
{
	test_lines();
	test_namespaces();
	test_caps();
	test_blank();
	test_refused();
	return 0;
}
